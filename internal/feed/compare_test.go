package feed_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"exchange-gateway/internal/feed"
	"exchange-gateway/internal/market"
)

// counter reads one of the feed's counters.
func counter(t *testing.T, reg *prometheus.Registry, name, label, value string) int {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != "gateway_feed_"+name {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == label && l.GetValue() == value {
					return int(m.GetCounter().GetValue())
				}
			}
		}
	}
	t.Fatalf("no %s with %s=%q", name, label, value)
	return 0
}

func measured(t *testing.T, w *world) (*rig, *prometheus.Registry) {
	reg := prometheus.NewRegistry()
	return start(t, w, func(c *feed.Config) { c.Metrics = reg }), reg
}

func TestFeed_comparesLiveBooksNowAndThen(t *testing.T) {
	f := func(name string, w *world, busy bool) {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r, reg := measured(t, w)
				r.watch(t, "BTC", "ETH")
				for i := range 600 {
					if busy || i%20 == 0 {
						w.change("BTCUSDT", "ETHUSDT")
					}
					sleep(time.Second)
				}
				agrees, undecided := counter(t, reg, "comparisons_total", "result", "agrees"), counter(t, reg, "comparisons_total", "result", "undecided")
				if n := agrees + undecided; n < 15 || n > 26 {
					t.Errorf("%d comparisons in 10 min, want about 20", n)
				}
				if agrees == 0 {
					t.Error("none was decided")
				}
				if n := counter(t, reg, "comparisons_total", "result", "differs"); n != 0 {
					t.Errorf("%d differ", n)
				}
				if got := r.ear.heard(key("BTC")); len(got) != 1 {
					t.Errorf("states %q", got)
				}
			})
		})
	}
	f("by sequence", likeOKX(), true)
	f("of still books", likeCoinbase(), false)
}

// TestFeed_aBookThatDiffersIsGivenUp: the exchange's stream said something else than its REST answer, at one sequence.
func TestFeed_aBookThatDiffersIsGivenUp(t *testing.T) {
	f := func(name string, w *world, rest int64) {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r, reg := measured(t, w)
				r.watch(t, "BTC")
				sleep(3 * time.Second)
				w.tell(market.StreamEvent{Kind: market.StreamUpdate, Symbol: "BTCUSDT", Asks: levels("101", 7), Sequence: w.sequence(1)})
				sleep(50 * time.Second)
				if n := counter(t, reg, "comparisons_total", "result", "differs"); n != 1 {
					t.Errorf("%d differ", n)
				}
				if got := r.ear.heard(key("BTC")); !slices.Contains(got, "stale suspect") {
					t.Errorf("states %q", got)
				}
				r.wantState(t, "BTC", feed.StateLive, market.KindNone)
				b := r.wantBook(t, "BTC", 1)
				if !b.Asks()[0].Size.Equal(market.NewNumber(1, 0)) {
					t.Error("the wrong book came back")
				}
			})
		})
	}
	f("by sequence", likeOKX(), 1)
	f("of a still book", likeCoinbase(), 1)
}

// TestFeed_aChangeOnItsWayIsNoDifference: without sequences REST may know a change that the stream is about to send.
func TestFeed_aChangeOnItsWayIsNoDifference(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := likeCoinbase()
		r, reg := measured(t, w)
		r.watch(t, "BTC")
		sleep(3 * time.Second)
		w.set(func() { w.restSeq["BTCUSDT"] = 2 })
		asked := w.tally().rests
		for w.tally().rests == asked {
			sleep(100 * time.Millisecond)
			synctest.Wait()
		}
		sleep(time.Second)
		w.change("BTCUSDT")
		sleep(10 * time.Second)
		if n := counter(t, reg, "comparisons_total", "result", "differs"); n != 0 {
			t.Errorf("%d differ", n)
		}
		if got := r.ear.heard(key("BTC")); len(got) != 1 {
			t.Errorf("states %q", got)
		}
	})
}

func TestFeed_metrics(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(market.StreamRules{})
		r, reg := measured(t, w)
		if problems, err := testutil.GatherAndLint(reg); err != nil || len(problems) > 0 {
			t.Errorf("%v %v", problems, err)
		}
		// Every label is there from the start.
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]int{}
		for _, f := range families {
			got[f.GetName()] = len(f.GetMetric())
		}
		want := map[string]int{
			"gateway_feed_connections": 1, "gateway_feed_books": 3, "gateway_feed_messages_total": 1, "gateway_feed_events_total": 9,
			"gateway_feed_resyncs_total": len(market.Kinds()), "gateway_feed_snapshots_total": 3, "gateway_feed_rechecks_total": 5,
			"gateway_feed_comparisons_total": 3, "gateway_feed_reconnects_total": 5, "gateway_feed_refused_total": 1,
			"gateway_feed_lag_seconds": 1, "gateway_feed_last_frame_timestamp_seconds": 1,
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("series %v, want %v", got, want)
		}
		r.watch(t, "BTC", "ETH")
		sleep(5 * time.Second)
		w.cut(market.KindUnavailable)
		sleep(5 * time.Second)
		if n := counter(t, reg, "reconnects_total", "cause", "cut"); n != 1 {
			t.Errorf("%d reconnects", n)
		}
		if n := counter(t, reg, "events_total", "event", "snapshot"); n != 4 {
			t.Errorf("%d snapshots", n)
		}
	})
}
