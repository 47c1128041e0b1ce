package localbook_test

import (
	"errors"
	"strings"
	"testing"

	"exchange-gateway/internal/feed/localbook"
	"exchange-gateway/internal/market"
)

// levels reads "price x size" pairs: "2x1 1x3".
func levels(text string) []market.Level {
	var side []market.Level
	for _, s := range strings.Fields(text) {
		price, size, _ := strings.Cut(s, "x")
		side = append(side, market.Level{Price: market.MustNumber(price), Size: market.MustNumber(size)})
	}
	return side
}

func spelled(side []market.Level) string {
	parts := make([]string, len(side))
	for i, v := range side {
		parts[i] = v.Price.String() + "x" + v.Size.String()
	}
	return strings.Join(parts, " ")
}

func all(b *localbook.Book) string {
	return spelled(b.Bids(nil, localbook.MaxLevels)) + " | " + spelled(b.Asks(nil, localbook.MaxLevels))
}

func load(t *testing.T, bids, asks string, limit int, window bool) *localbook.Book {
	t.Helper()
	b := localbook.New()
	if err := b.Load(levels(bids), levels(asks), limit, window); err != nil {
		t.Fatal(err)
	}
	return b
}

func mustApply(t *testing.T, b *localbook.Book, bids, asks string) {
	t.Helper()
	if err := b.Apply(levels(bids), levels(asks)); err != nil {
		t.Fatal(err)
	}
}

func TestBook_apply(t *testing.T) {
	f := func(bids, asks, wantBids, wantAsks string) {
		t.Helper()
		b := load(t, "100x1 99x2 98x3", "101x1 102x2 103x3", 0, false)
		mustApply(t, b, bids, asks)
		if got, want := all(b), wantBids+" | "+wantAsks; got != want {
			t.Errorf("%s | %s: %s, want %s", bids, asks, got, want)
		}
	}
	const wasBids, wasAsks = "100x1 99x2 98x3", "101x1 102x2 103x3"
	f("", "", wasBids, wasAsks)
	f("99x7", "103x0", "100x1 99x7 98x3", "101x1 102x2")
	f("97x0 1000x0", "0.5x0", wasBids, wasAsks) // unknown removals, on the wrong side of the spread too
	f("97x4 100.5x1", "100.9x2 104x4", "100.5x1 100x1 99x2 98x3 97x4", "100.9x2 101x1 102x2 103x3 104x4")
	f("100x0 99x0 98x0", "103x0 102x0 101x0", "", "")
	f("100x0 99.5x1 99x0 98.5x2 98x0 97.5x3", "", "99.5x1 98.5x2 97.5x3", wasAsks)
	f("98.1x1 98.2x1 98.3x1 100x0", "101x0 102.7x1 102.8x1", "99x2 98.3x1 98.2x1 98.1x1 98x3", "102x2 102.7x1 102.8x1 103x3")
	f("99x5 99x6 99.0x7", "102x0 102x9", "100x1 99.0x7 98x3", "101x1 102x9 103x3") // the last one counts
	f("99x5 99x0", "101.5x5 101.50x0", "100x1 98x3", wasAsks)
	f("101x1", "101x0", "101x1 100x1 99x2 98x3", "102x2 103x3") // not crossed once both sides are applied
}

// TestBook_keepsTheDigits: what goes out is spelled as it came in.
func TestBook_keepsTheDigits(t *testing.T) {
	b := load(t, "64073.00x0.58849577 64072.9x1.000 1e-08x5.0", "64073.10000000x0.00100000 70000x7 999999999999999999x1", 0, false)
	const want = "64073.00x0.58849577 64072.9x1.000 0.00000001x5.0 | 64073.10000000x0.00100000 70000x7 999999999999999999x1"
	if got := all(b); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	mustApply(t, b, "64073.0x0.5", "70000x7.00 99999999999999999999.5x1 1e30x123456789012345678901234.50")
	const then = "64073.0x0.5 64072.9x1.000 0.00000001x5.0 | 64073.10000000x0.00100000 70000x7.00 999999999999999999x1 " +
		"99999999999999999999.5x1 1000000000000000000000000000000x123456789012345678901234.50"
	if got := all(b); got != then {
		t.Errorf("%s, want %s", got, then)
	}
	mustApply(t, b, "", "100000000000000000000000000000.0e1x0 70000x0")
	if got := all(b); strings.Contains(got, "1234567") || strings.Contains(got, "70000") {
		t.Errorf("%s: removed levels are there", got)
	}
}

func TestBook_suspects(t *testing.T) {
	long := "0." + strings.Repeat("0", 95) + strings.Repeat("1", 25) + "e-30" // reads, but prints longer than can be read
	for _, c := range [][2]string{
		{"101x1", ""},
		{"", "100x1"},
		{"", "100.00000000000000000000x1"},
		{"100.50000000000000000001x1", "100.50000000000000000001x1"},
		{"100.50000000000000000002x1", "100.50000000000000000001x1"},
		{"1e30x1", ""},
		{"-1x1", ""},
		{"0x1", ""},
		{"", "0.00x1"},
		{"99x-1", ""},
		{"", "102x-0.1"},
		{"99x-123456789012345678901234", ""},
		{"99x0", "1x1"},
		{"", "102x" + long},
	} {
		b := load(t, "100x1 99x2", "101x1 102x2", 0, false)
		var u localbook.Undo
		if err := b.ApplyUndo(levels("98x1"), levels("103x1"), &u); err != nil {
			t.Fatal(err)
		}
		err := b.ApplyUndo(levels(c[0]), levels(c[1]), &u)
		if got := all(b); !errors.Is(err, market.ErrSuspect) || got != "100x1 99x2 98x1 | 101x1 102x2 103x1" {
			t.Errorf("%s | %s: %v, %s", c[0], c[1], err, got)
		}
		if b.Revert(&u); all(b) != "100x1 99x2 | 101x1 102x2" {
			t.Errorf("%s | %s: reverted to %s", c[0], c[1], all(b))
		}
	}
	if b := load(t, "100.50000000000000000001x1", "100.50000000000000000002x1", 0, false); !b.Complete(1) {
		t.Error("a spread beyond 18 digits was taken for none")
	}
}

func TestBook_loadSuspects(t *testing.T) {
	for _, c := range [][2]string{
		{"5x1", "5x1"},
		{"6x1", "5x1"},
		{"-1x1", ""},
		{"0x1", ""},
		{"1x-1", ""},
		{"", "5x1 6x1 5.0x1"},
		{"5x1 4x1 5.00x1", ""},
		{"", "1e30x1 1e29x1 100e28x1"},
	} {
		b := load(t, "100x1", "101x1", 0, false)
		err := b.Load(levels(c[0]), levels(c[1]), 0, false)
		if !errors.Is(err, market.ErrSuspect) || b.Loaded() || all(b) != " | " || b.Complete(0) {
			t.Errorf("%s | %s: %v, loaded %t, %s", c[0], c[1], err, b.Loaded(), all(b))
		}
	}
	b := load(t, "3x0 3x1 2x0.00", "4x0", 0, false)
	if all(b) != "3x1 | " {
		t.Errorf("%s: a zero beside its own price is no second level", all(b))
	}
}

func TestBook_levelsAreBounded(t *testing.T) {
	side := make([]market.Level, localbook.MaxLevels+1)
	for i := range side {
		side[i] = market.Level{Price: market.NewNumber(int64(i)+1, -2), Size: market.NewNumber(1, 0)}
	}
	b := localbook.New()
	if err := b.Load(nil, side, 0, false); !errors.Is(err, market.ErrSuspect) || b.Loaded() {
		t.Errorf("%v, loaded %t", err, b.Loaded())
	}
	if err := b.Load(nil, side[1:], 0, false); err != nil {
		t.Fatal(err)
	}
	err := b.Apply(nil, []market.Level{{Price: side[5].Price, Size: market.NewNumber(9, 0)}, side[0]})
	if _, n := b.Len(); !errors.Is(err, market.ErrSuspect) || n != localbook.MaxLevels || b.Asks(nil, 5)[4].Size.String() != "1" {
		t.Errorf("%v, %d levels: not as before", err, n)
	}
	err = b.Apply(nil, []market.Level{{Price: side[5].Price}, side[0]})
	if _, n := b.Len(); err != nil || n != localbook.MaxLevels {
		t.Errorf("%v, %d levels", err, n)
	}
}

// TestBook_edge: beyond the last level of a full side nothing is known, however the book moves.
func TestBook_edge(t *testing.T) {
	b := load(t, "99x1 100x1 98x1", "101x1 102x1", 3, false)
	f := func(bids, asks, want string, covered int, complete ...bool) {
		t.Helper()
		mustApply(t, b, bids, asks)
		if got := all(b); got != want || b.Covered() != covered {
			t.Errorf("%s | %s: %s, %d%%, want %s, %d%%", bids, asks, got, b.Covered(), want, covered)
		}
		for n, want := range complete {
			if b.Complete(n+1) != want {
				t.Errorf("%s | %s: complete to %d is %t", bids, asks, n+1, !want)
			}
		}
	}
	f("", "", "100x1 99x1 98x1 | 101x1 102x1", 100, true, true, true, false)
	f("97.9x1 97x0 98.0x2", "900x1 103x5", "100x1 99x1 98.0x2 | 101x1 102x1 103x5 900x1", 100, true, true, true, false)
	f("98x0 97x1", "", "100x1 99x1 | 101x1 102x1 103x5 900x1", 66, true, true, false)
	f("98x5 98.5x1", "", "100x1 99x1 98.5x1 98x5 | 101x1 102x1 103x5 900x1", 100, true, true, true, true, false)
	f("100x0 99x0 98x0 98.5x0", "97x1", " | 97x1 101x1 102x1 103x5 900x1", 0, false)
	f("96x1", "", " | 97x1 101x1 102x1 103x5 900x1", 0, false) // the exchange has it, and maybe others above it
}

// TestBook_window: the exchange says what leaves the window, so all is held; whether more is beyond depends on how many.
func TestBook_window(t *testing.T) {
	b := load(t, "100x1 99x1 98x1", "101x1 102x1", 3, true)
	f := func(bids, asks, want string, covered int, complete ...bool) {
		t.Helper()
		mustApply(t, b, bids, asks)
		if got := all(b); got != want || b.Covered() != covered {
			t.Errorf("%s | %s: %s, %d%%, want %s, %d%%", bids, asks, got, b.Covered(), want, covered)
		}
		for n, want := range complete {
			if b.Complete(n+1) != want {
				t.Errorf("%s | %s: complete to %d is %t", bids, asks, n+1, !want)
			}
		}
	}
	f("", "", "100x1 99x1 98x1 | 101x1 102x1", 100, true, true, true, false)
	f("100x0 97x1", "", "99x1 98x1 97x1 | 101x1 102x1", 100, true, true, true, false)
	f("97x0", "103x1", "99x1 98x1 | 101x1 102x1 103x1", 100, true, true, true, false)
	f("", "102x0", "99x1 98x1 | 101x1 103x1", 100, true, true, true, true, true)
	f("", "104x1 105x1 106x1 107x1", "99x1 98x1 | 101x1 103x1 104x1 105x1 106x1 107x1", 100, true, true, true, true, true, true, false)
	// Past twice the limit the worst go, and from then on nothing is known of what is beyond.
	f("", "103.5x1 109x1", "99x1 98x1 | 101x1 103x1 103.5x1 104x1 105x1 106x1", 100, true, true, true, true, true, true, false)
	f("", "101x0 103x0 103.5x0 104x0 107x1 108x1", "99x1 98x1 | 105x1 106x1", 33, true, true, false)
}

// TestBook_revertsAnEdge: what left by the bound of a window is back, and so is what was known of it.
func TestBook_revertsAnEdge(t *testing.T) {
	b := load(t, "10x1 9x1", "", 2, true)
	var u localbook.Undo
	for _, diff := range []string{"8x1 7x1 6x1 5x1", "8.5x1 7.5x1", "10x0 9x0 8x0"} {
		if err := b.ApplyUndo(levels(diff), nil, &u); err != nil {
			t.Fatal(err)
		}
	}
	if got := all(b); got != "8.5x1 | " || b.Complete(2) || b.Covered() != 25 {
		t.Errorf("%s, covered %d%%", got, b.Covered())
	}
	b.Revert(&u)
	if got := all(b); got != "10x1 9x1 | " || b.Covered() != 100 {
		t.Errorf("%s, covered %d%%", got, b.Covered())
	}
	mustApply(t, b, "10x0 1x1 9x0", "")
	if got := all(b); got != "1x1 | " || !b.Complete(2) {
		t.Errorf("%s, complete %t: the side is whole again", got, b.Complete(2))
	}
}

func TestBook_snapshot(t *testing.T) {
	f := func(bids, asks string, limit, most int, want string, wantDepth int) {
		t.Helper()
		b := load(t, bids, asks, limit, false)
		l, depth := b.Snapshot(most)
		if got := spelled(l.Bids()) + " | " + spelled(l.Asks()); got != want || depth != wantDepth {
			t.Errorf("%s | %s, limit %d, most %d: %s depth %d, want %s depth %d", bids, asks, limit, most, got, depth, want, wantDepth)
		}
	}
	f("", "", 0, 5, " | ", 1)
	f("3x1 2x1 1x1", "4x1", 0, 5, "3x1 2x1 1x1 | 4x1", 4)
	f("3x1 2x1 1x1", "4x1", 0, 3, "3x1 2x1 1x1 | 4x1", 4)
	f("3x1 2x1 1x1", "4x1", 0, 2, "3x1 2x1 | 4x1", 2)
	f("3x1 2x1 1x1", "4x1", 0, 1, "3x1 | 4x1", 1)
	f("3x1 2x1 1x1", "4x1", 3, 5, "3x1 2x1 1x1 | 4x1", 3)
	f("2x1 1x1", "4x1 5x1", 2, 5, "2x1 1x1 | 4x1 5x1", 2)
	f("2x1 1x1", "4x1 5x1", 2, 0, " | ", 0)
	f("2x0 1x0", "4x1", 2, 5, " | ", 0)
	b := load(t, "3x1 2x1", "4x1 5x1", 2, false)
	mustApply(t, b, "2x0", "4.5x1")
	l, depth := b.Snapshot(9)
	if got := spelled(l.Bids()) + " | " + spelled(l.Asks()); got != "3x1 | 4x1" || depth != 1 {
		t.Errorf("%s depth %d: both are cut to the side of which less is known", got, depth)
	}
	mustApply(t, b, "3x0", "4x0")
	if got := spelled(l.Bids()) + " | " + spelled(l.Asks()); got != "3x1 | 4x1" {
		t.Errorf("%s: the copy changed with the book", got)
	}
}

func TestBook_clear(t *testing.T) {
	b := localbook.New()
	if b.Loaded() || b.Complete(0) {
		t.Error("a new book is loaded")
	}
	if err := b.Load(nil, nil, 0, false); err != nil || !b.Loaded() || !b.Complete(100) {
		t.Errorf("an empty book is a book: %v", err)
	}
	mustApply(t, b, "5x1", "6x1")
	if b.Clear(); b.Loaded() || all(b) != " | " {
		t.Errorf("%s after Clear, loaded %t", all(b), b.Loaded())
	}
	if _, depth := b.Snapshot(5); depth != 0 {
		t.Errorf("depth %d: nothing is known of a book that is not loaded", depth)
	}
}

// TestBook_newScale: a market whose first orders stood far from where it then trades.
func TestBook_newScale(t *testing.T) {
	b := load(t, "0.00000001x1", "900000000x1", 2, false)
	var bids, asks []market.Level
	for i := range int64(500) {
		bids = append(bids, market.Level{Price: market.NewNumber(6_407_300-i, -2), Size: market.NewNumber(1+i, -3)})
		asks = append(asks, market.Level{Price: market.NewNumber(6_407_400+i, -2), Size: market.NewNumber(1+i, -3)})
	}
	var u localbook.Undo
	if err := b.ApplyUndo(bids, asks, &u); err != nil {
		t.Fatal(err)
	}
	want := spelled(bids) + " 0.00000001x1 | " + spelled(asks) + " 900000000x1"
	if got := all(b); got != want {
		t.Errorf("got %s", got)
	}
	if n := testing.AllocsPerRun(10, func() { _ = b.Apply(bids[:200], asks[:200]) }); n != 0 {
		t.Errorf("%v allocations: the levels still do not fit", n)
	}
	if b.Revert(&u); all(b) != "0.00000001x1 | 900000000x1" {
		t.Errorf("reverted to %s", all(b))
	}
}
