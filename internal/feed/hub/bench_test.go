package hub_test

import (
	"fmt"
	"runtime"
	"testing"

	"exchange-gateway/internal/feed/hub"
	"exchange-gateway/internal/market"
)

// twenty are two diffs of 20 levels, half of them on each side, that undo each other's sizes. All lie in a window of 100.
func twenty(b *fakeBook) (diffs [2][2][]market.Level) {
	for d := range diffs {
		for i := range 10 {
			diffs[d][0] = append(diffs[d][0], market.Level{Price: b.bids[i*9].Price, Size: b.size()})
			diffs[d][1] = append(diffs[d][1], market.Level{Price: b.asks[i*9].Price, Size: b.size()})
		}
	}
	return diffs
}

// apply20 is what a local book does; it is not what is measured.
func (b *fakeBook) apply20(d [2][]market.Level) {
	for i, l := range d[0] {
		b.bids[i*9] = l
		b.asks[i*9] = d[1][i]
	}
	b.sequence++
}

// BenchmarkUpdate is a diff of 20 levels against a window of 100 and its encoding, for one subscriber that takes it.
func BenchmarkUpdate(b *testing.B) {
	for _, n := range []int{20, 100, 400} {
		b.Run(fmt.Sprint("depth=", n), func(b *testing.B) {
			f := newFeed(hub.Config{})
			book := f.stream(btcKey, 1000)
			diffs := twenty(book)
			c := f.listener.NewClient()
			defer c.Close()
			if err := c.Subscribe(listing, depth(n), ""); err != nil {
				b.Fatal(err)
			}
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				book.apply20(diffs[i&1])
				f.listener.Changed(book, diffs[i&1][0], diffs[i&1][1])
				if _, err := c.Next(b.Context()); err != nil {
					b.Fatal(err)
				}
				i++
			}
		})
	}
}

// BenchmarkBehindTheWindow is a diff of 20 levels of which the subscriber sees none.
func BenchmarkBehindTheWindow(b *testing.B) {
	f := newFeed(hub.Config{})
	book := f.stream(btcKey, 1000)
	var bids, asks []market.Level
	for i := range 10 {
		bids, asks = append(bids, book.bids[200+i]), append(asks, book.asks[200+i])
	}
	c := f.listener.NewClient()
	defer c.Close()
	if err := c.Subscribe(listing, depth(100), ""); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		f.listener.Changed(book, bids, asks)
	}
}

// BenchmarkDeliver is one update to 1,000 queues; that they are emptied is not measured. The time is that of all.
func BenchmarkDeliver(b *testing.B) {
	f := newFeed(hub.Config{MaxFrames: 1 << 10, MaxBytes: 1 << 30})
	book := f.stream(btcKey, 1000)
	diffs := twenty(book)
	clients := make([]*hub.Client, 1000)
	for i := range clients {
		clients[i] = f.listener.NewClient()
		defer clients[i].Close()
		if err := clients[i].Subscribe(listing, depth(100), ""); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		book.apply20(diffs[i&1])
		f.listener.Changed(book, diffs[i&1][0], diffs[i&1][1])
		if i++; i%32 == 0 {
			b.StopTimer()
			for _, c := range clients {
				if _, err := c.Next(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			b.StartTimer()
		}
	}
}

// TestDeliver_allocatesPerMessageNotPerClient holds for queues that have been used before.
func TestDeliver_allocatesPerMessageNotPerClient(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates")
	}
	f := newFeed(hub.Config{})
	book := f.stream(btcKey, 100)
	diffs := twenty(book)
	clients := make([]*hub.Client, 1000)
	for i := range clients {
		clients[i] = f.listener.NewClient()
		defer clients[i].Close()
		subscribe(t, clients[i], depth(100))
	}
	i := 0
	round := func() {
		for range 4 {
			book.apply20(diffs[i&1])
			f.listener.Changed(book, diffs[i&1][0], diffs[i&1][1])
			i++
		}
		for _, c := range clients {
			if frames, err := c.Next(t.Context()); err != nil || len(frames) < 4 {
				t.Fatal(len(frames), err)
			}
		}
	}
	round()
	round()
	if got := testing.AllocsPerRun(10, round); got > 50 {
		t.Errorf("%v allocations for 4 messages to 1,000 clients", got)
	}
}

// TestClient_idleIsSmall holds a client of one topic, after a burst, against 2 KiB.
func TestClient_idleIsSmall(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates")
	}
	f := newFeed(hub.Config{})
	book := f.stream(btcKey, 100)
	const n = 2000
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	clients := make([]*hub.Client, n)
	for i := range clients {
		clients[i] = f.listener.NewClient()
		defer clients[i].Close()
		subscribe(t, clients[i], depth(100))
	}
	for i := range int64(200) {
		book.top(1 + i)
	}
	for _, c := range clients {
		if _, err := c.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	book.top(300)
	for _, c := range clients {
		if _, err := c.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	per := (int64(heap()) - int64(before)) / n
	t.Logf("%d bytes a client", per)
	if per > 2048 {
		t.Errorf("an idle client keeps %d bytes, want at most 2,048", per)
	}
	runtime.KeepAlive(clients)
}
