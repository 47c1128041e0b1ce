package binance_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"exchange-gateway/internal/exchange/exchangetest"
	"exchange-gateway/internal/market"
)

// asked is a question in Binance's own form.
func asked(endpoint, query string) market.NativeQuery {
	return market.NativeQuery{Endpoint: endpoint, Query: query}
}

// symbolsQuery names n symbols.
func symbolsQuery(n int) string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("A%dUSDT", i)
	}
	text, err := json.Marshal(names)
	if err != nil {
		panic(err)
	}
	return "symbols=" + url.QueryEscape(string(text))
}

func TestNative_costs(t *testing.T) {
	v, rig := venueOn(t, always(exchangetest.Reply{}))
	for q, want := range map[market.NativeQuery]int{
		asked("ticker/price", "symbol=BTCUSDT"): 2, asked("ticker/price", ""): 4, asked("ticker/price", symbolsQuery(1)): 4,
		asked("ticker/bookTicker", "symbol=BTCUSDT"): 2, asked("ticker/bookTicker", "symbolStatus=TRADING"): 4,
		asked("ticker/24hr", "symbol=BTCUSDT&type=MINI"): 2, asked("ticker/24hr", symbolsQuery(20)): 2,
		asked("ticker/24hr", symbolsQuery(21)): 40, asked("ticker/24hr", symbolsQuery(100)): 40,
		asked("ticker/24hr", symbolsQuery(101)): 80, asked("ticker/24hr", ""): 80,
		asked("ticker/24hr", "symbol=BTCUSDT&"+symbolsQuery(101)): 80, // Binance refuses it, at the greater price for all we know
		asked("exchangeInfo", ""):                                 20, asked("exchangeInfo", "symbol=BTCUSDT"): 20, asked("exchangeInfo", symbolsQuery(3)): 20,
		asked("klines", "symbol=BTCUSDT&interval=1m&limit=1000"): 2, asked("uiKlines", "symbol=BTCUSDT&interval=1m"): 2,
		asked("trades", "symbol=BTCUSDT"): 25, asked("aggTrades", "symbol=BTCUSDT"): 4, asked("avgPrice", "symbol=BTCUSDT"): 2,
	} {
		call, err := v.NativePlan(q)
		if err != nil {
			t.Errorf("%+v: %v", q, err)
			continue
		}
		got := map[market.LimitID]int{}
		for _, c := range call.Charges {
			got[c.Limit] = c.Weight
		}
		if got["request_weight"] != want || got["raw_requests"] != 1 || call.Op != market.OpNative || call.Class != market.ClassReference {
			t.Errorf("%s?%.40s: %v as %s of class %s, want a weight of %d", q.Endpoint, q.Query, got, call.Op, call.Class, want)
		}
	}
	if n := len(rig.Trail()); n != 0 {
		t.Errorf("plans did %d things at the door", n)
	}
}

func TestNative_isAClosedList(t *testing.T) {
	v, rig := venueOn(t, always(exchangetest.Reply{Body: "[]"}))
	for q, want := range map[market.NativeQuery]market.Kind{
		asked("historicalTrades", "symbol=BTCUSDT"):           market.KindNotSupported,
		asked("account", ""):                                  market.KindNotSupported,
		asked("", ""):                                         market.KindNotSupported,
		asked("../v3/klines", ""):                             market.KindNotSupported,
		asked("trades", "symbol=BTCUSDT&fromId=1"):            market.KindInvalid,
		asked("trades", "symbol=BTCUSDT&signature="):          market.KindInvalid,
		asked("trades", "symbol=A&symbol=B"):                  market.KindInvalid,
		asked("trades", "symbol="):                            market.KindInvalid,
		asked("trades", "symbol=%zz"):                         market.KindInvalid,
		asked("ticker/24hr", "symbols=BTCUSDT"):               market.KindInvalid, // it cannot be charged for
		asked("trades", "symbol="+strings.Repeat("A", 8<<10)): market.KindInvalid,
	} {
		_, planned := v.NativePlan(q)
		a, err := v.Native(t.Context(), q)
		for _, err := range []error{planned, err} {
			if e := asError(t, err); e.Kind != want || e.OurFault || e.Exchange != v.ID() || e.Op != market.OpNative {
				t.Errorf("%s?%.40s: %v, want kind %v", q.Endpoint, q.Query, err, want)
			}
		}
		if a != nil {
			t.Errorf("%+v: an answer beside an error", q)
		}
	}
	if n := len(rig.Trail()); n != 0 {
		t.Errorf("%d things at the door for questions that are not offered", n)
	}
	for _, e := range v.NativeEndpoints() {
		if slices.ContainsFunc(e.Params, func(p string) bool { return p == "signature" || p == "timestamp" || p == "recvWindow" }) {
			t.Errorf("%s takes %v: nothing here is signed", e.Name, e.Params)
		}
	}
}

// nativeAnswers are good answers by endpoint, in the form of the documentation.
var nativeAnswers = map[market.NativeQuery]string{
	asked("ticker/price", "symbol=BTCUSDT"): ` {"price":"1.00","symbol":"BTCUSDT"} `,
	asked("ticker/price", ""):               `[{"symbol":"LTCBTC","price":"4.00000200"},{"symbol":"币USDT","price":"0.1"}]`,
	asked("ticker/bookTicker", ""):          `[]`,
	asked("ticker/24hr", "symbol=BTCUSDT"):  `{"symbol":"BTCUSDT","lastPrice":"1","a":{"b":[1,2,{"c":null}]}}`,
	asked("exchangeInfo", ""):               `{"timezone":"UTC","symbols":[{"symbol":"BTCUSDT"}]}`,
	asked("exchangeInfo", "permissions=X"):  `{"symbols":[]}`,
	asked("klines", "interval=1m&symbol=BTCUSDT"): `[[1499040000000,"0.01634790","0.80000000","0.01575800","0.01577100",` +
		`"148976.11427815",1499644799999,"2434.19055334",308,"1756.87402397","28.46694368","0"]]`,
	asked("uiKlines", "interval=1m&symbol=BTCUSDT"): `[]`,
	asked("trades", "symbol=BTCUSDT"):               `[{"id":28457,"price":"4.00000100","qty":"12.0","time":1499865549590,"isBuyerMaker":true}]`,
	asked("aggTrades", "symbol=BTCUSDT"):            `[{"a":26129,"p":"0.01633102","q":"4.7","f":27781,"l":27781,"T":1498793709153,"m":true,"M":true}]`,
	asked("avgPrice", "symbol=BTCUSDT"):             `{"mins":5,"price":"9.35751834","closeTime":1694061154503}`,
}

func TestNative_passesAnswersOn(t *testing.T) {
	covered := map[string]bool{}
	for q, text := range nativeAnswers {
		covered[q.Endpoint] = true
		v, rig := venueOn(t, always(exchangetest.Reply{Body: text, Header: http.Header{"Age": {"7"}}}))
		before := time.Now()
		a, err := v.Native(t.Context(), q)
		if err != nil {
			t.Errorf("%+v: %v", q, err)
			continue
		}
		if string(a.Body) != text {
			t.Errorf("%+v: %s, want the answer as it came: %s", q, a.Body, text)
		}
		if age := before.Sub(a.ConfirmedAt); age > 7*time.Second || age < 6*time.Second {
			t.Errorf("%+v: confirmed %v before the question, want 7 s: the answer says Age: 7", q, age)
		}
		sent := rig.Requests()
		if len(sent) != 1 || sent[0].URL.Path != "/api/v3/"+q.Endpoint || sent[0].URL.RawQuery != q.Query || sent[0].Header.Get("X-Mbx-Apikey") != "" {
			t.Errorf("%+v: sent %v", q, sent)
		}
		plan, _ := v.NativePlan(q)
		if got := rig.Trail()[0].Call; fmt.Sprint(got) != fmt.Sprint(plan) {
			t.Errorf("%+v: admitted as %+v, planned as %+v", q, got, plan)
		}
	}
	v, _ := venueOn(t, always(exchangetest.Reply{}))
	for _, e := range v.NativeEndpoints() {
		if !covered[e.Name] {
			t.Errorf("no good answer of %s is tried", e.Name)
		}
	}
}

func TestNative_sortsItsParameters(t *testing.T) {
	v, rig := venueOn(t, always(exchangetest.Reply{Body: "[]"}))
	if _, err := v.Native(t.Context(), asked("klines", "symbol=%E5%B8%81USDT&limit=1&interval=1M")); err != nil {
		t.Fatal(err)
	}
	if got := rig.Requests()[0].URL.RawQuery; got != "interval=1M&limit=1&symbol=%E5%B8%81USDT" {
		t.Errorf("sent %s", got)
	}
}

// TestNative_otherShapes: what is whole JSON and not the answer is no answer.
func TestNative_otherShapes(t *testing.T) {
	for _, c := range []struct {
		q    market.NativeQuery
		body string
	}{
		{asked("ticker/price", "symbol=BTCUSDT"), `{"symbol":"ETHUSDT","price":"1"}`},
		{asked("ticker/price", "symbol=BTCUSDT"), `{"price":"1"}`},
		{asked("ticker/price", "symbol=BTCUSDT"), `[{"symbol":"BTCUSDT","price":"1"}]`},
		{asked("ticker/price", "symbol=BTCUSDT"), `{"symbol":["BTCUSDT"]}`},
		{asked("ticker/24hr", ""), `{"symbol":"BTCUSDT"}`},
		{asked("ticker/24hr", ""), `[{"symbol":"BTCUSDT"},null]`},
		{asked("ticker/24hr", ""), `[{"symbol":"BTCUSDT"}`},
		{asked("exchangeInfo", ""), `{"symbols":{}}`},
		{asked("exchangeInfo", ""), `{"symbols":null}`},
		{asked("exchangeInfo", ""), `{"symbols":["BTCUSDT"]}`},
		{asked("exchangeInfo", ""), `[]`},
		{asked("klines", "interval=1m&symbol=BTCUSDT"), `[{"open":"1"}]`},
		{asked("klines", "interval=1m&symbol=BTCUSDT"), `[[1]]]`},
		{asked("trades", "symbol=BTCUSDT"), `[[1]]`},
		{asked("trades", "symbol=BTCUSDT"), `{"price":"1"}`},
		{asked("avgPrice", "symbol=BTCUSDT"), `{"mins":5}`},
		{asked("trades", "symbol=BTCUSDT"), strings.Repeat("[", 5000) + strings.Repeat("]", 5000)},
	} {
		v, _ := venueOn(t, body(c.body))
		a, err := v.Native(t.Context(), c.q)
		if e := asError(t, err); e.Kind != market.KindMalformed || a != nil {
			t.Errorf("%s?%s answered %.60s: %v, want malformed", c.q.Endpoint, c.q.Query, c.body, err)
		}
	}
}

// TestNative_refusals: what Binance says of a caller's own words is the caller's to hear, with its code; what it says of us is
// not.
func TestNative_refusals(t *testing.T) {
	for _, c := range []struct {
		status, code int
		kind         market.Kind
		ours         bool
	}{
		{400, -1100, market.KindInvalid, false},
		{400, -1102, market.KindInvalid, false},
		{400, -1120, market.KindInvalid, false},
		{400, -1127, market.KindInvalid, false},
		{400, -1220, market.KindInvalid, false},
		{400, -9999, market.KindInvalid, false},
		{200, -1104, market.KindInvalid, false},
		{400, -1121, market.KindUnknownSymbol, false},
		{429, -1003, market.KindRateLimited, false},
		{418, -1003, market.KindBanned, false},
		{451, 0, market.KindRestricted, false},
		{504, -1007, market.KindUnavailable, false},
		{503, -1016, market.KindMaintenance, false},
	} {
		v, _ := venueOn(t, always(refusal(c.status, c.code)))
		_, err := v.Native(t.Context(), asked("klines", "symbol=BTCUSDT&interval=1m"))
		e := asError(t, err)
		if e.Kind != c.kind || e.OurFault != c.ours || e.Code != fmt.Sprint(c.code) {
			t.Errorf("%d %d: %v, our fault %t", c.status, c.code, err, e.OurFault)
		}
	}
	v, _ := venueOn(t, always(exchangetest.Reply{Status: http.StatusNotFound}))
	_, err := v.Native(t.Context(), asked("klines", "symbol=BTCUSDT&interval=1m"))
	if e := asError(t, err); e.Kind != market.KindUnavailable || !e.Unrecognized() {
		t.Errorf("a path that is not there: %v, want that the exchange did not answer", err)
	}
}

// TestNative_boundsAnswers: each endpoint has a bound of its own, and nothing beyond it is read.
func TestNative_boundsAnswers(t *testing.T) {
	const slack = 64 << 10 // of the reader's buffers
	for q, most := range map[market.NativeQuery]int64{
		asked("avgPrice", "symbol=BTCUSDT"): 64 << 10, asked("trades", "symbol=BTCUSDT"): 2 << 20,
		asked("ticker/24hr", ""): 8 << 20, asked("exchangeInfo", ""): 32 << 20,
	} {
		source := &spaces{}
		v, _ := venueOn(t, always(exchangetest.Reply{Content: func(context.Context) io.Reader { return source }}))
		_, err := v.Native(t.Context(), q)
		if e := asError(t, err); e.Kind != market.KindUnavailable || !strings.Contains(err.Error(), "body too long") {
			t.Errorf("%+v: %v", q, err)
		}
		if source.read < most || source.read > 2*most+slack {
			t.Errorf("%+v: read %d bytes, the bound is %d", q, source.read, most)
		}
	}
}

// spaces never end.
type spaces struct{ read int64 }

func (s *spaces) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = ' '
	}
	s.read += int64(len(b))
	return len(b), nil
}

// recordedNative passes a recorded answer on, whole.
func recordedNative(endpoint, query string) func(*testing.T, []byte, json.RawMessage) {
	return func(t *testing.T, b []byte, _ json.RawMessage) {
		v, _ := venueOn(t, body(string(b)))
		a, err := v.Native(t.Context(), asked(endpoint, query))
		if err != nil || !bytes.Equal(a.Body, b) {
			t.Errorf("%s: %v", endpoint, err)
		}
	}
}

func TestNative_recorded(t *testing.T) {
	dir := exchangetest.Recorded(t, "binance")
	for file, q := range map[string]market.NativeQuery{
		"rest/ticker24hr_BTCUSDT_2020-04-15.json":     asked("ticker/24hr", "symbol=BTCUSDT"),
		"rest/ticker24hr_ETHBTC_2021-01-27.json":      asked("ticker/24hr", "symbol=ETHBTC"),
		"rest/ticker24hr_two_symbols_2024-11-01.json": asked("ticker/24hr", symbolsQuery(2)),
		"rest/exchangeInfo_25symbols_2025.json":       asked("exchangeInfo", ""),
	} {
		b, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		recordedNative(q.Endpoint, q.Query)(t, b, nil)
	}
}

// FuzzNative: an answer that is passed on is JSON; anything else is an error of the closed set.
func FuzzNative(f *testing.F) {
	for q, text := range nativeAnswers {
		f.Add(q.Endpoint, q.Query, []byte(text))
	}
	f.Add("ticker/24hr", symbolsQuery(3), []byte(`[{"symbol":"a"},{}]`))
	f.Add("klines", "symbol=%e5&interval=1m", []byte(`{"code":-1100,"msg":"x"}`))
	f.Fuzz(func(t *testing.T, endpoint, query string, text []byte) {
		v, rig := venueOn(t, body(string(text)))
		q := asked(endpoint, query)
		_, planned := v.NativePlan(q)
		a, err := v.Native(t.Context(), q)
		switch {
		case err != nil:
			if e := asError(t, err); e.Kind == market.KindNone || a != nil {
				t.Errorf("%v with %v", err, a)
			}
		case !json.Valid(a.Body):
			t.Errorf("passed on what is no JSON: %q", a.Body)
		}
		if planned != nil && len(rig.Trail()) > 0 {
			t.Errorf("%+v has no plan (%v) and was sent", q, planned)
		}
	})
}
