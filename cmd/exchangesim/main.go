// Command exchangesim runs simulated Binance, OKX and Coinbase venues that misbehave on command.
//
// It prints the URLs when it listens, serves until it is interrupted, and then exits with 0. The control endpoint and its routes are
// described by --help; the package exchange-gateway/internal/exchangesim describes schedules and manifests.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Getenv, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "exchangesim:", err)
		stop()
		os.Exit(1)
	}
}
