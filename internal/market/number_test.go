package market_test

import (
	"encoding/json"
	"testing"

	"exchange-gateway/internal/market"
)

func TestParseNumber_keepsTheDigits(t *testing.T) {
	f := func(in, want string) {
		t.Helper()
		n, err := market.ParseNumber(in)
		if err != nil || n.String() != want {
			t.Errorf("ParseNumber(%q) = %v, %v, want %s", in, n, err, want)
		}
		if again, err := market.ParseNumber(n.String()); err != nil || !again.Equal(n) {
			t.Errorf("%q does not read back: %v, %v", n.String(), again, err)
		}
		if !n.Decimal().Equal(market.MustNumber(want).Decimal()) {
			t.Errorf("%q: decimal %v", in, n.Decimal())
		}
	}
	f("0", "0")
	f("64073.00", "64073.00")
	f("0.00000001", "0.00000001")
	f("0.00000000", "0.00000000")
	f("-1.50", "-1.50")
	f("-0.5", "-0.5")
	f("1e-08", "0.00000001")
	f("8.664e-05", "0.00008664")
	f("1E-12", "0.000000000001")
	f("5e3", "5000")
	f("1.5E+2", "150")
	f("0e5", "0")
	f("1e30", "1000000000000000000000000000000")
	f("123456789012.00000001", "123456789012.00000001")
	f("99.894696569999997", "99.894696569999997")
	f("999999999999999999", "999999999999999999")
	f("1000000000000000000.500", "1000000000000000000.500")
}

func TestParseNumber_refuses(t *testing.T) {
	for _, in := range []string{
		"", "-", "+1", ".5", "5.", "01", "00.5", "1e", "1e31", "1e-31", "1e1000000000", "NaN", "Infinity", "0x10", "1_000",
		" 1", "1 ", "1,5", "1.2.3", "--1", "\"1\"", "null", "1e+-5",
	} {
		if n, err := market.ParseNumber(in); err == nil {
			t.Errorf("ParseNumber(%q) = %v, want an error", in, n)
		}
	}
}

func TestNumber_comparesByValue(t *testing.T) {
	f := func(a, b string, want int) {
		t.Helper()
		x, y := market.MustNumber(a), market.MustNumber(b)
		if got := x.Cmp(y); got != want {
			t.Errorf("%s cmp %s = %d, want %d", a, b, got, want)
		}
		if got := y.Cmp(x); got != -want {
			t.Errorf("%s cmp %s = %d, want %d", b, a, got, -want)
		}
	}
	f("0.35", "0.35000000", 0)
	f("0", "0.000", 0)
	f("-0.0", "0", 0)
	f("1", "0.99999999", 1)
	f("-1", "-0.99999999", -1)
	f("-1", "1", -1)
	f("888888004", "0.00000001", 1)
	f("999999999999999999", "0.000000000000000001", 1)
	f("1e30", "999999999999999999", 1)
	f("123456789012.00000001", "123456789012", 1)
	f("0.1", "0.1000000000000000000000001", -1)
}

func TestNumber_isAJSONString(t *testing.T) {
	var v struct {
		A market.Number   `json:"a"`
		B market.Number   `json:"b"`
		C market.Optional `json:"c"`
		D market.Optional `json:"d"`
	}
	if err := json.Unmarshal([]byte(`{"a":"1.50","b":2.5e-3,"c":"","d":"7"}`), &v); err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(v)
	if want := `{"a":"1.50","b":"0.0025","c":null,"d":"7"}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	if err := json.Unmarshal([]byte(`{"a":""}`), &v); err == nil {
		t.Error("an empty amount was read as a number")
	}
	if err := json.Unmarshal([]byte(`{"a":null}`), &v); err == nil {
		t.Error("null was read as a number")
	}
}

func FuzzParseNumber(f *testing.F) {
	for _, s := range []string{"1", "-0.50", "1e-08", "123456789012.00000001", "1e30", "00", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := market.ParseNumber(s)
		if err != nil {
			return
		}
		m, err := market.ParseNumber(n.String())
		if err != nil {
			if len(n.String()) <= 128 {
				t.Fatalf("%q printed %q, which does not read back", s, n.String())
			}
			return
		}
		if m.String() != n.String() || !m.Equal(n) || !m.Decimal().Equal(n.Decimal()) {
			t.Fatalf("%q: %v and %v differ", s, n, m)
		}
	})
}
