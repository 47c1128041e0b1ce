package hub_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"
	"weak"

	"exchange-gateway/internal/feed"
	"exchange-gateway/internal/feed/hub"
	"exchange-gateway/internal/market"
)

func (b *fakeBook) top(size int64) {
	b.change([]market.Level{{Price: cents(middle - 1), Size: cents(size)}}, nil)
}

func TestSlow_isConflated(t *testing.T) {
	bubble(t, hub.Config{MaxFrames: 8}, func(t *testing.T, f *fakeFeed, b *fakeBook) {
		c, quick := f.listener.NewClient(), f.listener.NewClient()
		defer c.Close()
		defer quick.Close()
		subscribe(t, c, depth(5), ticker)
		subscribe(t, quick, depth(5))
		wantTypes(t, c, "status live", "snapshot", "status live", "snapshot")
		for i := range int64(20) {
			b.top(100 + i)
			if i == 10 {
				b.freshness(feed.StateStale, market.KindTimeout)
			}
			if i == 12 {
				b.freshness(feed.StateLive, market.KindNone)
			}
			next(t, quick)
		}
		// Four versions of each filled the queue. What waited of the book made room; the ticker filled it again.
		ms := messages(t, c)
		state := map[string]message{}
		conflated := 0
		for _, m := range ms {
			if m.Type != "status" {
				if m.Conflated > 0 {
					conflated++
					if m.Type != "snapshot" {
						t.Errorf("a conflated %s", m.Type)
					}
				}
				if old, ok := state[m.Channel]; ok && m.Seq != old.Seq+1+m.Conflated {
					t.Errorf("%s: seq %d with %d conflated after %d", m.Channel, m.Seq, m.Conflated, old.Seq)
				}
				state[m.Channel] = m
			} else if _, ok := state[m.Channel]; ok {
				t.Errorf("the status of %s came after its data", m.Channel)
			}
		}
		if conflated != 2 || state["orderbook"].Seq != 21 || state["ticker"].Seq != 21 || state["orderbook"].Conflated != 19 || state["ticker"].Conflated != 19 {
			t.Errorf("%d conflated, last %+v", conflated, state)
		}
		if state["orderbook"].Bids[0][1] != "1.19" || text(state["ticker"].BidVolume) != "1.19" {
			t.Errorf("not the newest: %+v", state)
		}
		if types(ms)[0] != "status live" {
			t.Errorf("the newest status is missing: %q", types(ms))
		}
		b.top(7)
		for _, m := range wantTypes(t, c, "update", "update") {
			if *m.PrevSeq != 21 {
				t.Errorf("after the snapshot comes %+v", m)
			}
		}
	})
}

// Only the topic for which there was no room falls behind.
func TestSlow_othersAreLeftAlone(t *testing.T) {
	bubble(t, hub.Config{MaxFrames: 6}, func(t *testing.T, f *fakeFeed, b *fakeBook) {
		c := f.listener.NewClient()
		defer c.Close()
		subscribe(t, c, ticker, depth(5))
		next(t, c)
		b.top(1) // a frame of each
		for range 5 {
			b.change([]market.Level{{Price: cents(middle - 3), Size: b.size()}}, nil) // of the book alone
		}
		ms := wantTypes(t, c, "update", "snapshot")
		if ms[0].Channel != "ticker" || ms[1].Conflated != 5 || ms[1].Seq != 7 {
			t.Errorf("got %+v", ms)
		}
	})
}

func TestSlow_boundOfBytes(t *testing.T) {
	bubble(t, hub.Config{MaxBytes: 3000}, func(t *testing.T, f *fakeFeed, b *fakeBook) {
		c := f.listener.NewClient()
		defer c.Close()
		subscribe(t, c, depth(50), depth(20), depth(5), depth(1))
		total, turns, seen := 0, 0, map[int]bool{}
		for frames := next(t, c); len(frames) > 0; frames = next(t, c) {
			size := 0
			for _, frame := range frames {
				size += len(frame.WebSocket())
				if m := read(t, frame); m.Type == "snapshot" {
					if seen[m.Depth] = true; m.Conflated != 0 {
						t.Errorf("depth %d: %d conflated of a first snapshot that nothing followed", m.Depth, m.Conflated)
					}
				}
			}
			if size > 6000 {
				t.Errorf("one turn took %d bytes", size)
			}
			total, turns = total+size, turns+1
		}
		if len(seen) != 4 || turns < 2 || total < 6000 {
			t.Errorf("%d bytes in %d turns, snapshots of %v", total, turns, seen)
		}
	})
}

// What a topic that fell behind had waiting makes room for others.
func TestSlow_makesRoom(t *testing.T) {
	bubble(t, hub.Config{MaxBytes: 4000}, func(t *testing.T, f *fakeFeed, b *fakeBook) {
		c := f.listener.NewClient()
		defer c.Close()
		subscribe(t, c, ticker, depth(5))
		next(t, c)
		for range 12 {
			b.change([]market.Level{{Price: cents(middle - 3), Size: b.size()}}, nil) // of the book alone
		}
		for i := range int64(3) {
			b.top(1 + i)
		}
		if ms := wantTypes(t, c, "update", "update", "update", "snapshot"); ms[2].Channel != "ticker" || ms[3].Conflated != 14 {
			t.Errorf("got %+v", ms)
		}
	})
}

// The end of a subscription is told, also when the next one to the same topic falls behind at once.
func TestSlow_endAndBeginAnew(t *testing.T) {
	bubble(t, hub.Config{MaxFrames: 4}, func(t *testing.T, f *fakeFeed, b *fakeBook) {
		c, other := f.listener.NewClient(), f.listener.NewClient()
		defer c.Close()
		defer other.Close()
		subscribe(t, other, depth(5)) // the topic goes on
		subscribe(t, c, depth(5))
		c.Unsubscribe(depth(5))
		subscribe(t, c, depth(5))
		for i := range int64(4) {
			b.top(1 + i)
		}
		if ms := wantTypes(t, c, "status unsubscribed", "status live", "snapshot"); ms[2].Conflated != 4 {
			t.Errorf("got %+v", ms[2])
		}
	})
}

// However much waits in the queue each time, a topic that is behind comes forward.
func TestSlow_isNotPassedOver(t *testing.T) {
	bubble(t, hub.Config{MaxBytes: 4000}, func(t *testing.T, f *fakeFeed, b *fakeBook) {
		c := f.listener.NewClient()
		defer c.Close()
		c.Tell([]byte(`{"x":"` + strings.Repeat("x", 4000) + `"}`))
		subscribe(t, c, depth(5))
		if frames := next(t, c); len(frames) != 3 || frames[2].Type() != hub.TypeSnapshot {
			t.Errorf("got %d frames", len(frames))
		}
	})
}

// A book that is lost while a client is behind has no snapshot to give. The next one says how much was missed.
func TestSlow_whileTheBookIsLost(t *testing.T) {
	bubble(t, hub.Config{MaxFrames: 4}, func(t *testing.T, f *fakeFeed, b *fakeBook) {
		c := f.listener.NewClient()
		defer c.Close()
		subscribe(t, c, depth(5))
		next(t, c)
		for i := range int64(6) {
			b.top(1 + i)
		}
		b.lose(market.KindUnavailable)
		wantTypes(t, c, "status syncing")
		wantTypes(t, c)
		b.load(3)
		if ms := wantTypes(t, c, "status live", "snapshot"); ms[1].Seq != 8 || ms[1].Conflated != 6 || len(ms[1].Bids) != 3 {
			t.Errorf("got %+v", ms[1])
		}
	})
}

// A client that waits keeps nothing of what it took before.
func TestNext_letsGoOfFrames(t *testing.T) {
	f := newFeed(hub.Config{})
	c := f.listener.NewClient()
	defer c.Close()
	c.Tell([]byte(`{}`))
	frames, err := c.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	kept := weak.Make(frames[0])
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	runtime.GC()
	if kept.Value() != nil {
		t.Error("a frame that was taken is still held")
	}
	runtime.KeepAlive(c)
}

// A frame that alone is beyond the bound is delivered all the same: else its topic would never be.
func TestSlow_oneLargeFrame(t *testing.T) {
	bubble(t, hub.Config{MaxBytes: 500}, func(t *testing.T, f *fakeFeed, b *fakeBook) {
		c := f.listener.NewClient()
		defer c.Close()
		subscribe(t, c, depth(50))
		ms := append(messages(t, c), messages(t, c)...)
		if len(ms) != 2 || len(ms[1].Bids) != 50 {
			t.Errorf("got %q", types(ms))
		}
		b.load(60)
		ms = append(messages(t, c), messages(t, c)...)
		if len(ms) != 2 || ms[0].Type == ms[1].Type {
			t.Errorf("got %q", types(ms))
		}
	})
}

func TestSlow_isGivenUp(t *testing.T) {
	bubble(t, hub.Config{MaxFrames: 4}, func(t *testing.T, f *fakeFeed, b *fakeBook) {
		c, quick := f.listener.NewClient(), f.listener.NewClient()
		defer c.Close()
		defer quick.Close()
		subscribe(t, c, depth(5))
		subscribe(t, quick, depth(5))
		next(t, c)
		got := 0
		for i := range int64(103) { // 10 s and a bit from the first that waits
			b.top(1 + i)
			got += len(next(t, quick))
			time.Sleep(100 * time.Millisecond)
		}
		if _, err := c.Next(t.Context()); !errors.Is(err, hub.ErrSlow) {
			t.Fatalf("err = %v, want slow", err)
		}
		if err := c.Subscribe(listing, depth(1), ""); !errors.Is(err, hub.ErrSlow) {
			t.Errorf("Subscribe: %v", err)
		}
		b.top(500)
		if got += len(next(t, quick)); got != 106 {
			t.Errorf("the other got %d frames, want all 106", got)
		}
		if _, err := c.Next(t.Context()); !errors.Is(err, hub.ErrSlow) {
			t.Errorf("later: %v", err)
		}
	})
}

// Without anything new to queue it is Next that notices.
func TestSlow_isNoticedByNext(t *testing.T) {
	bubble(t, hub.Config{SlowAfter: 2 * time.Second}, func(t *testing.T, f *fakeFeed, b *fakeBook) {
		c := f.listener.NewClient()
		defer c.Close()
		subscribe(t, c, depth(5))
		time.Sleep(2 * time.Second)
		wantTypes(t, c, "status live", "snapshot") // just in time
		time.Sleep(time.Hour)                      // nothing waits
		b.top(1)
		time.Sleep(2*time.Second + 1)
		if _, err := c.Next(t.Context()); !errors.Is(err, hub.ErrSlow) {
			t.Errorf("err = %v, want slow", err)
		}
	})
}

// A client that commands without reading cannot make the hub remember without bound.
func TestSlow_asksMoreThanItReads(t *testing.T) {
	bubble(t, hub.Config{MaxFrames: 4, MaxTopics: 3}, func(t *testing.T, f *fakeFeed, _ *fakeBook) {
		c := f.listener.NewClient()
		defer c.Close()
		for i := range 100 {
			if err := c.Subscribe(listing, depth(5), ""); err != nil {
				if !errors.Is(err, hub.ErrSlow) || i < 5 {
					t.Errorf("the %dth time: %v", i, err)
				}
				return
			}
			c.Unsubscribe(depth(5))
		}
		t.Error("it could go on without end")
	})
}

func TestNext_heartbeat(t *testing.T) {
	bubble(t, hub.Config{}, func(t *testing.T, f *fakeFeed, b *fakeBook) {
		c := f.listener.NewClient()
		defer c.Close()
		subscribe(t, c, depth(5))
		next(t, c)
		for range 3 {
			began := time.Now()
			frames, err := c.Next(t.Context())
			if err != nil || len(frames) != 1 || time.Since(began) != 15*time.Second {
				t.Fatalf("after %v: %d frames, %v", time.Since(began), len(frames), err)
			}
			want := `{"type":"heartbeat","sent_at":"` + time.Now().UTC().Format(time.RFC3339Nano) + `"}`
			if string(frames[0].JSON()) != want || frames[0].Type() != hub.TypeHeartbeat || frames[0].ID() != "" {
				t.Errorf("got %s, want %s", frames[0].JSON(), want)
			}
		}
		b.top(1)
		wantTypes(t, c, "update")
	})
}

func TestNext_waits(t *testing.T) {
	bubble(t, hub.Config{}, func(t *testing.T, f *fakeFeed, b *fakeBook) {
		c := f.listener.NewClient()
		defer c.Close()
		subscribe(t, c, depth(5))
		next(t, c)
		time.AfterFunc(7*time.Second, func() { b.top(1) })
		began := time.Now()
		if frames, err := c.Next(t.Context()); err != nil || len(frames) != 1 || time.Since(began) != 7*time.Second {
			t.Errorf("after %v: %d frames, %v", time.Since(began), len(frames), err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if _, err := c.Next(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("err = %v", err)
		}
		time.AfterFunc(time.Second, c.Close)
		if _, err := c.Next(t.Context()); !errors.Is(err, hub.ErrClosed) {
			t.Errorf("err = %v", err)
		}
	})
}

func TestShutdown_letsClientsTakeWhatIsQueued(t *testing.T) {
	bubble(t, hub.Config{MaxFrames: 4}, func(t *testing.T, f *fakeFeed, b *fakeBook) {
		queued, behind, idle := f.listener.NewClient(), f.listener.NewClient(), f.listener.NewClient()
		for _, c := range []*hub.Client{queued, behind, idle} {
			defer c.Close()
			subscribe(t, c, depth(5))
			next(t, c)
		}
		b.top(1)
		next(t, idle)
		time.AfterFunc(time.Second, func() { f.listener.Shutdown("a new version is started") })
		if _, err := idle.Next(t.Context()); !errors.Is(err, hub.ErrClosing) || !strings.Contains(err.Error(), "a new version") {
			t.Errorf("err = %v", err)
		}
		for range 8 {
			b.top(9) // after the end: for nobody
		}
		wantTypes(t, queued, "update")
		time.Sleep(time.Minute) // to be told to go is not to be slow
		if _, err := queued.Next(t.Context()); !errors.Is(err, hub.ErrClosing) {
			t.Errorf("err = %v", err)
		}
		if err := queued.Subscribe(listing, depth(1), ""); !errors.Is(err, hub.ErrClosing) {
			t.Errorf("Subscribe: %v", err)
		}
		late := f.listener.NewClient()
		defer late.Close()
		if _, err := late.Next(t.Context()); !errors.Is(err, hub.ErrClosing) {
			t.Errorf("a client that comes later: %v", err)
		}
	})
}
