package feed_test

import (
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/feed"
	"exchange-gateway/internal/market"
)

func TestFeed_threeReadsInAMinuteStartAStream(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(market.StreamRules{VouchFor: 4 * time.Hour})
		r := start(t, w)
		sleep(time.Second)
		read := func(n int, apart time.Duration) {
			for range n {
				r.Used(listing("BTC"))
				sleep(apart)
			}
		}
		read(10, 31*time.Second) // never three within a minute
		if w.tally().dials != 0 {
			t.Fatal("a pair that is rarely read is streamed")
		}
		sleep(time.Minute)
		read(3, 20*time.Second)
		r.wantState(t, "BTC", feed.StateLive, market.KindNone)
		read(20, 9*time.Minute) // each one keeps it
		r.wantState(t, "BTC", feed.StateLive, market.KindNone)
		if w.tally().dials != 1 {
			t.Errorf("%d dials", w.tally().dials)
		}
		sleep(10 * time.Minute)
		if _, _, ok := r.Book(key("BTC")); ok || w.open() != 0 || r.Inspect(key("BTC"), func(feed.View) {}) {
			t.Error("it is streamed 10 min after the last use")
		}
		if kept := r.kept.of("BTCUSDT"); len(kept) == 0 {
			t.Error("nothing was kept when it was released")
		}
	})
}

func TestFeed_aReleasedBookStaysForTenMinutes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(market.StreamRules{})
		r := start(t, w)
		release := r.watch(t, "BTC")
		other := r.watch(t, "ETH")
		sleep(30 * time.Minute)
		release()
		sleep(9 * time.Minute)
		if len(r.Books(fakeID)) != 2 {
			t.Error("released at once")
		}
		again := r.watch(t, "BTC")
		sleep(20 * time.Minute)
		again()
		again() // once is enough
		sleep(10*time.Minute + 2*time.Second)
		if n := len(r.Books(fakeID)); n != 1 {
			t.Errorf("%d books, want the one that is watched", n)
		}
		if book, _ := w.has("BTCUSDT"); book {
			t.Error("the exchange was not told")
		}
		other()
		sleep(10*time.Minute + 2*time.Second)
		if n := w.open(); n != 0 {
			t.Errorf("%d connections without a book", n)
		}
		r.watch(t, "BTC")
		sleep(2 * time.Second)
		r.wantState(t, "BTC", feed.StateLive, market.KindNone)
	})
}

func TestFeed_aliasesShareABook(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := likeCoinbase()
		r := start(t, w)
		alias := market.Listing{
			Exchange: fakeID, Pair: market.Pair{Base: "BTC", Quote: "USDC"}, Symbol: "BTC-USDC", AliasOf: "BTCUSDT",
		}
		if _, err := r.Watch(alias, market.StreamBook); err != nil {
			t.Fatal(err)
		}
		r.watch(t, "BTC")
		sleep(2 * time.Second)
		w.change("BTCUSDT")
		synctest.Wait()
		own := r.wantBook(t, "BTC", 2)
		other, _, ok := r.Book(feed.Key{Exchange: fakeID, Pair: alias.Pair})
		if !ok || other.Levels != own.Levels || other.Symbol != "BTC-USDC" || other.Pair != alias.Pair || own.Symbol != "BTCUSDT" {
			t.Errorf("the alias shows %+v", other)
		}
		if w.tally().subscribes != 1 || r.ear.count("changed") != 2 {
			t.Errorf("%d subscribes, %d changes told; want 1, and one for each name", w.tally().subscribes, r.ear.count("changed"))
		}
		if n := len(r.Books(fakeID)); n != 2 {
			t.Errorf("%d names", n)
		}
	})
}

// TestFeed_usedIsCheap: it is called on the warm path of every read.
func TestFeed_usedIsCheap(t *testing.T) {
	w := newWorld(market.StreamRules{})
	f := feed.New(feed.Config{Venues: []feed.Venue{{ID: fakeID, Streamer: w, Data: w, Do: w.Do}}, MaxBooks: 1})
	if _, err := f.Watch(listing("BTC"), market.StreamBook); err != nil {
		t.Fatal(err)
	}
	for _, base := range []string{"BTC", "ETH"} {
		l := listing(base)
		if n := testing.AllocsPerRun(1000, func() { f.Used(l) }); n > 0 {
			t.Errorf("%s: %v allocations a read", base, n)
		}
	}
}

func BenchmarkFeed_Used(b *testing.B) {
	w := newWorld(market.StreamRules{})
	f := feed.New(feed.Config{Venues: []feed.Venue{{ID: fakeID, Streamer: w, Data: w, Do: w.Do}}})
	if _, err := f.Watch(listing("BTC"), market.StreamBook); err != nil {
		b.Fatal(err)
	}
	for name, l := range map[string]market.Listing{"streamed": listing("BTC"), "not_streamed": listing("ETH")} {
		b.Run(name, func(b *testing.B) {
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					f.Used(l)
				}
			})
		})
	}
}

// TestFeed_aBookThatIsReleasedWhileItsConnectionOpens must not be streamed for ever.
func TestFeed_aBookThatIsReleasedWhileItsConnectionOpens(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(market.StreamRules{})
		w.slow = 5 * time.Second
		r := start(t, w, func(c *feed.Config) { c.MaxBooks = 2 })
		r.watch(t, "BTC")
		release := r.watch(t, "ETH")
		sleep(2 * time.Second) // both are under way
		release()
		again := r.watch(t, "SOL") // takes the place of the one that nobody holds
		sleep(10 * time.Second)
		if book, _ := w.has("ETHUSDT"); book {
			t.Error("a book that was released is streamed")
		}
		r.wantState(t, "BTC", feed.StateLive, market.KindNone)
		r.wantState(t, "SOL", feed.StateLive, market.KindNone)
		again()
		r.watch(t, "ETH") // a new book of the same name
		sleep(10 * time.Second)
		r.wantState(t, "ETH", feed.StateLive, market.KindNone)
	})
}
