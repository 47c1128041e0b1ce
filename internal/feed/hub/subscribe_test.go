package hub_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/feed"
	"exchange-gateway/internal/feed/hub"
	"exchange-gateway/internal/market"
)

func bubble(t *testing.T, cfg hub.Config, test func(t *testing.T, f *fakeFeed, b *fakeBook)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := newFeed(cfg)
		test(t, f, f.stream(btcKey, 60))
	})
}

func wantTypes(t *testing.T, c *hub.Client, want ...string) []message {
	t.Helper()
	ms := messages(t, c)
	if got := types(ms); !slices.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	return ms
}

func TestSubscribe_newcomersShareTheSnapshot(t *testing.T) {
	bubble(t, hub.Config{}, func(t *testing.T, f *fakeFeed, b *fakeBook) {
		var frames [][]*hub.Frame
		join := func() []*hub.Frame {
			c := f.listener.NewClient()
			t.Cleanup(c.Close)
			subscribe(t, c, depth(50))
			frames = append(frames, next(t, c))
			return frames[len(frames)-1]
		}
		first, second := slices.Clone(join()), slices.Clone(join())
		if len(first) != 2 || !slices.Equal(first, second) {
			t.Fatal("two newcomers at one version do not share their frames")
		}
		b.change([]market.Level{{Price: cents(middle - 1), Size: cents(5)}}, nil)
		third := slices.Clone(join())
		if third[1] == first[1] || read(t, third[1]).Seq != 2 {
			t.Errorf("after a change the snapshot is %s", third[1].ID())
		}
		b.freshness(feed.StateStale, market.KindTimeout)
		fourth := slices.Clone(join())
		if m := read(t, fourth[1]); m.Status != "stale" || m.Seq != 2 {
			t.Errorf("the snapshot of a stale book: %+v", m)
		}
		b.feed.mu.Lock()
		b.confirmed = time.Now().Add(time.Hour)
		b.feed.mu.Unlock()
		time.Sleep(time.Second)
		if fifth := join(); fifth[1] == fourth[1] || read(t, fifth[1]).Seq != 2 {
			t.Error("a second later the clocks of the snapshot are old")
		}
	})
}

func TestSubscribe_resumes(t *testing.T) {
	bubble(t, hub.Config{}, func(t *testing.T, f *fakeFeed, b *fakeBook) {
		stays := f.listener.NewClient()
		defer stays.Close()
		subscribe(t, stays, depth(5))
		b.change([]market.Level{{Price: cents(middle - 1), Size: cents(5)}}, nil)
		frames := next(t, stays)
		old, current := frames[1].ID(), frames[2].ID()
		again := func(topic hub.Topic, after string) *hub.Client {
			c := f.listener.NewClient()
			t.Cleanup(c.Close)
			if err := c.Subscribe(listing, topic, after); err != nil {
				t.Fatal(err)
			}
			return c
		}
		c := again(depth(5), current)
		wantTypes(t, c, "status live")
		b.change([]market.Level{{Price: cents(middle - 1), Size: cents(6)}}, nil)
		if m := wantTypes(t, c, "update"); *m[0].PrevSeq != 2 || m[0].Seq != 3 {
			t.Errorf("after resuming at 2 comes %+v", m[0])
		}
		wantTypes(t, again(depth(5), old), "status live", "snapshot")
		wantTypes(t, again(depth(5), current), "status live", "snapshot")
		wantTypes(t, again(depth(5), "rubbish"), "status live", "snapshot")
		wantTypes(t, again(depth(1), "run-1.1-3"), "status live", "snapshot")
	})
}

// A topic without subscribers is forgotten, so its versions begin anew. They must not be taken for the old ones.
func TestSubscribe_versionsAreNeverNamedTwice(t *testing.T) {
	bubble(t, hub.Config{}, func(t *testing.T, f *fakeFeed, b *fakeBook) {
		seen := map[string]bool{}
		for i := range 5 {
			c := f.listener.NewClient()
			subscribe(t, c, depth(5))
			b.change([]market.Level{{Price: cents(middle - 1), Size: cents(int64(10 + i))}}, nil)
			for _, frame := range next(t, c)[1:] {
				if seen[frame.ID()] {
					t.Errorf("%s names two versions", frame.ID())
				}
				seen[frame.ID()] = true
			}
			c.Close()
		}
	})
}

func TestSubscribe_nothingHeldYet(t *testing.T) {
	bubble(t, hub.Config{}, func(t *testing.T, f *fakeFeed, b *fakeBook) {
		b.lose(market.KindUnavailable)
		c := f.listener.NewClient()
		defer c.Close()
		subscribe(t, c, depth(5), ticker)
		if ms := wantTypes(t, c, "status syncing", "status syncing"); text(ms[0].Reason) != "unavailable" {
			t.Errorf("reason %v", ms[0].Reason)
		}
		b.load(3)
		ms := wantTypes(t, c, "snapshot", "snapshot", "status live", "status live")
		if len(ms[0].Bids) != 3 || ms[0].Seq != 1 || text(ms[1].Bid) != "63999.99" {
			t.Errorf("got %+v", ms[:2])
		}
		b.freshness(feed.StateStale, market.KindTimeout)
		late := f.listener.NewClient()
		defer late.Close()
		subscribe(t, late, depth(5))
		if ms := wantTypes(t, late, "status stale", "snapshot"); ms[1].Status != "stale" {
			t.Errorf("the snapshot of a stale book: %+v", ms[1])
		}
	})
}

// Between Watch and the first message the feed may not know the book yet, and learn of it at any moment.
func TestSubscribe_notStreamedYet(t *testing.T) {
	t.Run("later", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := newFeed(hub.Config{})
			c := f.listener.NewClient()
			defer c.Close()
			subscribe(t, c, depth(5))
			wantTypes(t, c, "status syncing")
			f.stream(btcKey, 2)
			wantTypes(t, c, "snapshot", "status live")
		})
	})
	t.Run("just then", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := newFeed(hub.Config{})
			var b *fakeBook
			f.missing = func() { b = f.stream(btcKey, 2) } // loaded before the client was admitted
			c := f.listener.NewClient()
			defer c.Close()
			subscribe(t, c, depth(5))
			wantTypes(t, c, "status syncing", "status live", "snapshot")
			b.change([]market.Level{{Price: cents(middle - 1), Size: cents(5)}}, nil)
			wantTypes(t, c, "update")
		})
	})
}

func TestSubscribe_orderOfStatusAndData(t *testing.T) {
	bubble(t, hub.Config{}, func(t *testing.T, f *fakeFeed, b *fakeBook) {
		c := f.listener.NewClient()
		defer c.Close()
		subscribe(t, c, depth(5))
		top := func(size int64) { b.change([]market.Level{{Price: cents(middle - 1), Size: cents(size)}}, nil) }
		top(1)
		b.freshness(feed.StateStale, market.KindTimeout)
		top(2)
		b.freshness(feed.StateLive, market.KindNone)
		b.load(4)
		ms := wantTypes(t, c, "status live", "snapshot", "update", "status stale", "update", "status live", "snapshot", "status live")
		if *ms[2].Epoch == *ms[6].Epoch || ms[6].Seq != 4 {
			t.Errorf("a load begins an epoch and goes on with seq: %+v", ms[6])
		}
	})
}

func TestSubscribe_asksTheFeedForWhatIsNeeded(t *testing.T) {
	bubble(t, hub.Config{MaxTopics: 3}, func(t *testing.T, f *fakeFeed, b *fakeBook) {
		c := f.listener.NewClient()
		subscribe(t, c, depth(5), depth(50), ticker)
		if err := c.Subscribe(listing, depth(5), ""); !errors.Is(err, hub.ErrSubscribed) {
			t.Errorf("a second time: %v", err)
		}
		if err := c.Subscribe(listing, depth(1), ""); !errors.Is(err, hub.ErrTooMany) {
			t.Errorf("a fourth: %v", err)
		}
		if f.watches[market.StreamBook] != 2 || f.watches[market.StreamBest] != 1 || f.releases != 0 {
			t.Errorf("watched %v, released %d", f.watches, f.releases)
		}
		c.Unsubscribe(depth(50))
		if f.releases != 1 {
			t.Errorf("released %d after one ended", f.releases)
		}
		f.refuse = &market.Error{Kind: market.KindOverloaded}
		if err := c.Subscribe(listing, depth(1), ""); !errors.Is(err, f.refuse) {
			t.Errorf("a feed that refuses: %v", err)
		}
		f.refuse = nil
		subscribe(t, c, depth(1)) // the refused one took no room
		c.Close()
		c.Close()
		if f.releases != 4 {
			t.Errorf("released %d of 4", f.releases)
		}
		if err := c.Subscribe(listing, depth(1), ""); !errors.Is(err, hub.ErrClosed) || f.releases != 4 {
			t.Errorf("after Close: %v", err)
		}
		reads := b.reads
		b.change([]market.Level{{Price: cents(middle - 1), Size: cents(5)}}, nil)
		if b.reads != reads {
			t.Error("a book without subscribers was read")
		}
	})
}

// What lies behind the edge of a full window is not even looked at.
func TestChanged_behindTheWindowCostsNothing(t *testing.T) {
	bubble(t, hub.Config{}, func(t *testing.T, f *fakeFeed, b *fakeBook) {
		c := f.listener.NewClient()
		defer c.Close()
		subscribe(t, c, depth(5))
		next(t, c)
		reads := b.reads
		b.change([]market.Level{b.bids[5], {Price: cents(1), Size: cents(1)}}, []market.Level{{Price: b.asks[30].Price}})
		if ms := messages(t, c); len(ms) != 0 || b.reads != reads {
			t.Errorf("%d reads, messages %+v", b.reads-reads, ms)
		}
		b.change([]market.Level{{Price: b.bids[2].Price}}, nil) // one goes, one comes in from behind
		if ms := wantTypes(t, c, "update"); len(ms[0].Bids) != 2 || ms[0].Bids[0][1] != "0" || ms[0].Bids[1][0] != "63999.89" {
			t.Errorf("got %+v", ms[0])
		}
		b.change([]market.Level{{Price: cents(middle), Size: cents(1)}}, nil) // one comes, the last leaves the window
		if ms := wantTypes(t, c, "update"); len(ms[0].Bids) != 2 || ms[0].Bids[0][0] != "64000.00" || ms[0].Bids[1] != [2]string{"63999.89", "0"} {
			t.Errorf("got %+v", ms[0])
		}
		b.limit = 4 // the same levels, but no longer known to be all
		b.change([]market.Level{{Price: cents(1)}}, nil)
		if ms := wantTypes(t, c, "update"); ms[0].Complete || len(ms[0].Bids)+len(ms[0].Asks) != 0 {
			t.Errorf("got %+v", ms[0])
		}
	})
}

// Each book has its own topics: no client hears of another's.
func TestTopics_areApart(t *testing.T) {
	bubble(t, hub.Config{}, func(t *testing.T, f *fakeFeed, b *fakeBook) {
		eth := market.Pair{Base: "ETH", Quote: "USDT"}
		key := feed.Key{Exchange: "okx", Pair: eth}
		other := f.stream(key, 4)
		c := f.listener.NewClient()
		defer c.Close()
		if err := c.Subscribe(market.Listing{Exchange: "okx", Pair: eth, Symbol: "ETH-USDT"}, hub.Topic{Key: key, Channel: hub.ChannelOrderBook, Depth: 5}, ""); err != nil {
			t.Fatal(err)
		}
		b.load(5)
		ms := wantTypes(t, c, "status live", "snapshot")
		if ms[1].Symbol != "ETH/USDT" || len(ms[1].Bids) != 4 {
			t.Errorf("got %+v", ms[1])
		}
		other.change(nil, []market.Level{{Price: cents(middle + 1)}})
		wantTypes(t, c, "update")
	})
}
