package hub_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"exchange-gateway/internal/feed"
	"exchange-gateway/internal/feed/hub"
	"exchange-gateway/internal/market"
)

var (
	btc     = market.Pair{Base: "BTC", Quote: "USDT"}
	btcKey  = feed.Key{Exchange: "okx", Pair: btc}
	listing = market.Listing{Exchange: "okx", Pair: btc, Symbol: "BTC-USDT", Status: market.TradingActive}
	ticker  = hub.Topic{Key: btcKey, Channel: hub.ChannelTicker}
)

func depth(n int) hub.Topic { return hub.Topic{Key: btcKey, Channel: hub.ChannelOrderBook, Depth: n} }

// fakeFeed is a feed of one or more books that does only what it is told. Its lock is the feed's: Listener is called
// under it, and so is what Inspect is given.
type fakeFeed struct {
	mu       sync.Mutex
	listener *hub.Hub
	books    map[feed.Key]*fakeBook

	counts   sync.Mutex
	watches  map[market.StreamChannel]int
	releases int
	refuse   error
	missing  func() // runs once when Inspect has found nothing
}

func newFeed(cfg hub.Config) *fakeFeed {
	f := &fakeFeed{listener: hub.New(cfg), books: map[feed.Key]*fakeBook{}, watches: map[market.StreamChannel]int{}}
	f.listener.Attach(f)
	return f
}

// stream adds a synced book of n levels a side.
func (f *fakeFeed) stream(k feed.Key, n int) *fakeBook {
	b := &fakeBook{feed: f, key: k, symbol: k.Pair.Base + "-" + k.Pair.Quote, rand: rand.New(rand.NewPCG(1, 2)), limit: 1 << 20}
	f.mu.Lock()
	f.books[k] = b
	f.mu.Unlock()
	b.load(n)
	return b
}

func (f *fakeFeed) WatchFor(_ string, l market.Listing, ch market.StreamChannel) (func(), error) {
	f.mu.Lock() // as the feed does: it deadlocks if the hub holds a lock that a listener's call needs
	defer f.mu.Unlock()
	f.counts.Lock()
	defer f.counts.Unlock()
	if f.refuse != nil {
		return nil, f.refuse
	}
	f.watches[ch]++
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.counts.Lock()
		defer f.counts.Unlock()
		f.releases++
	}, nil
}

func (f *fakeFeed) Inspect(k feed.Key, see func(feed.View)) bool {
	f.mu.Lock()
	b := f.books[k]
	if b == nil {
		missing := f.missing
		f.missing = nil
		f.mu.Unlock()
		if missing != nil {
			missing()
		}
		return false
	}
	defer f.mu.Unlock()
	see(b)
	return true
}

// fakeBook is a book and the view of it. Prices are whole numbers of cents.
type fakeBook struct {
	feed       *fakeFeed
	key        feed.Key
	symbol     string
	rand       *rand.Rand
	epochs     int
	fresh      feed.Freshness
	held       bool
	bids, asks []market.Level // best first
	limit      int            // complete only up to so many
	best       feed.Best
	sequence   int64
	confirmed  time.Time
	changed    time.Time
	reads      int // of levels
}

func (b *fakeBook) Key() feed.Key             { return b.key }
func (b *fakeBook) Symbol() string            { return b.symbol }
func (b *fakeBook) Freshness() feed.Freshness { return b.fresh }
func (b *fakeBook) Held() bool                { return b.held }
func (b *fakeBook) Epoch() string {
	if !b.held {
		return ""
	}
	return fmt.Sprintf("run-%d", b.epochs)
}

func (b *fakeBook) Bids(dst []market.Level, n int) []market.Level {
	b.reads++
	return append(dst, b.bids[:min(n, len(b.bids))]...)
}

func (b *fakeBook) Asks(dst []market.Level, n int) []market.Level {
	return append(dst, b.asks[:min(n, len(b.asks))]...)
}
func (b *fakeBook) Complete(n int) bool       { return n <= b.limit }
func (b *fakeBook) Best() feed.Best           { return b.best }
func (b *fakeBook) Sequence() market.Sequence { return market.SequenceOf(b.sequence) }
func (b *fakeBook) ExchangeTime() time.Time   { return b.changed.Add(-time.Millisecond) }
func (b *fakeBook) ConfirmedAt() time.Time    { return b.confirmed }
func (b *fakeBook) ChangedAt() time.Time      { return b.changed }

func cents(n int64) market.Number { return market.NewNumber(n, -2) }

// middle is where the books are: 64,000.00.
const middle = 6_400_000

// load makes a new book of n levels a side and tells of it.
func (b *fakeBook) load(n int) {
	b.feed.mu.Lock()
	defer b.feed.mu.Unlock()
	b.bids, b.asks = nil, nil
	for i := range int64(n) {
		b.bids = append(b.bids, market.Level{Price: cents(middle - 1 - 2*i), Size: b.size()})
		b.asks = append(b.asks, market.Level{Price: cents(middle + 1 + 2*i), Size: b.size()})
	}
	b.epochs++
	b.held = true
	b.fresh = feed.Freshness{State: feed.StateLive, Since: time.Now()}
	b.stamp()
	b.rise()
	b.feed.listener.Loaded(b)
	b.feed.listener.BestChanged(b)
	b.feed.listener.FreshnessChanged(b)
}

// lose drops the book: a new connection whose book is not there yet.
func (b *fakeBook) lose(why market.Kind) {
	b.feed.mu.Lock()
	defer b.feed.mu.Unlock()
	b.held, b.bids, b.asks, b.best = false, nil, nil, feed.Best{}
	b.confirmed, b.changed = time.Time{}, time.Time{}
	b.fresh = feed.Freshness{State: feed.StateSyncing, Reason: why, Since: time.Now()}
	b.feed.listener.FreshnessChanged(b)
}

func (b *fakeBook) freshness(s feed.State, why market.Kind) {
	b.feed.mu.Lock()
	defer b.feed.mu.Unlock()
	b.fresh = feed.Freshness{State: s, Reason: why, Since: time.Now()}
	b.feed.listener.FreshnessChanged(b)
}

func (b *fakeBook) size() market.Number { return market.NewNumber(1+b.rand.Int64N(1e9), -8) }

func (b *fakeBook) stamp() {
	b.sequence++
	b.changed, b.confirmed = time.Now(), time.Now()
}

// rise makes Best what the sides say, and reports whether it changed.
func (b *fakeBook) rise() bool {
	old := b.best
	b.best = feed.Best{Sequence: market.SequenceOf(b.sequence), ExchangeTime: b.ExchangeTime()}
	if b.best.HasBid = len(b.bids) > 0; b.best.HasBid {
		b.best.Bid = b.bids[0]
	}
	if b.best.HasAsk = len(b.asks) > 0; b.best.HasAsk {
		b.best.Ask = b.asks[0]
	}
	return old.Bid != b.best.Bid || old.Ask != b.best.Ask || old.HasBid != b.best.HasBid || old.HasAsk != b.best.HasAsk
}

// change applies levels with their absolute sizes and tells of them.
func (b *fakeBook) change(bids, asks []market.Level) {
	b.feed.mu.Lock()
	defer b.feed.mu.Unlock()
	b.bids, b.asks = apply(b.bids, bids, -1), apply(b.asks, asks, 1)
	b.stamp()
	b.feed.listener.Changed(b, bids, asks)
	if b.rise() {
		b.feed.listener.BestChanged(b)
	}
}

// apply is the plain way: set or remove each level, then sort.
func apply(side, changes []market.Level, direction int) []market.Level {
	side = slices.Clone(side)
	for _, c := range changes {
		side = slices.DeleteFunc(side, func(l market.Level) bool { return l.Price.Equal(c.Price) })
		if !c.Size.IsZero() {
			side = append(side, c)
		}
	}
	slices.SortFunc(side, func(a, b market.Level) int { return direction * a.Price.Cmp(b.Price) })
	return side
}

// random changes up to n levels within spread cents of the middle, some of them to nothing.
func (b *fakeBook) random(n int, spread int64) {
	levels := func(direction int64) (out []market.Level) {
		for range b.rand.IntN(n + 1) {
			l := market.Level{Price: cents(middle + direction*(1+b.rand.Int64N(spread)))}
			if b.rand.IntN(3) > 0 {
				l.Size = b.size()
			}
			out = append(out, l)
		}
		return out
	}
	b.change(levels(-1), levels(1))
}

// message is what a client reads.
type message struct {
	Type           string      `json:"type"`
	Channel        string      `json:"channel"`
	Exchange       string      `json:"exchange"`
	Symbol         string      `json:"symbol"`
	ExchangeSymbol string      `json:"exchange_symbol"`
	Depth          int         `json:"depth"`
	Epoch          *string     `json:"epoch"`
	Seq            uint64      `json:"seq"`
	PrevSeq        *uint64     `json:"prev_seq"`
	Status         string      `json:"status"`
	Reason         *string     `json:"reason"`
	Complete       bool        `json:"complete"`
	ExchangeSeq    *int64      `json:"exchange_seq"`
	Conflated      uint64      `json:"conflated"`
	Bids           [][2]string `json:"bids"`
	Asks           [][2]string `json:"asks"`
	Bid            *string     `json:"bid"`
	BidVolume      *string     `json:"bidVolume"`
	Ask            *string     `json:"ask"`
	AskVolume      *string     `json:"askVolume"`
}

func read(t *testing.T, f *hub.Frame) message {
	t.Helper()
	var m message
	if err := json.Unmarshal(f.JSON(), &m); err != nil {
		t.Fatalf("%s: %v", f.JSON(), err)
	}
	if m.Type != string(f.Type()) {
		t.Fatalf("the frame of type %s is %s", f.Type(), f.JSON())
	}
	if id := f.ID(); m.Seq == 0 && id != "" || m.Seq > 0 && id != fmt.Sprintf("%s-%d", *m.Epoch, m.Seq) {
		t.Fatalf("id %q of %s", id, f.JSON())
	}
	return m
}

// next takes what waits, or nothing.
func next(t *testing.T, c *hub.Client) []*hub.Frame {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	frames, err := c.Next(ctx)
	if err != nil && ctx.Err() == nil {
		t.Fatal(err)
	}
	return frames
}

// messages takes what waits and reads it.
func messages(t *testing.T, c *hub.Client) (out []message) {
	t.Helper()
	for _, f := range next(t, c) {
		out = append(out, read(t, f))
	}
	return out
}

// types are the types of messages, with the state of a status.
func types(ms []message) (out []string) {
	for _, m := range ms {
		if m.Type == "status" {
			out = append(out, "status "+m.Status)
		} else {
			out = append(out, m.Type)
		}
	}
	return out
}

func subscribe(t *testing.T, c *hub.Client, topics ...hub.Topic) {
	t.Helper()
	for _, topic := range topics {
		if err := c.Subscribe(listing, topic, ""); err != nil {
			t.Fatal(err)
		}
	}
}
