package feed_test

import (
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/feed"
	"exchange-gateway/internal/market"
)

func top(seq, bidSize int64) market.StreamEvent {
	return market.StreamEvent{
		Kind: market.StreamTop, Symbol: "BTCUSDT", Bids: levels("100", bidSize), Asks: levels("101", 1), Sequence: market.SequenceOf(seq),
	}
}

func (r *rig) best(t *testing.T) feed.Best {
	t.Helper()
	var b feed.Best
	if !r.Inspect(key("BTC"), func(v feed.View) { b = v.Best() }) {
		t.Fatal("no such book")
	}
	return b
}

func TestFeed_bestIsTheNewestOfBookAndChannel(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(market.StreamRules{Top: true})
		r := start(t, w)
		r.watch(t, "BTC", "ETH")
		sleep(2 * time.Second)
		if _, on := w.has("BTCUSDT"); on || w.tally().subscribes > 2 {
			t.Error("a channel that nobody watches is subscribed")
		}
		release, err := r.Watch(listing("BTC"), market.StreamBest)
		if err != nil {
			t.Fatal(err)
		}
		sleep(time.Second)
		_, own := w.has("BTCUSDT")
		if _, other := w.has("ETHUSDT"); !own || other {
			t.Fatalf("its channel is subscribed: %v, another one's: %v", own, other)
		}
		want := func(seq, size int64) {
			t.Helper()
			synctest.Wait()
			if b := r.best(t); b.Sequence != market.SequenceOf(seq) || !b.Bid.Size.Equal(market.NewNumber(size, 0)) {
				t.Errorf("best %v at %v, want %d at %d", b.Bid.Size, b.Sequence, size, seq)
			}
			r.wantState(t, "BTC", feed.StateLive, market.KindNone)
		}
		told := r.ear.count("best")
		w.tell(top(3, 3)) // ahead of the book
		want(3, 3)
		w.change("BTCUSDT") // 2: the book follows
		want(3, 3)
		w.change("BTCUSDT") // 3: they agree
		want(3, 3)
		w.change("BTCUSDT") // 4: the book is ahead
		want(4, 4)
		w.tell(top(3, 3)) // late
		want(4, 4)
		if n := r.ear.count("best") - told; n != 2 {
			t.Errorf("told %d times of a best bid and ask that changed twice", n)
		}
		// The exchange begins to count anew: what its channel said last must not stand for ever.
		w.tell(top(9, 9))
		want(9, 9)
		w.tell(market.StreamEvent{Kind: market.StreamUpdate, Symbol: "BTCUSDT", Bids: levels("100", 1), Sequence: market.SequenceOf(1)})
		want(1, 1)
		release()
		sleep(time.Second)
		if book, top := w.has("BTCUSDT"); top || !book {
			t.Error("the channel that nobody watches any more goes on, or the book does not")
		}
	})
}

func TestFeed_channelsThatDisagreeAreAWrongBook(t *testing.T) {
	f := func(name string, first, second market.StreamEvent) {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(market.StreamRules{Top: true})
				r := start(t, w)
				if _, err := r.Watch(listing("BTC"), market.StreamBest); err != nil {
					t.Fatal(err)
				}
				sleep(2 * time.Second)
				w.set(func() { w.mute["BTCUSDT"] = true })
				w.tell(first)
				synctest.Wait()
				r.wantState(t, "BTC", feed.StateLive, market.KindNone)
				changed, best := r.ear.count("changed"), r.ear.count("best")
				w.tell(second)
				synctest.Wait()
				r.wantState(t, "BTC", feed.StateStale, market.KindSuspect)
				if _, _, ok := r.Book(key("BTC")); ok || len(r.kept.of("BTCUSDT")) > 0 {
					t.Error("a book that is not the exchange's is served or kept")
				}
				if r.ear.count("changed") != changed || r.ear.count("best") != best {
					t.Error("it was told")
				}
			})
		})
	}
	update := market.StreamEvent{Kind: market.StreamUpdate, Symbol: "BTCUSDT", Bids: levels("100", 2), Sequence: market.SequenceOf(2)}
	f("book last", top(2, 7), update)
	f("channel last", update, top(2, 7))
}

func TestFeed_aBookGoesOnWithoutItsChannel(t *testing.T) {
	f := func(name string, e market.StreamEvent, back time.Duration) {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(market.StreamRules{Top: true})
				r := start(t, w)
				if _, err := r.Watch(listing("BTC"), market.StreamBest); err != nil {
					t.Fatal(err)
				}
				sleep(2 * time.Second)
				w.tell(top(5, 5))
				synctest.Wait()
				w.set(func() { delete(w.conns[0].tops, "BTCUSDT") })
				w.tell(e)
				synctest.Wait()
				if b := r.best(t); b.Sequence != market.SequenceOf(1) {
					t.Errorf("best at %v, want the book's own", b.Sequence)
				}
				r.wantState(t, "BTC", feed.StateLive, market.KindNone)
				for range back / time.Second {
					w.change("BTCUSDT")
					sleep(time.Second)
				}
				if _, on := w.has("BTCUSDT"); !on {
					t.Error("the channel was not subscribed again")
				}
			})
		})
	}
	f("lost", market.StreamEvent{Kind: market.StreamLost, Symbol: "BTCUSDT", Channel: market.StreamBest, Err: failure(market.KindMalformed)}, 3*time.Second)
	f("refused", market.StreamEvent{Kind: market.StreamRefused, Symbol: "BTCUSDT", Channel: market.StreamBest, Err: failure(market.KindInvalid)}, 13*time.Minute)
}
