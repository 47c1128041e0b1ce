package binance_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shopspring/decimal"

	"exchange-gateway/internal/exchange/exchangetest"
	"exchange-gateway/internal/market"
)

// notCalled are the recorded payloads of what this package does not ask for.
var notCalled = map[string]string{
	"README.md":      "says what the others are",
	"expected.json":  "holds the right answers",
	"rest/ping.json": "ping: a status is what the platform announces, a probe is a real question",
	"ws/binance_2021-10-12_nkn_blz_rune.recv.txt": "when the messages came; what they come to does not depend on it",
	"ws/binanceus_2021-10-12_comp_omg.recv.txt":   "when the messages came; what they come to does not depend on it",
	"ws/trxusdt_2025-03-04_trade_usec.jsonl":      "trades are not streamed",
	"ws/user_balance_events.jsonl":                "balances are asked for, never streamed",
}

// called says which recorded payload is read by which test.
var called = map[string]func(*testing.T, []byte, json.RawMessage){
	"rest/depth_NKNUSDT_binance_2021-10-12_nkn_blz_rune.json": recordedBook,
	"rest/depth_BLZETH_binance_2021-10-12_nkn_blz_rune.json":  recordedBook,
	"rest/depth_RUNEEUR_binance_2021-10-12_nkn_blz_rune.json": recordedBook,
	"rest/depth_COMPUSDT_binanceus_2021-10-12_comp_omg.json":  recordedBook,
	"rest/depth_OMGBUSD_binanceus_2021-10-12_comp_omg.json":   recordedBook,
	"rest/depth_BTCUSDT_limit5000_2025-04-14T0000.json":       recordedBook,
	"rest/depth_BTCUSDT_limit10_2021-10-22.json":              recordedBook,
	"rest/depth_BTCUSDT_truncated_2021-01.json":               recordedBook,
	"rest/depth_3x3_2022-07.json":                             recordedBook,
	"rest/ticker24hr_BTCUSDT_2020-04-15.json":                 recordedStatistics,
	"rest/ticker24hr_ETHBTC_2021-01-27.json":                  recordedStatistics,
	"rest/ticker24hr_two_symbols_2024-11-01.json":             recordedStatistics,
	"rest/exchangeInfo_25symbols_2025.json":                   recordedListings,
	"rest/bookticker_BTCUSDT_2021-10-22.json":                 recordedNative("ticker/bookTicker", "symbol=BTCUSDT"),
	"rest/price_single.json":                                  recordedNative("ticker/price", "symbol=BTCUSDT"),
	"rest/time_2021.json":                                     recordedTime,
	"rest/system_status_normal.json":                          recordedStatus,
	"rest/account_docs_example.json":                          recordedBalances,
	"rest/account_composed_mixed.json":                        recordedBalances,
	"errors/errors.jsonl":                                     recordedErrors,
	"ws/binance_2021-10-12_nkn_blz_rune.jsonl":                recordedSession,
	"ws/binanceus_2021-10-12_comp_omg.jsonl":                  recordedSession,
	"ws/derived_nknusdt_1000ms_straddle.jsonl":                recordedDiffs,
	"ws/trxusdt_2025-03-04_depth100ms_usec_part1.jsonl":       recordedDiffs,
	"ws/misc_spot_messages.jsonl":                             recordedMisc,
	"ws/control_messages.jsonl":                               recordedControl,
}

func TestRecorded(t *testing.T) {
	dir := exchangetest.Recorded(t, "binance")
	var expected map[string]json.RawMessage
	raw, err := os.ReadFile(filepath.Join(dir, "expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &expected); err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		name = filepath.ToSlash(name)
		check, ok := called[name]
		if !ok {
			if notCalled[name] == "" {
				t.Errorf("%s is neither read by a test nor said not to be called for", name)
			}
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		t.Run(name, func(t *testing.T) { check(t, b, expected[name]) })
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// expect decodes the right answer.
func expect[T any](t *testing.T, raw json.RawMessage) (want T) {
	t.Helper()
	if err := json.Unmarshal(raw, &want); err != nil {
		t.Fatalf("expected.json: %v", err)
	}
	return want
}

func recordedBook(t *testing.T, b []byte, raw json.RawMessage) {
	want := expect[struct {
		ID       int64     `json:"last_update_id"`
		Bids     int       `json:"bids"`
		Asks     int       `json:"asks"`
		BestBid  [2]string `json:"best_bid"`
		BestAsk  [2]string `json:"best_ask"`
		BidSum   string    `json:"bid_qty_sum"`
		AskSum   string    `json:"ask_qty_sum"`
		Digest   string    `json:"sha256"`
		WorstBid string    `json:"worst_bid"`
		WorstAsk string    `json:"worst_ask"`
	}](t, raw)
	v, _ := venueOn(t, body(string(b)))
	book, err := v.OrderBook(t.Context(), btcusdt, 5000)
	if err != nil {
		t.Fatal(err)
	}
	bids, asks := book.Bids(), book.Asks()
	same(t, "sequence", book.Sequence, market.SequenceOf(want.ID))
	same(t, "bids", len(bids), want.Bids)
	same(t, "asks", len(asks), want.Asks)
	same(t, "best bid", levelText(bids[0]), want.BestBid)
	same(t, "best ask", levelText(asks[0]), want.BestAsk)
	same(t, "sum of bids", sum(bids), want.BidSum)
	same(t, "sum of asks", sum(asks), want.AskSum)
	same(t, "digest", digest(book), want.Digest)
	if want.WorstBid != "" {
		same(t, "worst bid", fixed(bids[len(bids)-1].Price), want.WorstBid)
		same(t, "worst ask", fixed(asks[len(asks)-1].Price), want.WorstAsk)
	}
}

func same[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func fixed(n market.Number) string { return n.Decimal().StringFixed(8) }

func levelText(l market.Level) [2]string { return [2]string{fixed(l.Price), fixed(l.Size)} }

func sum(side []market.Level) string {
	total := decimal.Zero
	for _, l := range side {
		total = total.Add(l.Size.Decimal())
	}
	return total.StringFixed(8)
}

// digest is described in the README of the recorded payloads: it covers every level.
func digest(book *market.OrderBook) string {
	side := func(tag string, levels []market.Level) string {
		parts := make([]string, len(levels))
		for i, l := range levels {
			parts[i] = tag + ":" + fixed(l.Price) + ":" + fixed(l.Size)
		}
		return strings.Join(parts, "|")
	}
	h := sha256.Sum256([]byte(side("b", book.Bids()) + "#" + side("a", book.Asks())))
	return hex.EncodeToString(h[:])
}

func recordedStatistics(t *testing.T, b []byte, raw json.RawMessage) {
	type ticker struct {
		Symbol string `json:"symbol"`
		Last   string `json:"last"`
		Close  int64  `json:"close_ms"`
	}
	want := expect[struct {
		ticker
		Tickers []ticker `json:"tickers"`
	}](t, raw)
	if want.Tickers == nil {
		want.Tickers = []ticker{want.ticker}
	}
	for _, w := range want.Tickers {
		v, _ := venueOn(t, body(string(b)))
		l := btcusdt
		l.Symbol = w.Symbol
		st, err := v.Statistics(t.Context(), l)
		if err != nil {
			t.Fatal(err)
		}
		last, _ := st.Last.Get()
		same(t, w.Symbol+" last", last.String(), w.Last)
		same(t, w.Symbol+" close", st.ExchangeTime.UnixMilli(), w.Close)
	}
}

func recordedListings(t *testing.T, b []byte, raw json.RawMessage) {
	want := expect[struct {
		Symbols int `json:"symbols"`
		Table   map[string]struct {
			Canonical, Status, Tick, Step string
			MinNotional                   string `json:"min_notional"`
		} `json:"table"`
	}](t, raw)
	v, _ := venueOn(t, body(string(b)))
	list, err := exchangetest.Rows(t.Context(), v)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "symbols", len(list), want.Symbols)
	statuses := map[string]market.TradingStatus{"TRADING": market.TradingActive, "BREAK": market.TradingPaused}
	for _, l := range list {
		w, ok := want.Table[l.Symbol]
		if !ok {
			t.Errorf("%s is not expected", l.Symbol)
		}
		same(t, l.Symbol, l.Pair.Base+"-"+l.Pair.Quote, w.Canonical)
		same(t, l.Symbol+" status", l.Status, statuses[w.Status])
		same(t, l.Symbol+" tick", optional(l.PriceTick), w.Tick)
		same(t, l.Symbol+" step", optional(l.SizeStep), w.Step)
		same(t, l.Symbol+" minimum", optional(l.MinNotional), w.MinNotional)
	}
	for _, l := range v.Limits() {
		if l.ID == "raw_requests" && l.Capacity != 61_000 || l.ID == "request_weight" && l.Capacity != 6000 {
			t.Errorf("limit %+v is not the one that the list states", l)
		}
	}
}

// optional is the text of a number that may be missing.
func optional(o market.Optional) string {
	n, ok := o.Get()
	if !ok {
		return ""
	}
	return n.String()
}

func recordedTime(t *testing.T, b []byte, raw json.RawMessage) {
	want := expect[struct {
		ServerTime int64 `json:"serverTime"`
	}](t, raw)
	synctest.Test(t, func(t *testing.T) {
		same(t, "signed time", signedTime(t, string(b)), want.ServerTime)
	})
}

func recordedStatus(t *testing.T, b []byte, _ json.RawMessage) {
	v, _ := venueOn(t, body(string(b)))
	st, err := v.Status(t.Context())
	if err != nil || st.State != market.VenueOK || st.Message != "normal" {
		t.Errorf("got %+v, %v", st, err)
	}
}

func recordedBalances(t *testing.T, b []byte, raw json.RawMessage) {
	want := expect[struct {
		Balances map[string]struct{ Free, Locked, Total string } `json:"balances"`
		NonZero  []string                                        `json:"nonzero_assets"`
	}](t, raw)
	got, err := balancesOf(t, string(b))
	if err != nil {
		t.Fatal(err)
	}
	var assets []string
	for _, row := range got.Rows {
		w := want.Balances[row.Asset]
		assets = append(assets, row.Asset)
		same(t, row.Asset+" free", row.Free.String(), w.Free)
		same(t, row.Asset+" used", row.Used.String(), w.Locked)
		same(t, row.Asset+" total", row.Total.String(), w.Total)
	}
	if want.NonZero == nil {
		for asset := range want.Balances {
			want.NonZero = append(want.NonZero, asset)
		}
	}
	slices.Sort(assets)
	slices.Sort(want.NonZero)
	same(t, "assets", strings.Join(assets, " "), strings.Join(want.NonZero, " "))
}

// recordedError is one line of the recorded errors.
type recordedError struct {
	ID      string
	Status  int
	Headers map[string]string
	Body    string
	Expect  struct {
		Class   string `json:"cls"`
		Failure bool   `json:"counts_as_failure"`
	}
}

// kindsOf is what the classes of the recorded errors may be.
var kindsOf = map[string][]market.Kind{
	"caller":       {market.KindInvalid, market.KindUnknownSymbol, market.KindDelisted},
	"rate_limited": {market.KindRateLimited, market.KindBanned},
	"transient":    {market.KindTimeout, market.KindUnavailable, market.KindMalformed},
	"outage":       {market.KindMaintenance},
	"auth_config":  {market.KindAuth, market.KindClockSkew, market.KindRestricted},
}

func recordedErrors(t *testing.T, b []byte, _ json.RawMessage) {
	lines := 0
	for s := bufio.NewScanner(bytes.NewReader(b)); s.Scan(); lines++ {
		var line recordedError
		if err := json.Unmarshal(s.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		t.Run(line.ID, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { line.check(t) }) })
	}
	same(t, "lines", lines, 19)
}

// check answers an order book and a balance with the line. The clock is set to the day on which the recorded ban was
// given, 12.345 seconds into a minute.
func (line recordedError) check(t *testing.T) {
	now := time.Date(2022, 8, 9, 22, 59, 12, 345_000_000, time.UTC)
	time.Sleep(time.Until(now))
	header := make(http.Header)
	for k, v := range line.Headers {
		header.Set(k, v)
	}
	v, _ := venueOn(t, func(_ *http.Request, c market.Call) exchangetest.Reply {
		if c.Op == market.OpTime {
			return exchangetest.Reply{Body: fmt.Sprintf(`{"serverTime":%d}`, time.Now().UnixMilli())}
		}
		return exchangetest.Reply{Status: line.Status, Header: header, Body: line.Body}
	})
	_, bookErr := v.OrderBook(t.Context(), btcusdt, 100)
	_, balanceErr := account(t, v, credential(exampleSecret)).Balances(t.Context(), market.WalletTrading)
	for _, err := range []error{bookErr, balanceErr} {
		e := asError(t, err)
		if line.ID == "no-such-path" {
			// Our paths have tests of their own. Such a page comes from a wrong host, or from what stands in front of the right
			// one while it is down: an outage, for whoever holds a book.
			if e.Kind != market.KindUnavailable || e.Host == "" || e.Retry() != market.RetryOnce {
				t.Errorf("%v", err)
			}
			continue
		}
		if !slices.Contains(kindsOf[line.Expect.Class], e.Kind) {
			t.Errorf("kind %v, want class %s", e.Kind, line.Expect.Class)
		}
		if failure := e.Kind.Effect() == market.EffectFailure; failure != line.Expect.Failure {
			t.Errorf("counts as a failure: %t, want %t", failure, line.Expect.Failure)
		}
		switch line.ID {
		case "ban-418":
			same(t, "not before", e.Refusal.NotBefore.UnixMilli(), 1660090423228)
		case "weight-429":
			minute := now.Truncate(time.Minute).Add(time.Minute)
			if at := e.Refusal.NotBefore; at.Before(minute) || at.After(minute.Add(2*time.Second)) {
				t.Errorf("not before %v, want 0 to 2 s after %v", at, minute)
			}
		case "weight-429-retry-after":
			same(t, "not before", e.Refusal.NotBefore.Sub(now), 35*time.Second)
		case "waf-403-html":
			same(t, "first hold", e.Refusal.First, 5*time.Minute)
			same(t, "not before", e.Refusal.NotBefore, time.Time{})
		}
	}
}
