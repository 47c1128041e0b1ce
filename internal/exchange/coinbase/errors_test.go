package coinbase_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/exchange/exchangetest"
	"exchange-gateway/internal/market"
)

// errorCase is one row of the error table: what comes back to which question, and what it means.
type errorCase struct {
	ask    string // "book", "figures", "list", "advanced", "exchange"
	answer answer
	kind   market.Kind
	code   string
}

func ask(t *testing.T, what string, a answer) (*market.Error, *fakeCoinbase) {
	t.Helper()
	v, f := newVenue(t)
	var err error
	switch what {
	case "book":
		f.on(bookPath, a)
		_, err = v.OrderBook(t.Context(), btcUSD(), 5)
	case "delisted book":
		f.on(bookPath, a)
		l := btcUSD()
		l.Status = market.TradingDelisted
		_, err = v.OrderBook(t.Context(), l, 5)
	case "figures":
		f.on(productPath, a)
		_, err = v.Statistics(t.Context(), btcUSD())
	case "list":
		f.on(productsPath, a)
		_, err = exchangetest.Rows(t.Context(), v)
	case "advanced":
		f.on(portfolioPath, a)
		_, err = newAccount(t, v, advancedKey()).Balances(t.Context(), market.WalletTrading)
	case "exchange":
		f.on(profilePath, a)
		_, err = newAccount(t, v, exchangeKey()).Balances(t.Context(), market.WalletTrading)
	default:
		t.Fatalf("there is no question %q", what)
	}
	return asError(t, err), f
}

func html(status int, body string) answer {
	return answer{status: status, body: body, header: map[string]string{"Content-Type": "text/html; charset=UTF-8"}}
}

func plain(status int, body string) answer {
	return answer{status: status, body: body, header: map[string]string{"Content-Type": "text/plain"}}
}

func says(status int, body string) answer { return answer{status: status, body: body} }

// TestErrorTable has every row of what is known of Coinbase's errors: the six shapes of a body, under every status that
// they were seen with, and what comes from in front of the exchange.
func TestErrorTable(t *testing.T) {
	for name, c := range map[string]errorCase{
		// Shape 1, Exchange.
		"EX not found":         {"book", says(404, `{"message":"NotFound"}`), market.KindUnavailable, ""},
		"EX not found, signed": {"exchange", says(404, `{"message":"NotFound"}`), market.KindInvalid, ""},
		"EX bad request":       {"exchange", says(400, `{"message":"something is wrong"}`), market.KindMalformed, ""},
		"EX no agent":          {"exchange", says(400, `{"message":"User-Agent header is required."}`), market.KindAuth, ""},
		"EX request timeout":   {"exchange", says(400, `{"message":"request timeout"}`), market.KindTimeout, ""},
		"EX expired":           {"exchange", says(401, `{"message":"request timestamp expired"}`), market.KindClockSkew, ""},
		"EX bad key":           {"exchange", says(401, `{"message":"Invalid API Key"}`), market.KindAuth, ""},
		"EX bad signature":     {"exchange", says(401, `{"message":"invalid signature"}`), market.KindAuth, ""},
		"EX bad passphrase":    {"exchange", says(401, `{"message":"Invalid Passphrase"}`), market.KindAuth, ""},
		"EX no permission":     {"exchange", says(403, `{"message":"Forbidden"}`), market.KindAuth, ""},
		"EX private limit":     {"exchange", says(429, `{"message":"Private rate limit exceeded"}`), market.KindRateLimited, ""},
		"EX public limit":      {"book", says(429, `{"message":"Public rate limit exceeded"}`), market.KindRateLimited, ""},
		"EX internal":          {"exchange", says(500, `{"message":"Internal server error"}`), market.KindUnavailable, ""},
		// Shape 2, Advanced Trade.
		"AT not found":          {"book", says(404, `{"error":"NOT_FOUND","error_details":"","message":"x"}`), market.KindUnknownSymbol, "NOT_FOUND"},
		"AT not found, 400":     {"figures", says(400, `{"error":"NOT_FOUND","code":5}`), market.KindUnknownSymbol, "NOT_FOUND"},
		"AT bad product":        {"book", says(400, `{"error":"INVALID_ARGUMENT","message":"product_id is invalid"}`), market.KindUnknownSymbol, "INVALID_ARGUMENT"},
		"AT bad limit":          {"book", says(400, `{"error":"INVALID_ARGUMENT","message":"limit is too large"}`), market.KindInvalid, "INVALID_ARGUMENT"},
		"AT delisted":           {"delisted book", says(404, `{"error":"NOT_FOUND","message":"x"}`), market.KindDelisted, "NOT_FOUND"},
		"AT no such list":       {"list", says(404, `{"error":"NOT_FOUND","message":"x"}`), market.KindInvalid, "NOT_FOUND"},
		"AT other 400":          {"book", says(400, `{"error":"FAILED_PRECONDITION","message":"x"}`), market.KindMalformed, "FAILED_PRECONDITION"},
		"AT no scope":           {"advanced", says(403, `{"error":"PERMISSION_DENIED","error_details":"Missing required scopes","message":"Missing required scopes"}`), market.KindAuth, "PERMISSION_DENIED"},
		"AT unauthenticated":    {"advanced", says(400, `{"error":"unauthenticated","message":"x"}`), market.KindAuth, "unauthenticated"},
		"AT unknown":            {"book", says(500, `{"error":"unknown","error_details":"x","message":"x"}`), market.KindUnavailable, "unknown"},
		"AT exhausted, not 429": {"book", says(400, `{"error":"RESOURCE_EXHAUSTED"}`), market.KindRateLimited, "RESOURCE_EXHAUSTED"},
		"AT deadline":           {"book", says(400, `{"error":"DEADLINE_EXCEEDED"}`), market.KindTimeout, "DEADLINE_EXCEEDED"},
		"AT error is no text":   {"book", says(400, `{"error":{"a":1},"message":"x"}`), market.KindUnavailable, ""},
		// Shape 3, the Coinbase App layer.
		"App limit":     {"book", says(429, `{"errors":[{"id":"rate_limit_exceeded","message":"Too many requests"}]}`), market.KindRateLimited, "rate_limit_exceeded"},
		"App exhausted": {"advanced", says(429, `{"errors":[{"id":"resource_exhausted","message":"x"}]}`), market.KindRateLimited, "resource_exhausted"},
		"App clock":     {"advanced", says(401, `{"errors":[{"id":"authentication_error","message":"request timestamp expired"}]}`), market.KindClockSkew, "authentication_error"},
		"App auth":      {"advanced", says(401, `{"errors":[{"id":"authentication_error","message":"x"}]}`), market.KindAuth, "authentication_error"},
		"App not found": {"book", says(404, `{"errors":[{"id":"not_found","message":"x"}]}`), market.KindUnknownSymbol, "not_found"},
		"App internal":  {"book", says(200, `{"errors":[{"id":"internal_server_error","message":"x"}]}`), market.KindUnavailable, "internal_server_error"},
		// Shape 4, OAuth.
		"OAuth": {"advanced", says(400, `{"error":"invalid_request","error_description":"x"}`), market.KindInvalid, "invalid_request"},
		"token": {"advanced", says(400, `{"error":"invalid_token","error_description":"x"}`), market.KindAuth, "invalid_token"},
		// Shape 5, success that is none.
		"failed, 200":         {"book", says(200, `{"success":false,"error_response":{"error":"NOT_FOUND","message":"x"}}`), market.KindUnknownSymbol, "NOT_FOUND"},
		"failed, 200, opaque": {"book", says(200, `{"success":false,"error_response":{}}`), market.KindMalformed, ""},
		"failed, 200, odd":    {"book", says(200, `{"error_response":"x"}`), market.KindMalformed, ""},
		// Shape 6, text, pages and nothing.
		"Unauthorized":       {"advanced", plain(401, "Unauthorized"), market.KindAuth, ""},
		"empty 401":          {"advanced", says(401, ""), market.KindAuth, ""},
		"empty 403, signed":  {"advanced", says(403, ""), market.KindAuth, ""},
		"text 403, signed":   {"advanced", plain(403, "Forbidden"), market.KindAuth, ""},
		"clock, no key":      {"book", says(401, `{"message":"request timestamp expired"}`), market.KindAuth, ""},
		"401 without a key":  {"book", plain(401, "Unauthorized"), market.KindAuth, ""},
		"text 404":           {"book", plain(404, "404 page not found"), market.KindUnavailable, ""},
		"page 404":           {"book", html(404, "<html>"), market.KindUnavailable, ""},
		"empty 400":          {"book", says(400, ""), market.KindUnavailable, ""},
		"408":                {"book", says(408, ""), market.KindUnavailable, ""},
		"451":                {"book", html(451, "<html>"), market.KindRestricted, ""},
		"502 page":           {"book", html(502, "<!DOCTYPE html>\n<html><title>Coinbase Error</title></html>"), market.KindUnavailable, ""},
		"504 page":           {"list", html(504, "<html>"+strings.Repeat("x", 200000)), market.KindUnavailable, ""},
		"520":                {"book", plain(520, "error code: 520"), market.KindUnavailable, ""},
		"527 page":           {"book", html(527, "<html>"), market.KindUnavailable, ""},
		"530, host resolves": {"book", html(530, "<html>Error 1016</html>"), market.KindUnavailable, ""},
		"409, wrong host":    {"book", html(409, "<html>Error 1018</html>"), market.KindUnavailable, ""},
		"page, 200":          {"book", html(200, "<html>"), market.KindUnavailable, ""},
		"page called JSON":   {"book", says(200, " <html>"), market.KindUnavailable, ""},
		"page called 401":    {"advanced", html(401, "<html>"), market.KindAuth, ""},
		"redirect":           {"book", says(302, ""), market.KindUnavailable, ""},
		// Blocks of the CDN.
		"403 page":           {"book", html(403, "<html>Attention Required!</html>"), market.KindBanned, ""},
		"403 page, signed":   {"advanced", html(403, "<html>"), market.KindBanned, ""},
		"403 text":           {"book", plain(403, "error code: 1020"), market.KindBanned, ""},
		"403 text, signed":   {"exchange", plain(403, "error code: 1020"), market.KindBanned, ""},
		"403 nothing":        {"book", says(403, ""), market.KindBanned, ""},
		"403 JSON":           {"book", says(403, `{"error":"PERMISSION_DENIED"}`), market.KindAuth, "PERMISSION_DENIED"},
		"429 page":           {"book", html(429, "<html>Error 1015</html>"), market.KindBanned, ""},
		"429 text":           {"exchange", plain(429, "error code: 1015"), market.KindBanned, ""},
		"429 nothing":        {"book", says(429, ""), market.KindRateLimited, ""},
		"challenge":          {"book", answer{status: 503, body: "<html>", header: map[string]string{"Cf-Mitigated": "challenge"}}, market.KindBanned, ""},
		"captcha in the 502": {"book", html(502, "<html>captcha</html>"), market.KindUnavailable, ""},
		// 503 is throttled or down, and only the body can say which.
		"503 nothing":       {"book", says(503, ""), market.KindUnavailable, ""},
		"503 page":          {"book", html(503, "<html>maintenance</html>"), market.KindUnavailable, ""},
		"503 JSON":          {"exchange", says(503, `{"message":"Service Unavailable"}`), market.KindUnavailable, ""},
		"503 maintenance":   {"exchange", says(503, `{"message":"Down for maintenance"}`), market.KindMaintenance, ""},
		"503 text":          {"advanced", plain(503, "Scheduled maintenance"), market.KindMaintenance, ""},
		"200 maintenance":   {"book", says(200, `{"message":"under maintenance"}`), market.KindMaintenance, ""},
		"404, maintenance?": {"book", says(404, `{"message":"maintenance product not found"}`), market.KindUnavailable, ""},
		// A success that does not hold what was asked for: as the body says, else malformed.
		"200 not found":   {"book", says(200, `{"message":"NotFound"}`), market.KindUnavailable, ""},
		"200 bad key":     {"exchange", says(200, `{"message":"Invalid API Key"}`), market.KindAuth, ""},
		"200 limit":       {"advanced", says(200, `{"message":"rate limit exceeded"}`), market.KindRateLimited, ""},
		"200 other words": {"exchange", says(200, `{"message":"hello"}`), market.KindMalformed, ""},
		"200 only text":   {"book", plain(200, "Unauthorized"), market.KindUnavailable, ""},
		"200 nothing":     {"list", says(200, ""), market.KindUnavailable, ""},
	} {
		t.Run(name, func(t *testing.T) {
			e, f := ask(t, c.ask, c.answer)
			if e.Kind != c.kind || e.Code != c.code {
				t.Errorf("got %v, want kind %v and code %q", e, c.kind, c.code)
			}
			if e.OurFault != (c.kind == market.KindInvalid) {
				t.Errorf("our fault: %t", e.OurFault)
			}
			if e.Status != c.answer.status || e.Exchange != "coinbase" || e.Op == "" || e.Err == nil {
				t.Errorf("got %+v", e)
			}
			if o := f.observed[len(f.observed)-1]; o.Err == nil || o.Err.Kind != c.kind {
				t.Errorf("the door observed %+v", o)
			}
		})
	}
}

// TestGates: what closes, for how long, and that nothing else does.
func TestGates(t *testing.T) {
	public := market.Scope{Kind: market.ScopePublic, Name: "advanced"}
	account := market.Scope{Kind: market.ScopeAccount, Name: "main"}
	ip, world := market.Scope{Kind: market.ScopeIP}, market.Scope{Kind: market.ScopeExchange}
	symbol := market.Scope{Kind: market.ScopeSymbol, Name: "BTC-USD"}
	limit := says(429, `{"errors":[{"id":"rate_limit_exceeded"}]}`)
	block := html(403, "<html>")
	for name, c := range map[string]struct {
		ask         string
		answer      answer
		scope       market.Scope
		first, most time.Duration
		after       int
	}{
		"limit":              {"book", limit, public, 2 * second, 30 * second, 0},
		"limit of a list":    {"list", limit, public, 2 * second, 30 * second, 0},
		"limit, signed":      {"advanced", limit, account, 2 * second, 30 * second, 0},
		"limit, EX":          {"exchange", limit, account, 2 * second, 30 * second, 0},
		"block":              {"book", block, ip, time.Minute, time.Hour, 0},
		"block, signed":      {"exchange", block, ip, time.Minute, time.Hour, 0},
		"auth":               {"advanced", plain(401, "Unauthorized"), account, 30 * second, 10 * time.Minute, 3},
		"auth, EX":           {"exchange", says(401, `{"message":"Invalid API Key"}`), account, 30 * second, 10 * time.Minute, 3},
		"451":                {"book", says(451, ""), world, 30 * second, 10 * time.Minute, 0},
		"451, signed":        {"advanced", says(451, ""), account, 30 * second, 10 * time.Minute, 0},
		"451, EX":            {"exchange", says(451, ""), account, 30 * second, 10 * time.Minute, 0},
		"undecodable":        {"book", says(200, `{"pricebook":{`), symbol, second, 30 * second, 0},
		"other product":      {"book", says(200, book("ETH-USD", "", "")), symbol, second, 30 * second, 0},
		"opaque error":       {"book", says(200, `{"error":"NEW","message":"hello"}`), symbol, second, 30 * second, 0},
		"another's 404":      {"book", says(404, `{"message":"no Route matched with those values"}`), market.Scope{}, 0, 0, 0},
		"a new code":         {"book", says(400, `{"error":"NEW","message":"hello"}`), symbol, second, 30 * second, 0},
		"a new code, signed": {"advanced", says(400, `{"error":"NEW","message":"hello"}`), account, 30 * second, 10 * time.Minute, 3},
		"new words, EX":      {"exchange", says(400, `{"message":"hello"}`), account, 30 * second, 10 * time.Minute, 3},
		"undecodable figure": {"figures", says(200, "{"), market.Scope{}, 0, 0, 0},
		"undecodable list":   {"list", says(200, "{"), market.Scope{}, 0, 0, 0},
		"undecodable money":  {"advanced", says(200, "{"), market.Scope{}, 0, 0, 0},
		"401, keyless":       {"book", plain(401, "Unauthorized"), market.Scope{}, 0, 0, 0},
		"unknown product":    {"book", says(404, `{"error":"NOT_FOUND"}`), market.Scope{}, 0, 0, 0},
		"clock":              {"exchange", says(401, `{"message":"request timestamp expired"}`), market.Scope{}, 0, 0, 0},
		"502":                {"book", html(502, "<html>"), market.Scope{}, 0, 0, 0},
		"503":                {"book", says(503, ""), market.Scope{}, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			e, f := ask(t, c.ask, c.answer)
			got := e.Refusal
			if c.scope.Kind == "" {
				if got != nil {
					t.Errorf("%v closes %+v", e, got)
				}
				return
			}
			if got == nil || got.Scope != c.scope || got.First != c.first || got.Max != c.most || got.After != c.after || !got.NotBefore.IsZero() {
				t.Fatalf("%v closes %+v, want %+v for %v to %v after %d", e, got, c.scope, c.first, c.most, c.after)
			}
			if o := f.observed[len(f.observed)-1]; o.Err == nil || o.Err.Refusal == nil || o.Err.Refusal.Scope != c.scope {
				t.Errorf("the door was told %+v", o.Err)
			}
		})
	}
}

// TestRetryAfter: it is not documented, but holds where it comes, for a minute at most.
func TestRetryAfter(t *testing.T) {
	limit := func(header string) answer {
		return answer{status: 429, body: `{"message":"Public rate limit exceeded"}`, header: map[string]string{"Retry-After": header}}
	}
	for name, c := range map[string]struct {
		answer answer
		want   time.Duration // on the error
		gate   time.Duration // how far ahead the gate's end is, before it is clamped
	}{
		"seconds":  {limit("20"), 20 * second, 20 * second},
		"too long": {limit("7200"), time.Minute, 2 * time.Hour},
		"503":      {answer{status: 503, header: map[string]string{"Retry-After": "5"}}, 5 * second, 5 * second},
		"block":    {answer{status: 403, body: "<html>", header: map[string]string{"Retry-After": "30"}}, 30 * second, 30 * second},
		"a date":   {dated(limit("Sun, 29 Nov 2026 02:00:20 GMT")), 20 * second, 20 * second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, _ := ask(t, "book", c.answer)
				if e.RetryAfter != c.want {
					t.Errorf("retry after %v, want %v", e.RetryAfter, c.want)
				}
				r := e.Refusal
				if r == nil || !r.NotBefore.Equal(time.Now().Add(c.gate)) || r.Clamp != time.Minute {
					t.Errorf("refusal %+v, want %v ahead, believed for a minute", r, c.gate)
				}
			})
		})
	}
	for _, rubbish := range []string{"soon", "-", "1.5", "0", "-3", "Sun, 29 Nov 1998 01:00:00 GMT"} {
		if e, _ := ask(t, "book", limit(rubbish)); e.RetryAfter != 0 || e.Refusal == nil || !e.Refusal.NotBefore.IsZero() {
			t.Errorf("Retry-After %q: %+v", rubbish, e.Refusal)
		}
	}
	if e, _ := ask(t, "book", answer{status: 502, header: map[string]string{"Retry-After": "5"}}); e.Refusal != nil {
		t.Errorf("a 502 closes %+v", e.Refusal)
	}
}

func dated(a answer) answer {
	a.header["Date"] = "Sun, 29 Nov 2026 02:00:00 GMT"
	return a
}

// TestFreshToken: Advanced Trade alone gets one more attempt after a 401, and only where there is a token to renew.
func TestFreshToken(t *testing.T) {
	for name, c := range map[string]struct {
		ask    string
		answer answer
		want   time.Duration
	}{
		"advanced":        {"advanced", plain(401, "Unauthorized"), second},
		"advanced, JSON":  {"advanced", says(401, `{"error":"unauthenticated"}`), second},
		"advanced, 403":   {"advanced", says(403, `{"error":"PERMISSION_DENIED"}`), 0},
		"advanced, clock": {"advanced", says(401, `{"message":"request timestamp expired"}`), 0},
		"exchange":        {"exchange", says(401, `{"message":"Invalid API Key"}`), 0},
		"keyless":         {"book", plain(401, "Unauthorized"), 0},
		"limit":           {"advanced", says(429, ""), 0},
	} {
		if e, _ := ask(t, c.ask, c.answer); e.RetryOnceAfter != c.want {
			t.Errorf("%s: once more after %v, want %v", name, e.RetryOnceAfter, c.want)
		}
	}
}

// TestErrors_sayNothingSecret: words of a keyless answer may be repeated without addresses and keys, those of a signed
// one only if we know them by heart.
func TestErrors_sayNothingSecret(t *testing.T) {
	leaks := `Invalid API Key: EXAMPLEKEY of 203.0.113.9 (2001:db8::1) a0b1c2d3e4f5a6b7c8 EXAMPLEKEYWITHOUTANYDIGITINIT see https://x.example/?a=1 me@x.example9 short`
	for _, status := range []int{200, 400, 401, 403, 429, 500, 503} {
		e, _ := ask(t, "advanced", says(status, `{"error":"`+exampleKeyID+`","message":"`+leaks+`"}`))
		for _, secret := range []string{"EXAMPLEKEY", "203.0", "2001", "a0b1", "x.example", "short", "00000000"} {
			if strings.Contains(e.Error(), secret) {
				t.Errorf("HTTP %d: %v shows %s", status, e, secret)
			}
		}
	}
	e, _ := ask(t, "book", says(400, `{"error":"FAILED_PRECONDITION","message":"`+leaks+`"}`))
	for _, secret := range []string{"203.0", "2001", "a0b1", "x.example", "WITHOUTANYDIGIT"} {
		if strings.Contains(e.Error(), secret) {
			t.Errorf("%v shows %s", e, secret)
		}
	}
	if !strings.Contains(e.Error(), "short") {
		t.Errorf("%v: plain words help whoever is on call", e)
	}
	known, _ := ask(t, "exchange", says(401, `{"message":"Invalid API Key"}`))
	if !strings.Contains(known.Error(), "Invalid API Key") {
		t.Errorf("%v: a text that we know by heart is safe", known)
	}
	long, _ := ask(t, "book", says(400, `{"error":"NEW","message":"`+strings.Repeat("word ", 1000)+`"}`))
	if n := len(long.Err.Error()); n > 260 {
		t.Errorf("%d bytes of the exchange's words", n)
	}
}

// TestErrors_nameTheRay: the CDN's support asks for it.
func TestErrors_nameTheRay(t *testing.T) {
	for header, want := range map[string]bool{"8e2f6a7b9c0d1e2f-FRA": true, "<script>": false, strings.Repeat("a", 99): false} {
		a := html(502, "<html>")
		a.header["Cf-Ray"] = header
		if e, _ := ask(t, "book", a); strings.Contains(e.Error(), header) != want {
			t.Errorf("%v: names %q: want %t", e, header, want)
		}
	}
}

func FuzzErrors(f *testing.F) {
	for _, s := range []string{
		`{"message":"NotFound"}`, `{"error":"NOT_FOUND","code":5}`, `{"errors":[{"id":"a"}]}`, `{"error_response":{"error":"X"}}`,
		"Unauthorized", "<html>", "", `{"errors":{}}`, `{"message":1,"error":null}`,
	} {
		f.Add(404, s)
	}
	f.Fuzz(func(t *testing.T, status int, body string) {
		if status < 200 || status > 599 {
			return
		}
		for _, what := range []string{"book", "exchange"} {
			v, net := newVenue(t)
			net.on(bookPath, says(status, body)).on(profilePath, says(status, body))
			var err error
			if what == "book" {
				_, err = v.OrderBook(t.Context(), btcUSD(), 5)
			} else {
				_, err = newAccount(t, v, exchangeKey()).Balances(t.Context(), market.WalletTrading)
			}
			if err == nil {
				if status > 299 {
					t.Fatalf("HTTP %d %q is no error", status, body)
				}
				continue
			}
			e := asError(t, err)
			if e.Kind == market.KindNone || e.Kind.Local() || len(e.Error()) > 600 {
				t.Fatalf("HTTP %d %q: %v", status, body, e)
			}
			if e.OurFault != (e.Kind == market.KindInvalid) {
				t.Fatalf("HTTP %d %q: our fault %t, %v", status, body, e.OurFault, e)
			}
		}
	})
}
