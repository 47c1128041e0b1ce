package coinbase_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/exchange/exchangetest"
	"exchange-gateway/internal/market"
)

func listings(t *testing.T, a ...answer) ([]market.Listing, *fakeCoinbase, error) {
	t.Helper()
	v, f := newVenue(t)
	if len(a) > 0 {
		f.on(productsPath, a...)
	}
	all, err := exchangetest.Rows(t.Context(), v)
	return all, f, err
}

func TestListings_states(t *testing.T) {
	all, f, err := listings(t)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]market.TradingStatus{
		"BTC-USD": market.TradingActive, "BTC-USDC": market.TradingActive, "USDT-USDC": market.TradingActive, // limit_only
		"1INCH-USD": market.TradingActive, "CGLD-USD": market.TradingCancelOnly, "NEW-USD": market.TradingAuction,
		"POST-USD": market.TradingPostOnly, "LOOK-USD": market.TradingPaused, "HALT-USD": market.TradingPaused,
		"DOWN-USD": market.TradingPaused, "ODD-USD": market.TradingPaused, "OLD-USD": market.TradingDelisted,
		"測試-USD": market.TradingActive,
	}
	for _, l := range all {
		if l.Status != want[l.Symbol] {
			t.Errorf("%s is %q, want %q", l.Symbol, l.Status, want[l.Symbol])
		}
	}
	if len(all) != len(want) {
		t.Errorf("%d listings, want %d: futures are none", len(all), len(want))
	}
	if got := f.last().URL.RawQuery; got != "product_type=SPOT" || f.asked(productsPath) != 1 {
		t.Errorf("asked %s, %d times", got, f.asked(productsPath))
	}
}

func TestListings_fields(t *testing.T) {
	all, _, err := listings(t)
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]string)
	for _, l := range all {
		got[l.Symbol] = fmt.Sprintf("%s %s tick %s lot %s min %s %s alias %q", l.Exchange, l.Pair,
			show(l.PriceTick), show(l.SizeStep), show(l.MinSize), show(l.MinNotional), l.AliasOf)
	}
	for symbol, want := range map[string]string{
		"BTC-USD":   `coinbase BTC/USD tick 0.01 lot 0.00000001 min 0.00000001 1 alias ""`,
		"BTC-USDC":  `coinbase BTC/USDC tick 0.01 lot 0.00000001 min 0.00000001 1 alias "BTC-USD"`,
		"1INCH-USD": `coinbase 1INCH/USD tick 0.001 lot 0.01 min 0.01 1 alias ""`,
	} {
		if got[symbol] != want {
			t.Errorf("%s: got %s, want %s", symbol, got[symbol], want)
		}
	}
}

func show(o market.Optional) string {
	n, ok := o.Get()
	if !ok {
		return "none"
	}
	return n.String()
}

func row(id, more string) string {
	base, quote, _ := strings.Cut(id, "-")
	return `{"product_id":"` + id + `","base_currency_id":"` + base + `","quote_currency_id":"` + quote +
		`","status":"online","product_type":"SPOT"` + more + `}`
}

func page(pagination string, number int, rows ...string) answer {
	return answer{body: fmt.Sprintf(`{"products":[%s],"num_products":%d,"pagination":%s}`, strings.Join(rows, ","), number, pagination)}
}

func TestListings_steps(t *testing.T) {
	all, _, err := listings(t, page("null", 3,
		row("A-USD", `,"quote_increment":"0.05","base_increment":"0","base_min_size":"","quote_min_size":null`),
		row("B-USD", `,"quote_increment":"0.01","price_increment":"5"`),
		row("C-USD", ``)))
	if err != nil || len(all) != 3 {
		t.Fatal(all, err)
	}
	for i, want := range []string{"0.05", "5", "none"} {
		l := all[i]
		if show(l.PriceTick) != want || show(l.SizeStep) != "none" || show(l.MinSize) != "none" || show(l.MinNotional) != "none" {
			t.Errorf("%+v, want tick %s and nothing else", l, want)
		}
	}
}

// TestListings_badRows: one row that cannot be read costs that row, and the log says so once.
func TestListings_badRows(t *testing.T) {
	var log bytes.Buffer
	v, f := newVenueAt(t, exchange.Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
	f.on(productsPath, page("null", 9, row("A-USD", ""), row("B-USD", ""), row("C-USD", ""), row("D-USD", ""), row("E-USD", ""),
		row("A-USD", ""),
		`"text"`,
		`{"product_id":"X-USD","base_currency_id":"","quote_currency_id":"USD","product_type":"SPOT"}`,
		row("Y-USD", `,"price_increment":"much"`)))
	all, err := exchangetest.Rows(t.Context(), v)
	if err != nil || len(all) != 5 {
		t.Fatalf("%d listings, %v", len(all), err)
	}
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "skipped=4") {
		t.Errorf("log: %s", got)
	}
}

func TestListings_pages(t *testing.T) {
	more, last := `{"has_next":true,"next_cursor":"x"}`, `{"has_next":false}`
	for name, pages := range map[string][]answer{
		"by pagination": {page(more, 2, row("A-USD", ""), row("B-USD", "")), page(last, 1, row("C-USD", ""))},
		"by number":     {page("null", 3, row("A-USD", ""), row("B-USD", "")), page("null", 3, row("C-USD", ""))},
		"and an empty one": {
			page(more, 3, row("A-USD", ""), row("B-USD", ""), row("C-USD", "")), page(last, 0),
		},
	} {
		all, f, err := listings(t, pages...)
		if err != nil || len(all) != 3 {
			t.Errorf("%s: %v, %v", name, all, err)
		}
		sent := strconv.Itoa(strings.Count(pages[0].body, `"SPOT"`))
		if got := f.last().URL.Query(); f.asked(productsPath) != 2 || got.Get("product_type") != "SPOT" || got.Get("offset") != sent {
			t.Errorf("%s: asked %d times, last with %v", name, f.asked(productsPath), got)
		}
	}
}

func TestListings_absurd(t *testing.T) {
	more := `{"has_next":true}`
	for name, pages := range map[string][]answer{
		"empty":          {page("null", 0)},
		"futures alone":  {page("null", 1, `{"product_id":"BIT-24APR26-CDE","product_type":"FUTURE"}`)},
		"rubbish":        {page("null", 3, row("A-USD", ""), `1`, `2`)},
		"null":           {{body: `{"products":null,"num_products":0}`}},
		"a map":          {{body: `{"products":{}}`}},
		"the same again": {page(more, 1, row("A-USD", "")), page(more, 1, row("A-USD", ""))},
		"second page bad": {
			page(more, 1, row("A-USD", "")), {body: `{"products":[`},
		},
	} {
		all, f, err := listings(t, pages...)
		if market.KindOf(err) != market.KindMalformed || all != nil {
			t.Errorf("%s: %v, %v", name, all, err)
		}
		if e := asError(t, err); e.Refusal != nil {
			t.Errorf("%s: closes %+v, but there is no symbol to hold", name, e.Refusal)
		}
		if n := f.asked(productsPath); n != len(pages) {
			t.Errorf("%s: asked %d times, want %d", name, n, len(pages))
		}
	}
}

// TestListings_withoutAnEnd: 20 pages of new products each are no list of Coinbase's.
func TestListings_withoutAnEnd(t *testing.T) {
	pages := make([]answer, 30)
	for i := range pages {
		pages[i] = page(`{"has_next":true}`, 1, row(fmt.Sprintf("A%d-USD", i), ""))
	}
	_, f, err := listings(t, pages...)
	if market.KindOf(err) != market.KindMalformed || f.asked(productsPath) != 20 {
		t.Errorf("asked %d times: %v", f.asked(productsPath), err)
	}
}

func FuzzListings(f *testing.F) {
	f.Add([]byte(page("null", 1, row("A-USD", `,"price_increment":1e-8`)).body))
	f.Add([]byte(`{"products":[{}],"pagination":{"has_next":true}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		v, net := newVenue(t)
		net.on(productsPath, answer{body: string(b)})
		all, err := exchangetest.Rows(t.Context(), v)
		if (err == nil) == (len(all) == 0) {
			t.Fatalf("%q: %d listings, %v", b, len(all), err)
		}
		for _, l := range all {
			if p, err := market.ParsePair(l.Pair.String()); err != nil || p != l.Pair || l.Symbol == "" || l.Status == "" {
				t.Fatalf("%q: %+v, %v", b, l, err)
			}
		}
	})
}
