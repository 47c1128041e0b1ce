package feed_test

import (
	"testing"
	"time"

	"exchange-gateway/internal/clock/clocktest"
	"exchange-gateway/internal/feed"
)

// TestSuspended_noStreamedBookIsLive: a book that was live before the machine was suspended is not live when it wakes up, until
// its connection speaks.
func TestSuspended_noStreamedBookIsLive(t *testing.T) {
	for name, w := range map[string]*world{"by sequence": likeBinance(), "by keep-alive": likeOKX(), "by best bid and ask": likeCoinbase()} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := start(t, w)
				r.watch(t, "BTC")
				sleep(3 * time.Second)
				if _, f, ok := r.Book(key("BTC")); !ok || f.State != feed.StateLive {
					t.Fatalf("before: %s (%v)", f.State, f.Reason)
				}
				clocktest.Suspend(t, 8*time.Hour)
				if _, f, _ := r.Book(key("BTC")); f.State == feed.StateLive {
					t.Error("live at once after 8 h of which nothing is known")
				}
				for range 120 {
					w.change("BTCUSDT")
					sleep(500 * time.Millisecond)
				}
				if _, f, ok := r.Book(key("BTC")); !ok || f.State != feed.StateLive {
					t.Errorf("a minute later: %s (%v)", f.State, f.Reason)
				}
			})
		})
	}
}
