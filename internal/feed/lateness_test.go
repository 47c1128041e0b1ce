package feed_test

import (
	"testing"
	"time"

	"exchange-gateway/internal/feed"
	"exchange-gateway/internal/market"
)

// skewed is how far the exchange's clock is from ours in these tests.
const skewed = -3 * time.Second

// stamped plays an exchange that stamps its changes, from when BTC's book is live.
func stamped(t *testing.T, play func(t *testing.T, w *world, r *rig)) {
	t.Helper()
	bubble(t, func(t *testing.T) {
		w := newWorld(market.StreamRules{Silence: unprobed})
		r := start(t, w)
		r.watch(t, "BTC")
		sleep(2 * time.Second)
		play(t, w, r)
	})
}

// changeAt sends a change of BTC's book that the exchange stamped so long ago.
func (w *world) changeAt(ago time.Duration) {
	stamp := time.Now().Add(skewed - ago)
	w.mu.Lock()
	w.seq["BTCUSDT"] = max(w.seq["BTCUSDT"], 1) + 1
	e := market.StreamEvent{
		Kind: market.StreamUpdate, Symbol: "BTCUSDT", Bids: levels("100", w.seq["BTCUSDT"]), Sequence: w.sequence(w.seq["BTCUSDT"]), ExchangeTime: stamp,
	}
	w.mu.Unlock()
	w.tell(e)
}

// wantAge checks how old BTC's book is.
func (r *rig) wantAge(t *testing.T, want time.Duration) {
	t.Helper()
	b, _, ok := r.Book(key("BTC"))
	if !ok {
		t.Fatal("no book")
	}
	if age, known := b.Age(time.Now()); !known || age != want {
		t.Errorf("the book is %v old (%v), want %v", age, known, want)
	}
}

// TestFeed_aLateStreamMakesNoYoungBooks: however late the exchange's messages come, a book is as old as what they tell, by the
// exchange's stamps and whatever its clock is off by.
func TestFeed_aLateStreamMakesNoYoungBooks(t *testing.T) {
	stamped(t, func(t *testing.T, w *world, r *rig) {
		for range 10 {
			w.changeAt(100 * time.Millisecond)
			sleep(time.Second)
		}
		r.wantAge(t, time.Second)
		// Less than a second is jitter.
		w.changeAt(900 * time.Millisecond)
		sleep(0)
		r.wantAge(t, 0)
		// Later by and by, as behind a queue that grows.
		for late := time.Duration(0); late <= 20*time.Second; late += 500 * time.Millisecond {
			w.changeAt(100*time.Millisecond + late)
			sleep(time.Second)
		}
		r.wantAge(t, 21*time.Second)
		r.wantState(t, "BTC", feed.StateLive, market.KindNone)
		// What else comes on that connection came as late.
		w.frame()
		sleep(0)
		r.wantAge(t, 20*time.Second)
		// Past the time for which the exchange's word holds, a change makes nothing live.
		w.changeAt(70 * time.Second)
		sleep(2 * time.Second)
		for range 60 {
			w.changeAt(70 * time.Second)
			sleep(time.Second)
		}
		r.wantState(t, "BTC", feed.StateStale, market.KindTimeout)
		// In time again.
		w.changeAt(100 * time.Millisecond)
		sleep(0)
		r.wantAge(t, 0)
		r.wantState(t, "BTC", feed.StateLive, market.KindNone)
	})
}

// TestFeed_anotherConnectionIsMeasuredByTheFirst: one that is late from its beginning has no measure of its own.
func TestFeed_anotherConnectionIsMeasuredByTheFirst(t *testing.T) {
	stamped(t, func(t *testing.T, w *world, r *rig) {
		w.changeAt(0)
		w.changeAt(0)
		sleep(time.Second)
		w.cut(market.KindUnavailable)
		sleep(5 * time.Second)
		w.changeAt(15 * time.Second)
		sleep(20 * time.Second) // its snapshot was younger: that is not moved back
		w.changeAt(15 * time.Second)
		sleep(0)
		r.wantAge(t, 15*time.Second)
	})
}

// TestFeed_oneWrongStampMakesNoOldBooks.
func TestFeed_oneWrongStampMakesNoOldBooks(t *testing.T) {
	stamped(t, func(t *testing.T, w *world, r *rig) {
		w.changeAt(-time.Hour) // an hour ahead
		for range 10 {
			w.changeAt(0)
			sleep(time.Second)
			r.wantAge(t, time.Second)
		}
	})
}

// TestFeed_aClockThatWasSetIsForgotten: an exchange that sets its clock back looks late, so its streams are not believed; two
// hours later they are.
func TestFeed_aClockThatWasSetIsForgotten(t *testing.T) {
	stamped(t, func(t *testing.T, w *world, r *rig) {
		change := func(ago time.Duration) {
			w.changeAt(ago)
			sleep(30 * time.Second)
		}
		for range 10 {
			change(-5 * time.Minute)
		}
		r.wantState(t, "BTC", feed.StateLive, market.KindNone)
		for range 10 {
			change(0)
		}
		r.wantState(t, "BTC", feed.StateStale, market.KindTimeout)
		for range 2 * 2 * 60 {
			change(0)
		}
		r.wantState(t, "BTC", feed.StateLive, market.KindNone)
		r.wantAge(t, 30*time.Second)
	})
}

// TestFeed_aSnapshotIsNotLate: OKX stamps one with the last change of the book, however long ago that is.
func TestFeed_aSnapshotIsNotLate(t *testing.T) {
	stamped(t, func(t *testing.T, w *world, r *rig) {
		w.changeAt(0)
		w.changeAt(0)
		sleep(time.Second)
		w.mu.Lock()
		e := w.snapshot("BTCUSDT")
		w.mu.Unlock()
		e.ExchangeTime = time.Now().Add(skewed - time.Hour)
		w.tell(e)
		sleep(0)
		r.wantAge(t, 0)
		r.wantState(t, "BTC", feed.StateLive, market.KindNone)
	})
}
