package feed_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// conn is one connection with its procedure.
type conn struct {
	w      *world
	in     chan string
	closed chan struct{}

	// Guarded by w.mu.
	err    error
	subs   map[string]bool
	tops   map[string]bool
	events map[string][]market.StreamEvent
	count  int
	last   time.Time
	dead   bool // nothing comes any more
}

// send puts a message in; the caller holds the lock.
func (c *conn) send(events ...market.StreamEvent) {
	if c.dead {
		return
	}
	c.count++
	raw := "message " + strconv.Itoa(c.count)
	c.events[raw] = events
	select {
	case c.in <- raw:
	default:
		panic("nobody reads")
	}
}

func (c *conn) end(err error) {
	if c.err == nil {
		c.err = err
		close(c.closed)
	}
}

func (c *conn) Read(ctx context.Context) ([]byte, error) {
	select {
	case raw := <-c.in:
		c.w.mu.Lock()
		c.last = clock.Now()
		c.w.mu.Unlock()
		return []byte(raw), nil
	default:
	}
	select {
	case raw := <-c.in:
		c.w.mu.Lock()
		c.last = clock.Now()
		c.w.mu.Unlock()
		return []byte(raw), nil
	case <-c.closed:
		c.w.mu.Lock()
		defer c.w.mu.Unlock()
		return nil, c.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c *conn) LastFrame() time.Time {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	return c.last
}

// LastByte is that of a frame each second where the exchange sends heartbeats, of which these tests are not told.
func (c *conn) LastByte() time.Time {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	if beat := clock.Now().Truncate(time.Second); c.w.rules.Silence.Heartbeats && !c.dead && beat.After(c.last) {
		return beat
	}
	return c.last
}

// Ping is answered 20 ms later.
func (c *conn) Ping() bool {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	c.w.n.pings++
	if !c.dead && !c.w.silent && !c.w.deaf {
		time.AfterFunc(20*time.Millisecond, func() {
			c.w.mu.Lock()
			defer c.w.mu.Unlock()
			c.last, c.w.answers = clock.Now(), true
		})
	}
	return c.w.answers
}

func (c *conn) Subscribe(ctx context.Context, subs []market.StreamSub) error {
	w := c.w
	w.mu.Lock()
	slow := w.slow
	w.mu.Unlock()
	select {
	case <-time.After(slow):
	case <-ctx.Done():
		return failure(market.KindCanceled)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.n.subscribes++
	if c.err != nil {
		return c.err
	}
	if c.dead {
		w.n.inVain++
	}
	if w.silent {
		return nil
	}
	if len(subs) > w.rules.Batch {
		return fmt.Errorf("%d subscriptions in one message", len(subs))
	}
	for _, sub := range subs {
		s := sub.Listing.StreamSymbol()
		if sub.Channel == market.StreamBest {
			c.tops[s] = true
			continue
		}
		if err := w.refusing[s]; err != nil {
			c.send(market.StreamEvent{Kind: market.StreamRefused, Symbol: s, Err: err})
			continue
		}
		c.subs[s] = true
		if w.first != nil {
			c.send(w.first...)
			continue
		}
		if len(c.subs) > w.rules.Books {
			return fmt.Errorf("%d books on one connection", len(c.subs))
		}
		c.send(market.StreamEvent{Kind: market.StreamAccepted, Symbol: s})
		switch {
		case w.mute[s]:
		case w.byREST:
			c.send(market.StreamEvent{Kind: market.StreamWanted, Symbol: s})
		default:
			c.send(w.snapshot(s))
		}
	}
	return nil
}

func (w *world) snapshot(s string) market.StreamEvent {
	n := max(w.seq[s], 1)
	w.seq[s] = n
	return market.StreamEvent{Kind: market.StreamSnapshot, Symbol: s, Bids: levels("100", n), Asks: levels("101", 1), Sequence: w.sequence(n)}
}

func (c *conn) Unsubscribe(ctx context.Context, subs []market.StreamSub) error {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	c.w.n.unsubscribes++
	if c.dead {
		c.w.n.inVain++
	}
	for _, sub := range subs {
		if sub.Channel == market.StreamBest {
			delete(c.tops, sub.Listing.StreamSymbol())
		} else {
			delete(c.subs, sub.Listing.StreamSymbol())
		}
	}
	return c.err
}

func (c *conn) Decode(raw []byte, at time.Time) []market.StreamEvent {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	events := c.events[string(raw)]
	delete(c.events, string(raw))
	if len(events) == 1 && events[0].Kind == panics {
		panic("as the test says")
	}
	return slices.DeleteFunc(events, func(e market.StreamEvent) bool {
		return e.Symbol != "" && !c.subs[e.Symbol] && e.Kind != market.StreamRefused
	})
}

// panics is a message that a decoder dies of.
const panics = market.StreamEventKind(200)

// Load answers with the snapshot and with what was buffered since.
func (c *conn) Load(b *market.OrderBook) []market.StreamEvent {
	w := c.w
	w.mu.Lock()
	defer w.mu.Unlock()
	events := []market.StreamEvent{{
		Kind: market.StreamSnapshot, Symbol: b.Symbol, Bids: b.Bids(), Asks: b.Asks(), Sequence: b.Sequence,
		ConfirmedAt: b.ConfirmedAt, Limit: 1000,
	}}
	if n := w.seq[b.Symbol]; n > b.Sequence.Value && !w.frozen[b.Symbol] {
		events = append(events, market.StreamEvent{Kind: market.StreamUpdate, Symbol: b.Symbol, Bids: levels("100", n), Sequence: w.sequence(n)})
	}
	return events
}

func (c *conn) Distrust(symbol string, why error) []market.StreamEvent {
	if c.w.byREST {
		return []market.StreamEvent{
			{Kind: market.StreamLost, Symbol: symbol, Remedy: market.RemedySnapshot, Err: why},
			{Kind: market.StreamWanted, Symbol: symbol},
		}
	}
	return []market.StreamEvent{{Kind: market.StreamLost, Symbol: symbol, Remedy: market.RemedyResubscribe, Err: why}}
}

func (c *conn) Tick(time.Time) []market.StreamEvent {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	if c.w.tickPanics {
		c.w.tickPanics = false
		panic("as the test says")
	}
	return nil
}

func (c *conn) Close() {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	c.end(failure(market.KindCanceled))
	c.w.conns = slices.DeleteFunc(c.w.conns, func(x *conn) bool { return x == c })
}
