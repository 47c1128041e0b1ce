//go:build !linux

package main

import (
	"errors"
	"net"
	"time"
)

// poller needs Linux, as all that is read from /proc does.
type poller struct{}

func newPoller() (*poller, error) { return nil, errors.ErrUnsupported }

func (*poller) add(net.Conn) (int, error)               { return 0, errors.ErrUnsupported }
func (*poller) run(func(fd int, b []byte, _ time.Time)) {}
