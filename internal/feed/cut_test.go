package feed_test

import (
	"bytes"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"exchange-gateway/internal/feed"
	"exchange-gateway/internal/market"
)

func TestCut_endsEverythingAndWakeBringsItBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, j, reg := newWorld(market.StreamRules{Books: 10, SnapshotDepth: 1000, Recheck: true}), &journal{}, prometheus.NewRegistry()
		w.byREST = true
		r := start(t, w, j.config, func(c *feed.Config) { c.Metrics = reg })
		bases, symbols := names(25)
		r.watch(t, bases...)
		sleep(10 * time.Second)
		w.change(symbols...)
		synctest.Wait()
		at := time.Now()
		sleep(time.Second)
		r.Cut(fakeID)
		for _, b := range bases { // before anything else runs
			r.wantState(t, b, feed.StateStale, market.KindIsolated)
		}
		synctest.Wait()
		st := r.Status(fakeID)
		if w.open() != 0 || len(st.Connections) != 0 || st.Stale != 25 || !st.Cut || st.WarmUp.Queued != 0 {
			t.Errorf("%d connections are open; %+v", w.open(), st)
		}
		if b := r.wantBook(t, bases[3], 2); !b.ConfirmedAt.Equal(at) || len(r.kept.of(symbols[3])) != 1 {
			t.Errorf("confirmed %v ago, kept %d times; want the last good one, once", time.Since(b.ConfirmedAt), len(r.kept.of(symbols[3])))
		}
		// What is wanted meanwhile is remembered.
		r.watch(t, "NEW")
		r.wantState(t, "NEW", feed.StateStale, market.KindIsolated)
		before := w.tally()
		for range 10 {
			for range 3 {
				r.Used(listing("READ"))
			}
			sleep(time.Minute)
		}
		r.wantState(t, "READ", feed.StateStale, market.KindIsolated)
		if w.tally() != before {
			t.Errorf("the exchange was asked: %+v, and before %+v", w.tally(), before)
		}
		r.Wake(fakeID)
		synctest.Wait()
		r.wantState(t, "NEW", feed.StateSyncing, market.KindNone)
		sleep(2 * time.Second)
		if st := r.Status(fakeID); st.Live != 27 || st.Cut || len(st.Connections) != 3 || w.tally().dials != before.dials+3 {
			t.Errorf("%d live on %d connections, %d dials; want 27, 3, 3", st.Live, len(st.Connections), w.tally().dials-before.dials)
		}
		if got := strings.Join(r.ear.heard(key(bases[3])), ", "); got != "live, stale isolated, live" {
			t.Errorf("states %q", got)
		}
		if n := counter(t, reg, "reconnects_total", "cause", "isolation"); n != 3 {
			t.Errorf("%d reconnects after an isolation", n)
		}
		for _, l := range slices.Concat(j.with("stream"), j.with("streamed")) {
			if l.level > slog.LevelInfo {
				t.Errorf("a warning about what an operator wanted: %+v", l)
			}
		}
	})
}

// atWork is how many goroutines read, connect, subscribe or ask.
func atWork() (n int) {
	text := make([]byte, 1<<20)
	text = text[:runtime.Stack(text, true)]
	for _, doing := range []string{"(*link).read(", "(*shard).connect(", "(*link).subscribe(", "(*venue).answer("} {
		n += bytes.Count(text, []byte("internal/feed."+doing))
	}
	return n
}

// cutIn has an exchange cut in the middle of something, and checks that nothing is left and nothing is begun; and that all
// is live soon after it is woken.
func cutIn(t *testing.T, w *world, middle, mend func(r *rig)) {
	t.Helper()
	r := start(t, w)
	r.Cut(fakeID) // before any connection there was
	r.watch(t, "BTC", "ETH", "SOL")
	synctest.Wait()
	r.wantState(t, "BTC", feed.StateStale, market.KindIsolated)
	if n := w.tally(); n != (tally{}) {
		t.Fatalf("asked before it was woken: %+v", n)
	}
	r.Wake(fakeID)
	middle(r)
	connected := w.open()
	if n := atWork(); n < connected {
		t.Errorf("%d goroutines are at work on %d connections: they are not counted", n, connected)
	}
	r.Cut(fakeID)
	synctest.Wait()
	for _, b := range []string{"BTC", "ETH", "SOL"} {
		r.wantState(t, b, feed.StateStale, market.KindIsolated)
	}
	if n := atWork(); n != 0 || w.open() != 0 {
		t.Errorf("%d goroutines are at work and %d connections open", n, w.open())
	}
	before := w.tally()
	sleep(5 * time.Minute)
	if w.tally() != before {
		t.Errorf("the exchange was asked: %+v, and before %+v", w.tally(), before)
	}
	mend(r)
	r.Wake(fakeID)
	sleep(2 * time.Second)
	if st := r.Status(fakeID); st.Live != 3 || w.open() != 1 {
		t.Errorf("%d live on %d connections", st.Live, w.open())
	}
}

func TestCut_inTheMiddle(t *testing.T) {
	rest := market.StreamRules{SnapshotDepth: 1000, Recheck: true}
	nothing := func(*rig) {}
	f := func(name string, rules market.StreamRules, middle, mend func(r *rig)) {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(rules)
				w.byREST = rules.SnapshotDepth > 0
				cutIn(t, w, middle, mend)
			})
		})
	}
	f("of nothing", rest, func(*rig) { sleep(10 * time.Second) }, nothing)
	f("at once", rest, nothing, nothing)
	f("of a connect", rest, func(r *rig) {
		r.w.set(func() { r.w.silent = true })
		sleep(2 * time.Second)
		if r.w.open() != 1 {
			t.Error("no connection is being opened")
		}
	}, func(r *rig) { r.w.set(func() { r.w.silent = false }) })
	f("of a snapshot", rest, func(r *rig) {
		for r.w.tally().asking == 0 {
			sleep(10 * time.Millisecond)
		}
	}, nothing)
	f("of a check", rest, func(r *rig) {
		sleep(30 * time.Second) // 20 s before their time is over
		for r.w.tally().asking == 0 {
			sleep(10 * time.Millisecond)
		}
	}, nothing)
	f("of a handover", rest, func(r *rig) {
		sleep(5 * time.Second)
		r.w.set(func() { r.w.mute["ETHUSDT"] = true })
		r.w.tell(market.StreamEvent{Kind: market.StreamRetiring})
		sleep(3 * time.Second)
		if r.w.open() != 2 {
			t.Errorf("%d connections; want two side by side", r.w.open())
		}
	}, func(r *rig) { r.w.set(func() { clear(r.w.mute) }) })
	f("of the opening of the second connection", market.StreamRules{}, func(r *rig) {
		sleep(5 * time.Second)
		r.w.set(func() { r.w.silent = true })
		r.w.tell(market.StreamEvent{Kind: market.StreamRetiring})
		sleep(time.Second)
		if r.w.open() != 2 {
			t.Errorf("%d connections; want one, and one that is being opened", r.w.open())
		}
	}, func(r *rig) { r.w.set(func() { r.w.silent = false }) })
	f("of a subscription", market.StreamRules{Batch: 1}, func(r *rig) {
		sleep(10 * time.Millisecond)
		r.w.set(func() { r.w.slow = 500 * time.Millisecond })
		for r.w.open() == 0 {
			sleep(10 * time.Millisecond)
		}
	}, func(r *rig) { r.w.set(func() { r.w.slow = 0 }) })
	f("of a wait", rest, func(r *rig) {
		r.w.set(func() { r.w.dialErr = failure(market.KindUnavailable) })
		sleep(3 * time.Minute)
	}, func(r *rig) { r.w.set(func() { r.w.dialErr = nil }) })
	f("of what the guard refuses", rest, func(r *rig) {
		e := failure(market.KindIsolated)
		e.RetryAfter = time.Hour
		r.w.set(func() { r.w.doErr, r.w.restErr = e, e })
		sleep(time.Second)
	}, func(r *rig) { r.w.set(func() { r.w.doErr, r.w.restErr = nil, nil }) })
}

// Until the exchange is back after it was woken, its books say why that is, and not that it is isolated.
func TestWake_theReasonIsThatOfNow(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(market.StreamRules{})
		r := start(t, w)
		r.watch(t, "BTC")
		sleep(3 * time.Second)
		r.Cut(fakeID)
		r.watch(t, "ETH")
		w.set(func() { w.dialErr = failure(market.KindUnavailable) })
		r.Wake(fakeID)
		sleep(3 * time.Second)
		r.wantState(t, "BTC", feed.StateStale, market.KindUnavailable)
		r.wantState(t, "ETH", feed.StateSyncing, market.KindUnavailable)
		w.set(func() { w.dialErr = nil })
		sleep(31 * time.Second)
		r.wantState(t, "BTC", feed.StateLive, market.KindNone)
		r.wantState(t, "ETH", feed.StateLive, market.KindNone)
	})
}

func TestWake_endsPausesWithoutACut(t *testing.T) {
	open := failure(market.KindCircuitOpen)
	open.RetryAfter = 55 * time.Second
	f := func(name string, refuse, admit func(w *world)) {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(market.StreamRules{SnapshotDepth: 1000})
				w.byREST = true
				refuse(w)
				r := start(t, w)
				r.watch(t, "BTC")
				sleep(5 * time.Second)
				w.set(func() { admit(w) })
				sleep(5 * time.Second)
				r.wantState(t, "BTC", feed.StateSyncing, r.state(t, "BTC").Reason)
				r.Wake(fakeID)
				sleep(time.Second)
				r.wantState(t, "BTC", feed.StateLive, market.KindNone)
			})
		})
	}
	f("of connects", func(w *world) { w.doErr = open }, func(w *world) { w.doErr = nil })
	f("of snapshots", func(w *world) { w.restErr = open }, func(w *world) { w.restErr = nil })
}

// Somebody who wakes an exchange that is down again and again does not make a storm of it.
func TestWake_isPacedHoweverOftenItIsAsked(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(market.StreamRules{})
		w.dialErr = failure(market.KindUnavailable)
		r := start(t, w)
		r.watch(t, "BTC")
		sleep(time.Minute)
		dials := w.tally().dials
		for range 1000 {
			r.Wake(fakeID)
			sleep(10 * time.Millisecond)
		}
		// A wait of up to 250 ms is left each time, and a shorter one is not made longer.
		if n := w.tally().dials - dials; n < 10 || n > 200 {
			t.Errorf("%d dials in 10 s", n)
		}
	})
}

// A guard that refuses for an isolation is asked as seldom as any other, whether or not the exchange was cut.
func TestFeed_anIsolationOfTheGuardsAloneIsNoBusyLoop(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(market.StreamRules{Batch: 1})
		r := start(t, w)
		r.watch(t, "BTC")
		sleep(3 * time.Second)
		w.set(func() { w.doErr = failure(market.KindIsolated) })
		r.watch(t, "ETH") // to be subscribed on the connection that there is
		sleep(5 * time.Minute)
		if n := w.tally().dos; n > 30 {
			t.Errorf("%d questions about one subscription", n)
		}
		asked := w.tally().dos
		w.cut(market.KindUnavailable)
		sleep(5 * time.Minute)
		if n := w.tally().dos - asked; n < 5 || n > 30 {
			t.Errorf("%d questions about one connect", n)
		}
	})
}

func TestCut_ofWhatIsNotStreamed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, newWorld(market.StreamRules{}))
		r.Cut("elsewhere")
		r.Wake("elsewhere")
		r.watch(t, "BTC")
		sleep(3 * time.Second)
		r.wantState(t, "BTC", feed.StateLive, market.KindNone)
	})
}

// TestCut_atAnyMoment cuts and wakes at random while books change, connections die and are replaced. While it is cut
// nothing is open, and once it is woken for good everything is live.
func TestCut_atAnyMoment(t *testing.T) {
	for seed := range uint64(4) {
		bubble(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			w := newWorld(market.StreamRules{Books: 5, Batch: 2, SnapshotDepth: 1000, Recheck: true, RotateAfter: time.Minute, RotateBefore: 2 * time.Minute})
			w.byREST = seed%2 == 0
			r := start(t, w)
			bases, symbols := names(12)
			r.watch(t, bases...)
			cut := false
			for range 600 {
				time.Sleep(time.Duration(random.Int64N(int64(300 * time.Millisecond))))
				switch random.IntN(12) {
				case 0:
					r.Cut(fakeID)
					cut = true
				case 1, 2:
					r.Wake(fakeID)
					cut = false
				case 3:
					w.cut(market.KindUnavailable)
				case 4:
					w.tell(market.StreamEvent{Kind: market.StreamRetiring})
				case 5:
					r.Resync(fakeID, key(bases[random.IntN(len(bases))]).Pair)
				default:
					w.change(symbols[random.IntN(len(symbols))])
				}
				if random.IntN(3) > 0 {
					continue
				}
				synctest.Wait()
				if cut && (w.open() != 0 || r.Status(fakeID).Stale != 12) {
					t.Fatalf("seed %d: %d connections are open, %+v", seed, w.open(), r.Status(fakeID))
				}
			}
			r.Wake(fakeID)
			sleep(3 * time.Minute) // the longest pause of a book is a minute
			if st := r.Status(fakeID); st.Live != 12 {
				t.Errorf("seed %d: %+v", seed, st)
			}
			for _, b := range bases {
				w.mu.Lock()
				last := max(w.seq[b+"USDT"], 1)
				w.mu.Unlock()
				r.wantBook(t, b, last)
			}
		})
	}
}
