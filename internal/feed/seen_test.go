package feed_test

import (
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/feed"
	"exchange-gateway/internal/market"
)

// answer is what REST says of BTC's book at a sequence, to somebody else.
func (w *world) answer(n int64) *market.OrderBook {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rest(listing("BTC"), n)
}

func TestFeed_anAnswerThatStaysAheadEndsLive(t *testing.T) {
	f := func(name string, w *world) {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := start(t, w)
				r.watch(t, "BTC")
				sleep(5 * time.Second)
				w.set(func() { w.frozen["BTCUSDT"] = true })
				w.change("BTCUSDT") // 2, which the stream does not tell
				r.Seen(w.answer(2))
				r.Seen(w.answer(2)) // no later than by the first
				sleep(1900 * time.Millisecond)
				r.Seen(w.answer(2))
				r.wantState(t, "BTC", feed.StateLive, market.KindNone)
				sleep(1200 * time.Millisecond) // 2 s, and up to a sweep
				if got := r.ear.heard(key("BTC")); len(got) < 2 || got[1] != "stale timeout" {
					t.Errorf("states %q", got)
				}
				if w.tally().dials != 1 {
					t.Errorf("%d dials", w.tally().dials)
				}
				w.set(func() { clear(w.frozen) })
				sleep(2 * time.Second)
				w.change("BTCUSDT")
				sleep(30 * time.Second)
				r.wantState(t, "BTC", feed.StateLive, market.KindNone)
				r.wantBook(t, "BTC", 3)
			})
		})
	}
	f("by sequence, snapshots by REST", likeBinance())
	f("by sequence", likeOKX())
	f("by best bid and ask", likeCoinbase())
}

func TestFeed_anAnswerThatSaysNothing(t *testing.T) {
	f := func(name string, w *world, say func(r *rig)) {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := start(t, w)
				r.watch(t, "BTC")
				sleep(5 * time.Second)
				w.change("BTCUSDT") // 2
				sleep(3 * time.Second)
				say(r)
				sleep(10 * time.Second)
				if got := r.ear.heard(key("BTC")); len(got) != 1 {
					t.Errorf("states %q, want live alone", got)
				}
			})
		})
	}
	for name, like := range map[string]func() *world{"by sequence": likeOKX, "by best bid and ask": likeCoinbase} {
		w := like()
		f(name+": the stream catches up", w, func(r *rig) {
			r.Seen(w.answer(3))
			sleep(time.Second)
			w.change("BTCUSDT")
		})
		w = like()
		f(name+": the same", w, func(r *rig) { r.Seen(w.answer(2)) })
		w = like()
		f(name+": another pair", w, func(r *rig) {
			b := *w.answer(9)
			b.Pair.Base = "ETH"
			r.Seen(&b)
			b.Exchange, b.Pair.Base = "other", "BTC"
			r.Seen(&b)
		})
	}
	w := likeOKX()
	f("older", w, func(r *rig) { r.Seen(w.answer(1)) })
	w = likeOKX()
	f("older by the exchange's clock", w, func(r *rig) {
		at := time.Now()
		w.tell(market.StreamEvent{Kind: market.StreamVouch, Symbol: "BTCUSDT", ExchangeTime: at})
		synctest.Wait()
		b := *w.answer(9)
		b.ExchangeTime = at.Add(-time.Millisecond)
		r.Seen(&b)
	})
	w = likeCoinbase()
	f("from a cache", w, func(r *rig) { // which says how the book was before its last change
		b := w.answer(2)
		w.change("BTCUSDT")
		synctest.Wait()
		r.Seen(b)
	})
}

// Nobody is told of a book that is not live already.
func TestFeed_anAnswerAboutABookThatIsNotLive(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := likeOKX()
		r := start(t, w)
		w.set(func() { w.mute["BTCUSDT"] = true })
		r.watch(t, "BTC")
		sleep(time.Second)
		r.Seen(w.answer(7)) // nothing is held
		r.wantState(t, "BTC", feed.StateSyncing, market.KindNone)
		w.set(func() { clear(w.mute) })
		sleep(30 * time.Second)
		r.wantState(t, "BTC", feed.StateLive, market.KindNone)
		w.set(func() { w.dialErr = failure(market.KindUnavailable) })
		w.cut(market.KindUnavailable)
		synctest.Wait()
		r.Seen(w.answer(7))
		sleep(5 * time.Second)
		r.wantState(t, "BTC", feed.StateStale, market.KindUnavailable)
	})
}
