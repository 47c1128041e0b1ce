package client_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/shopspring/decimal"

	"exchange-gateway/client"
)

func TestNumber_readsPlainNumbersInStrings(t *testing.T) {
	for text, want := range map[string]client.Number{
		`"64073.00"`: "64073.00", `"0.58849577"`: "0.58849577", `"-1.50"`: "-1.50", `null`: "", `"0"`: "0",
		`"00012.340"`: "00012.340", `"` + strings.Repeat("9", 128) + `"`: client.Number(strings.Repeat("9", 128)),
	} {
		var n client.Number
		if err := json.Unmarshal([]byte(text), &n); err != nil || n != want {
			t.Errorf("%.40s: %q, %v, want %q", text, n, err, want)
		}
		back, err := json.Marshal(n)
		if err != nil || string(back) != text {
			t.Errorf("%.40s written again: %s, %v", text, back, err)
		}
	}
	for _, text := range []string{
		`1.5`, `""`, `"."`, `"1."`, `".5"`, `"1e9"`, `"1e999999999"`, `"+1"`, `"--1"`, `"NaN"`, `"Infinity"`, `"1 "`, `"1,5"`, `"0x10"`, `true`, `[]`,
		`{}`, `"` + strings.Repeat("9", 129) + `"`, `"１"`,
	} {
		var n client.Number
		if err := json.Unmarshal([]byte(text), &n); err == nil {
			t.Errorf("%.40s was read as %q", text, n)
		}
	}
}

func TestNumber_decimal(t *testing.T) {
	d, ok := client.Number("64073.10").Decimal()
	if !ok || !d.Equal(decimal.RequireFromString("64073.1")) {
		t.Errorf("%v %v", d, ok)
	}
	for _, n := range []client.Number{"", "1e9", "x", "1e999999999"} {
		if d, ok := n.Decimal(); ok {
			t.Errorf("%q is %v", n, d)
		}
	}
}

func TestNumber_compares(t *testing.T) {
	order := []client.Number{"-10.5", "-2", "-0.1", "0", "0.00000001", "0.1", "0.11", "1", "1.5", "9", "10", "64073.0", "64073.01", "100000"}
	for i, a := range order {
		for j, b := range order {
			x, _ := a.Decimal()
			y, _ := b.Decimal()
			if got, want := a.Cmp(b), x.Cmp(y); got != want || (i < j) != (got < 0) {
				t.Errorf("%s and %s: %d, want %d", a, b, got, want)
			}
		}
	}
	for _, pair := range [][2]client.Number{{"1.50", "1.5"}, {"007", "7"}, {"-0", "0"}, {"0.0", "-0.00"}, {"2", "2.000"}} {
		if c := pair[0].Cmp(pair[1]); c != 0 {
			t.Errorf("%s and %s: %d, want 0", pair[0], pair[1], c)
		}
	}
}

func FuzzNumber(f *testing.F) {
	for _, s := range []string{"1", "-1.5", "0.10", "00", "64073.00", "-0", "9e9", ""} {
		f.Add(s, "1.50")
	}
	f.Fuzz(func(t *testing.T, s, other string) {
		a, b := client.Number(s), client.Number(other)
		x, okX := a.Decimal()
		y, okY := b.Decimal()
		if okX && okY && a.Cmp(b) != x.Cmp(y) {
			t.Errorf("%q and %q: %d, as decimals %d", a, b, a.Cmp(b), x.Cmp(y))
		}
	})
}

func TestLevel(t *testing.T) {
	var l client.Level
	if err := json.Unmarshal([]byte(`["64073.00","0.5","3"]`), &l); err != nil || l != (client.Level{Price: "64073.00", Size: "0.5"}) {
		t.Errorf("%v, %v", l, err)
	}
	if text, err := json.Marshal(l); err != nil || string(text) != `["64073.00","0.5"]` {
		t.Errorf("%s, %v", text, err)
	}
	for _, text := range []string{`[]`, `["1"]`, `["1",null]`, `[null,"1"]`, `["1","-1"]`, `["-1","1"]`, `{"price":"1"}`, `["1",2]`} {
		if err := json.Unmarshal([]byte(text), &l); err == nil {
			t.Errorf("%s was read", text)
		}
	}
}
