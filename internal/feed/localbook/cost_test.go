package localbook_test

import (
	"math"
	"runtime"
	"testing"
	"time"

	"exchange-gateway/internal/feed/localbook"
)

// allocated is how many bytes the function that prepare returns allocates: the least of ten fresh ones, since the
// runtime counts what every goroutine of the process allocates meanwhile, and that can only add.
func allocated(prepare func() func()) uint64 {
	least := uint64(math.MaxUint64)
	for range 10 {
		fn := prepare()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		fn()
		runtime.ReadMemStats(&after)
		least = min(least, after.TotalAlloc-before.TotalAlloc)
	}
	return least
}

// TestBook_costsWhatItHolds: 24 bytes a level and an eighth more, and nothing for what comes and goes.
func TestBook_costsWhatItHolds(t *testing.T) {
	l, _ := steadyBook(t, 1000).Snapshot(1000)
	var b *localbook.Book
	fill := func() {
		b = localbook.New()
		if err := b.Load(l.Bids(), l.Asks(), 1000, false); err != nil {
			t.Fatal(err)
		}
	}
	if got := allocated(func() func() { return fill }); got > 64<<10 {
		t.Errorf("a book of 1,000 levels a side takes %d bytes", got)
	}
	diffs, i := steadyDiffs(1000, 64, 300), 0
	apply := func() {
		if err := b.Apply(diffs[i%len(diffs)], nil); err != nil {
			t.Fatal(err)
		}
		i++
	}
	if grown := allocated(func() func() {
		fill()
		i = 0
		return func() {
			for range 256 {
				apply()
			}
		}
	}); grown > 96<<10 {
		t.Errorf("changing it takes %d bytes more", grown)
	}
	if n := testing.AllocsPerRun(256, apply); n != 0 {
		t.Errorf("%v allocations a diff", n)
	}
	dst := b.Bids(nil, 100)
	if n := testing.AllocsPerRun(100, func() { dst = b.Bids(dst[:0], 100) }); n != 0 {
		t.Errorf("%v allocations to read 100 levels", n)
	}
}

// TestJournal_costsWhatItHolds: memory comes with frames, and a full journal appends without allocating.
func TestJournal_costsWhatItHolds(t *testing.T) {
	at, raw := time.Unix(1_700_000_000, 0), make([]byte, 2<<10)
	book, diff := load(t, "2x1", "3x1", 0, false), levels("2x2")
	var j *localbook.Journal
	var u localbook.Undo
	add := func() {
		u.Reset()
		if err := book.ApplyUndo(diff, nil, &u); err != nil {
			t.Fatal(err)
		}
		j.Add(at, raw, &u, localbook.Mark{})
	}
	fresh := func() { j = new(localbook.Journal); add() }
	fresh()
	if got := allocated(func() func() { return func() { j.Restart(localbook.Mark{}); add() } }); got > 4<<10 {
		t.Errorf("a quiet book's journal takes %d bytes", got)
	}
	if got := allocated(func() func() {
		fresh()
		return func() {
			for range 1000 {
				add()
			}
		}
	}); got > 520<<10 {
		t.Errorf("a full journal took %d bytes to fill", got)
	}
	if n := testing.AllocsPerRun(500, add); n != 0 {
		t.Errorf("%v allocations a frame", n)
	}
}
