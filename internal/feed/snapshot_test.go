package feed_test

import (
	"testing"
	"time"

	"exchange-gateway/internal/feed"
	"exchange-gateway/internal/market"
)

func TestFeed_aStartWithManyBooksAsksAsTheBudgetAllows(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := likeBinance()
		w.rules.Books = 200
		w.pace = 700 * time.Millisecond // about what 70 % of 6,000 a minute allow at weight 50
		r := start(t, w)
		bases, symbols := names(300)
		r.watch(t, bases...)
		began := time.Now()
		live := 0
		for live < 300 && time.Since(began) < 10*time.Minute {
			w.change(symbols...)
			sleep(time.Second)
			st := r.Status(fakeID)
			live = st.Live
			if st.WarmUp.Synced+st.WarmUp.Queued < 290 || st.WarmUp.Wanted != 300 {
				if time.Since(began) > 5*time.Second {
					t.Fatalf("warm-up %+v", st.WarmUp)
				}
			}
			if queued := st.WarmUp.Queued; queued > 10 && time.Since(began) > 20*time.Second {
				if want := time.Duration(queued) * w.pace; st.WarmUp.ETA < want/2 || st.WarmUp.ETA > want*2 {
					t.Fatalf("%d queued: ETA %v, want about %v", queued, st.WarmUp.ETA, want)
				}
			}
		}
		t.Logf("300 live after %v, %d questions, %d refused by the budget", time.Since(began), w.tally().rests, w.tally().overspent)
		if live != 300 || time.Since(began) > 300*w.pace*5/4 {
			t.Errorf("%d live after %v", live, time.Since(began))
		}
		if w.tally().rests > 310 || w.tally().mostAsking > 2 || w.tally().dials != 2 {
			t.Errorf("%d questions, %d at once, %d dials", w.tally().rests, w.tally().mostAsking, w.tally().dials)
		}
		if w.tally().overspent > 400 {
			t.Errorf("the budget had to refuse %d times", w.tally().overspent)
		}

		// Hundreds of gaps at once.
		rests, began := w.tally().rests, time.Now()
		for _, s := range symbols {
			w.tell(
				market.StreamEvent{Kind: market.StreamLost, Symbol: s, Err: failure(market.KindMalformed)},
				market.StreamEvent{Kind: market.StreamWanted, Symbol: s},
			)
		}
		sleep(time.Minute)
		if got, most := w.tally().rests-rests, int(time.Since(began)/w.pace)+1; got > most || got < most/2 {
			t.Errorf("%d questions in a minute, the budget has %d", got, most)
		}
	})
}

func TestFeed_anErrorOfOneSnapshotDelaysThatBookAlone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := likeBinance()
		w.restErr = failure(market.KindUnavailable)
		r := start(t, w)
		r.watch(t, "BTC")
		sleep(5 * time.Minute)
		if n := w.tally().rests; n < 6 || n > 20 {
			t.Errorf("%d questions in 5 min, want them to back off to one a minute", n)
		}
		r.wantState(t, "BTC", feed.StateSyncing, market.KindUnavailable)
		if w.tally().subscribes != 1 || w.tally().dials != 1 {
			t.Errorf("%d subscribes, %d dials: the stream is not what fails", w.tally().subscribes, w.tally().dials)
		}
		w.set(func() { w.restErr = nil })
		sleep(61 * time.Second)
		r.wantState(t, "BTC", feed.StateLive, market.KindNone)
	})
}

func TestFeed_aBanHoldsEveryQuestion(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := likeBinance()
		e := failure(market.KindBanned)
		e.RetryAfter = time.Hour
		w.restErr = e
		r := start(t, w)
		bases, _ := names(20)
		r.watch(t, bases...)
		sleep(10 * time.Minute)
		// Two at once at first; then the guard is asked once a minute whether it is over.
		if w.tally().rests > 2+2*10 {
			t.Errorf("%d questions to the guard in 10 min", w.tally().rests)
		}
		w.set(func() { w.restErr = nil })
		sleep(2 * time.Minute)
		if st := r.Status(fakeID); st.Live != 20 {
			t.Errorf("%d live", st.Live)
		}
	})
}

func TestFeed_aBookThatRunsOutIsLoadedAnewWhileItRuns(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := likeBinance()
		r := start(t, w)
		r.watch(t, "BTC")
		for range 3700 {
			w.change("BTCUSDT")
			sleep(time.Second)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		deep := 0
		for _, d := range w.depths {
			if d == 1000 {
				deep++
			}
		}
		if deep < 2 || deep > 3 || r.ear.count("loaded") != deep {
			t.Errorf("%d snapshots in 62 min, %d epochs", deep, r.ear.count("loaded"))
		}
		if got := r.ear.heard(key("BTC")); len(got) != 1 {
			t.Errorf("states %q, want live alone", got)
		}
	})
}

// TestFeed_aPairThatRESTDoesNotKnowIsRefused: Binance accepts a subscription of a pair that does not exist.
func TestFeed_aPairThatRESTDoesNotKnowIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := likeBinance()
		w.restErr = failure(market.KindUnknownSymbol)
		r := start(t, w)
		r.watch(t, "BTC")
		sleep(9 * time.Minute)
		r.wantState(t, "BTC", feed.StateStale, market.KindUnknownSymbol)
		if n := w.tally(); n.rests != 1 || n.unsubscribes != 1 {
			t.Errorf("%d questions, %d unsubscribes, want 1 and 1", n.rests, n.unsubscribes)
		}
		w.set(func() { w.restErr = nil })
		sleep(2 * time.Minute)
		r.wantState(t, "BTC", feed.StateLive, market.KindNone)
	})
}
