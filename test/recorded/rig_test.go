package recorded

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/feed"
	"exchange-gateway/internal/market"
	"exchange-gateway/internal/resilience"
)

// rig is the real way of a stream: the adapter behind the guard, and the feed, before a scripted exchange.
type rig struct {
	*testing.T
	venue *venue
	tape  *tape
	ear   *ear
	feed  *feed.Feed
	peer  *peer // the connection that the tape is played on
	line  int   // of the tape, that was said last
	keys  map[string]feed.Key
}

// newRig starts nothing yet.
func newRig(t *testing.T, d *dialect, p *tape) *rig {
	t.Helper()
	r := &rig{T: t, venue: newVenue(t, d), tape: p, ear: newEar(p, d.cut), keys: make(map[string]feed.Key)}
	guard := resilience.New(resilience.Config{Exchanges: map[market.ExchangeID]resilience.Policy{d.id: patient()}})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := guard.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	transport := exchange.NewTransport(nil, nil)
	adapter, err := d.make(exchange.Config{
		ID: d.id, Door: guard.Door(d.id), Transport: transport, Streams: exchange.NewStreamTransport(nil, nil),
		Hosts: []string{r.venue.server.URL}, StreamHosts: []string{"ws" + strings.TrimPrefix(r.venue.server.URL, "http")},
	})
	if err != nil {
		t.Fatal(err)
	}
	r.feed = feed.New(feed.Config{
		Listener: r.ear,
		Venues:   []feed.Venue{{ID: d.id, Streamer: adapter, Data: guard.MarketData(adapter), Do: guard.Do}},
	})
	return r
}

// patient is the usual policy, but for the time that a book by REST may take: tests hold answers back, and how long the
// messages of meanwhile take is the machine's affair.
func patient() resilience.Policy {
	return resilience.Policy{Classes: map[market.Class]resilience.ClassPolicy{
		market.ClassMarketData: {Timeout: patience / 2, Deadline: patience, Window: 3 * patience},
	}}
}

// watch asks for the books of pairs, "NKN/USDT".
func (r *rig) watch(ch market.StreamChannel, pairs ...string) {
	r.Helper()
	for _, p := range pairs {
		base, quote, _ := strings.Cut(p, "/")
		l := market.Listing{
			Exchange: r.venue.dialect.id, Pair: market.Pair{Base: base, Quote: quote},
			Symbol: r.venue.dialect.symbol(base, quote), Status: market.TradingActive,
		}
		if _, err := r.feed.Watch(l, ch); err != nil {
			r.Fatal(err)
		}
		r.keys[l.Symbol] = feed.Key{Exchange: l.Exchange, Pair: l.Pair}
	}
}

// start runs the feed and waits until all that is watched is asked for on the first connection.
func (r *rig) start(channels ...market.StreamChannel) {
	r.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.feed.Run(ctx) }()
	r.Cleanup(func() { // before the exchange is closed, so that nothing is dialled anew
		cancel()
		if err := <-done; err != nil {
			r.Error(err)
		}
		r.ear.mu.Lock()
		defer r.ear.mu.Unlock()
		for _, w := range r.ear.wrong {
			r.Error(w)
		}
	})
	r.peer = r.venue.dialled(r.T)
	for symbol := range r.keys {
		for _, ch := range append(channels, market.StreamBook) {
			r.peer.subscribed(r.T, r.venue.dialect.channel(symbol, ch), 1)
		}
	}
}

// at tells everybody how far the tape is played.
func (r *rig) at(line int) {
	r.line = line
	r.ear.mu.Lock()
	defer r.ear.mu.Unlock()
	r.ear.line = line
}

// play plays one line of the tape. It is false when the client hung up over it.
func (r *rig) play(line int) bool {
	r.Helper()
	r.at(line)
	return r.peer.say(r.T, r.tape.lines[line-1])
}

// through plays the tape from after the last line up to and including one.
func (r *rig) through(line int) {
	r.Helper()
	for n := r.line + 1; n <= line; n++ {
		if !r.play(n) {
			r.Fatalf("the client hung up at line %d", n)
		}
	}
}

// shown is a book as it is shown at a moment.
type shown struct {
	feed.Freshness
	held         bool
	bids, asks   []level
	epoch        string
	sequence     market.Sequence
	exchangeTime time.Time
	confirmedAt  time.Time
	changedAt    time.Time
	best         feed.Best
}

// see is the book of a symbol now.
func (r *rig) see(symbol string) (s shown) {
	r.Helper()
	if !r.feed.Inspect(r.keys[symbol], func(v feed.View) {
		s = shown{
			Freshness: v.Freshness(), held: v.Held(), epoch: v.Epoch(), sequence: v.Sequence(), best: v.Best(),
			exchangeTime: v.ExchangeTime(), confirmedAt: v.ConfirmedAt(), changedAt: v.ChangedAt(),
			bids: plain(v.Bids(nil, everything)), asks: plain(v.Asks(nil, everything)),
		}
	}) {
		r.Fatalf("%s is not streamed", symbol)
	}
	return s
}

// live waits until a book is live.
func (r *rig) live(symbol string) shown {
	r.Helper()
	var s shown
	await(r.T, symbol+" live", func() bool {
		s = r.see(symbol)
		return s.State == feed.StateLive
	})
	return s
}

// wantBook checks that a symbol's book is live and, level by level, that of the exchange after the line said last.
func (r *rig) wantBook(symbol string) shown {
	r.Helper()
	s, want := r.see(symbol), r.tape.book(symbol, r.line)
	if s.State != feed.StateLive {
		r.Fatalf("line %d: %s is %s (%v)", r.line, symbol, s.State, s.Reason)
	}
	if r.tape.numbered && s.sequence != market.SequenceOf(want.sequence) {
		r.Fatalf("line %d: %s stands at %v, want %d", r.line, symbol, s.sequence, want.sequence)
	}
	r.ear.mu.Lock()
	edges := r.ear.of(symbol).edges
	r.ear.mu.Unlock()
	for _, d := range []string{
		differ("bid", s.bids, want.bids.within(edges[0])), differ("ask", s.asks, want.asks.within(edges[1])),
	} {
		if d != "" {
			r.Fatalf("line %d: %s: %s", r.line, symbol, d)
		}
	}
	b, fresh, ok := r.feed.Book(r.keys[symbol])
	if !ok || fresh.State != feed.StateLive || b.Sequence != s.sequence || b.Symbol != symbol {
		r.Fatalf("line %d: %s as a whole is %v, %v, %+v", r.line, symbol, ok, fresh, b)
	}
	most := func(levels []level) []level { return levels[:min(len(levels), maxDepth)] }
	for _, d := range []string{
		differ("bid", plain(b.Bids()), most(s.bids)), differ("ask", plain(b.Asks()), most(s.asks)),
	} {
		if d != "" {
			r.Fatalf("line %d: %s as a whole: %s", r.line, symbol, d)
		}
	}
	return s
}

// maxDepth is how deep the feed's books are when read as a whole.
const maxDepth = 1000

// wantStale checks that a book is shown as stale, and why.
func (r *rig) wantStale(symbol string, why market.Kind) {
	r.Helper()
	if s := r.see(symbol); s.State != feed.StateStale || s.Reason != why {
		r.Fatalf("line %d: %s is %s (%v), want stale (%v)", r.line, symbol, s.State, s.Reason, why)
	}
	if _, fresh, ok := r.feed.Book(r.keys[symbol]); ok && fresh.State != feed.StateStale {
		r.Fatalf("line %d: %s as a whole is %s", r.line, symbol, fresh.State)
	}
}

// wantStates checks the states that were told of a symbol.
func (r *rig) wantStates(symbol string, states ...string) {
	r.Helper()
	r.ear.mu.Lock()
	defer r.ear.mu.Unlock()
	if got := r.ear.of(symbol).states; !slices.Equal(got, states) {
		r.Errorf("%s was told as %q, want %q", symbol, got, states)
	}
}

// told is how many snapshots and updates of a symbol were shown.
func (r *rig) told(symbol string) (loads, changes int) {
	r.ear.mu.Lock()
	defer r.ear.mu.Unlock()
	h := r.ear.of(symbol)
	return h.loaded, h.changed
}

// wantAsked checks how often the exchange was asked for a book by REST, and dialled.
func (r *rig) wantAsked(symbol string, rest, dials int) {
	r.Helper()
	if got := r.venue.askedFor(symbol); got != rest {
		r.Errorf("%s was asked for %d times, want %d", symbol, got, rest)
	}
	if got := r.venue.dialCount(); got != dials {
		r.Errorf("dialled %d times, want %d", got, dials)
	}
}
