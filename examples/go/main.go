// Command go watches books on the gateway's stream, and trusts them only while they are live.
//
//	go run ./examples/go okx BTC/USDT ETH/USDT
//
// The gateway is http://127.0.0.1:8080, or GATEWAY_URL; where it asks for a key, it is in GATEWAY_KEY. Ctrl-C ends it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"exchange-gateway/client"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: go run ./examples/go EXCHANGE SYMBOL...")
		os.Exit(2)
	}
	base := os.Getenv("GATEWAY_URL")
	if base == "" {
		base = "http://127.0.0.1:8080"
	}
	err := watch(ctx, os.Stdout, base, client.Key(os.Getenv("GATEWAY_KEY")), os.Args[1], os.Args[2:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// watch follows books until ctx ends.
func watch(ctx context.Context, out io.Writer, base string, key client.Key, exchange string, symbols []string) error {
	gateway, err := client.New(base, client.Options{Key: key})
	if err != nil {
		return err
	}
	w, err := gateway.Watch(ctx, client.Subscription{Exchange: exchange, Symbols: symbols, Depth: 5})
	if err != nil {
		return err
	}
	defer w.Close()
	for {
		event, err := w.Next(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil: // asking again cannot help, such as with a key that is not valid
			return err
		}
		fmt.Fprintln(out, time.Now().Format("15:04:05.000"), say(event))
	}
}

// say is what a bot should make of each event.
func say(event client.Event) string {
	switch e := event.(type) {
	case *client.StreamBook:
		mid, ok := e.Mid()
		switch {
		case e.Freshness.Stale:
			return fmt.Sprintf("%s: an old book, confirmed %v ago: not traded on", e.Symbol, e.Freshness.AgeNow(time.Now()).Round(time.Millisecond))
		case !ok:
			return e.Symbol + ": one side is empty: there is no mid"
		}
		return fmt.Sprintf("%s: mid %v, %d versions left out", e.Symbol, mid, e.Missed)
	case *client.StreamStatus:
		if e.Freshness.Stale {
			return fmt.Sprintf("%s: %s (%s) since %s: stop trusting it", e.Symbol, e.Freshness.Status, e.Freshness.Reason, e.Since.Format("15:04:05"))
		}
		return e.Symbol + ": live"
	case *client.StreamError:
		if errors.Is(e.Err, client.ErrSymbolUnknown) {
			return e.Symbol + ": the exchange does not list it"
		}
		return fmt.Sprintf("%s: %s; again in %v", e.Symbol, e.Err.Detail, e.RetryIn)
	case *client.Connection:
		if !e.Connected {
			return fmt.Sprintf("the gateway is lost (%v); again in %v", e.Err, e.RetryIn.Round(time.Millisecond))
		}
		return "the gateway is heard"
	}
	return fmt.Sprintf("%T: an event of a later version", event)
}
