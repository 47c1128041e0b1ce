package feed_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/feed"
	"exchange-gateway/internal/market"
)

// TestFeed_aDayWithADisconnectEachHour: goroutines and what is held stay flat, and every hour ends live.
func TestFeed_aDayWithADisconnectEachHour(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := likeBinance()
		w.rules.Books, w.rules.RotateAfter, w.rules.RotateBefore = 20, 20*time.Hour, 23*time.Hour
		r := start(t, w)
		bases, symbols := names(40)
		r.watch(t, bases...)
		var first int
		for hour := range 24 {
			for range 60 {
				w.change(symbols...)
				sleep(20 * time.Second)
				w.frame()
				sleep(20 * time.Second)
				w.frame()
				sleep(20 * time.Second)
			}
			synctest.Wait()
			if st := r.Status(fakeID); st.Live != 40 {
				t.Fatalf("hour %d: %d live", hour, st.Live)
			}
			n := runtime.NumGoroutine()
			if hour == 0 {
				first = n
			}
			if n > first+4 { // a rotation has a connection more for each shard
				t.Fatalf("hour %d: %d goroutines, %d in the first", hour, n, first)
			}
			w.cut(market.KindUnavailable)
		}
	})
}

func TestFeed_runEndsWithEverythingItStarted(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := likeBinance()
		w.rules.Books = 5
		r := start(t, w)
		bases, symbols := names(20)
		r.watch(t, bases...)
		sleep(5 * time.Second)
		w.change(symbols...)
		synctest.Wait()
		w.tell(market.StreamEvent{Kind: market.StreamRetiring}) // in the middle of a replacement
		w.cut(market.KindUnavailable)                           // and of a reconnect
		r.stop()
		synctest.Wait() // the bubble itself fails if a goroutine is left
		for _, b := range bases {
			if f := r.state(t, b); f.State != feed.StateStale {
				t.Errorf("%s is %s after the end", b, f.State)
			}
		}
		if len(r.kept.of(symbols[0])) == 0 {
			t.Error("nothing was kept at the end")
		}
	})
}

func TestFeed_runEndsWhileTheExchangeHangs(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(market.StreamRules{})
		w.silent = true
		r := start(t, w)
		r.watch(t, "BTC")
		sleep(time.Second)
		began := time.Now()
		r.stop()
		if took := time.Since(began); took > time.Second {
			t.Errorf("it took %v to end", took)
		}
	})
}

func TestFeed_watchedBeforeRun(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(market.StreamRules{})
		f := feed.New(feed.Config{Venues: []feed.Venue{{ID: fakeID, Streamer: w, Data: w, Do: w.Do}}})
		if _, err := f.Watch(listing("BTC"), market.StreamBook); err != nil {
			t.Fatal(err)
		}
		_, fresh, ok := f.Book(key("BTC"))
		if ok || fresh.State != feed.StateSyncing || w.tally().dials != 0 {
			t.Errorf("%v, %s, %d dials before Run", ok, fresh.State, w.tally().dials)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- f.Run(ctx) }()
		sleep(2 * time.Second)
		if _, fresh, ok := f.Book(key("BTC")); !ok || fresh.State != feed.StateLive {
			t.Errorf("%v, %s", ok, fresh.State)
		}
		cancel()
		<-done
	})
}

func TestFeed_keepsLiveBooksAsTheyChange(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(market.StreamRules{VouchFor: time.Hour})
		r := start(t, w, func(c *feed.Config) { c.KeepEvery = time.Second })
		r.watch(t, "BTC", "ETH")
		sleep(2 * time.Second)
		was := len(r.kept.of("ETHUSDT"))
		for range 600 {
			w.change("BTCUSDT")
			sleep(100 * time.Millisecond)
		}
		if n := len(r.kept.of("BTCUSDT")); n < 55 || n > 65 {
			t.Errorf("kept %d times in a minute", n)
		}
		if n := len(r.kept.of("ETHUSDT")) - was; n > 1 {
			t.Errorf("a book that did not change was kept %d times in a minute", n)
		}
	})
}

// TestFeed_readersAndWriters runs everything at once, for the race detector.
func TestFeed_readersAndWriters(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := likeBinance()
		w.rules.Books, w.rules.Top = 4, true
		r := start(t, w, func(c *feed.Config) { c.KeepEvery = time.Second })
		bases, symbols := names(12)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		readers := 0
		for _, base := range bases {
			readers++
			go func() {
				defer func() { done <- struct{}{} }()
				for i := 0; ctx.Err() == nil; i++ {
					release, err := r.Watch(listing(base), market.StreamChannel(i%2))
					if err != nil {
						t.Error(err)
						return
					}
					r.Used(listing(base))
					if b, f, ok := r.Book(key(base)); ok && f.State == feed.StateLive && !b.Bids()[0].Size.Equal(market.NewNumber(b.Sequence.Value, 0)) {
						t.Errorf("bid of %v at %d", b.Bids()[0].Size, b.Sequence.Value)
					}
					r.Inspect(key(base), func(v feed.View) { v.Bids(nil, 5) })
					r.Capture(key(base))
					r.Status(fakeID)
					r.Books(fakeID)
					time.Sleep(300 * time.Millisecond)
					release()
				}
			}()
		}
		for i := range 120 {
			w.change(symbols...)
			sleep(time.Second)
			if i%30 == 29 {
				w.cut(market.KindUnavailable)
			}
			if i%20 == 19 {
				w.tell(market.StreamEvent{Kind: market.StreamRetiring})
			}
		}
		cancel()
		for range readers {
			<-done
		}
	})
}
