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

// TestCursor_appendsLevels: a slice that is used again costs no allocation, and what stood before it stays.
func TestCursor_appendsLevels(t *testing.T) {
	text := []byte(`[["1.10","2"],[ "3", 4, []]]`)
	c := exchange.NewCursor(text)
	if c.Next() != '[' {
		t.Errorf("next is %q", c.Next())
	}
	first := market.Level{Price: market.MustNumber("9"), Size: market.MustNumber("8")}
	side, err := c.AppendLevels([]market.Level{first})
	if err != nil || len(side) != 3 || side[0] != first || side[1].Price.String() != "1.10" || side[2].Size.String() != "4" {
		t.Errorf("got %v, %v", side, err)
	}
	if c.Next() != 0 || c.End() != nil {
		t.Errorf("not at the end")
	}
	if n := testing.AllocsPerRun(100, func() {
		c := exchange.NewCursor(text)
		side, _ = c.AppendLevels(side[:0])
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
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

// FuzzCursor_levels compares the way that plain levels are read with the general one, which a space leads to.
func FuzzCursor_levels(f *testing.F) {
	for _, s := range [][2]string{
		{"64073.00", "0.58849577"},
		{"0", "0.00000000"},
		{"123456789012345678", "1"},
		{"1234567890123456789", "1"},
		{"0.000000000000000001", "1"},
		{"01", "1"},
		{"1.", "1"},
		{".1", "1"},
		{"", "1"},
		{"1.2.3", "1"},
		{"-1", "1e5"},
		{"1\"", "2"},
		{"12345678901.23456789", "00"},
	} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, price, size string) {
		plain, errPlain := exchange.NewCursor([]byte(`[["` + price + `","` + size + `"]]`)).Levels(1)
		general, errGeneral := exchange.NewCursor([]byte(`[[ "` + price + `", "` + size + `"]]`)).Levels(1)
		if (errPlain == nil) != (errGeneral == nil) {
			t.Fatalf("%q, %q: %v and %v", price, size, errPlain, errGeneral)
		}
		if errPlain != nil {
			return
		}
		if len(plain) != len(general) {
			t.Fatalf("%q, %q: %v and %v", price, size, plain, general)
		}
		for i, v := range plain {
			w := general[i]
			if v.Price.String() != w.Price.String() || v.Size.String() != w.Size.String() || !v.Price.Equal(w.Price) || !v.Size.Equal(w.Size) {
				t.Fatalf("%q, %q: %v and %v", price, size, v, w)
			}
		}
	})
}

// TestCursor_levelObjects: the plain form is read in one pass, every other form is left to the reader, from its start.
func TestCursor_levelObjects(t *testing.T) {
	const plain = `{"price":"1.5","size":"2"}`
	for text, left := range map[string]int{
		`[` + plain + `,` + plain + `]`:               0,
		`[ ` + plain + `]`:                            0,
		`[{"price": "1.5","size":"2"}]`:               1,
		`[{"size":"2","price":"1.5"}]`:                1,
		`[` + plain + `,{"price":1.5,"size":"2"}]`:    1,
		`[{"price":"1.5","size":"2","time":"later"}]`: 1,
	} {
		c := exchange.NewCursor([]byte(text))
		asked := 0
		side, err := c.LevelObjects(2, func(v *market.Level) error {
			asked++
			if *v != (market.Level{}) {
				t.Errorf("%s: half read: %v", text, v)
			}
			v.Price, v.Size = market.MustNumber("1.5"), market.MustNumber("2")
			return c.Skip()
		})
		if err == nil {
			err = c.End()
		}
		if err != nil || asked != left {
			t.Errorf("%s: %d levels were left to read, want %d: %v", text, asked, left, err)
		}
		for _, v := range side {
			if v.Price.String() != "1.5" || v.Size.String() != "2" {
				t.Errorf("%s: read %v", text, v)
			}
		}
	}
}

// TestCursor_try: a form that does not fit leaves everything for the general way.
func TestCursor_try(t *testing.T) {
	const text = ` {"n":"a","p":"1.50","s":"2"}`
	read := func(c *exchange.Cursor, v *market.Level, name, end string) bool {
		return c.Try(func() bool {
			if !c.Exactly(` {"n":`) {
				return false
			}
			got, err := c.Text()
			return err == nil && string(got) == name && c.PlainLevel(v, `,"p":`, `,"s":`) && c.Exactly(end)
		})
	}
	for _, wrong := range [][2]string{{"b", "}"}, {"a", "]"}, {"a", "} and much more than is left"}} {
		c := exchange.NewCursor([]byte(text))
		var v market.Level
		if read(c, &v, wrong[0], wrong[1]) {
			t.Errorf("%q was read", wrong)
		}
		if err := c.Skip(); err != nil || c.End() != nil {
			t.Errorf("%q: the rest cannot be read: %v", wrong, err)
		}
	}
	c := exchange.NewCursor([]byte(text))
	var v market.Level
	if !read(c, &v, "a", "}") || c.End() != nil || v.Price.String() != "1.50" || v.Size.String() != "2" {
		t.Errorf("got %v", v)
	}
	if c.Exactly("x") || exchange.NewCursor([]byte(`"p":"1","s":01"`)).PlainLevel(&v, `"p":`, `,"s":`) {
		t.Error("read past the end, or no number")
	}
}
