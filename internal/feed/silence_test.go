package feed_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"exchange-gateway/internal/feed"
	"exchange-gateway/internal/market"
)

// A connection that died without an end is replaced as soon as a check finds a book of it behind, whatever its own bound of
// silence is, and nothing more is sent on it.
func TestFeed_aHalfOpenConnectionIsReplaced(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, j, reg := likeBinance(), &journal{}, prometheus.NewRegistry()
		r := start(t, w, j.config, func(c *feed.Config) { c.Metrics = reg })
		bases, symbols := names(20)
		r.watch(t, bases...)
		sleep(5 * time.Second)
		w.change(symbols...)
		synctest.Wait()
		began := time.Now()
		w.kill()
		for time.Since(began) < 3*time.Minute {
			sleep(200 * time.Millisecond)
			w.change(symbols...)
		}
		synctest.Wait()
		r.ear.mu.Lock()
		defer r.ear.mu.Unlock()
		for _, b := range bases {
			states := r.ear.states[key(b)]
			if len(states) == 1 { // its place was taken before its own check
				continue
			}
			if len(states) != 3 || states[1].State != feed.StateStale || states[2].State != feed.StateLive {
				t.Fatalf("%s: %v", b, states)
			}
			if at, back := states[1].Since.Sub(began), states[2].Since.Sub(states[1].Since); at > time.Minute || back > 5*time.Second {
				t.Errorf("%s: stale after %v, live %v later", b, at, back)
			}
		}
		if n := w.tally(); n.dials != 2 || n.inVain != 0 || w.open() != 1 {
			t.Errorf("%d dials, %d messages on the dead connection, %d are open", n.dials, n.inVain, w.open())
		}
		if n := counter(t, reg, "reconnects_total", "cause", "silence"); n != 1 {
			t.Errorf("%d reconnects for silence", n)
		}
		if n := len(j.with("stream silent")); n != 1 {
			t.Errorf("%d lines of a silent stream", n)
		}
	})
}

// Nobody knows of a connection of quiet books whether it is dead; as long as checks agree it stays.
func TestFeed_silenceAloneProvesNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := likeBinance()
		r := start(t, w)
		r.watch(t, "BTC")
		sleep(10 * time.Minute) // not even pings
		if got := r.ear.heard(key("BTC")); len(got) != 1 || w.tally().dials != 1 {
			t.Errorf("states %q, %d dials", got, w.tally().dials)
		}
	})
}

// A subscription that is sent on a dead connection is not confirmed, which says as much.
func TestFeed_anUnconfirmedSubscriptionSaysAsMuch(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := likeOKX()
		r := start(t, w)
		r.watch(t, "BTC")
		sleep(5 * time.Second)
		w.change("BTCUSDT")
		synctest.Wait()
		w.kill()
		sleep(time.Second)
		r.watch(t, "ETH")
		sleep(25 * time.Second)
		r.wantState(t, "ETH", feed.StateLive, market.KindNone)
		if got := r.ear.heard(key("BTC")); strings.Join(got, ", ") != "live, stale timeout, live" || w.tally().dials != 2 {
			t.Errorf("states %q of the book that was on the dead connection, %d dials", got, w.tally().dials)
		}
	})
}

func TestFeed_noReplacementWhileTheGuardRefuses(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := likeBinance()
		r := start(t, w)
		r.watch(t, "BTC")
		sleep(5 * time.Second)
		w.kill()
		e := failure(market.KindCircuitOpen)
		e.RetryAfter = 20 * time.Second
		w.set(func() { w.doErr = e; w.seq["BTCUSDT"] = 2 })
		dos := w.tally().dos
		sleep(3 * time.Minute)
		r.wantState(t, "BTC", feed.StateStale, market.KindTimeout)
		if n := w.tally(); n.dials != 1 || n.dos-dos > 10 || n.inVain != 0 {
			t.Errorf("%d dials, %d attempts, %d messages on the dead connection", n.dials, n.dos-dos, n.inVain)
		}
		// What comes after all makes another one unnecessary.
		w.set(func() { w.doErr = nil })
		w.revive()
		w.change("BTCUSDT")
		sleep(40 * time.Second)
		r.wantState(t, "BTC", feed.StateLive, market.KindNone)
		if st := r.Status(fakeID); len(st.Connections) != 1 || st.Connections[0].Retiring {
			t.Errorf("%+v", st.Connections)
		}
	})
}

// An exchange whose streams say nothing beyond what was subscribed is connected to ever less often, and what it sent once is
// not taken for live again and again.
func TestFeed_connectionsThatFallSilentOneByOne(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := likeBinance()
		r := start(t, w)
		r.watch(t, "BTC", "ETH")
		sleep(5 * time.Second)
		w.set(func() { w.frozen["BTCUSDT"], w.frozen["ETHUSDT"] = true, true })
		began := time.Now()
		for time.Since(began) < 30*time.Minute {
			w.change("BTCUSDT", "ETHUSDT")
			sleep(time.Second)
			if f := r.state(t, "BTC"); time.Since(began) > time.Minute && f.State == feed.StateLive {
				t.Fatalf("live after %v", time.Since(began))
			}
		}
		if n := w.tally().dials; n > 60 {
			t.Errorf("%d dials in 30 min", n)
		}
		t.Logf("%d dials, %d messages of subscriptions in 30 min", w.tally().dials, w.tally().subscribes)
		w.set(func() { clear(w.frozen) })
		w.change("BTCUSDT", "ETHUSDT")
		sleep(80 * time.Second) // at most a minute until it is subscribed, and 15 s until a check agrees with its snapshot
		r.wantState(t, "BTC", feed.StateLive, market.KindNone)
	})
}

// What a book lost on one connection does not make it wait on the next.
func TestFeed_aNewConnectionOwesNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := likeBinance()
		r := start(t, w)
		r.watch(t, "BTC")
		sleep(90 * time.Second)
		for range 8 {
			w.tell(
				market.StreamEvent{Kind: market.StreamLost, Symbol: "BTCUSDT", Err: failure(market.KindMalformed)},
				market.StreamEvent{Kind: market.StreamWanted, Symbol: "BTCUSDT"},
			)
			synctest.Wait()
			for r.state(t, "BTC").State != feed.StateLive { // at most a minute each time
				sleep(time.Second)
			}
		}
		w.tell(
			market.StreamEvent{Kind: market.StreamLost, Symbol: "BTCUSDT", Err: failure(market.KindMalformed)},
			market.StreamEvent{Kind: market.StreamWanted, Symbol: "BTCUSDT"},
		)
		sleep(2 * time.Second)
		r.wantState(t, "BTC", feed.StateStale, market.KindMalformed) // it waits
		w.cut(market.KindUnavailable)
		sleep(2 * time.Second)
		r.wantState(t, "BTC", feed.StateLive, market.KindNone)
	})
}

// One that falls silent before it took the place of another ends, and the next one is tried.
func TestFeed_aReplacementThatFallsSilentEnds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := likeBinance()
		r := start(t, w)
		r.watch(t, "BTC", "ETH")
		sleep(5 * time.Second)
		w.change("BTCUSDT", "ETHUSDT")
		w.set(func() { w.mute["ETHUSDT"] = true }) // so that the old one stays for a while
		w.tell(market.StreamEvent{Kind: market.StreamRetiring})
		sleep(3 * time.Second)
		if w.open() != 2 {
			t.Fatalf("%d connections", w.open())
		}
		w.mu.Lock()
		w.conns[1].dead = true
		clear(w.mute)
		w.mu.Unlock()
		for range 60 {
			w.change("BTCUSDT", "ETHUSDT")
			sleep(time.Second)
		}
		r.wantState(t, "BTC", feed.StateLive, market.KindNone)
		if got := r.ear.heard(key("ETH")); len(got) != 1 { // it was on the old one until the third had it
			t.Errorf("states of ETH %q", got)
		}
		if w.tally().dials != 3 || w.open() != 1 {
			t.Errorf("%d dials, %d open", w.tally().dials, w.open())
		}
	})
}

// When nothing comes for 5 s the connection is pinged, and 3 s later its books are not live, to a reader as to who listens;
// 2 s and 3 s while order books fail by REST. Another connection takes its place.
func TestFeed_silenceIsProbed(t *testing.T) {
	f := func(name string, w *world, failing bool, bound time.Duration, pings int) {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w.answers = true // a ping of before
				r := start(t, w)
				r.watch(t, "BTC", "ETH")
				sleep(3 * time.Second)
				began := time.Now()
				w.change("BTCUSDT")
				w.set(func() { w.failing, w.doErr = failing, failure(market.KindCircuitOpen) })
				synctest.Wait()
				w.kill()
				asked := w.tally().pings
				for time.Since(began) < bound-20*time.Millisecond {
					sleep(10 * time.Millisecond)
					r.wantState(t, "BTC", feed.StateLive, market.KindNone)
				}
				sleep(time.Second)
				r.wantState(t, "BTC", feed.StateStale, market.KindTimeout)
				r.wantState(t, "ETH", feed.StateStale, market.KindTimeout)
				if n := w.tally().pings - asked; n != pings {
					t.Errorf("%d pings, want %d", n, pings)
				}
				r.ear.mu.Lock()
				states := r.ear.states[key("BTC")]
				r.ear.mu.Unlock()
				if len(states) != 2 || states[1].State != feed.StateStale || states[1].Since.Sub(began) > bound+time.Second {
					t.Errorf("states %v since %v", states, began)
				}
				w.set(func() { w.doErr = nil })
				sleep(5 * time.Second)
				r.wantState(t, "BTC", feed.StateLive, market.KindNone)
				if n := w.tally(); n.dials != 2 || n.inVain != 0 || w.open() != 1 {
					t.Errorf("%d dials, %d messages on the dead connection, %d open", n.dials, n.inVain, w.open())
				}
			})
		})
	}
	f("like Binance", likeBinance(), false, 8*time.Second, 1)
	f("like OKX", likeOKX(), false, 8*time.Second, 1)
	f("by heartbeats", likeCoinbase(), false, 8*time.Second, 0)
	f("like Binance, REST fails", likeBinance(), true, 5*time.Second, 1)
	f("like OKX, REST fails", likeOKX(), true, 5*time.Second, 1)
	f("by heartbeats, REST fails", likeCoinbase(), true, 5*time.Second, 0)
}

// Any frame on the silent connection makes its books live again, with what they held, and another connection is not needed.
func TestFeed_anyFrameRestores(t *testing.T) {
	f := func(name string, frame func(w *world)) {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := likeOKX()
				w.answers = true
				r := start(t, w)
				r.watch(t, "BTC", "ETH")
				sleep(3 * time.Second)
				w.change("BTCUSDT")
				synctest.Wait()
				epoch := r.Books(fakeID)[0].Epoch
				w.kill()
				e := failure(market.KindCircuitOpen)
				e.RetryAfter = time.Minute
				w.set(func() { w.doErr = e })
				sleep(20 * time.Second)
				r.wantState(t, "BTC", feed.StateStale, market.KindTimeout)
				w.revive()
				frame(w)
				sleep(time.Second)
				r.wantState(t, "BTC", feed.StateLive, market.KindNone)
				r.wantState(t, "ETH", feed.StateLive, market.KindNone)
				r.wantBook(t, "BTC", 2)
				w.set(func() { w.doErr = nil })
				sleep(40 * time.Second)
				if got := r.Books(fakeID)[0].Epoch; got != epoch || w.tally().dials != 1 || w.tally().unsubscribes != 0 {
					t.Errorf("epoch %q after %q, %+v", got, epoch, w.tally())
				}
			})
		})
	}
	f("of another book", func(w *world) { w.change("ETHUSDT") })
	f("of no book", func(w *world) { w.frame() })
	f("that Read does not return", func(w *world) { w.ping() })
	f("an answered ping", func(*world) { sleep(5 * time.Second) })
}

// A frame that tells of a gap restores the other books, and not the one that is lost.
func TestFeed_aGapAfterSilenceRestoresNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := likeOKX()
		w.answers = true
		r := start(t, w)
		r.watch(t, "BTC", "ETH")
		sleep(3 * time.Second)
		w.kill()
		w.set(func() { w.doErr = failure(market.KindCircuitOpen) })
		sleep(20 * time.Second)
		w.revive()
		w.tell(market.StreamEvent{Kind: market.StreamLost, Symbol: "BTCUSDT", Remedy: market.RemedyResubscribe, Err: failure(market.KindMalformed)})
		synctest.Wait()
		r.wantState(t, "BTC", feed.StateStale, market.KindMalformed)
		r.wantState(t, "ETH", feed.StateLive, market.KindNone)
	})
}

// A healthy connection of a quiet pair stays, whatever the exchange's habit of pinging: for an hour nothing is stale, and that
// costs a ping in 5 s, or a REST check in their place where the host answers none.
func TestFeed_aQuietHourIsNeverStale(t *testing.T) {
	f := func(name string, w *world, vouch, deaf bool, pings, rests int) {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w.deaf = deaf
				r := start(t, w)
				r.watch(t, "BTC")
				sleep(3 * time.Second)
				for i := range 3600 {
					sleep(time.Second)
					if i%180 == 179 {
						w.ping()
					}
					if vouch && i%60 == 59 {
						w.tell(market.StreamEvent{Kind: market.StreamVouch, Symbol: "BTCUSDT"})
					}
					r.wantState(t, "BTC", feed.StateLive, market.KindNone)
					if b := r.wantBook(t, "BTC", 1); time.Since(b.ConfirmedAt) > 76*time.Second {
						t.Fatalf("confirmed %v ago", time.Since(b.ConfirmedAt))
					}
				}
				n := w.tally()
				if got := r.ear.heard(key("BTC")); len(got) != 1 || n.dials != 1 || n.unsubscribes != 0 {
					t.Errorf("states %q, %+v", got, n)
				}
				if n.pings < pings*9/10 || n.pings > pings || n.rests > rests || deaf && n.rests < rests/2 {
					t.Errorf("%d pings and %d questions by REST, want at most %d and %d", n.pings, n.rests, pings, rests)
				}
				t.Logf("%d pings, %d questions by REST", n.pings, n.rests)
			})
		})
	}
	// Each 40 s a check of the book, each 30 s or so a comparison.
	const usual = 90 + 150
	f("like Binance", likeBinance(), false, false, 720, usual)
	f("like OKX", likeOKX(), true, false, 720, usual)
	f("like Binance, no ping is answered", likeBinance(), false, true, 600, 600+usual)
	f("like OKX, no ping is answered", likeOKX(), true, true, 600, 600+usual)
}

// Where no ping is ever answered, a REST answer that is ahead says what an unanswered ping would: so does REST that fails.
func TestFeed_aDeadConnectionToAHostThatAnswersNoPing(t *testing.T) {
	f := func(name string, w *world, happens func(w *world)) {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w.deaf = true
				r := start(t, w)
				r.watch(t, "BTC", "ETH")
				sleep(3 * time.Second)
				w.change("BTCUSDT")
				synctest.Wait()
				began := time.Now()
				w.kill()
				happens(w)
				for time.Since(began) < 9*time.Second {
					sleep(100 * time.Millisecond)
				}
				r.wantState(t, "BTC", feed.StateStale, market.KindTimeout)
				r.wantState(t, "ETH", feed.StateStale, market.KindTimeout)
				if n := w.asked("BTCUSDT"); n > 3 {
					t.Errorf("%d questions", n)
				}
			})
		})
	}
	for name, like := range map[string]func() *world{"like Binance": likeBinance, "like OKX": likeOKX} {
		f(name+", ahead", like(), func(w *world) { w.set(func() { w.seq["BTCUSDT"] = 7; w.doErr = failure(market.KindCircuitOpen) }) })
		f(name+", REST fails", like(), func(w *world) {
			w.set(func() { w.restErr = failure(market.KindUnavailable); w.doErr = failure(market.KindCircuitOpen) })
		})
	}
}

// A connection to a host that answers no ping is not replaced for its silence as long as none of its books is there: nothing
// depends on it, and its first book may be waited for.
func TestFeed_silenceBeforeTheFirstBook(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := likeBinance()
		w.deaf = true
		w.restErr = failure(market.KindUnavailable)
		r := start(t, w)
		r.watch(t, "BTC")
		sleep(2 * time.Minute)
		if n := w.tally(); n.dials != 1 {
			t.Errorf("%d dials", n.dials)
		}
		w.set(func() { w.restErr = nil })
		sleep(70 * time.Second)
		r.wantState(t, "BTC", feed.StateLive, market.KindNone)
	})
}

// However late the ping is, because the process stood still: after 10 s without anything no reader is told that a book is live.
func TestFeed_silenceHasABoundOfItsOwn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(market.StreamRules{Silence: market.SilenceRules{ProbeAfter: time.Hour, AnswerIn: 3 * time.Second, Most: 10 * time.Second}})
		r := start(t, w)
		r.watch(t, "BTC")
		sleep(3 * time.Second)
		w.change("BTCUSDT")
		synctest.Wait()
		sleep(10 * time.Second)
		r.wantState(t, "BTC", feed.StateLive, market.KindNone)
		sleep(time.Nanosecond)
		r.wantState(t, "BTC", feed.StateStale, market.KindTimeout)
		w.frame()
		synctest.Wait()
		r.wantState(t, "BTC", feed.StateLive, market.KindNone)
	})
}
