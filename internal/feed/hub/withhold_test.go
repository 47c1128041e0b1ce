package hub_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/feed"
	"exchange-gateway/internal/feed/hub"
	"exchange-gateway/internal/market"
)

// everything has all happen to a book that can, and leaves it with size on top.
func (b *fakeBook) everything(size int64) {
	b.top(size - 1)
	b.freshness(feed.StateStale, market.KindTimeout)
	b.load(60)
	b.top(size)
}

func TestWithhold_nothingComesUntilItEnds(t *testing.T) {
	for name, pair := range map[string]market.Pair{"the pair": btc, "the exchange": {}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, hub.Config{Heartbeat: 15 * time.Second}, func(t *testing.T, f *fakeFeed, b *fakeBook) {
				c := f.listener.NewClient()
				defer c.Close()
				subscribe(t, c, depth(5), ticker)
				wantTypes(t, c, "status live", "snapshot", "status live", "snapshot")
				b.top(7)
				wantTypes(t, c, "update", "update")

				f.listener.Withhold("okx", pair, true)
				since := time.Now().UTC().Format(time.RFC3339)
				for _, frame := range next(t, c) {
					if text := string(frame.JSON()); !strings.Contains(text, `"status":"withheld","reason":"withheld","since":"`+since[:19]) ||
						!strings.Contains(text, `"confirmed_at":null`) {
						t.Error(text)
					}
				}
				b.everything(100)
				f.listener.Withhold("okx", pair, true) // twice is once
				wantTypes(t, c)
				began := time.Now()
				if frames, err := c.Next(t.Context()); err != nil || len(frames) != 1 || frames[0].Type() != hub.TypeHeartbeat || time.Since(began) < 14*time.Second {
					t.Errorf("%d frames after %v, err %v; want a heartbeat", len(frames), time.Since(began), err)
				}

				f.listener.Withhold("okx", pair, false)
				f.listener.Withhold("okx", pair, false)
				ms := wantTypes(t, c, "status live", "snapshot", "status live", "snapshot")
				if ms[1].Seq != 3 || ms[1].Conflated != 0 || ms[1].Bids[0][1] != "1.00" || ms[3].Seq != 3 || text(ms[3].BidVolume) != "1.00" {
					t.Errorf("after it: %+v, %+v", ms[1], ms[3])
				}
				b.top(101)
				for _, m := range wantTypes(t, c, "update", "update") {
					if *m.PrevSeq != 3 || m.Seq != 4 {
						t.Errorf("%s %d after %d", m.Channel, m.Seq, *m.PrevSeq)
					}
				}
			})
		})
	}
}

func TestWithhold_whoComesMeanwhileIsToldSo(t *testing.T) {
	bubble(t, hub.Config{}, func(t *testing.T, f *fakeFeed, b *fakeBook) {
		old := f.listener.NewClient()
		defer old.Close()
		subscribe(t, old, depth(5))
		holds := next(t, old)[1].ID()
		f.listener.Withhold("okx", btc, true)
		wantTypes(t, old, "status withheld")
		resumed, other := f.listener.NewClient(), f.listener.NewClient()
		defer resumed.Close()
		defer other.Close()
		if err := resumed.Subscribe(listing, depth(5), holds); err != nil {
			t.Fatal(err)
		}
		wantTypes(t, resumed, "status withheld")
		subscribe(t, other, depth(20), ticker) // topics that nobody had
		wantTypes(t, other, "status withheld", "status withheld")
		b.everything(100)
		wantTypes(t, other)
		if !other.Unsubscribe(ticker) {
			t.Error("a subscription to what is withheld cannot be ended")
		}
		wantTypes(t, other, "status unsubscribed")
		f.listener.Withhold("okx", btc, false)
		wantTypes(t, old, "status live", "snapshot")
		if m := wantTypes(t, resumed, "status live", "snapshot"); m[1].Seq != 2 {
			t.Errorf("a snapshot of %d", m[1].Seq)
		}
		if m := wantTypes(t, other, "status live", "snapshot"); m[1].Seq != 1 || m[1].Bids[0][1] != "1.00" {
			t.Errorf("the first snapshot: %+v", m[1])
		}
	})
}

func TestWithhold_changesNothingForOthers(t *testing.T) {
	bubble(t, hub.Config{}, func(t *testing.T, f *fakeFeed, b *fakeBook) {
		eth := feed.Key{Exchange: "okx", Pair: market.Pair{Base: "ETH", Quote: "USDT"}}
		elsewhere := feed.Key{Exchange: "binance", Pair: btc}
		c := f.listener.NewClient()
		defer c.Close()
		subscribe(t, c, depth(1))
		var books []*fakeBook
		for _, k := range []feed.Key{eth, elsewhere} {
			books = append(books, f.stream(k, 5))
			l := market.Listing{Exchange: k.Exchange, Pair: k.Pair, Symbol: "X"}
			if err := c.Subscribe(l, hub.Topic{Key: k, Channel: hub.ChannelOrderBook, Depth: 1}, ""); err != nil {
				t.Fatal(err)
			}
		}
		next(t, c)
		f.listener.Withhold("okx", btc, true)
		wantTypes(t, c, "status withheld")
		for _, x := range append(books, b) {
			x.top(5)
		}
		wantTypes(t, c, "update", "update")
		// The exchange as well, and then one of the two: the pair stays withheld until both have ended.
		f.listener.Withhold("okx", market.Pair{}, true)
		if m := wantTypes(t, c, "status withheld"); m[0].Symbol != "ETH/USDT" {
			t.Errorf("told of %s", m[0].Symbol)
		}
		f.listener.Withhold("okx", btc, false)
		books[0].top(6)
		b.top(6)
		wantTypes(t, c)
		f.listener.Withhold("okx", market.Pair{}, false)
		for _, m := range wantTypes(t, c, "status live", "snapshot", "status live", "snapshot") {
			if m.Exchange != "okx" {
				t.Errorf("told of %s", m.Exchange)
			}
		}
	})
}

// What waits for a client that does not read is dropped: it would get it after it was told, or told late.
func TestWithhold_whatWaitsIsNotSent(t *testing.T) {
	bubble(t, hub.Config{MaxFrames: 8}, func(t *testing.T, f *fakeFeed, b *fakeBook) {
		behind, waiting := f.listener.NewClient(), f.listener.NewClient()
		defer behind.Close()
		defer waiting.Close()
		for _, c := range []*hub.Client{behind, waiting} {
			subscribe(t, c, depth(5))
			wantTypes(t, c, "status live", "snapshot")
		}
		for i := range int64(10) {
			b.top(10 + i)
			if i < 7 {
				next(t, waiting)
			}
		}
		f.listener.Withhold("okx", btc, true)
		wantTypes(t, behind, "status withheld")
		wantTypes(t, waiting, "status withheld")
		b.everything(100)
		wantTypes(t, behind)
		f.listener.Withhold("okx", btc, false)
		for c, missed := range map[*hub.Client]uint64{behind: 10, waiting: 3} {
			m := wantTypes(t, c, "status live", "snapshot")[1]
			if m.Seq != 12 || m.Conflated != missed || m.Bids[0][1] != "1.00" {
				t.Errorf("seq %d, %d conflated, want 12 and %d", m.Seq, m.Conflated, missed)
			}
		}
		b.top(1)
		for _, c := range []*hub.Client{behind, waiting} {
			if m := wantTypes(t, c, "update"); *m[0].PrevSeq != 12 {
				t.Errorf("an update after %d", *m[0].PrevSeq)
			}
		}
	})
}

func TestWithhold_endsWithoutABook(t *testing.T) {
	t.Run("lost", func(t *testing.T) {
		bubble(t, hub.Config{}, func(t *testing.T, f *fakeFeed, b *fakeBook) {
			c := f.listener.NewClient()
			defer c.Close()
			subscribe(t, c, depth(5))
			next(t, c)
			f.listener.Withhold("okx", btc, true)
			next(t, c)
			b.lose(market.KindUnavailable)
			f.listener.Withhold("okx", btc, false)
			if m := wantTypes(t, c, "status syncing"); text(m[0].Reason) != "unavailable" {
				t.Errorf("reason %s", text(m[0].Reason))
			}
			b.load(5)
			wantTypes(t, c, "snapshot", "status live")
		})
	})
	t.Run("never streamed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := newFeed(hub.Config{})
			f.listener.Withhold("okx", btc, true) // before anybody came
			c := f.listener.NewClient()
			defer c.Close()
			subscribe(t, c, depth(5))
			wantTypes(t, c, "status withheld")
			f.listener.Withhold("okx", btc, false)
			wantTypes(t, c, "status syncing")
			f.stream(btcKey, 2)
			wantTypes(t, c, "snapshot", "status live")
		})
	})
}
