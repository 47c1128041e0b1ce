package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

type healthcheckCmd struct {
	settings `embed:""`
}

// healthTimeout is under the two seconds that the container's check allows.
const healthTimeout = 1500 * time.Millisecond

// Run asks the admin listener whether the process serves. An exchange that is down does not make it unhealthy: the
// gateway is most needed then.
func (h healthcheckCmd) Run(ctx context.Context, sys system) error {
	c, err := h.load(sys)
	if err != nil {
		return err
	}
	// It sends nothing that another could take, and a renewal that went wrong must not have a gateway restarted that serves with
	// the certificate before it, and would not start with the new one.
	base, transport, err := ownListener(&c, func(why error) error {
		fmt.Fprintf(sys.err, "Warning: %s: %v\n", c.AdminListen, why)
		return nil
	})
	if err != nil {
		return err
	}
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	target := base + "/readyz"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return err
	}
	res, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return fmt.Errorf("not up: %w", err)
	}
	defer res.Body.Close() // nothing was written
	if res.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(res.Body, 200)) // only to show it
		return fmt.Errorf("not ready: %s answered %d %s", target, res.StatusCode, body)
	}
	_, err = fmt.Fprintln(sys.out, "ok")
	return err
}

// reachable is the address at which this machine reaches its own listener: one that is bound to every address is asked on
// loopback.
func reachable(listen string) (string, error) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "", err
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port), nil
}
