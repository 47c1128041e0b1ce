package feed_test

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"exchange-gateway/internal/feed"
	"exchange-gateway/internal/market"
)

func TestFeed_captureHoldsTheBookBeforeTheFrames(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(market.StreamRules{})
		r := start(t, w)
		r.watch(t, "BTC", "ETH")
		sleep(2 * time.Second)
		got := func() *feed.Capture {
			t.Helper()
			c, ok := r.Capture(key("BTC"))
			if !ok {
				t.Fatal("nothing is captured")
			}
			return c
		}
		c := got()
		if len(c.Frames) != 1 || len(c.Base.Bids) != 0 || c.Base.Sequence != nil {
			t.Errorf("%d frames from %v on, want the snapshot alone", len(c.Frames), c.Base)
		}
		for range 250 {
			w.change("BTCUSDT", "ETHUSDT")
			sleep(100 * time.Millisecond)
		}
		synctest.Wait()
		c = got()
		if len(c.Frames) != 200 {
			t.Fatalf("%d frames, want the last 200", len(c.Frames))
		}
		if q := *c.Base.Sequence; q != 51 || !c.Base.Bids[0][1].Equal(market.NewNumber(51, 0)) {
			t.Errorf("the book before them is %v at %d, want 51", c.Base.Bids, q)
		}
		text, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		var back struct {
			Exchange, Symbol, Pair, Epoch string
			Base                          struct {
				Bids, Asks [][2]string
				Sequence   int64
			}
			Frames []struct {
				At   time.Time
				Text string
			}
		}
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatal(err)
		}
		if back.Exchange != "fake" || back.Symbol != "BTCUSDT" || back.Pair != "BTC/USDT" || back.Epoch != c.Epoch {
			t.Errorf("%+v", back)
		}
		if diff := cmp.Diff([][2]string{{"100", "51"}}, back.Base.Bids); diff != "" {
			t.Error(diff)
		}
		if f := back.Frames[199]; f.Text == "" || time.Since(f.At) > time.Second {
			t.Errorf("last frame %+v", f)
		}
		if _, ok := r.Capture(key("SOL")); ok {
			t.Error("a capture of a pair that is not streamed")
		}
	})
}

func TestFeed_captureAfterARESTSnapshotBeginsWithIt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := likeBinance()
		r := start(t, w)
		r.watch(t, "BTC")
		sleep(2 * time.Second)
		w.change("BTCUSDT")
		synctest.Wait()
		c, ok := r.Capture(key("BTC"))
		if !ok || len(c.Frames) != 1 || c.Base.Sequence == nil || *c.Base.Sequence != 1 || len(c.Base.Asks) != 1 {
			t.Errorf("%v, %+v", ok, c)
		}
	})
}
