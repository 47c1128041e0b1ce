package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"exchange-gateway/internal/api"
	"exchange-gateway/internal/api/keys"
	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

const ccxtBook = "/v1/exchanges/binance/orderbook?symbol=BTC/USDT&format=ccxt"

func TestCCXT_answersAsWritten(t *testing.T) {
	k, secret := newKey(t, keys.AccountRead)
	r := newRig(t, func(c *api.Config) { c.Keys = keys.NewRing(k) })
	f := func(name, target string) {
		t.Helper()
		w := r.get(target, "X-Api-Key", secret)
		if w.Code != http.StatusOK {
			t.Errorf("%s: status %d", target, w.Code)
		}
		golden(t, name, w.Body.Bytes())
	}
	f("ccxt_orderbook", ccxtBook+"&depth=1")
	f("ccxt_ticker", "/v1/exchanges/binance/ticker?symbol=BTC/USDT&format=ccxt")
	f("ccxt_balance", "/v1/exchanges/okx/balance?format=ccxt")
	r.books.book = func(_ context.Context, q gateway.BookQuery) (*gateway.Book, error) { return staleBook(q), nil }
	f("ccxt_orderbook_stale", ccxtBook)
	r.books.ticker = func(q gateway.BookQuery) *gateway.Ticker {
		empty, err := market.NewLevels(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		b := liveBook(q, 2)
		b.Levels = empty
		return &gateway.Ticker{Book: *b, StatsUnanswered: market.KindCircuitOpen}
	}
	f("ccxt_ticker_empty", "/v1/exchanges/binance/ticker?symbol=BTC/USDT&format=ccxt")
}

// awkward are digits that a reader who goes through binary floats, or a writer who does, would change.
var awkward = []string{
	"999999999999999999", "123456789012345678", "100000000000000000.5", "64073.00", "12345.678901234567890123456789",
	"1e3", "1.50e-8", "0.100000000000000005", "0.00000001", "0.000000000000000001", "1e-30",
}

// awkwardBook has one of them at every level, as a price on the bids and as a size on the asks.
func awkwardBook(t testing.TB, q gateway.BookQuery) *gateway.Book {
	t.Helper()
	var bids, asks []market.Level
	for i, text := range awkward {
		bids = append(bids, level(text, text))
		asks = append(asks, level(fmt.Sprintf("999999999999999999%d", i), text))
	}
	l, err := market.NewLevels(bids, asks)
	if err != nil {
		t.Fatal(err)
	}
	b := liveBook(q, 2)
	b.Levels = l
	return b
}

// sides are both sides of a book with the digits as they are on the wire.
type sides struct {
	Bids, Asks [][2]json.RawMessage
}

// TestCCXT_digitsAreThoseOfTheStrings compares the two forms of one book digit by digit.
func TestCCXT_digitsAreThoseOfTheStrings(t *testing.T) {
	r := newRig(t)
	r.books.book = func(_ context.Context, q gateway.BookQuery) (*gateway.Book, error) { return awkwardBook(t, q), nil }
	read := func(target string) (s sides) {
		t.Helper()
		if err := json.Unmarshal(r.get(target).Body.Bytes(), &s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	bare, quoted := read(ccxtBook), read(strings.TrimSuffix(ccxtBook, "&format=ccxt"))
	compared := 0
	for i, side := range [][][2]json.RawMessage{bare.Bids, bare.Asks} {
		other := [][][2]json.RawMessage{quoted.Bids, quoted.Asks}[i]
		if len(side) != len(awkward) || len(other) != len(awkward) {
			t.Fatalf("%d and %d levels, want %d", len(side), len(other), len(awkward))
		}
		for j := range side {
			for k := range side[j] {
				got, want := string(side[j][k]), string(other[j][k])
				if compared++; `"`+got+`"` != want || strings.ContainsAny(got, "eE+") {
					t.Errorf("the number %s, the string %s", got, want)
				}
			}
		}
	}
	if compared != 4*len(awkward) {
		t.Errorf("%d numbers compared", compared)
	}
}

// TestCCXT_isReadByOthers lets Python and Node read what they will read: Python's decimals keep every digit, and the floats
// of both are the nearest ones.
func TestCCXT_isReadByOthers(t *testing.T) {
	r := newRig(t)
	r.books.book = func(_ context.Context, q gateway.BookQuery) (*gateway.Book, error) { return awkwardBook(t, q), nil }
	book := r.get(ccxtBook).Body.String()
	var want []string
	for _, text := range awkward {
		want = append(want, market.MustNumber(text).String())
	}
	f := func(program, script, stdin, want string) {
		t.Helper()
		path, err := exec.LookPath(program)
		if err != nil {
			t.Logf("%s is not installed", program)
			return
		}
		c := exec.CommandContext(t.Context(), path, "-c", script)
		if program == "node" {
			c = exec.CommandContext(t.Context(), path, "-e", script)
		}
		c.Stdin = strings.NewReader(stdin)
		out, err := c.CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != want {
			t.Errorf("%s reads %s, %v, want %s", program, got, err, want)
		}
	}
	f("python3", `import json,sys,decimal
d=json.load(sys.stdin,parse_float=decimal.Decimal,parse_int=decimal.Decimal)
print(",".join(format(a[1],"f") for a in sorted(d["asks"])))`, book, strings.Join(want, ","))
	f("python3", `import json,sys
d=json.load(sys.stdin)
print(repr(sorted(a[1] for a in d["asks"])[0]), d["info"]["stale"], d["info"]["freshness"]["age_ms"])`, book, "1e-30 False 42")
	f("node", `const d=JSON.parse(require("fs").readFileSync(0,"utf8"))
console.log(d.asks.map(a=>a[1]).sort((a,b)=>a-b)[0], d.info.stale, d.info.freshness.age_ms)`, book, "1e-30 false 42")
}

// TestCCXT_acceptsFiveSeconds unless the request says otherwise, or the client accepts less.
func TestCCXT_acceptsFiveSeconds(t *testing.T) {
	f := func(own time.Duration, more string, want time.Duration) {
		t.Helper()
		r := newClientRig(t, keys.Client{MaxAge: own})
		for _, target := range []string{ccxtBook, "/v1/exchanges/binance/ticker?symbol=BTC/USDT&format=ccxt"} {
			r.books.asked = nil
			if w := r.get(target+more, "X-API-Key", r.a1); w.Code != http.StatusOK {
				t.Fatalf("%s: %d %s", more, w.Code, w.Body)
			}
			if got := r.books.asked[0].(gateway.BookQuery).MaxAge; got != gateway.MaxAge(want) {
				t.Errorf("client of %v, %q: asked with %v, want %v", own, more, got, want)
			}
		}
	}
	f(0, "", 5*time.Second)
	f(time.Second, "", time.Second)
	f(time.Minute, "", 5*time.Second)
	f(time.Second, "&accept_stale=60000", time.Minute)
	f(0, "&accept_stale=0", 0)
	f(0, "&max_age_ms=100", 100*time.Millisecond)
	f(time.Second, "&max_age_ms=60000", time.Minute)
}

func TestCCXT_refusesWhatMakesNoSense(t *testing.T) {
	k, secret := newKey(t, keys.AccountRead)
	r := newRig(t, func(c *api.Config) { c.Keys = keys.NewRing(k) })
	f := func(target, code, parameter string) {
		t.Helper()
		if p := readProblem(t, r.get(target, "X-API-Key", secret)); p.Status != 400 || p.Code != code || p.Parameter != parameter || p.CCXTClass != "BadRequest" {
			t.Errorf("%s: got %+v", target, p)
		}
	}
	plain := strings.TrimSuffix(ccxtBook, "&format=ccxt")
	f(plain+"&format=CCXT", "invalid_parameter", "format")
	f(plain+"&format=", "invalid_parameter", "format")
	f(plain+"&accept_stale=1000", "invalid_parameter", "accept_stale")
	f(ccxtBook+"&accept_stale=1000&max_age_ms=1000", "invalid_parameter", "accept_stale")
	f(ccxtBook+"&accept_stale=-1", "invalid_parameter", "accept_stale")
	f(ccxtBook+"&accept_stale=", "invalid_parameter", "accept_stale")
	f("/v1/exchanges/okx/balance?format=x", "invalid_parameter", "format")
	f("/v1/exchanges/okx/balance?format=ccxt&accept_stale=1000", "unknown_parameter", "accept_stale")
	f("/v1/orderbooks?symbol=BTC/USDT&format=ccxt", "unknown_parameter", "format")
	if r.books.count() != 0 || len(r.accounts.asked) != 0 {
		t.Errorf("%d books and %d balances were asked for", r.books.count(), len(r.accounts.asked))
	}
}

// TestCCXT_errorsAreProblems of the class that ccxt would raise.
func TestCCXT_errorsAreProblems(t *testing.T) {
	r := newRig(t)
	r.books.err = &gateway.Error{Code: gateway.CodeBookTooStale, Exchange: "binance", Age: 8 * time.Second, RetryAfter: time.Second}
	if p := readProblem(t, r.get(ccxtBook)); p.Status != 503 || p.Code != "book_too_stale" || p.CCXTClass != "ExchangeNotAvailable" || p.AgeMS != 8000 {
		t.Errorf("got %+v", p)
	}
}

// TestBalance_debt is in both forms where something is owed, in ccxt's also as the map of all debts, and nowhere else.
func TestBalance_debt(t *testing.T) {
	k, secret := newKey(t, keys.AccountRead)
	r := newRig(t, func(c *api.Config) { c.Keys = keys.NewRing(k) })
	n := market.MustNumber
	body := func(query string) string {
		return r.get("/v1/exchanges/okx/balance"+query, "X-API-Key", secret).Body.String()
	}
	if plain, ccxt := body(""), body("?format=ccxt"); strings.Contains(plain+ccxt, "debt") {
		t.Errorf("nothing is owed: %s %s", plain, ccxt)
	}
	r.accounts.rows = []market.Balance{
		{Asset: "BTC", Free: n("0"), Used: n("0"), Total: n("-0.250"), Debt: market.Some(n("0.250"))},
		{Asset: "USDT", Free: n("5"), Used: n("0"), Total: n("5")},
		{Asset: "debt", Free: n("1"), Used: n("0"), Total: n("1")},
	}
	for query, want := range map[string][]string{
		"":             {`"BTC":{"free":"0","used":"0","total":"-0.250","debt":"0.250"},"USDT":{"free":"5","used":"0","total":"5"},`},
		"?format=ccxt": {`"debt":{"BTC":0.250},"BTC":{`, `"BTC":{"free":0,"used":0,"total":-0.250,"debt":0.250},"USDT":{"free":5,"used":0,"total":5}}`},
	} {
		for _, part := range want {
			if got := body(query); !strings.Contains(got, part) {
				t.Errorf("%q: %s, want %s in it", query, got, part)
			}
		}
	}
}

// TestCCXT_anAssetNamedLikeAField does not hide the field.
func TestCCXT_anAssetNamedLikeAField(t *testing.T) {
	k, secret := newKey(t, keys.AccountRead)
	r := newRig(t, func(c *api.Config) { c.Keys = keys.NewRing(k) })
	n := market.MustNumber
	r.accounts.rows = []market.Balance{
		{Asset: "free", Free: n("1.0"), Used: n("0"), Total: n("1.0")}, {Asset: `Q"X`, Free: n("2"), Used: n("1"), Total: n("3")},
	}
	var got struct{ Free map[string]json.Number }
	body := r.get("/v1/exchanges/okx/balance?format=ccxt", "X-API-Key", secret).Body.Bytes()
	if err := json.Unmarshal(body, &got); err != nil || got.Free["free"] != "1.0" || got.Free[`Q"X`] != "2" || strings.Count(string(body), `"total":{`) != 1 {
		t.Errorf("%v: %s", err, body)
	}
}
