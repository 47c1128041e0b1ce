package okx_test

import (
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"exchange-gateway/internal/exchange/exchangetest"
	"exchange-gateway/internal/market"
)

// failed asks for a book, or for balances if signed, and is told p.
func failed(t testing.TB, signed bool, p exchangetest.Reply) *market.Error {
	t.Helper()
	v, _ := newVenue(t, always(p))
	var err error
	if signed {
		_, err = newAccount(t, v, "main", false).Balances(t.Context(), market.WalletTrading)
	} else {
		_, err = v.OrderBook(t.Context(), btc, 5)
	}
	return failure(t, err)
}

// TestCodes is the error table of OKX's documents: status, codes, and what they are here.
func TestCodes(t *testing.T) {
	f := func(kind market.Kind, status int, codes ...string) {
		t.Helper()
		for _, code := range codes {
			for _, form := range []string{
				`{"code":"%","data":[],"msg":"made up"}`, `{"msg":"made up","code":"%"}`, `{"msg":"made up","code":%}`, `{"data":null,"code":"%_1101"}`,
				`{"code":"%","msg":"made up","data":{}}`, `{"data":["?"],"code":"%"}`,
			} {
				for _, signed := range []bool{false, true} {
					body := strings.ReplaceAll(form, "%", code)
					e := failed(t, signed, exchangetest.Reply{Status: status, Body: body})
					want := kind
					if signed && (kind == market.KindUnknownSymbol || kind == market.KindDelisted) {
						want = market.KindInvalid // no symbol was asked for
					}
					if unknown := kind == market.KindMalformed; unknown && strings.Contains(form, ":%") {
						want = market.KindUnavailable // a number that is none of OKX's is a router's
						if e.Host == "" {
							t.Errorf("%v does not say whose answer it was", e)
						}
						e.Code = code
					}
					if e.Kind != want || e.Status != status || strings.TrimSuffix(e.Code, "_1101") != code || e.OurFault != (want == market.KindInvalid) {
						t.Errorf("signed %t, HTTP %d %s: %v, our fault %t, want %v", signed, status, body, e, e.OurFault, want)
					}
				}
			}
		}
	}
	f(market.KindUnavailable, 200, "1", "2")
	f(market.KindInvalid, 400, "50000", "50002", "50006")
	f(market.KindMaintenance, 503, "50001")
	f(market.KindTimeout, 400, "50004")
	f(market.KindMaintenance, 410, "50005")
	f(market.KindAuth, 200, "50007", "50008", "50009", "50012", "50027", "50029")
	f(market.KindRateLimited, 429, "50011")
	f(market.KindRateLimited, 200, "50011")
	f(market.KindUnavailable, 429, "50013")
	f(market.KindInvalid, 400, "50014", "50015", "50016", "50024", "50025")
	f(market.KindInvalid, 200, "50014", "50015", "50016", "50024", "50025")
	f(market.KindUnavailable, 500, "50026")
	f(market.KindAuth, 200, "50030", "50041", "50120")
	f(market.KindAuth, 403, "50035")
	f(market.KindAuth, 200, "50038", "50053")
	f(market.KindRateLimited, 200, "50040")
	f(market.KindInvalid, 200, "50042")
	f(market.KindMaintenance, 200, "50046", "50062")
	f(market.KindRestricted, 200, "50051", "50052", "50059", "50060", "50121")
	f(market.KindRateLimited, 200, "50061")
	f(market.KindAuth, 400, "50100")
	f(market.KindAuth, 401, "50101")
	f(market.KindClockSkew, 401, "50102", "50112")
	f(market.KindAuth, 401, "50103", "50104", "50105", "50106", "50107", "50108", "50109", "50110", "50111", "50113", "50114")
	f(market.KindInvalid, 405, "50115")
	f(market.KindAuth, 200, "50119")
	f(market.KindAuth, 401, "50119")
	f(market.KindInvalid, 400, "51000")
	f(market.KindUnknownSymbol, 200, "51001")
	f(market.KindDelisted, 200, "51012")
	// A code that we do not know is no answer that we can read: the table has those that a read can meet.
	f(market.KindMalformed, 200, "51004", "51008", "58000", "59999", "50999", "60009", "99999")
	f(market.KindMalformed, 400, "54000", "50999")
	f(market.KindMalformed, 404, "50999")
	// A code about a request cannot explain a 5xx.
	f(market.KindUnavailable, 500, "51000", "58000", "50014", "50999")
	f(market.KindAuth, 401, "50999")
	f(market.KindAuth, 403, "50999")
	f(market.KindRateLimited, 429, "50999", "51000", "58102")
}

// TestStatuses is what has no code of OKX.
func TestStatuses(t *testing.T) {
	const page = "<html><body>no</body></html>"
	f := func(kind market.Kind, status int, body string, scopes ...market.ScopeKind) {
		t.Helper()
		for i, signed := range []bool{false, true} {
			e := failed(t, signed, exchangetest.Reply{Status: status, Body: body})
			var scope market.ScopeKind
			if len(scopes) > 0 {
				scope = scopes[min(i, len(scopes)-1)]
			}
			var closed market.ScopeKind
			if e.Refusal != nil {
				closed = e.Refusal.Scope.Kind
			}
			if e.Kind != kind || e.Code != "" || closed != scope || e.OurFault != (kind == market.KindInvalid) {
				t.Errorf("signed %t, HTTP %d %q: %v closes %q, want %v closing %q", signed, status, body, e, closed, kind, scope)
			}
			if strings.Contains(e.Error(), "body") {
				t.Errorf("%v repeats a page", e)
			}
		}
	}
	for _, status := range []int{500, 502, 503, 504, 520, 521, 522, 523, 524, 525, 526, 527} {
		f(market.KindUnavailable, status, page)
		f(market.KindUnavailable, status, "")
		f(market.KindUnavailable, status, `{"code":"0","msg":"","data":[]}`)
		f(market.KindUnavailable, status, `{"message":"name resolution failed"}`)
		f(market.KindUnavailable, status, string(bookBody(3)))
	}
	for _, status := range []int{301, 302, 307, 308} {
		f(market.KindUnavailable, status, page)
	}
	f(market.KindAuth, 401, page, "", market.ScopeAccount)
	f(market.KindBanned, 403, page, market.ScopeIP)
	f(market.KindBanned, 403, "error code: 1020", market.ScopeIP)
	f(market.KindBanned, 403, "", market.ScopeIP)
	f(market.KindBanned, 429, page, market.ScopeIP)
	f(market.KindBanned, 429, "error code: 1015", market.ScopeIP)
	f(market.KindRateLimited, 429, "Too Many Requests", market.ScopeEndpoint, market.ScopeAccount)
	f(market.KindRateLimited, 429, "too many requests\n", market.ScopeEndpoint, market.ScopeAccount)
	f(market.KindRateLimited, 429, "", market.ScopeEndpoint, market.ScopeAccount)
	f(market.KindRateLimited, 429, `{"message":"API rate limit exceeded"}`, market.ScopeEndpoint, market.ScopeAccount)
	f(market.KindRateLimited, 429, "slow down", market.ScopeEndpoint, market.ScopeAccount)
	f(market.KindRestricted, 451, page, market.ScopeExchange)
	f(market.KindRestricted, 451, "", market.ScopeExchange)
	f(market.KindUnavailable, 404, page)
	f(market.KindUnavailable, 404, `{"code":404,"data":{"status":404,"error":"Not Found"},"detailMsg":"","msg":"Not Found"}`)
	f(market.KindUnavailable, 404, `{"code":"404","data":{},"msg":"Not Found"}`)
	f(market.KindUnavailable, 200, `{"code":404,"data":{},"msg":"Not Found"}`)
	f(market.KindUnavailable, 400, `{"code":"-1","data":[],"msg":"made up"}`)
	f(market.KindUnavailable, 405, "")
	f(market.KindUnavailable, 408, page)
	f(market.KindUnavailable, 400, page)
	f(market.KindUnavailable, 418, "")
	for _, body := range []string{"", " ", page, "OK", `{"message":"An unexpected error occurred"}`, `{"code":null}`, `{"code":{}}`, "[]", "null", "7"} {
		f(market.KindUnavailable, 200, body)
	}
	for _, body := range []string{`{"code":"0"`, `{"data":[`, `{"code":"0","data":{}}`} {
		f(market.KindMalformed, 200, body, market.ScopeSymbol, "")
	}
}

// TestRefusals: how long each gate is closed, with and without the answer's own time.
func TestRefusals(t *testing.T) {
	type hold struct {
		scope      market.Scope
		first, max time.Duration
		after      int
	}
	books, account := market.Scope{Kind: market.ScopeEndpoint, Name: "books"}, market.Scope{Kind: market.ScopeAccount, Name: "main"}
	exchange, ip := market.Scope{Kind: market.ScopeExchange}, market.Scope{Kind: market.ScopeIP}
	symbol := market.Scope{Kind: market.ScopeSymbol, Name: "BTC-USDT"}
	f := func(signed bool, status int, body string, want hold) {
		t.Helper()
		e := failed(t, signed, exchangetest.Reply{Status: status, Body: body})
		r := e.Refusal
		if r == nil {
			t.Fatalf("%v closes nothing", e)
		}
		if got := (hold{r.Scope, r.First, r.Max, r.After}); got != want || !r.NotBefore.IsZero() || e.RetryAfter != 0 {
			t.Errorf("%v closes %+v, want %+v", e, *r, want)
		}
	}
	code := func(c string) string { return `{"code":"` + c + `","msg":"","data":[]}` }
	f(false, 429, code("50011"), hold{books, 2 * time.Second, 30 * time.Second, 0})
	f(false, 200, code("50011"), hold{books, 2 * time.Second, 30 * time.Second, 0})
	f(true, 429, code("50011"), hold{account, 2 * time.Second, 30 * time.Second, 0})
	f(true, 200, code("50040"), hold{account, 2 * time.Second, 30 * time.Second, 0})
	f(true, 401, code("50111"), hold{account, 30 * time.Second, 10 * time.Minute, 3})
	f(true, 200, code("50120"), hold{account, 30 * time.Second, 10 * time.Minute, 3})
	f(false, 200, code("50121"), hold{exchange, 30 * time.Second, 10 * time.Minute, 0})
	f(true, 200, code("50121"), hold{exchange, 30 * time.Second, 10 * time.Minute, 0})
	f(true, 200, code("50051"), hold{exchange, 30 * time.Second, 10 * time.Minute, 0})
	// Identity and compliance of a key's owner say nothing about books.
	f(true, 200, code("50060"), hold{account, 30 * time.Second, 10 * time.Minute, 0})
	f(false, 200, code("50060"), hold{exchange, 30 * time.Second, 10 * time.Minute, 0})
	f(false, 403, "<html>", hold{ip, time.Minute, time.Hour, 0})
	f(true, 403, "<html>", hold{ip, time.Minute, time.Hour, 0})
	f(false, 200, `{"code":"0"`, hold{symbol, time.Second, 30 * time.Second, 0})
	f(false, 400, code("50999"), hold{symbol, time.Second, 30 * time.Second, 0})
	f(true, 400, code("50999"), hold{account, 30 * time.Second, 10 * time.Minute, 3})
}

func TestRetryAfter(t *testing.T) {
	f := func(signed bool, status int, body, header string, scope market.ScopeKind, wait, advice time.Duration) {
		t.Helper()
		before := time.Now()
		e := failed(t, signed, exchangetest.Reply{Status: status, Body: body, Header: http.Header{"Retry-After": {header}}})
		if e.RetryAfter != advice {
			t.Errorf("%v advises %v, want %v", e, e.RetryAfter, advice)
		}
		if e.Refusal == nil {
			if scope != "" {
				t.Errorf("%v closes nothing", e)
			}
			return
		}
		r := *e.Refusal
		if r.Scope.Kind != scope {
			t.Errorf("%v closes %+v, want %s", e, r, scope)
		}
		if wait == 0 {
			if !r.NotBefore.IsZero() || r.First == 0 {
				t.Errorf("%v closes %+v, want the time that grows", e, r)
			}
			return
		}
		if r.NotBefore.Before(before.Add(wait)) || r.NotBefore.After(time.Now().Add(wait)) || r.Clamp != time.Minute {
			t.Errorf("%v closes %+v, want until %v ahead", e, r, wait)
		}
	}
	const limit = `{"msg":"Too Many Requests","code":"50011"}`
	f(false, 429, limit, "20", market.ScopeEndpoint, 20*time.Second, 20*time.Second)
	f(true, 429, limit, "20", market.ScopeAccount, 20*time.Second, 20*time.Second)
	f(false, 429, limit, "86400", market.ScopeEndpoint, time.Minute, time.Minute)
	f(false, 429, limit, "0", market.ScopeEndpoint, 0, 0)
	f(false, 429, limit, "soon", market.ScopeEndpoint, 0, 0)
	f(false, 403, "<html>", "45", market.ScopeIP, 45*time.Second, 45*time.Second)
	f(false, 429, `{"code":"50013","msg":"Systems are busy."}`, "5", market.ScopeEndpoint, 5*time.Second, 5*time.Second)
	f(true, 429, "Too Many Requests", "5", market.ScopeAccount, 5*time.Second, 5*time.Second)
	f(false, 429, "Too Many Requests", "0", market.ScopeEndpoint, 0, 0)
	f(false, 503, `{"code":"50001","msg":"Service temporarily unavailable."}`, "30", "", 0, 30*time.Second)
	f(false, 503, "<html>", "30", "", 0, 30*time.Second)
}

// TestErrors_say: what helps is said, what could give something away is not.
func TestErrors_say(t *testing.T) {
	f := func(signed bool, status int, body, has string, hasNot ...string) {
		t.Helper()
		got := failed(t, signed, exchangetest.Reply{Status: status, Body: body}).Error()
		if !strings.Contains(got, has) || !utf8.ValidString(got) || len(got) > 400 {
			t.Errorf("%q does not say %q", got, has)
		}
		for _, s := range hasNot {
			if strings.Contains(got, s) {
				t.Errorf("%q says %q", got, s)
			}
		}
	}
	f(true, 401, `{"msg":"API key doesn't exist","code":"50119"}`, `another region than global`)
	f(true, 401, `{"code":"50101","msg":"APIKey does not match current environment."}`, "demo key")
	f(true, 401, `{"code":"50110","msg":"Your IP 203.0.113.7 is not included in your API key's IP whitelist."}`, "not on the key's list", "203.0.113.7")
	f(false, 200, `{"code":"50121","msg":"You can't access our services through the IP address (2001:db8::7)"}`, "at our address", "2001:db8")
	f(true, 301, "", "a redirect instead")
	f(false, 200, `{"code":"50999","msg":"Something new"}`, "Something new")
	f(false, 400, `{"code":"51099","msg":"系统繁忙"}`, "系统繁忙")
	f(true, 200, `{"code":"50999","msg":"Key EXAMPLE0 is new here"}`, "50999", "EXAMPLE0")
	f(false, 200, `{"code":"50999","msg":"From 203.0.113.7: no"}`, "50999", "203.0.113.7")
	f(false, 200, `{"code":"50999","msg":"From [2001:db8::7]."}`, "50999", "2001:db8")
	f(false, 200, `{"code":"50999","msg":"See https://example.invalid/?k=1"}`, "50999", "example.invalid")
	f(false, 200, `{"code":"50999","msg":"`+strings.Repeat("é", 500)+`\u0007"}`, "ééé", strings.Repeat("é", 101), "\a")
	f(false, 200, `{"code":"<b>50011</b>","msg":""}`, "hosts", "<b>")
	f(false, 200, `{"code":"`+strings.Repeat("5", 40)+`","msg":""}`, "hosts", "5555")
	f(false, 200, `{"code":"0","msg":"","data":[{"bids":[["1","x","0","1"]],"asks":[]}]}`, "malformed")
}
