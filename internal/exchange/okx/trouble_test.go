package okx_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/exchange/exchangetest"
	"exchange-gateway/internal/market"
)

// trouble is one thing that went wrong in the field: with a test, or with the reason why it cannot happen to a REST
// adapter.
type trouble struct {
	where string
	test  func(*testing.T)
	other string
}

const stream = "of the stream: this package sends requests only"

// troubles are the known ones, by their number in our notes about OKX.
var troubles = map[int]trouble{
	1:  {where: "xLydianSoftware/Qubx#387", other: stream},
	2:  {where: "ccxt/ccxt#30299, #28660", other: stream},
	3:  {where: "thrasher-corp/gocryptotrader#2255", other: stream},
	4:  {where: "thrasher-corp/gocryptotrader#2337", other: stream},
	5:  {where: "ccxt/ccxt#23251", other: stream},
	6:  {where: "hummingbot/hummingbot#5828", other: stream},
	7:  {where: "ccxt/ccxt#12995, #13118, #22401", other: stream},
	8:  {where: "ccxt/ccxt#15213; okcoin-okex/open-api-v3-sdk#23, #70", other: stream},
	9:  {where: "ccxt/ccxt#25373", other: stream},
	10: {where: "ccxt/ccxt#18901: 40 tickers at once were refused", test: troublePaced},
	11: {where: "c9s/bbgo#1534: a burst was refused though the average was fine", test: troublePaced},
	12: {where: "ccxt/ccxt#9612: 429 for an overload", test: troubleOverload},
	13: {where: "knowm/XChange#4114: a number as code", test: troubleNumericCode},
	14: {where: "sieblyio/okx-api#141, yubing744/trading-gpt#90", other: stream},
	15: {where: "OpenByteInc/QuantDinger#236", other: stream},
	16: {where: "ccxt/ccxt#22883", other: stream},
	17: {where: "thrasher-corp/gocryptotrader#1970", other: stream},
	18: {where: "JKorf/OKX.Net#47", other: stream},
	19: {where: "veighna-global/vnpy_okx#18", other: stream},
	20: {where: "ccxt/ccxt#23249", other: stream},
	21: {where: "ccxt/ccxt#24601, #26127; freqtrade/freqtrade#10967 and others: a key of another region looks like a wrong key", test: troubleRegion},
	22: {where: "ccxt/ccxt#24005, #11138; burakoner/OKX.Api#73: a clock off by a minute", test: troubleClock},
	23: {where: "knowm/XChange#4518, okxapi/python-okx#7: a demo key without the header", test: troubleDemo},
	24: {where: "freqtrade/freqtrade#10704: HTTP 500 without a code", test: troubleNoCode},
	25: {where: "okxapi/python-okx#2: 50004 with 400, then 50001 in Chinese", test: troubleMaintenance},
	26: {where: "ccxt/ccxt#6722: 503 by the proxy in front", test: troubleProxy},
	27: {where: "okcoin-okex/API-docs-OKEx.com#187, #128: pages", test: troublePages},
	28: {where: "ccxt/ccxt#27225: equity shown as balance", test: troubleEquity},
	29: {where: "ccxt/ccxt#16356, #20125: money in the funding account", test: troubleFunding},
	30: {where: "ccxt/ccxt#21948: wrong balances for a while", other: "what the exchange says is what we say, with the time of asking: nothing is kept, smoothed or merged"},
	31: {where: "rotki/rotki#7922: frozen money forgotten", test: troubleFrozen},
	32: {where: "knowm/XChange#4946: signed something else than was sent", test: troublePrehash},
	33: {where: "knowm/XChange#5145, #5130: USD, USDC and USDT mixed up", test: troubleQuotes},
}

func TestTrouble(t *testing.T) {
	for i := 1; i <= 33; i++ {
		c, ok := troubles[i]
		switch {
		case !ok || c.where == "" || (c.test == nil) == (c.other == ""):
			t.Errorf("line %d has neither a test nor a reason, or both", i)
		case c.test != nil:
			t.Run(c.where, c.test)
		}
	}
}

func troublePaced(t *testing.T) {
	v, _ := newVenue(t, fixtures())
	for _, l := range v.Limits() {
		if l.Burst != 1 {
			t.Errorf("%s may burst: %d", l.ID, l.Burst)
		}
	}
	if c := v.Plan(market.OpStatistics, btc, 0).Charges; len(c) != 1 || c[0] != (market.Charge{Limit: "ticker", Weight: 1}) {
		t.Errorf("a ticker is charged %v", c)
	}
}

func troubleOverload(t *testing.T) {
	for _, body := range []string{`{"code":"50013","data":[],"msg":"Systems are busy. Please try again later."}`, `{"code":"50013"}`} {
		e := failed(t, false, exchangetest.Reply{Status: http.StatusTooManyRequests, Body: body})
		if e.Kind != market.KindUnavailable || e.Kind.Effect() != market.EffectFailure || e.Refusal != nil {
			t.Errorf("%s: %v closes %+v", body, e, e.Refusal)
		}
	}
}

func troubleNumericCode(t *testing.T) {
	e := failed(t, false, exchangetest.Reply{Status: http.StatusTooManyRequests, Body: `{"msg":"Too Many Requests","code":50011}`})
	if e.Kind != market.KindRateLimited || e.Code != "50011" {
		t.Errorf("%v", e)
	}
}

func troubleRegion(t *testing.T) {
	v, rig := newVenue(t, always(exchangetest.Reply{Status: 401, Body: `{"msg":"API key doesn't exist","code":"50119"}`}),
		func(c *exchange.Config) { c.Region = "eea" })
	_, err := newAccount(t, v, "main", false).Balances(t.Context(), market.WalletTrading)
	if e := failure(t, err); e.Kind != market.KindAuth || !strings.Contains(e.Error(), "another region than eea") {
		t.Errorf("%v", e)
	}
	for _, r := range rig.Requests() {
		if r.URL.Host != "eea.okx.com" {
			t.Errorf("asked %s: never another region", r.URL.Host)
		}
	}
	if n := len(sentOf(rig, "/api/v5/account/balance")); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

func troubleClock(t *testing.T) {
	for _, code := range []string{"50102", "50112"} {
		e := failed(t, true, exchangetest.Reply{Status: 401, Body: `{"msg":"Timestamp request expired","code":"` + code + `"}`})
		if e.Kind != market.KindClockSkew || e.Refusal != nil {
			t.Errorf("%v closes %+v", e, e.Refusal)
		}
	}
	// Offset and measuring again: TestBalances_clock.
}

func troubleDemo(t *testing.T) {
	v, rig := newVenue(t, fixtures())
	for _, w := range v.Wallets() {
		if _, err := newAccount(t, v, "demo", true).Balances(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range rig.Requests() {
		if signed := r.Header.Get("OK-ACCESS-KEY") != ""; signed != (r.Header.Get("x-simulated-trading") == "1") {
			t.Errorf("%s carries %v", r.URL.Path, r.Header)
		}
	}
	e := failed(t, true, exchangetest.Reply{Status: 401, Body: `{"code":"50101","msg":"APIKey does not match current environment."}`})
	if e.Kind != market.KindAuth {
		t.Errorf("%v", e)
	}
}

func troubleNoCode(t *testing.T) {
	for _, signed := range []bool{false, true} {
		e := failed(t, signed, exchangetest.Reply{Status: 500, Body: `{"message":"An unexpected error occurred"}`})
		if e.Kind != market.KindUnavailable || e.Code != "" {
			t.Errorf("%v", e)
		}
	}
}

func troubleMaintenance(t *testing.T) {
	e := failed(t, false, exchangetest.Reply{Status: 400, Body: `{"code":"50004","data":[],"msg":"Endpoint request timeout"}`})
	if e.Kind != market.KindTimeout || e.Kind.Retry() != market.RetryBackoff {
		t.Errorf("%v", e)
	}
	e = failed(t, false, exchangetest.Reply{Status: 503, Body: `{"code":"50001","data":[],"msg":"服务暂时不可用，请稍后重试"}`})
	if e.Kind != market.KindMaintenance || e.Kind.Retry() != market.RetryNever {
		t.Errorf("%v", e)
	}
}

func troubleProxy(t *testing.T) {
	e := failed(t, false, exchangetest.Reply{Status: 503, Body: `{"message":"name resolution failed"}`})
	if e.Kind != market.KindUnavailable {
		t.Errorf("%v", e)
	}
}

func troublePages(t *testing.T) {
	for _, status := range []int{503, 525} {
		e := failed(t, false, exchangetest.Reply{Status: status, Body: "<html><center>nginx</center></html>", Header: http.Header{"Content-Type": {"text/html"}}})
		if e.Kind != market.KindUnavailable || e.Refusal != nil {
			t.Errorf("%v closes %+v", e, e.Refusal)
		}
	}
}

func oneBalance(t *testing.T, w market.Wallet, row string) market.Balance {
	t.Helper()
	v, _ := newVenue(t, data(row))
	b, err := newAccount(t, v, "main", false).Balances(t.Context(), w)
	if err != nil || len(b.Rows) != 1 {
		t.Fatalf("%+v, %v", b, err)
	}
	return b.Rows[0]
}

func troubleEquity(t *testing.T) {
	b := oneBalance(t, market.WalletTrading, `{"details":[{"ccy":"USDT","availBal":"4834.3","frozenBal":"158.5","cashBal":"4850.4","eq":"5100","eqUsd":"5099"}]}`)
	if b.Total.String() != "4992.8" {
		t.Errorf("total %v: neither equity nor cash is free plus used", b.Total)
	}
}

func troubleFunding(t *testing.T) {
	v, rig := newVenue(t, fixtures())
	a := newAccount(t, v, "main", false)
	for _, w := range []market.Wallet{market.WalletTrading, market.WalletFunding} {
		if _, err := a.Balances(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	if len(sentOf(rig, "/api/v5/account/balance")) != 1 || len(sentOf(rig, "/api/v5/asset/balances")) != 1 {
		t.Errorf("each wallet is asked on its own: %v", rig.Requests())
	}
}

func troubleFrozen(t *testing.T) {
	b := oneBalance(t, market.WalletTrading, `{"details":[{"ccy":"BTC","availBal":"0","frozenBal":"0.5","ordFrozen":"0.5"}]}`)
	if b.Used.String() != "0.5" || b.Total.String() != "0.5" || !b.Free.IsZero() {
		t.Errorf("%+v", b)
	}
}

func troublePrehash(t *testing.T) {
	v, rig := newVenue(t, fixtures())
	if _, err := newAccount(t, v, "main", false).Balances(t.Context(), market.WalletTrading); err != nil {
		t.Fatal(err)
	}
	r := sentOf(rig, "/api/v5/account/balance")[0]
	want := signatureOf(fakeCredential(false), r)
	if got := r.Header.Get("OK-ACCESS-SIGN"); got != want {
		t.Errorf("signed %s, the request on the wire has %s", got, want)
	}
	if at, err := time.Parse("2006-01-02T15:04:05.000Z", r.Header.Get("OK-ACCESS-TIMESTAMP")); err != nil || at.Location() != time.UTC {
		t.Errorf("timestamp %v, %v", at, err)
	}
}

func troubleQuotes(t *testing.T) {
	v, rig := newVenue(t, fixtures())
	all, err := exchangetest.Rows(t.Context(), v)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range all[:3] {
		rig.Answer(fixtures())
		book, err := v.OrderBook(t.Context(), l, 5)
		if err != nil {
			t.Fatal(err)
		}
		want := l.Pair.Base + "-" + l.Pair.Quote
		if got := rig.Requests()[0].URL.Query().Get("instId"); got != want || book.Symbol != want || l.AliasOf != "" {
			t.Errorf("%v asked for %s", l.Pair, got)
		}
	}
}
