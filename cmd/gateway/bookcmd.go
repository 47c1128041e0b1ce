package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"exchange-gateway/client"
)

const defaultGateway = "http://127.0.0.1:8080"

// gatewayFlags say which gateway's public listener is asked, and with whose key.
type gatewayFlags struct {
	Gateway string `placeholder:"URL" help:"The gateway, default http://127.0.0.1:8080. Also GATEWAY_URL."`
	KeyFile string `placeholder:"FILE" help:"File with a key. Also GATEWAY_KEY_FILE, or the key itself in GATEWAY_KEY. None is needed on loopback."`
}

func (f gatewayFlags) connect(sys system) (*client.Client, error) {
	key, err := keyOf(f.KeyFile, sys.env, "GATEWAY_KEY")
	if err != nil {
		return nil, err
	}
	base := f.Gateway
	if base == "" {
		base = lookup(sys.env, "GATEWAY_URL")
	}
	if base == "" {
		base = defaultGateway
	}
	return client.New(base, client.Options{Key: client.Key(key.Reveal()), UserAgent: "gateway book"})
}

// Exit codes of `book` beyond 0 (live), 1 (it could not be had) and 2 (the command line makes no sense).
const (
	exitStale       = 3
	exitCircuitOpen = 4
)

type bookCmd struct {
	gatewayFlags `embed:""`

	Exchange string         `arg:"" help:"Which one, for example okx."`
	Symbol   string         `arg:"" help:"Which pair, for example BTC/USDT."`
	Depth    int            `default:"10" placeholder:"N" help:"Levels of each side, default 10; at most 1000, and 400 with --watch."`
	MaxAge   *time.Duration `placeholder:"5s" help:"Show no book older than this, default what the gateway shows."`
	Watch    bool           `short:"w" help:"Go on as it changes, until Ctrl-C; lost connections are made again."`
	Output   string         `short:"o" enum:"text,json" default:"text" placeholder:"FORMAT" help:"text or json, default text; json with --watch is one object a line."`
}

// Help is shown by `gateway book --help`.
func (bookCmd) Help() string {
	return "Exit code 0: the book is live; 3: it is stale; 4: there is none to show and the exchange's circuit is open; 1: there is none to show. " +
		"With --watch: 0 after Ctrl-C."
}

// Run shows a book, once or as it changes.
func (c bookCmd) Run(ctx context.Context, sys system) error {
	if err := c.check(); err != nil {
		return err
	}
	gw, err := c.connect(sys)
	if err != nil {
		return err
	}
	if c.Watch {
		return c.watch(ctx, sys, gw)
	}
	options := []client.OrderBookOption{client.Depth(c.Depth)}
	if c.MaxAge != nil {
		options = append(options, client.MaxAge(*c.MaxAge))
	}
	book, err := gw.OrderBook(ctx, c.Exchange, c.Symbol, options...)
	if err != nil {
		return c.refused(sys, err)
	}
	return c.show(sys, book)
}

func (c bookCmd) check() error {
	most := 1000
	if c.Watch {
		most = 400
	}
	switch {
	case c.Depth < 1 || c.Depth > most:
		return fmt.Errorf("--depth %d: from 1 to %d levels", c.Depth, most)
	case c.MaxAge != nil && *c.MaxAge < 0:
		return errors.New("--max-age: an age is not negative, for example 5s")
	}
	return nil
}

func (c bookCmd) show(sys system, b *client.OrderBook) error {
	var err error
	if c.Output == "json" {
		err = writeObject(sys.out, b)
	} else {
		v := bookView{exchange: b.Exchange, symbol: b.Symbol, note: b.MarketStatus, fresh: b.Freshness, bids: b.Bids, asks: b.Asks, held: true}
		v.mid, v.spread = words(b.Mid()), words(b.Spread())
		_, err = io.WriteString(sys.out, v.text(time.Now(), paper(colourful(sys))))
	}
	if err == nil && b.Freshness.Stale {
		return exitError(exitStale)
	}
	return err
}

// refused says why there is no book. The code tells an open circuit from the rest.
func (c bookCmd) refused(sys system, err error) error {
	var e *client.Error
	if !errors.As(err, &e) {
		return err
	}
	fmt.Fprintf(sys.err, "gateway: %s\n", why(e))
	if e.Code == client.ErrCircuitOpen || e.Reason == string(client.ErrCircuitOpen) {
		return exitError(exitCircuitOpen)
	}
	return exitError(1)
}

// why is a refusal for people.
func why(e *client.Error) string {
	s := e.Detail
	switch {
	case e.Code == client.ErrExchangeUnknown && len(e.Allowed) > 0: // whoever typed a command knows of no path
		s = "This exchange is not enabled at the gateway. Enabled: " + strings.Join(e.Allowed, ", ") + "."
	case s == "":
		s = e.Error()
	}
	if e.Age > 0 {
		s += " The last copy is " + span(e.Age) + " old."
	}
	if e.RetryAfter > 0 {
		s += " Try again in " + span(e.RetryAfter) + "."
	}
	return plain(s)
}

func writeObject(w io.Writer, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, '\n'))
	return err
}
