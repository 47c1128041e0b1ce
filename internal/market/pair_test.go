package market_test

import (
	"encoding/json"
	"strings"
	"testing"

	"exchange-gateway/internal/market"
)

func TestParsePair(t *testing.T) {
	f := func(in, base, quote string) {
		t.Helper()
		p, err := market.ParsePair(in)
		if err != nil || p.Base != base || p.Quote != quote {
			t.Errorf("%q: %v, %v", in, p, err)
		}
		if again, err := market.ParsePair(p.String()); err != nil || again != p {
			t.Errorf("%q does not read back: %v, %v", p.String(), again, err)
		}
	}
	f("BTC/USDT", "BTC", "USDT")
	f("BTC-USDT", "BTC", "USDT")
	f("1INCH/USDT", "1INCH", "USDT")
	f("1000SATS-TRY", "1000SATS", "TRY")
	f("测试币/USDT", "测试币", "USDT")
	f("btc/usdt", "btc", "usdt") // case is the exchange's own
	f("A-B/C", "A-B", "C")
	f("$WIF/EUR", "$WIF", "EUR")
	f(strings.Repeat("A", 64)+"/B", strings.Repeat("A", 64), "B")
}

func TestParsePair_refuses(t *testing.T) {
	for _, in := range []string{
		"", "/", "-", "BTC", "BTCUSDT", "BTC/", "/USDT", "BTC-", "-USDT", "A/B/C", "A-B-C", "BTC USDT", "BTC /USDT", "BTC/US\nDT",
		"BTC/US\x00DT", `BTC/"`, `A\/B`, "BTC/\xff", "BTC/\u200b", strings.Repeat("A", 65) + "/B", "BTC/USDT/", "BTC//USDT",
	} {
		if p, err := market.ParsePair(in); err == nil || !p.IsZero() {
			t.Errorf("%q was read as %v", in, p)
		}
	}
	_, err := market.ParsePair(strings.Repeat("x", 10_000))
	if len(err.Error()) > 300 {
		t.Errorf("the error repeats %d bytes of what it was given", len(err.Error()))
	}
}

func TestPair_isText(t *testing.T) {
	var v map[market.Pair][]market.Pair
	if err := json.Unmarshal([]byte(`{"BTC-USD":["ETH/EUR"]}`), &v); err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(v)
	if want := `{"BTC/USD":["ETH/EUR"]}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	// Three dollars are three quotes.
	usd, usdc := market.Pair{Base: "BTC", Quote: "USD"}, market.Pair{Base: "BTC", Quote: "USDC"}
	if usd == usdc {
		t.Error("USD and USDC are one quote")
	}
}

func FuzzParsePair(f *testing.F) {
	for _, s := range []string{"BTC/USDT", "BTC-USDT", "A-B/C", "测试币/USDT", "", "a/b/c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := market.ParsePair(s)
		if err != nil {
			return
		}
		again, err := market.ParsePair(p.String())
		if err != nil || again != p || strings.ContainsAny(p.String(), "\"\\ \n") {
			t.Fatalf("%q: %v reads back as %v, %v", s, p, again, err)
		}
	})
}
