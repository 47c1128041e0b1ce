package feed_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"exchange-gateway/internal/feed"
	"exchange-gateway/internal/market"
)

func (r *rig) book(t *testing.T, base string) feed.BookStatus {
	t.Helper()
	for _, b := range r.Books(fakeID) {
		if b.Key == key(base) {
			return b
		}
	}
	t.Fatalf("%s is not streamed", base)
	return feed.BookStatus{}
}

func TestResync_aWrongBookIsNeitherShownNorKept(t *testing.T) {
	f := func(name string, byREST bool) {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(market.StreamRules{SnapshotDepth: 1000})
				w.byREST = byREST
				r := start(t, w)
				r.watch(t, "BTC", "ETH")
				sleep(3 * time.Second)
				w.change("BTCUSDT")
				synctest.Wait()
				before := w.tally()
				w.set(func() { w.slow = 200 * time.Millisecond }) // so that there is time to look
				if !r.Resync(fakeID, key("BTC").Pair) {
					t.Fatal("it is not streamed")
				}
				if b, fresh, ok := r.Book(key("BTC")); ok || fresh.State != feed.StateStale || fresh.Reason != market.KindSuspect {
					t.Errorf("book %v, %+v", b, fresh)
				}
				if b := r.book(t, "BTC"); b.Epoch != "" || !b.Bid.IsZero() || !b.ConfirmedAt.IsZero() {
					t.Errorf("shown as %+v", b)
				}
				sleep(time.Second)
				r.wantState(t, "BTC", feed.StateLive, market.KindNone)
				r.wantBook(t, "BTC", 2)
				if got := strings.Join(r.ear.heard(key("ETH")), ", "); got != "live" || len(r.kept.books) != 0 {
					t.Errorf("the other book: %q; %d kept", got, len(r.kept.books))
				}
				n := w.tally()
				if byREST && (n.rests != before.rests+1 || n.subscribes != before.subscribes) || !byREST && n.subscribes != before.subscribes+1 || n.dials != 1 {
					t.Errorf("%+v, before %+v", n, before)
				}
			})
		})
	}
	f("by REST", true)
	f("by the stream", false)
}

func TestResync_ofWhatIsNotStreamed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, newWorld(market.StreamRules{}))
		if r.Resync(fakeID, key("BTC").Pair) || r.Resync("elsewhere", key("BTC").Pair) {
			t.Error("a book that nobody asked for was given up")
		}
	})
}

// What was lost before is shown with its age; a wrong book is not, while the exchange is cut off too.
func TestResync_ofAStaleBook(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(market.StreamRules{})
		r := start(t, w)
		r.watch(t, "BTC")
		sleep(3 * time.Second)
		r.Cut(fakeID)
		sleep(time.Second)
		r.wantBook(t, "BTC", 1)
		if _, _, ok := r.Book(key("BTC")); !r.Resync(fakeID, key("BTC").Pair) || !ok {
			t.Fatal("there was no book to give up")
		}
		if _, fresh, ok := r.Book(key("BTC")); ok || fresh.Reason != market.KindIsolated {
			t.Errorf("shown %v, %+v", ok, fresh)
		}
		r.Wake(fakeID)
		sleep(2 * time.Second)
		r.wantState(t, "BTC", feed.StateLive, market.KindNone)
	})
}

// In the middle of a handover both connections have a copy. Neither comes back.
func TestResync_givesUpBothCopies(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(market.StreamRules{})
		r := start(t, w)
		r.watch(t, "BTC", "ETH")
		sleep(3 * time.Second)
		w.set(func() { w.mute["ETHUSDT"] = true })
		w.tell(market.StreamEvent{Kind: market.StreamRetiring})
		sleep(2 * time.Second)
		if w.open() != 2 {
			t.Fatalf("%d connections", w.open())
		}
		w.set(func() { w.mute["BTCUSDT"] = true })
		r.Resync(fakeID, key("BTC").Pair)
		w.change("BTCUSDT") // the subscriptions have not ended yet
		synctest.Wait()
		if _, _, ok := r.Book(key("BTC")); ok {
			t.Error("a copy of what was given up is shown")
		}
		w.set(func() { clear(w.mute) })
		sleep(40 * time.Second)
		r.wantState(t, "BTC", feed.StateLive, market.KindNone)
	})
}

func TestResync_isPacedHoweverOftenItIsAsked(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(market.StreamRules{SnapshotDepth: 1000})
		w.byREST = true
		r := start(t, w)
		r.watch(t, "BTC")
		sleep(3 * time.Second)
		before := w.tally().rests
		for range 10 * 60 * 10 {
			r.Resync(fakeID, key("BTC").Pair)
			sleep(100 * time.Millisecond)
		}
		if n := w.tally().rests - before; n < 8 || n > 30 { // 0, 1, 2, 4 ... 60 s apart, less up to a half of each
			t.Errorf("%d snapshots in 10 min", n)
		}
	})
}

func TestBooks_tellWhatAnOperatorAsks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(market.StreamRules{SnapshotDepth: 1000})
		w.byREST = true
		r := start(t, w)
		began := time.Now()
		r.watch(t, "ETH", "BTC")
		if b := r.book(t, "BTC"); b.Freshness.State != feed.StateSyncing || !b.StreamedSince.Equal(began) || !b.Bid.IsZero() || !b.LastResync.IsZero() {
			t.Errorf("at first %+v", b)
		}
		sleep(5 * time.Second)
		all := r.Books(fakeID)
		if len(all) != 2 || all[0].Key != key("BTC") || all[1].Key != key("ETH") {
			t.Errorf("%+v", all)
		}
		b := all[0]
		bid, _ := b.Bid.Get()
		ask, _ := b.Ask.Get()
		if bid.String() != "100" || ask.String() != "101" || b.Resyncs != 0 || b.Epoch == "" || b.Sequence != market.SequenceOf(1) {
			t.Errorf("live %+v", b)
		}
		w.tell(
			market.StreamEvent{Kind: market.StreamLost, Symbol: "BTCUSDT", Err: failure(market.KindMalformed)},
			market.StreamEvent{Kind: market.StreamWanted, Symbol: "BTCUSDT"},
		)
		synctest.Wait()
		lost := time.Now()
		sleep(5 * time.Second)
		if b := r.book(t, "BTC"); b.Resyncs != 1 || !b.LastResync.Equal(lost) || b.ResyncReason != market.KindMalformed || !b.StreamedSince.Equal(began) {
			t.Errorf("after a gap %+v", b)
		}
		w.cut(market.KindUnavailable)
		sleep(5 * time.Second)
		if b := r.book(t, "BTC"); b.Resyncs != 2 || b.ResyncReason != market.KindUnavailable {
			t.Errorf("after a disconnect %+v", b)
		}
		if b := r.book(t, "ETH"); b.Resyncs != 1 {
			t.Errorf("the other after a disconnect %+v", b)
		}
		w.tell(market.StreamEvent{Kind: market.StreamRetiring})
		sleep(5 * time.Second)
		if b := r.book(t, "ETH"); b.Resyncs != 1 {
			t.Errorf("a handover that lost nothing counts: %+v", b)
		}
	})
}

// takeOver brings a connection whose replacement has taken one book over, and waits for the other.
func takeOver(t *testing.T, w *world) *rig {
	t.Helper()
	r := start(t, w)
	r.watch(t, "BTC", "ETH")
	sleep(3 * time.Second)
	w.set(func() { w.mute["ETHUSDT"] = true })
	w.tell(market.StreamEvent{Kind: market.StreamRetiring})
	sleep(2 * time.Second)
	if w.open() != 2 || r.ear.count("loaded") != 3 {
		t.Fatalf("%d connections, %d books were loaded; want two, and one of the two books on each", w.open(), r.ear.count("loaded"))
	}
	return r
}

func (w *world) end(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conns[n].end(failure(market.KindUnavailable))
}

func TestFeed_aReplacementThatDiesCostsNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(market.StreamRules{})
		r := takeOver(t, w)
		w.change("BTCUSDT")
		synctest.Wait()
		w.end(1)
		synctest.Wait()
		r.wantState(t, "BTC", feed.StateLive, market.KindNone)
		w.change("BTCUSDT", "ETHUSDT")
		synctest.Wait()
		r.wantBook(t, "BTC", 3)
		r.wantBook(t, "ETH", 2)
		w.set(func() { clear(w.mute) })
		sleep(40 * time.Second) // another replacement
		for _, b := range []string{"BTC", "ETH"} {
			if got := strings.Join(r.ear.heard(key(b)), ", "); got != "live" {
				t.Errorf("%s: states %q", b, got)
			}
		}
		if w.tally().dials != 3 || w.open() != 1 {
			t.Errorf("%d dials, %d connections", w.tally().dials, w.open())
		}
		if n := r.book(t, "BTC").Resyncs; n != 0 {
			t.Errorf("%d resyncs", n)
		}
	})
}

// A copy that is behind what was shown waits until it is not: nobody sees a book go back.
func TestFeed_aCopyThatIsBehindDoesNotStandIn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(market.StreamRules{})
		r := takeOver(t, w)
		w.mu.Lock()
		w.seq["BTCUSDT"] = 2
		old, ahead := w.conns[0], w.conns[1]
		update := market.StreamEvent{Kind: market.StreamUpdate, Symbol: "BTCUSDT", Bids: levels("100", 2), Sequence: market.SequenceOf(2)}
		ahead.send(update)
		w.mu.Unlock()
		synctest.Wait()
		r.wantBook(t, "BTC", 2)
		w.end(1)
		synctest.Wait()
		r.wantState(t, "BTC", feed.StateStale, market.KindUnavailable)
		r.wantBook(t, "BTC", 2)
		w.set(func() { old.send(update) })
		synctest.Wait()
		r.wantState(t, "BTC", feed.StateLive, market.KindNone)
		r.wantBook(t, "BTC", 2)
		if got := strings.Join(r.ear.heard(key("BTC")), ", "); got != "live, stale unavailable, live" {
			t.Errorf("states %q", got)
		}
	})
}

func TestFeed_lagAndLastFrame(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, reg := newWorld(market.StreamRules{Silence: unprobed}), prometheus.NewRegistry()
		r := start(t, w, func(c *feed.Config) { c.Metrics = reg })
		want := func(frame float64, lags int, sum string) {
			t.Helper()
			text := fmt.Sprintf(`
# HELP gateway_feed_last_frame_timestamp_seconds When a frame of any kind last came on a stream connection, 0 before the first.
# TYPE gateway_feed_last_frame_timestamp_seconds gauge
gateway_feed_last_frame_timestamp_seconds{exchange="fake"} %v
`, frame)
			if err := testutil.GatherAndCompare(reg, strings.NewReader(text), "gateway_feed_last_frame_timestamp_seconds"); err != nil {
				t.Error(err)
			}
			families, err := reg.Gather()
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range families {
				if f.GetName() == "gateway_feed_lag_seconds" {
					h := f.GetMetric()[0].GetHistogram()
					if got := fmt.Sprintf("%.3f", h.GetSampleSum()); int(h.GetSampleCount()) != lags || got != sum {
						t.Errorf("%d changes, %s s in all; want %d, %s", h.GetSampleCount(), got, lags, sum)
					}
				}
			}
		}
		sleep(2 * time.Second)
		want(0, 0, "0.000")
		r.watch(t, "BTC")
		sleep(5 * time.Second)
		last := time.Now()
		for i, lag := range []time.Duration{200 * time.Millisecond, 50 * time.Millisecond, -time.Minute} { // the last by a clock that is ahead
			w.tell(market.StreamEvent{
				Kind: market.StreamUpdate, Symbol: "BTCUSDT", Bids: levels("100", int64(i+2)), Sequence: market.SequenceOf(int64(i + 2)), ExchangeTime: last.Add(-lag),
			})
		}
		sleep(20 * time.Second)
		want(float64(last.UnixMilli())/1e3, 3, "0.250")
		r.Cut(fakeID)
		sleep(20 * time.Second)
		want(float64(last.UnixMilli())/1e3, 3, "0.250")
	})
}
