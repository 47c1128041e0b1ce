package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"exchange-gateway/client"
)

const (
	// redrawEvery is how often a terminal is drawn at most, whatever the market does; a person sees no more.
	redrawEvery = 100 * time.Millisecond
	// ageEvery is how often it is drawn while nothing comes: the age grows.
	ageEvery = time.Second
)

// streamDepths are those that the gateway streams.
var streamDepths = [...]int{1, 5, 20, 50, 100, 400}

// watch follows a book until Ctrl-C, which is how it should end.
func (c bookCmd) watch(ctx context.Context, sys system, gw *client.Client) error {
	w, err := gw.Watch(ctx, client.Subscription{Exchange: c.Exchange, Symbols: []string{c.Symbol}, Depth: c.streamDepth()})
	if err != nil {
		return err
	}
	defer w.Close() // it has nothing to say
	follow := c.lines
	switch {
	case c.Output == "json":
		follow = c.objects
	case isTerminal(sys.out):
		follow = c.screen
	}
	err = follow(ctx, sys, w)
	if ctx.Err() != nil || errors.Is(err, client.ErrClosed) {
		return nil
	}
	return err
}

func (c bookCmd) streamDepth() int {
	for _, d := range streamDepths {
		if d >= c.Depth {
			return d
		}
	}
	return streamDepths[len(streamDepths)-1]
}

// watched is what is known of a watched book.
type watched struct {
	view bookView
	lost *client.Connection // nil while the gateway is heard
	fail *client.StreamError
}

func (c bookCmd) newWatched() *watched {
	return &watched{view: bookView{
		exchange: c.Exchange, symbol: c.Symbol, pushed: true, fresh: client.Freshness{Status: client.StatusSyncing, Stale: true},
	}}
}

// take notes an event. A pair that will never be streamed ends the command.
func (x *watched) take(c *bookCmd, e client.Event) error {
	v := &x.view
	switch e := e.(type) {
	case *client.Connection:
		if x.lost = e; e.Connected {
			x.lost = nil
		}
	case *client.StreamError:
		if x.fail = e; e.RetryIn == 0 {
			return e.Err
		}
	case *client.StreamStatus:
		v.fresh, v.since = e.Freshness, e.Since
		if e.Freshness.Status == client.StatusWithheld {
			v.held = false
		}
	case *client.StreamBook:
		x.fail = nil
		v.symbol, v.fresh, v.since, v.held = e.Symbol, e.Freshness, e.Since, true
		v.bids, v.asks = e.Bids[:min(c.Depth, len(e.Bids))], e.Asks[:min(c.Depth, len(e.Asks))]
		v.mid, v.spread = words(e.Mid()), words(e.Spread())
	}
	return nil
}

// hide covers a stale book that is older than the reader accepts.
func (x *watched) hide(maxAge *time.Duration, now time.Time) {
	x.view.hidden = ""
	if maxAge != nil && x.view.fresh.Stale && x.view.fresh.AgeNow(now) > *maxAge {
		x.view.hidden = "older than --max-age " + maxAge.String() + ": not shown"
	}
}

// trouble is what the reader has to know beside the book, "" if there is nothing.
func (x *watched) trouble() string {
	switch {
	case x.lost != nil:
		return fmt.Sprintf("THE GATEWAY IS LOST since %s: %s; trying again every %s or so",
			x.lost.At.Local().Format("15:04:05"), plain(x.lost.Err.Error()), span(max(time.Second, x.lost.RetryIn)))
	case x.fail != nil:
		return "the gateway does not stream it now: " + why(x.fail.Err)
	}
	return ""
}

// screen draws the book anew in place. It draws on the terminal's other page, so that nothing of the reader's is lost, and
// leaves what it showed last on the first.
func (c bookCmd) screen(ctx context.Context, sys system, w *client.Watch) error {
	x, p := c.newWatched(), paper(colourful(sys))
	var last string
	if _, err := io.WriteString(sys.out, "\x1b[?1049h\x1b[?25l"); err != nil {
		return err
	}
	defer func() { _, _ = io.WriteString(sys.out, "\x1b[?25h\x1b[?1049l"+last) }() // the reader has gone if it fails
	for {
		drawn := time.Now()
		x.hide(c.MaxAge, drawn)
		last = x.page(drawn, p)
		// Each line is written over the old one, and what is left of that is cleared: no flicker.
		page := "\x1b[H" + strings.ReplaceAll(last, "\n", "\x1b[K\n") + "Ctrl-C ends it\x1b[K\x1b[J"
		if _, err := io.WriteString(sys.out, page); err != nil {
			return err
		}
		if err := c.gather(ctx, w, x, drawn); err != nil {
			return err
		}
	}
}

func (x *watched) page(now time.Time, p paper) string {
	s := x.view.text(now, p)
	if t := x.trouble(); t != "" {
		s += p.bad(t) + "\n"
	}
	return s
}

// gather takes events until it is time to draw: soon after something came, or when the age has grown.
func (c bookCmd) gather(ctx context.Context, w *client.Watch, x *watched, drawn time.Time) error {
	until := drawn.Add(ageEvery)
	for {
		soon, cancel := context.WithDeadline(ctx, until)
		e, err := w.Next(soon)
		cancel()
		switch {
		case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
			return nil
		case err != nil:
			return err
		}
		if err := x.take(&c, e); err != nil {
			return err
		}
		until = drawn.Add(redrawEvery)
	}
}

// lines writes one line for each change, for pipes and logs.
func (c bookCmd) lines(ctx context.Context, sys system, w *client.Watch) error {
	x := c.newWatched()
	for {
		e, err := w.Next(ctx)
		if err != nil {
			return err
		}
		if err := x.take(&c, e); err != nil {
			return err
		}
		now := time.Now()
		x.hide(c.MaxAge, now)
		if _, err := fmt.Fprintf(sys.out, "%s %s\n", now.Local().Format("15:04:05.000"), x.line(e, now)); err != nil {
			return err
		}
	}
}

// line is an event in one line.
func (x *watched) line(e client.Event, now time.Time) string {
	v := &x.view
	name := plain(v.exchange) + " " + plain(v.symbol) + " "
	switch e := e.(type) {
	case *client.Connection:
		if e.Connected {
			return "the gateway is heard"
		}
		return fmt.Sprintf("THE GATEWAY IS LOST: %s; trying again in %s", plain(e.Err.Error()), span(e.RetryIn))
	case *client.StreamError:
		return name + "is not streamed now: " + why(e.Err)
	case *client.StreamStatus:
		return name + v.standing(now, false)
	}
	if v.hidden != "" {
		return name + v.standing(now, false) + ": " + v.hidden
	}
	return fmt.Sprintf("%sbid %s ask %s mid %s spread %s  %s", name, top(v.bids), top(v.asks), v.mid, v.spread, v.standing(now, false))
}

func top(levels []client.Level) string {
	if len(levels) == 0 {
		return "-"
	}
	return string(levels[0].Price) + " x " + string(levels[0].Size)
}

// objects writes one JSON object for each change.
func (c bookCmd) objects(ctx context.Context, sys system, w *client.Watch) error {
	x := c.newWatched()
	for {
		e, err := w.Next(ctx)
		if err != nil {
			return err
		}
		if err := writeObject(sys.out, object(e)); err != nil {
			return err
		}
		if err := x.take(&c, e); err != nil {
			return err
		}
	}
}

// object is an event with its type.
func object(e client.Event) any {
	switch e := e.(type) {
	case *client.Connection:
		o := struct {
			Type      string `json:"type"`
			Connected bool   `json:"connected"`
			Error     string `json:"error,omitempty"`
			RetryMS   int64  `json:"retry_in_ms,omitempty"`
		}{Type: "connection", Connected: e.Connected, RetryMS: e.RetryIn.Milliseconds()}
		if e.Err != nil {
			o.Error = e.Err.Error()
		}
		return o
	case *client.StreamError:
		return struct {
			Type    string      `json:"type"`
			Symbol  string      `json:"symbol"`
			Code    client.Code `json:"code"`
			Detail  string      `json:"detail"`
			RetryMS int64       `json:"retry_in_ms,omitempty"`
		}{"error", e.Symbol, e.Err.Code, e.Err.Detail, e.RetryIn.Milliseconds()}
	case *client.StreamStatus:
		return struct {
			Type string `json:"type"`
			*client.StreamStatus
		}{"status", e}
	case *client.StreamBook:
		return struct {
			Type string `json:"type"`
			*client.StreamBook
		}{"book", e}
	}
	return nil
}
