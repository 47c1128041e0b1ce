package okx_test

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/exchange/exchangetest"
	"exchange-gateway/internal/market"
)

// replayed are the recorded payloads that a test plays.
var replayed = []string{
	"derived_rest_books_btc-usdt_sz400.json", "derived_rest_books_btc-usdt_sz5.json", "errors_rest.json",
	"rest_account_balance_2025-04.json", "rest_account_balance_doc.json", "rest_account_balance_empty_2024-12.json",
	"rest_asset_balances_2025.json", "rest_asset_balances_empty.json", "rest_books_2022-06.jsonl", "rest_books_doc_seqid.json",
	"rest_instruments_spot_2022-05_trimmed.json", "rest_instruments_spot_2026-04_trimmed.json", "rest_status_doc.json",
	"rest_status_empty.json", "rest_time.json",
	// By stream_recorded_test.go:
	"derived_ws_books_btc-usdt_2026wire.expected.jsonl", "derived_ws_books_btc-usdt_2026wire.final.json",
	"derived_ws_books_btc-usdt_2026wire.jsonl", "ws_bbo_books5_tickers_2022.jsonl", "ws_books_near-usdt_2025-12.jsonl",
	"ws_btc-usdt_2022-05.expected.jsonl", "ws_btc-usdt_2022-05.final.json", "ws_btc-usdt_2022-05.jsonl",
	"ws_control_events.jsonl", "ws_market_btc-usdt_2026-08.jsonl", "ws_misc_2025-12.jsonl",
}

// notCalled are the recordings of endpoints that we do not call, and why.
var notCalled = map[string]string{
	"README.md":                     "describes the others",
	"rest_books_full_doc.json":      "books-full has no sequence, is refreshed once a second and allows a quarter of the calls: books is asked instead",
	"rest_tickers_doc.json":         "the list of tickers: statistics are asked for one pair, with ticker; its rows are of contracts",
	"ws_account_empty_2026-03.json": "the account channel: balances are never streamed",
}

func TestRecorded_allAreKnown(t *testing.T) {
	files, err := os.ReadDir(exchangetest.Recorded(t, "okx"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if _, other := notCalled[f.Name()]; !other && !slices.Contains(replayed, f.Name()) {
			t.Errorf("%s is neither replayed nor said to be of an endpoint that we do not call", f.Name())
		}
	}
	if n := len(replayed) + len(notCalled); n != len(files) {
		t.Errorf("%d recordings are known, %d are there", n, len(files))
	}
}

func TestRecorded_books(t *testing.T) {
	f := func(body []byte, depth int, bid, ask string, at int64, sequence market.Sequence, bids, asks int) {
		t.Helper()
		v, _ := newVenue(t, says(string(body)))
		book, err := v.OrderBook(t.Context(), btc, depth)
		if err != nil {
			t.Fatal(err)
		}
		gotBid, gotAsk, _, _ := book.Top()
		if b, a := gotBid.Price.String()+" x "+gotBid.Size.String(), gotAsk.Price.String()+" x "+gotAsk.Size.String(); b != bid || a != ask {
			t.Errorf("top is %s and %s, want %s and %s", b, a, bid, ask)
		}
		if len(book.Bids()) != bids || len(book.Asks()) != asks || book.Sequence != sequence || book.ExchangeTime.UnixMilli() != at || book.Zeros() != 0 {
			t.Errorf("%d + %d levels, sequence %v, time %v", len(book.Bids()), len(book.Asks()), book.Sequence, book.ExchangeTime)
		}
	}
	lines := bytes.Split(bytes.TrimSpace(recorded(t, "rest_books_2022-06.jsonl")), []byte("\n"))
	f(lines[0], 3, "29692.4 x 0.43986254", "29692.5 x 0.10951348", 1654328918680, market.Sequence{}, 3, 3)
	f(lines[1], 3, "29673.5 x 8", "29678.9 x 11", 1654329601749, market.Sequence{}, 3, 3) // of a contract, in the same format
	f(lines[2], 3, "29755.4 x 95", "29756.3 x 5", 1654329646278, market.Sequence{}, 3, 3)
	f(recorded(t, "rest_books_doc_seqid.json"), 1, "41006.3 x 0.30178218", "41006.8 x 0.60038921", 1629966436396, market.SequenceOf(3235851742), 1, 1)
	f(recorded(t, "derived_rest_books_btc-usdt_sz400.json"), 400, "30250.1 x 0.2742329", "30250.2 x 0.0012", 1652459226454, market.SequenceOf(79706756376), 400, 400)
	f(recorded(t, "derived_rest_books_btc-usdt_sz5.json"), 5, "30250.1 x 0.2742329", "30250.2 x 0.0012", 1652459226454, market.SequenceOf(79706756376), 5, 5)
}

// TestRecorded_everyLevel compares each level of a whole book with the standard library's reading.
func TestRecorded_everyLevel(t *testing.T) {
	body := recorded(t, "derived_rest_books_btc-usdt_sz400.json")
	var want struct {
		Data []struct{ Bids, Asks [][]string }
	}
	if err := json.Unmarshal(body, &want); err != nil {
		t.Fatal(err)
	}
	v, _ := newVenue(t, says(string(body)))
	book, err := v.OrderBook(t.Context(), btc, 400)
	if err != nil {
		t.Fatal(err)
	}
	compare := func(side []market.Level, raw [][]string) {
		t.Helper()
		for i, l := range side {
			if l.Price.String() != raw[i][0] || l.Size.String() != raw[i][1] {
				t.Errorf("level %d is %v x %v, want %v", i, l.Price, l.Size, raw[i])
			}
		}
	}
	compare(book.Bids(), want.Data[0].Bids)
	compare(book.Asks(), want.Data[0].Asks)
}

func TestRecorded_instruments(t *testing.T) {
	f := func(name string, n int, want ...string) {
		t.Helper()
		v, _ := newVenue(t, says(string(recorded(t, name))))
		all, err := exchangetest.Rows(t.Context(), v)
		if err != nil {
			t.Fatal(err)
		}
		found := make(map[string]bool)
		for _, l := range all {
			found[listingText(l)] = true
			if l.Status != market.TradingActive {
				t.Errorf("%s is %s", l.Symbol, l.Status)
			}
		}
		for _, w := range want {
			if !found[w] {
				t.Errorf("%s: no %q", name, w)
			}
		}
		if len(all) != n {
			t.Errorf("%s: %d pairs, want %d", name, len(all), n)
		}
	}
	f("rest_instruments_spot_2026-04_trimmed.json", 126,
		"BTC-USDT BTC/USDT trading tick 0.1 lot 0.00000001 min 0.00001",
		"PEPE-USDT PEPE/USDT trading tick 0.000000001 lot 1 min 100000",
	)
	f("rest_instruments_spot_2022-05_trimmed.json", 14, "BTC-USDT BTC/USDT trading tick 0.1 lot 0.00000001 min 0.00001")

	v, _ := newVenue(t, says(string(recorded(t, "rest_instruments_spot_2026-04_trimmed.json"))))
	all, err := exchangetest.Rows(t.Context(), v)
	if err != nil {
		t.Fatal(err)
	}
	pairs := make(map[string]string)
	for _, l := range all {
		pairs[l.Pair.String()] = l.Symbol
	}
	for _, p := range []string{"BTC/USD", "BTC/USDC", "BTC/USDT", "1INCH/USDT", "USDT/SGD", "USDT/USD"} {
		if pairs[p] != strings.Replace(p, "/", "-", 1) {
			t.Errorf("%s leads to %q", p, pairs[p])
		}
	}
	v, _ = newVenue(t, says(string(recorded(t, "rest_instruments_spot_2022-05_trimmed.json"))))
	if all, err = exchangetest.Rows(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(all, func(l market.Listing) bool { return l.Symbol == "BABYDOGE-USDT" })
	if at < 0 || number(all[at].PriceTick) != "0.000000000001" {
		t.Errorf("the tick of 1E-12 is not read: %+v", all)
	}
}

func TestRecorded_time(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good, body := fixtures(), string(recorded(t, "rest_time.json"))
		v, rig := newVenue(t, clockBody(body, good))
		if _, err := newAccount(t, v, "main", false).Balances(t.Context(), market.WalletTrading); err != nil {
			t.Fatal(err)
		}
		want := time.UnixMilli(1597026383085).UTC().Format("2006-01-02T15:04:05.000Z")
		if got := sentOf(rig, "/api/v5/account/balance")[0].Header.Get("OK-ACCESS-TIMESTAMP"); got != want {
			t.Errorf("signed at %s, want %s", got, want)
		}
	})
}

func TestRecorded_status(t *testing.T) {
	for _, name := range []string{"rest_status_doc.json", "rest_status_empty.json"} {
		v, _ := newVenue(t, says(string(recorded(t, name))))
		if s, err := v.Status(t.Context()); err != nil || s.State != market.VenueOK || s.Message != "" {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
}

func TestRecorded_balances(t *testing.T) {
	f := func(w market.Wallet, name, want string, updated int64) {
		t.Helper()
		v, _ := newVenue(t, says(string(recorded(t, name))))
		b, err := newAccount(t, v, "main", false).Balances(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		if got := balancesText(b); got != want || updated != 0 && b.UpdatedAt.UnixMilli() != updated {
			t.Errorf("%s: %s at %v, want %s", name, got, b.UpdatedAt, want)
		}
	}
	f(market.WalletTrading, "rest_account_balance_2025-04.json", "USDT 94.42612990333333+5.468566666666667=99.894696569999997", 1744498994783)
	f(market.WalletTrading, "rest_account_balance_doc.json", "USDT 4834.317093622894+158.573=4992.890093622894", 1705449605015)
	f(market.WalletTrading, "rest_account_balance_empty_2024-12.json", "", 0)
	f(market.WalletFunding, "rest_asset_balances_2025.json", "TUSD 100+0=100", 0)
	f(market.WalletFunding, "rest_asset_balances_empty.json", "", 0)
}

// classes are the words of the recordings for what an error is, in ours.
var classes = map[string][]market.Kind{
	"caller_fault":          {market.KindInvalid, market.KindUnknownSymbol, market.KindDelisted},
	"rate_limited":          {market.KindRateLimited, market.KindBanned},
	"transient":             {market.KindTimeout, market.KindUnavailable, market.KindMalformed},
	"outage_or_maintenance": {market.KindMaintenance, market.KindUnavailable},
	"auth_or_config":        {market.KindAuth, market.KindClockSkew, market.KindRestricted},
}

func TestRecorded_errors(t *testing.T) {
	var all []struct {
		Status      int    `json:"http_status"`
		ContentType string `json:"content_type"`
		Body, Class string
	}
	if err := json.Unmarshal(recorded(t, "errors_rest.json"), &all); err != nil {
		t.Fatal(err)
	}
	if len(all) != 14 {
		t.Errorf("%d errors are recorded, 14 were known", len(all))
	}
	for _, r := range all {
		for _, signed := range []bool{false, true} {
			e := failed(t, signed, exchangetest.Reply{
				Status: r.Status, Body: r.Body, Header: map[string][]string{"Content-Type": {r.ContentType}},
			})
			if !slices.Contains(classes[r.Class], e.Kind) {
				t.Errorf("signed %t, %s: %v, want class %s %v", signed, r.Body, e, r.Class, classes[r.Class])
			}
			isHTML := strings.HasPrefix(r.Body, "<")
			if r.Class == "outage_or_maintenance" && isHTML != (e.Kind == market.KindUnavailable) {
				t.Errorf("%s: %v: only a page is unavailable, the exchange's own word is maintenance", r.Body, e)
			}
			fails := r.Class == "transient" || r.Class == "outage_or_maintenance"
			if (e.Kind.Effect() == market.EffectFailure) != fails {
				t.Errorf("%s: counts as failure: %t, want %t", r.Body, !fails, fails)
			}
			if strings.Contains(e.Error(), "203.0.113.7") {
				t.Errorf("%v gives our address away", e)
			}
		}
	}
}
