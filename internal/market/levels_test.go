package market_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

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

func text(side []market.Level) string {
	parts := make([]string, len(side))
	for i, v := range side {
		parts[i] = v.Price.String() + "x" + v.Size.String()
	}
	return strings.Join(parts, " ")
}

func mustLevels(t *testing.T, bids, asks string) *market.Levels {
	t.Helper()
	l, err := market.NewLevels(levels(bids), levels(asks))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestNewLevels(t *testing.T) {
	f := func(bids, asks, wantBids, wantAsks string, zeros int) {
		t.Helper()
		l := mustLevels(t, bids, asks)
		if text(l.Bids()) != wantBids || text(l.Asks()) != wantAsks || l.Zeros() != zeros {
			t.Errorf("%s | %s: %s | %s, %d zeros", bids, asks, text(l.Bids()), text(l.Asks()), l.Zeros())
		}
	}
	f("", "", "", "", 0)
	f("3x1 2x1", "4x1 5x1", "3x1 2x1", "4x1 5x1", 0)
	f("2x1 3x1", "5x1 4x1", "3x1 2x1", "4x1 5x1", 0)
	f("3x0 2x1 1x0.000", "4x0", "2x1", "", 3)
	f("1x1", "", "1x1", "", 0) // an empty side is a quiet market
	f("0.09x1 0.1x1 0.10000001x1", "", "0.10000001x1 0.1x1 0.09x1", "", 0)
	f("3x0 3x1", "", "3x1", "", 1) // a zero beside its own price is no second level
	f("99999999999999999999.5x1 1x1", "1e30x1", "99999999999999999999.5x1 1x1", "1000000000000000000000000000000x1", 0)
}

func TestNewLevels_suspects(t *testing.T) {
	for _, c := range [][2]string{
		{"5x1", "5x1"},
		{"5.0x1", "5.00x1"},
		{"6x1", "5x1"},
		{"1x1 6x1", "5x1"},
		{"-1x1", ""},
		{"0x1", ""},
		{"", "0.00x1"},
		{"1x-1", ""},
		{"", "1x-0.1"},
		{"5x1 5x2", ""},
		{"5x1 4x1 5.00x1", ""},
		{"", "5x1 6x1 5x1"},
	} {
		l, err := market.NewLevels(levels(c[0]), levels(c[1]))
		if !errors.Is(err, market.ErrSuspect) || l != nil {
			t.Errorf("%s | %s: %v, %v", c[0], c[1], l, err)
		}
	}
}

// TestNewLevels_anyOrder: however the levels come, the book is the same.
func TestNewLevels_anyOrder(t *testing.T) {
	want := mustLevels(t, "5x1 4x2 3.5x3 3x4 0.00000001x5", "6x1 7x2 7.5x3 100x4")
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		bids, asks := levels("5x1 4x2 3.5x3 3x4 0.00000001x5"), levels("6x1 7x2 7.5x3 100x4")
		r.Shuffle(len(bids), func(i, j int) { bids[i], bids[j] = bids[j], bids[i] })
		r.Shuffle(len(asks), func(i, j int) { asks[i], asks[j] = asks[j], asks[i] })
		l, err := market.NewLevels(bids, asks)
		if err != nil || !l.Equal(want) || text(l.Bids()) != text(want.Bids()) || text(l.Asks()) != text(want.Asks()) {
			t.Fatalf("seed %d: %s | %s, %v", seed, text(l.Bids()), text(l.Asks()), err)
		}
	}
}

func TestLevels_equal(t *testing.T) {
	a := mustLevels(t, "3x1 2x1", "4x1")
	for _, c := range []struct {
		bids, asks string
		want       bool
	}{
		{"3x1 2x1", "4x1", true},
		{"3.00x1.0 2x1", "4x1.000", true},
		{"3x1", "4x1", false},
		{"3x1 2x1", "4x2", false},
		{"3x1 2x1", "", false},
		{"3x1 2.1x1", "4x1", false},
	} {
		if got := a.Equal(mustLevels(t, c.bids, c.asks)); got != c.want {
			t.Errorf("%s | %s: equal %t", c.bids, c.asks, got)
		}
	}
	if !a.Equal(a) {
		t.Error("a book is not equal to itself")
	}
}

func TestLevels_encode(t *testing.T) {
	l := mustLevels(t, "64073.00x0.58849577 64072.90x1 0.00000001x123456789012.00000001", "64073.10x1e3")
	f := func(n int, bids, asks string) {
		t.Helper()
		b, a := string(l.AppendBids(nil, n)), string(l.AppendAsks([]byte("x"), n))
		if b != bids || a != "x"+asks {
			t.Errorf("depth %d: %s %s", n, b, a)
		}
		if got, want := l.EncodedSize(n), len(bids)+len(asks); got != want {
			t.Errorf("depth %d: size %d, want %d", n, got, want)
		}
		if !json.Valid([]byte(b)) {
			t.Errorf("depth %d is not JSON: %s", n, b)
		}
	}
	const first, rest = `["64073.00","0.58849577"]`, `,["64072.90","1"],["0.00000001","123456789012.00000001"]`
	f(-1, `[]`, `[]`)
	f(0, `[]`, `[]`)
	f(1, `[`+first+`]`, `[["64073.10","1000"]]`)
	f(3, `[`+first+rest+`]`, `[["64073.10","1000"]]`)
	f(1000, `[`+first+rest+`]`, `[["64073.10","1000"]]`)
	empty := mustLevels(t, "", "")
	if got := string(empty.AppendBids(nil, 5)); got != "[]" || empty.EncodedSize(5) != 4 {
		t.Errorf("an empty book: %s, %d", got, empty.EncodedSize(5))
	}
}

// TestLevels_encodesOnce: many readers share one text.
func TestLevels_encodesOnce(t *testing.T) {
	l := mustLevels(t, "3x1 2x1", "4x1")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if got := string(l.AppendBids(nil, 2)); got != `[["3","1"],["2","1"]]` {
				t.Error(got)
			}
		})
	}
	wg.Wait()
	buf := make([]byte, 0, 256)
	if n := testing.AllocsPerRun(100, func() { buf = l.AppendAsks(l.AppendBids(buf[:0], 2), 2) }); n != 0 {
		t.Errorf("%v allocations to write a text that is there already", n)
	}
}
