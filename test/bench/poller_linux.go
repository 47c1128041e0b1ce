package main

import (
	"errors"
	"net"
	"runtime"
	"syscall"
	"time"
)

// poller reads many connections with one thread.
type poller struct{ fd int }

func newPoller() (*poller, error) {
	fd, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	return &poller{fd}, err
}

// add has a connection read under a descriptor of its own; conn can be closed then.
func (p *poller) add(conn net.Conn) (fd int, err error) {
	raw, err := conn.(syscall.Conn).SyscallConn()
	if err != nil {
		return 0, err
	}
	var dup error
	if err := raw.Control(func(old uintptr) { fd, dup = syscall.Dup(int(old)) }); err != nil || dup != nil {
		return 0, errors.Join(err, dup)
	}
	return fd, syscall.EpollCtl(p.fd, syscall.EPOLL_CTL_ADD, fd, &syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(fd)})
}

// run gives read all that comes, and nothing when a connection ends. It never returns.
func (p *poller) run(read func(fd int, b []byte, now time.Time)) {
	runtime.LockOSThread()
	events, buf := make([]syscall.EpollEvent, 256), make([]byte, 256<<10)
	for {
		n, err := syscall.EpollWait(p.fd, events, -1)
		if err != nil && !errors.Is(err, syscall.EINTR) {
			panic(err) // for wrong arguments only
		}
		for _, e := range events[:max(n, 0)] {
			n, err := syscall.Read(int(e.Fd), buf)
			if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EINTR) {
				continue
			}
			read(int(e.Fd), buf[:max(n, 0)], time.Now())
			if n <= 0 {
				_ = syscall.Close(int(e.Fd)) // which takes it out of the poll, too
			}
		}
	}
}
