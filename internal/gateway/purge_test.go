package gateway_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"exchange-gateway/internal/cache"
	"exchange-gateway/internal/cache/redistest"
	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

func TestPurge_dropsWhatIsKeptOfAPair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil, "alpha", "beta")
		other := gateway.BookQuery{Exchange: "alpha", Pair: eth}
		for _, q := range []gateway.BookQuery{query(), other} {
			if tick, err := h.Ticker(t.Context(), q); err != nil || tick.Statistics == nil {
				t.Fatalf("ticker %+v, %v", tick, err)
			}
		}
		h.store.share("alpha", btc, time.Minute)
		time.Sleep(2 * time.Second)
		where, err := h.Purge(t.Context(), "alpha", btc)
		if err != nil || !slices.Equal(where, []string{"memory", "redis"}) {
			t.Errorf("purge = %v, %v", where, err)
		}
		if got := h.ServedBooks(); len(got) != 1 || got[0].Pair != eth {
			t.Errorf("served %+v", got)
		}

		h.alpha().fail(market.KindUnavailable)
		h.alpha().set(func(f *fakeVenue) { f.statErr = &market.Error{Kind: market.KindUnavailable} })
		for range 3 {
			if b, err := h.OrderBook(t.Context(), query()); market.KindOf(err) != market.KindUnavailable {
				t.Errorf("in an outage: %+v, %v, want the exchange's error", b, err)
			}
			time.Sleep(time.Second)
		}
		if tick, err := h.Ticker(t.Context(), other); err != nil || !tick.Freshness.Stale || tick.Statistics == nil {
			t.Errorf("another pair: %+v, %v", tick, err)
		}
		h.alpha().set(func(f *fakeVenue) { f.err = nil })
		tick, err := h.Ticker(t.Context(), query())
		if err != nil || tick.Freshness.Source != gateway.SourceREST || tick.Statistics != nil {
			t.Errorf("after it: %+v, %v, want a fresh book and no figures from before", tick, err)
		}
		if _, err := h.Purge(t.Context(), "omega", btc); code(err) != gateway.CodeExchangeUnknown {
			t.Errorf("err = %v", err)
		}
	})
}

// What a slow store says is passed on, and the process is purged all the same.
func TestPurge_passesTheStoresErrorOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil)
		if _, err := h.Ticker(t.Context(), query()); err != nil {
			t.Fatal(err)
		}
		broken := errors.New("redis may still hold a copy")
		h.store.purgeErr = broken
		where, err := h.Purge(t.Context(), "alpha", btc)
		if !errors.Is(err, broken) || !slices.Equal(where, []string{"memory"}) || len(h.ServedBooks()) != 0 {
			t.Errorf("purge = %v, %v, served %v", where, err, h.ServedBooks())
		}
	})
}

// A call that was under way brings what was purged: whoever waits for it gets the answer of the next call.
func TestPurge_overtakesACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil).listed(t)
		a := h.alpha()
		a.set(func(f *fakeVenue) {
			f.latency, f.statLatency = time.Second, time.Second
			f.answer = func(n int, l market.Listing, depth int) (*market.OrderBook, error) {
				if n == 1 { // what it says was so when it was asked
					return book(l, depth, time.Now().Add(-time.Second), "1.00", "2.00"), nil
				}
				return book(l, depth, time.Now().Add(-time.Second), "64073.00", "64073.10"), nil
			}
		})
		type answer struct {
			tick *gateway.Ticker
			err  error
		}
		answered := make(chan answer)
		ask := func() {
			tick, err := h.Ticker(t.Context(), query())
			answered <- answer{tick, err}
		}
		go ask()
		go ask()
		time.Sleep(500 * time.Millisecond)
		if _, err := h.Purge(t.Context(), "alpha", btc); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
		go ask() // after the purge: it does not share the call from before
		for range 3 {
			got := <-answered
			if got.err != nil {
				t.Fatal(got.err)
			}
			if bid, _, _, _ := got.tick.Top(); bid.Price.String() != "64073.00" {
				t.Errorf("answered with the bid %v, which was purged", bid.Price)
			}
		}
		if n := a.count(&a.books); n != 2 {
			t.Errorf("asked %d times, want twice", n)
		}
		if n := a.count(&a.stats); n != 2 {
			t.Errorf("asked %d times for figures, want twice", n)
		}
	})
}

// A stream that went on past a purge hands over what it held before: that is not kept.
func TestPurge_refusesTheBookThatAStreamLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, local := newLocalHouse(t)
		local.set(book(listing("alpha", btc), 2, time.Now(), "1.00", "2.00"), true)
		h.ask(t, query())
		time.Sleep(time.Second)
		if _, err := h.Purge(t.Context(), "alpha", btc); err != nil {
			t.Fatal(err)
		}
		local.set(local.book, false)
		h.alpha().fail(market.KindUnavailable)
		if b, err := h.OrderBook(t.Context(), query()); err == nil {
			t.Errorf("got %+v", b)
		}
	})
}

// Reads, calls, writes and a purge at once, with the real store and a real Redis. Every price before the purge is wrong.
func TestPurge_removesEveryCopy(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := redis.NewUniversalClient(cache.ClientOptions(redis.UniversalOptions{Addrs: []string{server.Addr()}}))
	defer client.Close()
	quiet := slog.New(slog.DiscardHandler)
	store := cache.New(cache.Config{}, client, quiet, prometheus.NewRegistry())
	h := newHouse(t, func(c *gateway.BooksConfig) { c.Books, c.Lists = store, store }).listed(t)
	a := h.alpha()
	var mu sync.Mutex
	price := "1.00"
	quote := func(next string) { mu.Lock(); price = next; mu.Unlock() }
	a.set(func(f *fakeVenue) {
		f.latency = 20 * time.Millisecond
		f.answer = func(_ int, l market.Listing, depth int) (*market.OrderBook, error) {
			mu.Lock()
			defer mu.Unlock()
			return book(l, depth, time.Now().Add(-20*time.Millisecond), price, "99999"), nil
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { _ = store.Run(ctx) })
	reading, stop := context.WithCancel(ctx)
	var readers sync.WaitGroup
	for i := range 4 {
		readers.Go(func() {
			for reading.Err() == nil {
				q := query()
				if i%2 == 0 {
					q.MaxAge = gateway.MaxAge(0) // always asks
				}
				_, _ = h.OrderBook(reading, q)
				store.Recall(reading, "alpha", btc)
			}
		})
	}
	const where = "gw:book:v1:{alpha:BTC/USDT}"
	within := func(what string, ok func() bool) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("never happened: %s", what)
			}
		}
	}
	within("a copy in redis", func() bool { return server.Do("EXISTS", where) == "1" })
	for range 20 { // while everything goes on
		_, _ = h.Purge(t.Context(), "alpha", btc)
		time.Sleep(20 * time.Millisecond)
	}
	a.fail(market.KindUnavailable)
	within("a purge that redis heard of", func() bool {
		_, err := h.Purge(t.Context(), "alpha", btc)
		return err == nil
	})
	time.Sleep(1500 * time.Millisecond) // calls and a round of writes that were under way have ended
	stop()
	readers.Wait()
	if b, err := h.OrderBook(t.Context(), query()); err == nil {
		t.Errorf("in an outage after the purge: %+v", b)
	}
	if server.Do("EXISTS", where) != "0" {
		t.Error("redis has a copy")
	}

	quote("64073.00")
	a.set(func(f *fakeVenue) { f.err = nil })
	within("a fresh book", func() bool {
		b, err := h.OrderBook(t.Context(), query())
		if err != nil {
			return false // the failure of a moment ago answers for 200 ms
		}
		if bid, _, _, _ := b.Top(); bid.Price.String() != "64073.00" {
			t.Fatalf("the bid is %v, which was purged", bid.Price)
		}
		return true
	})
	within("the fresh copy in redis", func() bool { return server.Do("EXISTS", where) == "1" })
	cancel()
	all.Wait()
}
