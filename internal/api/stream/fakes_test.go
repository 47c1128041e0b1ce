package stream_test

import (
	"strconv"
	"sync"
	"time"

	"exchange-gateway/internal/feed"
	"exchange-gateway/internal/feed/hub"
	"exchange-gateway/internal/market"
)

// fakeFeed streams one book, and counts who watches it. Pairs other than BTC/USDT and those of pad are unknown.
type fakeFeed struct {
	mu       sync.Mutex // the feed's: the hub is called under it
	listener *hub.Hub
	book     fakeBook
	watched  int
	released int
}

func (f *fakeFeed) WatchFor(string, market.Listing, market.StreamChannel) (func(), error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.watched++
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.released++
	}, nil
}

func (f *fakeFeed) Inspect(k feed.Key, see func(feed.View)) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if k != btcKey {
		return false
	}
	see(&f.book)
	return true
}

// counts are how many subscriptions the feed was asked for, and how many were given back.
func (f *fakeFeed) counts() (watched, released int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.watched, f.released
}

// load makes a new book of n levels a side.
func (f *fakeFeed) load(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := &f.book
	b.epoch++
	b.bids, b.asks = nil, nil
	for i := range int64(n) {
		size := market.NewNumber(123456789+int64(b.epoch), -8)
		b.bids = append(b.bids, market.Level{Price: market.NewNumber(6_400_000-i, -2), Size: size})
		b.asks = append(b.asks, market.Level{Price: market.NewNumber(6_400_001+i, -2), Size: size})
	}
	b.at = time.Now()
	f.listener.Loaded(b)
}

// change gives the best bid another size.
func (f *fakeFeed) change(size int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := &f.book
	b.bids = append([]market.Level{{Price: b.bids[0].Price, Size: market.NewNumber(size, -2)}}, b.bids[1:]...)
	b.at = time.Now()
	f.listener.Changed(b, b.bids[:1], nil)
	f.listener.BestChanged(b)
}

type fakeBook struct {
	epoch      int
	bids, asks []market.Level
	at         time.Time
}

func (b *fakeBook) Key() feed.Key  { return btcKey }
func (b *fakeBook) Symbol() string { return "BTC-USDT" }
func (b *fakeBook) Freshness() feed.Freshness {
	return feed.Freshness{State: feed.StateLive, Since: b.at}
}
func (b *fakeBook) Held() bool    { return true }
func (b *fakeBook) Epoch() string { return "run-" + strconv.Itoa(b.epoch) }

func (b *fakeBook) Bids(dst []market.Level, n int) []market.Level {
	return append(dst, b.bids[:min(n, len(b.bids))]...)
}

func (b *fakeBook) Asks(dst []market.Level, n int) []market.Level {
	return append(dst, b.asks[:min(n, len(b.asks))]...)
}
func (b *fakeBook) Complete(int) bool         { return true }
func (b *fakeBook) Sequence() market.Sequence { return market.SequenceOf(int64(b.epoch)) }
func (b *fakeBook) ExchangeTime() time.Time   { return b.at }
func (b *fakeBook) ConfirmedAt() time.Time    { return b.at }
func (b *fakeBook) ChangedAt() time.Time      { return b.at }
func (b *fakeBook) Best() feed.Best {
	return feed.Best{Bid: b.bids[0], Ask: b.asks[0], HasBid: true, HasAsk: true, ExchangeTime: b.at}
}
