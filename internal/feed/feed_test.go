package feed_test

import (
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/feed"
	"exchange-gateway/internal/market"
)

// bubble runs a test with a fake clock.
func bubble(t *testing.T, f func(t *testing.T)) { t.Helper(); synctest.Test(t, f) }

// sleep lets time pass, and then everything come to rest.
func sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestFeed_streamsAWatchedBook(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(market.StreamRules{})
		r := start(t, w)
		release := r.watch(t, "BTC")
		sleep(3 * time.Second)
		r.wantState(t, "BTC", feed.StateLive, market.KindNone)
		r.wantBook(t, "BTC", 1)
		w.change("BTCUSDT")
		synctest.Wait()
		b := r.wantBook(t, "BTC", 2)
		if b.Sequence != market.SequenceOf(2) || !b.ConfirmedAt.Equal(time.Now()) || !b.ChangedAt.Equal(time.Now()) {
			t.Errorf("sequence %v, confirmed %v ago, changed %v ago", b.Sequence, time.Since(b.ConfirmedAt), time.Since(b.ChangedAt))
		}
		again, _, _ := r.Book(key("BTC"))
		if again.Levels != b.Levels {
			t.Error("one version was made twice")
		}
		if w.tally().dials != 1 || w.tally().rests != 0 {
			t.Errorf("%d dials and %d questions, want 1 and 0", w.tally().dials, w.tally().rests)
		}
		release()
	})
}
