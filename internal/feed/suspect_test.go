package feed_test

import (
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
		if got := r.ear.heard(key("BTC")); len(got) != 1 || w.tally().dials != 2 {
			t.Errorf("states %q of the book that was live all the time, %d dials", got, w.tally().dials)
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
		sleep(65 * time.Second)
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
