package feed_test

import (
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/feed"
	"exchange-gateway/internal/market"
)

// The three exchanges' habits.
func likeBinance() *world {
	w := newWorld(market.StreamRules{VouchFor: time.Minute, Recheck: true, SnapshotDepth: 1000})
	w.byREST = true
	return w
}

func likeOKX() *world {
	return newWorld(market.StreamRules{VouchFor: 75 * time.Second, SnapshotDepth: 400})
}

func likeCoinbase() *world {
	w := newWorld(market.StreamRules{VouchFor: time.Minute, Recheck: true, Silence: market.SilenceRules{
		ProbeAfter: 5 * time.Second, ProbeSooner: 2 * time.Second, AnswerIn: 3 * time.Second, Most: 10 * time.Second, Heartbeats: true,
	}})
	w.unnumbered = true
	return w
}

// quiet lets time pass in which connections carry frames and no book changes. A vouch comes every minute where exchanges
// send them.
func quiet(w *world, d time.Duration, vouch bool, each func()) {
	for i := range int(d / time.Second) {
		w.frame()
		if vouch && i%60 == 59 {
			w.tell(market.StreamEvent{Kind: market.StreamVouch, Symbol: "BTCUSDT"})
		}
		sleep(time.Second)
		each()
	}
}

func TestFeed_aQuietHealthyBookStaysLive(t *testing.T) {
	f := func(name string, w *world, vouch bool, mostRests int) {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := start(t, w)
				r.watch(t, "BTC")
				sleep(3 * time.Second)
				oldest := time.Duration(0)
				quiet(w, 10*time.Minute, vouch, func() {
					b, f, ok := r.Book(key("BTC"))
					if !ok || f.State != feed.StateLive {
						t.Fatalf("%s (%v)", f.State, f.Reason)
					}
					oldest = max(oldest, time.Since(b.ConfirmedAt))
				})
				if oldest > 2*time.Second {
					t.Errorf("confirmed up to %v ago, though frames came each second", oldest)
				}
				if got := r.ear.heard(key("BTC")); len(got) != 1 {
					t.Errorf("states %q, want live alone", got)
				}
				// One question each 40 s keeps it live; comparisons come each 30 s or so.
				if w.tally().rests > mostRests {
					t.Errorf("%d questions in 10 min, want at most %d", w.tally().rests, mostRests)
				}
			})
		})
	}
	f("by sequence", likeBinance(), false, 45)
	f("by keep-alive", likeOKX(), true, 30)
	f("by best bid and ask", likeCoinbase(), false, 45)
}

func TestFeed_aFrozenBookIsStaleWithinItsBound(t *testing.T) {
	f := func(name string, w *world, bound time.Duration) {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := start(t, w)
				r.watch(t, "BTC", "ETH")
				sleep(3 * time.Second)
				w.change("BTCUSDT")
				synctest.Wait()
				began := time.Now()
				w.set(func() { w.frozen["BTCUSDT"] = true })
				for time.Since(began) < bound+time.Second {
					sleep(100 * time.Millisecond)
					w.change("BTCUSDT", "ETHUSDT") // the book moves on at the exchange; the other one's stream tells
				}
				synctest.Wait()
				r.ear.mu.Lock()
				states := r.ear.states[key("BTC")]
				r.ear.mu.Unlock()
				if len(states) < 2 || states[1].State != feed.StateStale || states[1].Reason != market.KindTimeout && states[1].Reason != market.KindSuspect {
					t.Fatalf("states %v", states)
				}
				at := states[1].Since.Sub(began)
				t.Logf("stale after %v", at)
				if at > bound {
					t.Errorf("stale after %v, want within %v", at, bound)
				}
				r.wantState(t, "ETH", feed.StateLive, market.KindNone)
				subscribes := w.tally().unsubscribes
				if w.tally().dials != 1 || subscribes > 2 { // a check, and perhaps a comparison before it
					t.Errorf("%d dials, %d resubscriptions", w.tally().dials, subscribes)
				}
				if w.rules.SnapshotDepth > 0 && w.rules.Recheck { // a snapshot by REST does not thaw it
					for range 900 {
						sleep(100 * time.Millisecond)
						w.change("BTCUSDT", "ETHUSDT")
						r.wantState(t, "BTC", feed.StateStale, market.KindTimeout)
					}
				}
				w.set(func() { w.frozen["BTCUSDT"] = false })
				for range 200 { // it may be waiting for its subscription, after so many losses for up to 16 s
					w.change("BTCUSDT")
					sleep(100 * time.Millisecond)
				}
				r.wantState(t, "BTC", feed.StateLive, market.KindNone)
			})
		})
	}
	f("by sequence", likeBinance(), time.Minute)
	f("by keep-alive", likeOKX(), 75*time.Second)
	f("by best bid and ask", likeCoinbase(), time.Minute)
}

func TestFeed_theEndOfTheBoundIsExact(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := likeOKX()
		r := start(t, w)
		r.watch(t, "BTC")
		sleep(3 * time.Second)
		w.change("BTCUSDT")
		synctest.Wait()
		w.set(func() { w.mute["BTCUSDT"] = true })
		began := time.Now()
		sleep(75 * time.Second)
		r.wantState(t, "BTC", feed.StateLive, market.KindNone)
		sleep(time.Nanosecond)
		r.wantState(t, "BTC", feed.StateStale, market.KindTimeout) // to a reader before the sweep
		told := len(r.ear.heard(key("BTC")))
		sleep(10 * time.Millisecond)
		if got := r.ear.heard(key("BTC")); told != 1 || len(got) < 2 || got[1] != "stale timeout" {
			t.Errorf("states %q, %d of them at the end itself", got, told)
		}
		f := r.state(t, "BTC")
		if want := began.Add(75 * time.Second); !f.Since.Equal(want) {
			t.Errorf("stale since %v after the end", f.Since.Sub(want))
		}
	})
}

func TestFeed_confirmedIsTheLastFrameWithinTheBound(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := likeOKX()
		r := start(t, w)
		r.watch(t, "BTC")
		sleep(3 * time.Second)
		w.change("BTCUSDT")
		synctest.Wait()
		w.set(func() { w.mute["BTCUSDT"] = true })
		began := time.Now()
		for range 100 {
			sleep(900 * time.Millisecond)
			w.frame()
			synctest.Wait()
			b, _, _ := r.Book(key("BTC"))
			since := b.ConfirmedAt.Sub(began)
			passed := min(time.Since(began), 75*time.Second)
			if since > passed || since < passed-2*time.Second {
				t.Fatalf("after %v: confirmed at %v", time.Since(began), since)
			}
		}
	})
}

func TestFeed_pingsVouchASecondLater(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := likeOKX()
		r := start(t, w)
		r.watch(t, "BTC")
		sleep(10*time.Second + 500*time.Millisecond)
		was := r.wantBook(t, "BTC", 1).ConfirmedAt
		w.ping()
		at := time.Now()
		synctest.Wait()
		if b := r.wantBook(t, "BTC", 1); !b.ConfirmedAt.Equal(was) {
			t.Error("a frame that may hold changes was taken for a ping")
		}
		sleep(3 * time.Second)
		if b := r.wantBook(t, "BTC", 1); !b.ConfirmedAt.Equal(at) {
			t.Errorf("confirmed %v after the ping", b.ConfirmedAt.Sub(at))
		}
	})
}

func TestFeed_anEventOfItsOwnRevives(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := likeBinance()
		r := start(t, w)
		r.watch(t, "BTC")
		sleep(3 * time.Second)
		w.set(func() { w.restErr = failure(market.KindUnavailable) })
		quiet(w, 70*time.Second, false, func() {})
		r.wantState(t, "BTC", feed.StateStale, market.KindTimeout)
		if w.tally().unsubscribes != 0 {
			t.Error("a book was given up that could not be had again")
		}
		epoch := r.Books(fakeID)[0].Epoch
		w.change("BTCUSDT")
		synctest.Wait()
		r.wantState(t, "BTC", feed.StateLive, market.KindNone)
		r.wantBook(t, "BTC", 2)
		if got := r.Books(fakeID)[0].Epoch; got != epoch {
			t.Error("another epoch, though nothing was missing")
		}
		// And so does a check that agrees once REST answers again.
		quiet(w, 70*time.Second, false, func() {})
		r.wantState(t, "BTC", feed.StateStale, market.KindTimeout)
		w.set(func() { w.restErr = nil })
		quiet(w, 10*time.Second, false, func() {})
		r.wantState(t, "BTC", feed.StateLive, market.KindNone)
	})
}

func TestFeed_aDiffOnItsWayIsWaitedFor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := likeBinance()
		r := start(t, w)
		r.watch(t, "BTC")
		sleep(3 * time.Second)
		// REST knows version 2 about a second before the stream does.
		w.set(func() { w.restSeq["BTCUSDT"] = 2 })
		for range 60 {
			sleep(time.Second)
			if w.asked("BTCUSDT") > 1 {
				break
			}
		}
		w.change("BTCUSDT")
		w.set(func() { delete(w.restSeq, "BTCUSDT") })
		sleep(30 * time.Second)
		if got := r.ear.heard(key("BTC")); len(got) != 1 {
			t.Errorf("states %q, want live alone", got)
		}
	})
}
