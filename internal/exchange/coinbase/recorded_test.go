package coinbase_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"exchange-gateway/internal/exchange/coinbase"
	"exchange-gateway/internal/exchange/exchangetest"
	"exchange-gateway/internal/market"
)

// notCalled are recordings of what this adapter never asks for, with the reason.
var notCalled = map[string]string{
	"README.md":                                  "says what the others are",
	"at_key_permissions_example.json":            "a key is judged by its answers, not asked about itself",
	"at_ticker_btc_usd_2026.json":                "its bid and ask are in the book, its trades are not served, and it has no 24 h figures",
	"exchange_book_l1_btc_eur_sandbox_2020.json": "books come from Advanced Trade alone",
	"exchange_book_l1_btc_usd_2026.json":         "books come from Advanced Trade alone",
	"exchange_book_l2_btc_usd_2026_top30.json":   "books come from Advanced Trade alone",
	"exchange_book_l2_btc_usd_sandbox_2020.json": "books come from Advanced Trade alone",
	"exchange_product_btc_usd_2026.json":         "listings come from Advanced Trade alone",
	"exchange_products_2021.json":                "listings come from Advanced Trade alone",
	"exchange_products_2025.json":                "listings come from Advanced Trade alone",
	"exchange_stats_btc_usd_2026.json":           "figures come from Advanced Trade alone",
	"exchange_ticker_btc_usd_2026.json":          "figures come from Advanced Trade alone",
	"exchange_tickers_with_headers_2025.json":    "figures come from Advanced Trade alone; its Age headers are in the contract suite",
	"exchange_trades_btc_usd_2026.json":          "trades are not served",
	"exchange_ws_control_messages.jsonl":         "of Exchange, whose public depth has no sequence: streams come from Advanced Trade alone",
	"exchange_ws_heartbeat_2020.jsonl":           "of Exchange: streams come from Advanced Trade alone",
	"exchange_ws_level2_auth_2025.jsonl":         "a channel of Exchange that needs a key: streams come from Advanced Trade alone",
	"exchange_ws_level2_batch_2025.jsonl":        "a channel of Exchange without a sequence: streams come from Advanced Trade alone",
	"exchange_ws_matches_2025.jsonl":             "trades are not served",
	"exchange_ws_status_2025.jsonl":              "listings come from Advanced Trade alone, by REST",
	"exchange_ws_stream_2021_a.jsonl":            "of Exchange; a part of it, as Advanced Trade sends it, is in at_ws_l2_derived_clean",
	"exchange_ws_stream_2021_b.jsonl":            "of Exchange; a part of it, as Advanced Trade sends it, is in at_ws_l2_derived_clean",
	"exchange_ws_subscribe_requests_2021.jsonl":  "requests to Exchange: streams come from Advanced Trade alone",
	"exchange_ws_ticker_2025.jsonl":              "quotes come with the book; ticker comes with trades alone",
}

// recordedTests are the recordings of what it does ask for.
var recordedTests = map[string]func(*testing.T, string){
	"at_product_book_btc_usd_2026.json":    recordedBook,
	"at_product_btc_usd_2026.json":         recordedProduct,
	"at_products_alias_2026.json":          recordedProducts,
	"at_accounts_example.json":             recordedPortfolio,
	"exchange_accounts_2025.json":          recordedProfile,
	"exchange_accounts_all_zero_2020.json": recordedZeros,
	"exchange_time_2026.json":              recordedTime,
	"errors.jsonl":                         recordedErrors,
	"at_ws_frames_2024.jsonl":              recorded2024,
	"at_ws_frames_docs_style_2026.jsonl":   recordedDocs,
	"at_ws_l2_derived_clean.jsonl":         recordedClean,
	"at_ws_session_start_2026.jsonl":       recordedSession,
}

// TestRecorded gives each recorded payload of a question that is asked to the adapter, and knows why of every other.
func TestRecorded(t *testing.T) {
	dir := exchangetest.Recorded(t, "coinbase")
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]bool)
	for _, file := range files {
		name := file.Name()
		found[name] = true
		check, called := recordedTests[name]
		_, not := notCalled[name]
		if called == not {
			t.Errorf("%s is in neither list, or in both", name)
			continue
		}
		if called {
			b, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			t.Run(name, func(t *testing.T) { check(t, string(b)) })
		}
	}
	for name := range recordedTests {
		if !found[name] {
			t.Errorf("%s is not recorded any more", name)
		}
	}
}

func recordedBook(t *testing.T, body string) {
	v, f := newVenue(t)
	f.on(bookPath, says(200, body))
	b, err := v.OrderBook(t.Context(), btcUSD(), 5)
	if err != nil {
		t.Fatal(err)
	}
	want := "BTC-USD BTC/USD 68923.66x0.17189468 68923x0.05795895 68922.99x0.02177956 68921.72x0.000016 68921.61x0.04352771" +
		" | 68923.67x0.16987193 68926x0.058 68926.09x0.01015616 68926.3x0.0870495 68928x0.058"
	if got := text(b); got != want {
		t.Errorf("got %s", got)
	}
	if got := b.ExchangeTime.Format("2006-01-02T15:04:05.000000Z"); got != "2026-04-07T00:28:59.662782Z" {
		t.Errorf("time %s", got)
	}
	bid, ask, _, _ := b.Top()
	if mid := bid.Price.Decimal().Add(ask.Price.Decimal()).Div(market.MustNumber("2").Decimal()); mid.String() != "68923.665" {
		t.Errorf("mid %s", mid)
	}
}

func recordedProduct(t *testing.T, body string) {
	v, f := newVenue(t)
	f.on(productPath, says(200, body))
	s, err := v.Statistics(t.Context(), btcUSD())
	if err != nil {
		t.Fatal(err)
	}
	if show(s.Last) != "68923.67" || show(s.BaseVolume) != "11005.02587005" || show(s.ChangePercent) != "-0.28560028286595" || !s.Open.IsZero() {
		t.Errorf("got %+v", s)
	}
}

func recordedProducts(t *testing.T, body string) {
	all, f, err := listings(t, says(200, body))
	if err != nil || len(all) != 2 || f.asked(productsPath) != 1 {
		t.Fatal(all, err)
	}
	for i, want := range []struct{ symbol, pair, alias string }{{"BTC-USD", "BTC/USD", ""}, {"BTC-USDC", "BTC/USDC", "BTC-USD"}} {
		l := all[i]
		if l.Symbol != want.symbol || l.Pair.String() != want.pair || l.AliasOf != want.alias || l.Status != market.TradingActive ||
			show(l.PriceTick) != "0.01" || show(l.SizeStep) != "0.00000001" || show(l.MinNotional) != "1" {
			t.Errorf("got %+v, want %+v", l, want)
		}
	}
}

func recordedPortfolio(t *testing.T, body string) {
	b, f, err := balances(t, advancedKey(), says(200, body))
	if err != nil || rows(b) != "BTC 1.23456789+0.00500000=1.23956789 USD 10000.50+450.00=10450.50" || f.asked(portfolioPath) != 1 {
		t.Errorf("got %v, %v", b, err)
	}
}

func recordedProfile(t *testing.T, body string) {
	if all, err := coinbase.DecodeProfile([]byte(body)); err != nil || len(all) != 383 {
		t.Fatalf("%d rows, %v", len(all), err)
	}
	b, _, err := balances(t, exchangeKey(), says(200, body))
	if err != nil || len(b.Rows) != 1 {
		t.Fatal(b, err)
	}
	one := market.MustNumber("1")
	if r := b.Rows[0]; r.Asset != "00" || !r.Total.Equal(one) || !r.Free.Equal(one) || !r.Used.IsZero() {
		t.Errorf("got %+v", r)
	}
}

func recordedZeros(t *testing.T, body string) {
	all, err := coinbase.DecodeProfile([]byte(body))
	var names []string
	for _, r := range all {
		names = append(names, r.Currency)
		if r.Balance != nil && string(r.Balance) != `"0.0000000000000000"` || string(r.Available) != `"0"` {
			t.Errorf("row %+v", r)
		}
	}
	if err != nil || strings.Join(names, " ") != "BTC USDC USD GBP EUR ETH BAT" {
		t.Errorf("%v, %v", names, err)
	}
	if b, _, err := balances(t, exchangeKey(), says(200, body)); err != nil || len(b.Rows) != 0 {
		t.Errorf("got %v, %v", b, err)
	}
}

func recordedTime(t *testing.T, body string) {
	synctest.Test(t, func(t *testing.T) {
		v, f := newVenue(t)
		f.on("/time", says(200, body))
		if _, err := newAccount(t, v, exchangeKey()).Balances(t.Context(), market.WalletTrading); err != nil {
			t.Fatal(err)
		}
		if got := f.last().Header.Get("CB-ACCESS-TIMESTAMP"); got != "1781887413" {
			t.Errorf("signed at %s", got)
		}
	})
}

// kindsOf are the kinds that a recorded class stands for.
var kindsOf = map[string][]market.Kind{
	"caller_fault":              {market.KindInvalid, market.KindUnknownSymbol, market.KindDelisted},
	"rate_limited":              {market.KindRateLimited, market.KindBanned},
	"transient":                 {market.KindTimeout, market.KindUnavailable, market.KindMalformed},
	"auth_or_config":            {market.KindAuth, market.KindClockSkew, market.KindRestricted},
	"auth_or_config:clock_skew": {market.KindClockSkew},
}

func recordedErrors(t *testing.T, lines string) {
	asked := 0
	for line := range strings.Lines(lines) {
		var row struct {
			API, Transport, Body, Class string
			ContentType                 string `json:"content_type"`
			Status                      int
		}
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		if row.Transport != "http" {
			continue // messages of streams
		}
		asked++
		questions := []string{"exchange"}
		if row.API == "advanced" {
			questions = []string{"advanced", "book", "figures", "list"}
		}
		for _, q := range questions {
			e, _ := ask(t, q, answer{status: row.Status, body: row.Body, header: map[string]string{"Content-Type": row.ContentType}})
			if want := kindsOf[row.Class]; !slices.Contains(want, e.Kind) {
				t.Errorf("%s: %s: HTTP %d %.60s: %v, want %s", q, row.API, row.Status, row.Body, e.Kind, row.Class)
			}
		}
	}
	if asked != 11 {
		t.Errorf("%d rows of HTTP, want 11", asked)
	}
	recordedStreamErrors(t, lines)
}
