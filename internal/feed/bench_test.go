package feed_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"exchange-gateway/internal/feed"
	"exchange-gateway/internal/market"
)

// flood is an exchange whose stream brings b.N diffs of 20 levels as fast as they are read.
type flood struct {
	*world
	symbols []string
	raw     []byte
	levels  int
	want    int64 // messages after the snapshots
	sent    int64
	ended   chan struct{}
	asked   chan struct{}
}

func newFlood(books, levels int, want int64) *flood {
	f := &flood{
		world: newWorld(market.StreamRules{Books: books, Batch: books, VouchFor: time.Hour}), levels: levels, want: want,
		raw: make([]byte, 1000), ended: make(chan struct{}), asked: make(chan struct{}),
	}
	_, f.symbols = names(books)
	return f
}

func (f *flood) Dial(context.Context) (market.StreamConn, error) { return &floodConn{flood: f}, nil }

type floodConn struct {
	*flood
	next   int64
	events [1]market.StreamEvent
	bids   []market.Level
	asks   []market.Level
}

func (c *floodConn) Subscribe(context.Context, []market.StreamSub) error {
	close(c.asked)
	return nil
}

func (c *floodConn) Read(ctx context.Context) ([]byte, error) {
	if c.next == 0 {
		<-c.asked
	}
	if c.next == int64(len(c.symbols))+c.want {
		if c.sent == 0 {
			c.sent = c.next
			close(c.ended)
		}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	c.next++
	return c.raw, nil
}

func (c *floodConn) Decode([]byte, time.Time) []market.StreamEvent {
	n := c.next - 1
	e := &c.events[0]
	*e = market.StreamEvent{Kind: market.StreamUpdate, Symbol: c.symbols[n%int64(len(c.symbols))], Sequence: market.SequenceOf(n)}
	c.bids, c.asks = c.bids[:0], c.asks[:0]
	many := 10
	if n < int64(len(c.symbols)) {
		e.Kind, many = market.StreamSnapshot, c.levels
	}
	for i := range many {
		at := int64(i)
		if e.Kind == market.StreamUpdate {
			at = (n*7 + at*13) % int64(c.levels)
		}
		c.bids = append(c.bids, market.Level{Price: market.NewNumber(5_000_000-at, -2), Size: market.NewNumber(n%90_000+1, -4)})
		c.asks = append(c.asks, market.Level{Price: market.NewNumber(5_000_001+at, -2), Size: market.NewNumber(n%90_000+1, -4)})
	}
	e.Bids, e.Asks = c.bids, c.asks
	return c.events[:]
}

func (c *floodConn) LastFrame() time.Time                                  { return time.Now() }
func (c *floodConn) LastByte() time.Time                                   { return time.Now() }
func (c *floodConn) Ping() bool                                            { return true }
func (c *floodConn) Unsubscribe(context.Context, []market.StreamSub) error { return nil }
func (c *floodConn) Load(*market.OrderBook) []market.StreamEvent           { return nil }
func (c *floodConn) Distrust(string, error) []market.StreamEvent           { return nil }
func (c *floodConn) Tick(time.Time) []market.StreamEvent                   { return nil }
func (c *floodConn) Close()                                                {}

// run streams all that the flood has and returns the feed as it stands then.
func (f *flood) run(b *testing.B) (r *feed.Feed, stop func()) {
	b.Helper()
	r = feed.New(feed.Config{Venues: []feed.Venue{{ID: fakeID, Streamer: f, Data: f, Do: f.Do}}})
	for _, s := range f.symbols {
		if _, err := r.Watch(listing(s[:len(s)-4]), market.StreamBook); err != nil {
			b.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	b.ResetTimer()
	go func() { done <- r.Run(ctx) }()
	<-f.ended
	b.StopTimer()
	return r, func() {
		cancel()
		if err := <-done; err != nil {
			b.Error(err)
		}
	}
}

// BenchmarkFeed_message is one diff of 20 levels from Read to the listener, without decoding it.
func BenchmarkFeed_message(b *testing.B) {
	for _, levels := range []int{1000, 5000} {
		b.Run(fmt.Sprintf("levels=%d", levels), func(b *testing.B) {
			b.ReportAllocs()
			_, stop := newFlood(1, levels, int64(b.N)).run(b)
			stop()
		})
	}
}

// BenchmarkFeed_memory is what 300 books of 1,000 levels a side and their full journals hold.
func BenchmarkFeed_memory(b *testing.B) {
	for range b.N {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		f := newFlood(300, 1000, 300*250)
		r, stop := f.run(b)
		runtime.GC()
		runtime.ReadMemStats(&after)
		if st := r.Status(fakeID); st.Live != 300 {
			b.Fatalf("%d live", st.Live)
		}
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(1<<20), "MB")
		stop()
	}
}

// BenchmarkBooks_300 is what the dashboard asks for each second.
func BenchmarkBooks_300(b *testing.B) {
	f := newFlood(300, 1000, 300)
	r, stop := f.run(b)
	defer stop()
	b.ReportAllocs()
	b.StartTimer()
	for b.Loop() {
		if n := len(r.Books(fakeID)); n != 300 {
			b.Fatalf("%d books", n)
		}
	}
}
