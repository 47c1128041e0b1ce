package feed_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/feed"
	"exchange-gateway/internal/market"
)

func TestFeed_fillsConnectionsUpToTheExchangesBound(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(market.StreamRules{Books: 30, Batch: 8})
		r := start(t, w)
		bases, _ := names(65)
		r.watch(t, bases...)
		sleep(5 * time.Second)
		st := r.Status(fakeID)
		if st.Live != 65 || w.tally().dials != 3 || len(st.Connections) != 3 {
			t.Errorf("%d live, %d dials, %d connections; want 65, 3, 3", st.Live, w.tally().dials, len(st.Connections))
		}
		for _, c := range st.Connections {
			if c.Books > 30 {
				t.Errorf("%d books on a connection", c.Books)
			}
		}
		// 30, 30 and 5 in batches of 8.
		if w.tally().subscribes < 9 || w.tally().subscribes > 13 {
			t.Errorf("%d messages of subscriptions", w.tally().subscribes)
		}
	})
}

func TestFeed_neverConnectsWhileTheGuardRefuses(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(market.StreamRules{})
		e := failure(market.KindCircuitOpen)
		e.RetryAfter = 20 * time.Second
		w.doErr = e
		r := start(t, w)
		r.watch(t, "BTC")
		sleep(5 * time.Minute)
		r.wantState(t, "BTC", feed.StateSyncing, market.KindCircuitOpen)
		// It asks the guard, not the exchange, and not more often than the guard said.
		if w.tally().dials != 0 || w.tally().dos < 8 || w.tally().dos > 16 {
			t.Errorf("%d dials, %d attempts in 5 min", w.tally().dials, w.tally().dos)
		}
		w.set(func() { w.doErr = nil })
		sleep(40 * time.Second)
		r.wantState(t, "BTC", feed.StateLive, market.KindNone)
	})
}

func TestFeed_aConnectionThatDiesAtOnceIsAFailedConnect(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(market.StreamRules{})
		w.deadOn = true
		r := start(t, w)
		r.watch(t, "BTC")
		sleep(5 * time.Minute)
		if n := w.tally(); n.failed != n.dials || n.failed < 8 || n.failed > 40 {
			t.Errorf("%d of %d connects failed; want all, backing off to 30 s", n.failed, n.dials)
		}
		w.set(func() { w.deadOn = false })
		sleep(31 * time.Second)
		r.wantState(t, "BTC", feed.StateLive, market.KindNone)
	})
}

func TestFeed_aConnectionOnWhichNothingComesIsAFailedConnect(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(market.StreamRules{})
		w.silent = true
		r := start(t, w)
		r.watch(t, "BTC")
		sleep(time.Minute)
		if n := w.tally(); n.failed < 3 || w.open() > 1 {
			t.Errorf("%d connects failed, %d connections are open", n.failed, w.open())
		}
		r.wantState(t, "BTC", feed.StateSyncing, market.KindTimeout)
	})
}

func TestFeed_allCutAtOnceComeBackWithoutAStorm(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(market.StreamRules{Books: 10})
		r := start(t, w)
		bases, symbols := names(100)
		r.watch(t, bases...)
		sleep(50 * time.Second)
		w.change(symbols...)
		synctest.Wait()
		if st := r.Status(fakeID); st.Live != 100 {
			t.Fatalf("%d live", st.Live)
		}
		dials := w.tally().dials
		w.set(func() { w.dialErr = failure(market.KindUnavailable) })
		w.cut(market.KindUnavailable)
		synctest.Wait()
		if st := r.Status(fakeID); st.Stale != 100 || len(st.Connections) != 0 {
			t.Errorf("%d stale, %d connections, at once after the cut", st.Stale, len(st.Connections))
		}
		r.wantState(t, bases[7], feed.StateStale, market.KindUnavailable)
		if w.tally().dials != dials {
			t.Error("dialled in the moment of the cut")
		}
		sleep(5 * time.Minute)
		perMinute := float64(w.tally().dials-dials) / 5 / 10
		if perMinute > 6 {
			t.Errorf("%.1f dials a minute and connection while the exchange is down", perMinute)
		}
		w.set(func() { w.dialErr = nil })
		sleep(35 * time.Second)
		if st := r.Status(fakeID); st.Live != 100 {
			t.Errorf("%d live after the outage", st.Live)
		}
		if n := len(r.kept.of(symbols[3])); n != 1 {
			t.Errorf("kept %d times, want once when it was lost", n)
		}
		b := r.wantBook(t, bases[3], 2)
		if time.Since(b.ConfirmedAt) > 40*time.Second {
			t.Errorf("confirmed %v ago", time.Since(b.ConfirmedAt))
		}
	})
}

func TestFeed_anOutageKeepsTheLastBookWithItsAge(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(market.StreamRules{})
		r := start(t, w)
		r.watch(t, "BTC")
		sleep(5 * time.Second)
		at := time.Now()
		w.change("BTCUSDT")
		synctest.Wait()
		w.set(func() { w.dialErr = failure(market.KindUnavailable) })
		w.cut(market.KindUnavailable)
		sleep(5 * time.Minute)
		b, f, ok := r.Book(key("BTC"))
		if !ok || f.State != feed.StateStale || !b.ConfirmedAt.Equal(at) || !f.Since.Equal(at) {
			t.Errorf("held %v, %s since %v after the cut", ok, f.State, f.Since.Sub(at))
		}
		w.set(func() { w.dialErr = nil })
		sleep(31 * time.Second)
		r.wantState(t, "BTC", feed.StateLive, market.KindNone)
		if got := strings.Join(r.ear.heard(key("BTC")), ", "); got != "live, stale unavailable, live" {
			t.Errorf("states %q", got)
		}
	})
}

func TestFeed_aPlannedRotationHasNoStaleMoment(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(market.StreamRules{RotateAfter: 20 * time.Minute, RotateBefore: 23 * time.Minute, SnapshotDepth: 1000, VouchFor: time.Minute})
		w.byREST = true
		r := start(t, w)
		bases, symbols := names(20)
		r.watch(t, bases...)
		sleep(5 * time.Second)
		for range 2 * 3600 {
			w.change(symbols...)
			sleep(time.Second)
		}
		synctest.Wait()
		for _, b := range bases {
			if got := r.ear.heard(key(b)); len(got) != 1 || got[0] != "live" {
				t.Errorf("%s: states %q, want live alone", b, got)
			}
		}
		if w.tally().dials < 5 || w.tally().dials > 7 || w.tally().mostOpen != 2 || w.open() != 1 {
			t.Errorf("%d dials in 2 h, at most %d connections at once, %d now", w.tally().dials, w.tally().mostOpen, w.open())
		}
		w.mu.Lock()
		last := w.seq[symbols[0]]
		w.mu.Unlock()
		r.wantBook(t, bases[0], last)
		if n := r.ear.count("loaded"); n != w.tally().dials*20 {
			t.Errorf("%d epochs of 20 books on %d connections", n, w.tally().dials)
		}
	})
}

func TestFeed_aNoticeOfTheExchangeBringsAnotherConnectionFirst(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(market.StreamRules{})
		r := start(t, w)
		r.watch(t, "BTC", "ETH")
		sleep(5 * time.Second)
		w.set(func() { w.mute["ETHUSDT"] = true }) // the new connection is slow with one book
		w.tell(market.StreamEvent{Kind: market.StreamRetiring})
		sleep(3 * time.Second)
		if w.open() != 2 || !r.Status(fakeID).Connections[0].Retiring {
			t.Fatalf("%d connections; the old one has to stay while a book depends on it", w.open())
		}
		w.change("BTCUSDT", "ETHUSDT")
		synctest.Wait()
		r.wantBook(t, "BTC", 2)
		r.wantBook(t, "ETH", 2) // from the old one
		// The exchange cuts the old connection before the new one has all books.
		w.mu.Lock()
		w.conns[0].end(failure(market.KindUnavailable))
		w.mu.Unlock()
		synctest.Wait()
		r.wantState(t, "BTC", feed.StateLive, market.KindNone)
		r.wantState(t, "ETH", feed.StateStale, market.KindUnavailable)
		w.set(func() { w.mute["ETHUSDT"] = false })
		sleep(40 * time.Second)
		r.wantState(t, "ETH", feed.StateLive, market.KindNone)
		if w.tally().dials != 2 || w.open() != 1 {
			t.Errorf("%d dials, %d open", w.tally().dials, w.open())
		}
	})
}
