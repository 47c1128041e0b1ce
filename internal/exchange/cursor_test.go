package exchange_test

import (
	"encoding/json"
	"testing"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/market"
)

func TestCursor_readsLevels(t *testing.T) {
	f := func(in string, want ...string) {
		t.Helper()
		c := exchange.NewCursor([]byte(in))
		side, err := c.Levels(4)
		if err == nil {
			err = c.End()
		}
		if err != nil {
			t.Fatalf("%s: %v", in, err)
		}
		for i, v := range side {
			if got := v.Price.String() + " x " + v.Size.String(); i >= len(want) || got != want[i] {
				t.Errorf("%s: level %d is %s", in, i, got)
			}
		}
		if len(side) != len(want) {
			t.Errorf("%s: %d levels, want %d", in, len(side), len(want))
		}
	}
	f(`[]`)
	f(` [ [ "1.10" , "2" ] ] `, "1.10 x 2")
	f(`[["41006.8","0.60038921","0","1"]]`, "41006.8 x 0.60038921")
	f(`[["4.00000000","431.00000000",[]]]`, "4.00000000 x 431.00000000")
	f(`[[9739,2767.455474,1],["1e-8","0"]]`, "9739 x 2767.455474", "0.00000001 x 0")
	f(`[["\u0031","2"]]`, "1 x 2")
}

func TestCursor_refuses(t *testing.T) {
	for _, in := range []string{
		``, `[`, `[[`, `[["1"`, `[["1"]]`, `[["1",]]`, `[["1","2"`, `[["1","2"]`, `[["1","2"],]`, `[["1" "2"]]`, `[["","2"]]`,
		`[["1","2",tru]]`, `[[null,"2"]]`, `{"a":1}`, `[["1","2"]]x`, `[["1` + "\n" + `","2"]]`, `[["1\","2"]]`,
	} {
		c := exchange.NewCursor([]byte(in))
		if _, err := c.Levels(0); err == nil && c.End() == nil {
			t.Errorf("%s was read", in)
		}
	}
}

// FuzzCursor compares Skip with the standard library: whatever one accepts and the other refuses is a fault, but for
// nesting, which the cursor bounds.
func FuzzCursor(f *testing.F) {
	for _, s := range []string{`{"a":[1,"b",null,true,-2.5e3]}`, `[["1","2"]]`, `"\ud83d\ude00"`, `{"a"`, `[1,]`, `{}`, `0`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c := exchange.NewCursor(b)
		err := c.Skip()
		if err == nil {
			err = c.End()
		}
		if err == nil && !json.Valid(b) {
			t.Fatalf("%q was read, but is not JSON", b)
		}
		var side []market.Level
		c = exchange.NewCursor(b)
		if side, err = c.Levels(0); err == nil && c.End() == nil && json.Valid(b) {
			for _, v := range side {
				if _, err := market.ParseNumber(v.Price.String()); err != nil && len(v.Price.String()) <= 128 {
					t.Fatalf("%q: price %v does not read back", b, v.Price)
				}
			}
		}
	})
}
