package cache_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"exchange-gateway/internal/cache"
	"exchange-gateway/internal/market"
)

// fakeRedis counts what it is asked; it fails when told to, after a while when told so.
type fakeRedis struct {
	mu       sync.Mutex
	err      error
	slow     time.Duration
	book     *market.OrderBook
	listings *market.Listings
	purgedAt time.Time
	purges   int
	reads    int
	pings    int
	batches  []int // sizes
	written  []*market.OrderBook
	lists    []*market.Listings
}

func (f *fakeRedis) set(err error, slow time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err, f.slow = err, slow
}

func (f *fakeRedis) call(ctx context.Context, count func()) error {
	f.mu.Lock()
	count()
	err, slow := f.err, f.slow
	f.mu.Unlock()
	select {
	case <-time.After(slow):
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f *fakeRedis) Ping(ctx context.Context) error { return f.call(ctx, func() { f.pings++ }) }

func (f *fakeRedis) RecallBook(
	ctx context.Context, _ market.ExchangeID, _ market.Pair,
) (*market.OrderBook, time.Time, error) {
	if err := f.call(ctx, func() { f.reads++ }); err != nil {
		return nil, time.Time{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.book == nil {
		return nil, f.purgedAt, cache.ErrMiss
	}
	return f.book, f.purgedAt, nil
}

func (f *fakeRedis) PurgeBook(ctx context.Context, _ market.ExchangeID, _ market.Pair, at time.Time) (bool, error) {
	if err := f.call(ctx, func() { f.purges++ }); err != nil {
		return false, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	held := f.book != nil
	f.book, f.purgedAt = nil, at
	return held, nil
}

func (f *fakeRedis) ReadListings(ctx context.Context, _ market.ExchangeID) (*market.Listings, error) {
	if err := f.call(ctx, func() { f.reads++ }); err != nil {
		return nil, err
	}
	if f.listings == nil {
		return nil, cache.ErrMiss
	}
	return f.listings, nil
}

func (f *fakeRedis) WriteBooks(ctx context.Context, books []*market.OrderBook) ([]cache.Result, error) {
	err := f.call(ctx, func() { f.batches = append(f.batches, len(books)) })
	f.mu.Lock()
	defer f.mu.Unlock()
	result := cache.ResultFailed
	if err == nil {
		result = cache.ResultStored
		f.written = append(f.written, books...)
	}
	return slices.Repeat([]cache.Result{result}, len(books)), err
}

func (f *fakeRedis) WriteListings(ctx context.Context, l *market.Listings) (cache.Result, error) {
	if err := f.call(ctx, func() {}); err != nil {
		return cache.ResultFailed, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lists = append(f.lists, l)
	return cache.ResultStored, nil
}

// seen empties what was written.
func (f *fakeRedis) seen() (batches []int, books []*market.OrderBook) {
	f.mu.Lock()
	defer f.mu.Unlock()
	batches, books = f.batches, f.written
	f.batches, f.written = nil, nil
	return batches, books
}

func (f *fakeRedis) readCount() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reads
}

// running is a store over a fake Redis whose Run ends with the test.
func running(t *testing.T, r *fakeRedis, cfg cache.Config) (*cache.Store, *prometheus.Registry) {
	t.Helper()
	reg := prometheus.NewRegistry()
	s := cache.NewWithRemote(cfg, r, quiet(), reg)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run = %v", err)
		}
	})
	return s, reg
}

func pairNo(i int) change {
	return func(b *market.OrderBook) {
		b.Pair = market.Pair{Base: "A" + string(rune('a'+i/26)) + string(rune('a'+i%26)), Quote: "USDT"}
	}
}
