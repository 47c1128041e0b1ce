package localbook_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"exchange-gateway/internal/feed/localbook"
	"exchange-gateway/internal/market"
	"exchange-gateway/test/bench/cpu"
)

var sizes = []int{1000, 5000, 25000}

const middle = 6_407_300_000_000 // ticks of 10^-8

// steadyBook is a book of n levels a side, a tick of 0.01 apart, spelled as Binance does.
func steadyBook(tb testing.TB, n int) *localbook.Book {
	tb.Helper()
	var sides [2][]market.Level
	for i := range int64(n) {
		for side := range sides {
			sides[side] = append(sides[side], market.Level{
				Price: market.NewNumber(middle-int64(sign(side))*(2*i+1)*1_000_000, -8), Size: market.NewNumber(58_849_577+i, -8),
			})
		}
	}
	b := localbook.New()
	if err := b.Load(sides[0], sides[1], 0, false); err != nil {
		tb.Fatal(err)
	}
	return b
}

// steadyDiffs are diffs of bids, best first, with exponential distance from the top: sizes, insertions between the levels of
// steadyBook, and removals, also of absent levels. Half of what was inserted goes again, so the book keeps its size.
func steadyDiffs(n, count int, reach float64) [][]market.Level {
	r := rand.New(rand.NewPCG(uint64(n), 5))
	diffs := make([][]market.Level, count)
	for i := range diffs {
		seen := map[int64]bool{}
		for len(diffs[i]) < 100 {
			at := int64(r.ExpFloat64() * reach)
			if at >= 2*int64(n) || seen[at] {
				continue
			}
			seen[at] = true
			size := int64(0)
			if at%2 == 0 && r.IntN(5) > 0 || at%2 == 1 && r.IntN(2) == 0 {
				size = 1 + r.Int64N(1e10)
			}
			diffs[i] = append(diffs[i], market.Level{Price: market.NewNumber(middle-(at+1)*1_000_000, -8), Size: market.NewNumber(size, -8)})
		}
		slices.SortFunc(diffs[i], func(a, b market.Level) int { return b.Price.Cmp(a.Price) })
	}
	return diffs
}

// BenchmarkApply sets 100 levels of one side a time. spread: changes reach through the whole book; top: they keep near the
// best price, as in a book of Coinbase; shuffled: they come in no order; journal: they and a frame of 3 KB are journalled.
func BenchmarkApply(b *testing.B) {
	run := func(name string, n int, reach float64, shuffled, journalled bool) {
		b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
			book, diffs := steadyBook(b, n), steadyDiffs(n, 256, reach)
			if shuffled {
				for _, d := range diffs {
					rand.New(rand.NewPCG(1, 2)).Shuffle(len(d), func(i, j int) { d[i], d[j] = d[j], d[i] })
				}
			}
			var u localbook.Undo
			var j localbook.Journal
			raw, at := make([]byte, 3<<10), time.Unix(1_700_000_000, 0)
			apply := func(i int) {
				u.Reset()
				if err := book.ApplyUndo(diffs[i%len(diffs)], nil, &u); err != nil {
					b.Fatal(err)
				}
				if journalled {
					j.Add(at, raw, &u, localbook.Mark{})
				}
			}
			for i := range len(diffs) {
				apply(i)
			}
			i := 0
			b.ReportAllocs()
			done := cpu.Report(b)
			for b.Loop() {
				apply(i)
				i++
			}
			done()
			if bids, _ := book.Len(); bids < n/2 || bids > 2*n {
				b.Fatalf("the book went from %d levels to %d", n, bids)
			}
		})
	}
	for _, n := range sizes {
		run("spread", n, float64(n)/3, false, false)
		run("top", n, 60, false, false)
	}
	run("shuffled", 1000, 1000./3, true, false)
	run("journal", 1000, 1000./3, false, true)
}

func BenchmarkBids100(b *testing.B) {
	book := steadyBook(b, 1000)
	dst := book.Bids(nil, 100)
	for b.Loop() {
		dst = book.Bids(dst[:0], 100)
	}
	b.ReportAllocs()
}

func BenchmarkSnapshot1000(b *testing.B) {
	book := steadyBook(b, 1000)
	for b.Loop() {
		if l, _ := book.Snapshot(1000); len(l.Bids()) != 1000 {
			b.Fatal("cut")
		}
	}
	b.ReportAllocs()
}

// BenchmarkLoad is a snapshot of 1,000 levels a side, best first.
func BenchmarkLoad1000(b *testing.B) {
	book := steadyBook(b, 1000)
	l, _ := book.Snapshot(1000)
	for b.Loop() {
		if err := book.Load(l.Bids(), l.Asks(), 1000, false); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
}
