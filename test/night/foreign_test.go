package night

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/exchangesim"
	"exchange-gateway/internal/market"
)

// foreignPage is what proxies answer in an exchange's place.
const foreignPage = "<html><head><title>Not Found</title></head><body><center><h1>Not Found</h1></center><hr><center>nginx</center></body></html>"

// foreign are answers that no exchange gives: something in front of it does, or another program at a wrong host.
var foreign = map[string]exchangesim.Fault{
	"301":                       {Status: 301, Header: map[string]string{"Location": "https://www.example.com/"}, ContentType: "text/html"},
	"302 to a maintenance page": {Status: 302, Header: map[string]string{"Location": "https://www.example.com/maintenance"}, ContentType: "text/html"},
	"400 page":                  {Status: 400, Body: foreignPage, ContentType: "text/html"},
	"404 page":                  {Status: 404, Body: foreignPage, ContentType: "text/html"},
	"404 text":                  {Status: 404, Body: "404 page not found\n", ContentType: "text/plain; charset=utf-8"},
	"404 default backend":       {Status: 404, Body: "default backend - 404", ContentType: "text/plain"},
	"404 of a router":           {Status: 404, Body: `{"message":"no Route matched with those values"}`, ContentType: "application/json"},
	"404 with a number as code": {Status: 404, Body: `{"code":404,"data":{"timestamp":1530203308520,"status":404,"error":"Not Found","message":"No message available"},"detailMsg":"","msg":"Not Found"}`, ContentType: "application/json"},
	"405 page":                  {Status: 405, Body: foreignPage, ContentType: "text/html"},
	"410 page":                  {Status: 410, Body: foreignPage, ContentType: "text/html"},
	"202 challenge":             {Status: 202, Header: map[string]string{"X-Amzn-Waf-Action": "challenge"}, ContentType: "text/html"},
	"200 page":                  {Status: 200, Body: foreignPage, ContentType: "text/html"},
	"200 empty":                 {Status: 200, ContentType: "application/json"},
	"200 of another program":    {Status: 200, Body: `{"healthy":true}`, ContentType: "application/json"},
}

// bookPaths and balancePaths are where the exchanges are asked for books, and for balances.
var (
	bookPaths = map[market.ExchangeID]string{
		"binance": "/api/v3/depth", "okx": "/api/v5/market/books", "coinbase": "/api/v3/brokerage/market/product_book",
	}
	balancePaths = map[market.ExchangeID]string{
		"binance": "/api/v3/account", "okx": "/api/v5/account/balance", "coinbase": "/api/v3/brokerage/accounts",
	}
)

// TestForeignAnswers: while a book is held, an answer that is not the exchange's own is an exchange that does not answer. The
// book is served, the circuit opens though only one pair is asked, and the exchange is left alone.
func TestForeignAnswers(t *testing.T) {
	for _, id := range ids {
		for name, fault := range foreign {
			t.Run(string(id)+"/"+name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { foreignBooks(t, id, fault) })
			})
			t.Run(string(id)+"/balances/"+name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { foreignBalances(t, id, fault) })
			})
		}
	}
}

func foreignBooks(t *testing.T, id market.ExchangeID, fault exchangesim.Fault) {
	s := newStage(t, setting{})
	pair := s.pairs(id, 1)[0]
	good, _ := decode[book](t, s.book(id, pair))
	time.Sleep(1200 * time.Millisecond)
	before := s.taps[id].total()
	fault.Kind, fault.Path = exchangesim.FaultStatus, bookPaths[id]
	s.inject(id, fault)
	for range 20 {
		b, ok := decode[book](t, s.book(id, pair))
		if ok && (!b.Stale || b.Freshness.reason() != "unavailable" && b.Freshness.reason() != "circuit_open") {
			t.Errorf("stale %t, %+v: want the book from before, with the reason", b.Stale, b.Freshness)
		}
		if !b.Freshness.ConfirmedAt.Equal(good.Freshness.ConfirmedAt) {
			t.Errorf("confirmed at %v, want %v", b.Freshness.ConfirmedAt, good.Freshness.ConfirmedAt)
		}
		time.Sleep(300 * time.Millisecond)
	}
	if _, _, opened := s.opened(id, market.ClassMarketData); !opened {
		t.Error("the circuit of books stays closed")
	}
	if n := s.taps[id].total() - before; n > 18 {
		t.Errorf("%d requests for 20 reads in 6 s", n)
	}
	s.blames(id, fault.Status, market.OpOrderBook, "Is `hosts` right?")
	s.venue(id).ClearFaults()
	time.Sleep(time.Minute)
	s.book(id, pair)
	time.Sleep(time.Second)
	if b, ok := decode[book](t, s.book(id, pair)); ok && b.Stale {
		t.Errorf("stale though it is well again: %+v", b.Freshness)
	}
	if u := s.unrecognized(id); u != nil {
		t.Errorf("still told of: %+v", u)
	}
}

// foreignBalances: never numbers, and an error whose cause is the exchange, not a request of ours.
func foreignBalances(t *testing.T, id market.ExchangeID, fault exchangesim.Fault) {
	s := newStage(t, setting{})
	decode[map[string]any](t, s.balance(id))
	before := s.taps[id].total()
	fault.Kind, fault.Path = exchangesim.FaultStatus, balancePaths[id]
	s.inject(id, fault)
	p := problemOf(t, s.balance(id))
	if p.Code != "upstream_error" || p.Origin != "exchange" || !p.Retryable || p.RetryAfter == nil || strings.Contains(p.Detail, "report it") {
		t.Errorf("got %+v", p)
	}
	if n := s.taps[id].total() - before; n > 2 {
		t.Errorf("asked %d times, want twice at most", n)
	}
	s.blames(id, fault.Status, market.OpBalances, "Is `account_hosts` right?")
	for range 20 {
		if a := s.balance(id); a.status == http.StatusOK {
			t.Errorf("numbers: %s", a.body)
		}
		time.Sleep(300 * time.Millisecond)
	}
	if _, _, opened := s.opened(id, market.ClassAccount); !opened {
		t.Error("the circuit of accounts stays closed")
	}
}

// unrecognized is what the status tells of an answer that was not the exchange's own.
type unrecognized struct {
	Operation string `json:"operation"`
	Status    int    `json:"http_status"`
	Host      string `json:"host"`
	Question  string `json:"question"`
}

func (s *stage) unrecognized(id market.ExchangeID) *unrecognized {
	s.t.Helper()
	var st struct {
		Unrecognized *unrecognized `json:"unrecognized"`
	}
	if err := json.Unmarshal(s.get("/v1/exchanges/"+string(id)+"/status").body, &st); err != nil {
		s.t.Fatal(err)
	}
	return st.Unrecognized
}

// blames checks that the status and the log say who answered what.
func (s *stage) blames(id market.ExchangeID, status int, op market.Op, question string) {
	s.t.Helper()
	u := s.unrecognized(id)
	if u == nil || u.Status != status || u.Operation != string(op) || !strings.HasPrefix(u.Host, "https://") || u.Question != question {
		s.t.Errorf("the status tells of %+v, want %d for %s", u, status, op)
	}
	if _, by := s.log.warnings(); by["answer not of the exchange: are its hosts configured right?"] != 1 {
		s.t.Errorf("the log warns of %v", by)
	}
}

// unknown are errors in each exchange's own format, with a code that it has not documented.
var unknown = map[market.ExchangeID]string{
	"binance":  `{"code":-9998,"msg":"Made up."}`,
	"okx":      `{"code":"59998","data":[],"msg":"made up"}`,
	"coinbase": `{"error":"MADE_UP","error_details":"made up","message":"made up"}`,
}

// TestUnknownErrors: an error that no table has holds its symbol, and the list is fetched once: the pair may be gone. Two such
// symbols are an exchange in trouble.
func TestUnknownErrors(t *testing.T) {
	for _, id := range ids {
		for _, several := range []bool{false, true} {
			name := "/one symbol"
			if several {
				name = "/two symbols"
			}
			t.Run(string(id)+name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { unknownError(t, id, several) })
			})
		}
	}
}

func unknownError(t *testing.T, id market.ExchangeID, several bool) {
	s := newStage(t, setting{})
	pairs := s.pairs(id, 2)
	bad, _ := decode[book](t, s.book(id, pairs[0]))
	decode[book](t, s.book(id, pairs[1]))
	time.Sleep(time.Minute) // a list that was fetched a moment ago is not fetched again
	before := s.taps[id].total()
	fault := exchangesim.Fault{
		Kind: exchangesim.FaultStatus, Path: bookPaths[id], Status: 400, Body: unknown[id], ContentType: "application/json",
	}
	if !several {
		fault.Symbol = bad.ExchangeSymbol
	}
	s.inject(id, fault)
	for range 300 { // a minute
		for i, pair := range pairs {
			b, ok := decode[book](t, s.book(id, pair))
			if spoiled := several || i == 0; ok && spoiled && !b.Stale {
				t.Errorf("%s: %+v, want the book from before", pair, b.Freshness)
			}
			if ok && !several && i == 0 && b.Freshness.reason() != "malformed" {
				t.Errorf("%s: stale for %s", pair, b.Freshness.reason())
			}
		}
		time.Sleep(200 * time.Millisecond)
	}
	asked, lists := 0, 0
	for _, c := range s.taps[id].from(before) {
		switch {
		case c.path == bookPaths[id] && c.symbol == bad.ExchangeSymbol:
			asked++
		case c.class == market.ClassReference:
			lists++
		}
	}
	if asked > 8 {
		t.Errorf("%d requests in a minute for a book that is held", asked)
	}
	if _, _, opened := s.opened(id, market.ClassMarketData); opened != several {
		t.Errorf("the circuit opened: %t, want %t", opened, several)
	}
	if most := map[bool]int{false: 1, true: 2}[several]; lists < 1 || lists > most+1 { // and the announcement, once a minute
		t.Errorf("%d requests for the list, want one for each symbol", lists)
	}
}

// TestInvalidServesWhatIsHeld: that a request of ours was wrong, if it was, takes no book away.
func TestInvalidServesWhatIsHeld(t *testing.T) {
	bodies := map[market.ExchangeID]string{
		"binance":  `{"code":-1100,"msg":"Illegal characters found in a parameter."}`,
		"okx":      `{"code":"51000","data":[],"msg":"Parameter instId error"}`,
		"coinbase": `{"error":"INVALID_ARGUMENT","message":"limit is too large"}`,
	}
	for _, id := range ids {
		t.Run(string(id), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, setting{})
				pair := s.pairs(id, 1)[0]
				s.book(id, pair)
				time.Sleep(1200 * time.Millisecond)
				s.inject(id, exchangesim.Fault{
					Kind: exchangesim.FaultStatus, Path: bookPaths[id], Status: 400, Body: bodies[id], ContentType: "application/json",
				})
				if b, ok := decode[book](t, s.book(id, pair)); ok && (!b.Stale || b.Freshness.reason() != "invalid") {
					t.Errorf("%+v, want stale for invalid", b.Freshness)
				}
				if p := problemOf(t, s.get(bookTarget(id, pair, "&require=live"))); p.Code != "not_live" {
					t.Errorf("require=live: %+v", p)
				}
			})
		})
	}
}
