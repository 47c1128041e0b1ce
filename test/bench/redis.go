package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// measureRedis asks for books that are held in memory while the circuit is open and Redis hangs.
func measureRedis(ctx context.Context, r *run) error {
	dir := filepath.Join(r.dir, "redis")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	redis, err := startRedis(ctx, dir)
	if err != nil {
		return err
	}
	defer redis.stop()
	u, err := startUpstream(ctx)
	if err != nil {
		return err
	}
	defer u.stop()
	program, err := build(ctx, r.dir)
	if err != nil {
		return err
	}
	g, err := startGateway(ctx, program, filepath.Join(dir, "state"), u.url, "--redis", redis.addr)
	if err != nil {
		return err
	}
	defer g.stop()

	const books = 40
	for i := range books {
		if _, err := g.good(ctx, coin(i), 100); err != nil {
			return err
		}
	}
	u.broken.Store(true)
	if err := g.openCircuit(ctx); err != nil {
		return err
	}
	select {
	case <-time.After(time.Second): // the copies are no longer live
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := redis.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	defer func() { _ = redis.cmd.Process.Signal(syscall.SIGCONT) }() // or it cannot stop
	worst := time.Duration(0)
	for i := range books {
		a, took, err := g.book(ctx, http.DefaultClient, coin(i), 100)
		if err != nil {
			return err
		}
		if a.Status != http.StatusOK || !a.Stale || a.Freshness.Source != "memory" || a.Freshness.Reason != "circuit_open" {
			return fmt.Errorf("with Redis hung: status %d, %s, %+v", a.Status, a.Code, a.Freshness)
		}
		worst = max(worst, took)
	}
	r.most(fmt.Sprintf("circuit open, Redis hung, copy in memory: worst of %d", books), float64(worst), millis, float64(60*time.Millisecond))
	return nil
}

func startRedis(ctx context.Context, dir string) (*process, error) {
	addr, err := freeAddr(ctx)
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	ready := func(line string) (string, bool) { return addr, strings.Contains(line, "Ready to accept connections") }
	return start(ctx, ready, "redis-server", "--port", port, "--bind", "127.0.0.1", "--dir", dir, "--save", "", "--appendonly", "no")
}
