package api_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"exchange-gateway/internal/api"
	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

const bookURL = "/v1/exchanges/okx/orderbook?symbol=BTC/USDT"

// kindProblems is what each kind becomes over HTTP, with what ccxt would raise.
var kindProblems = map[market.Kind]struct {
	status    int
	code      string
	class     string
	origin    string
	retryable bool
}{
	market.KindInvalid:       {400, "invalid_parameter", "BadRequest", "exchange", false},
	market.KindUnknownSymbol: {404, "symbol_unknown", "BadSymbol", "exchange", false},
	market.KindDelisted:      {404, "symbol_delisted", "BadSymbol", "exchange", false},
	market.KindAuth:          {502, "exchange_auth_failed", "AuthenticationError", "exchange", false},
	market.KindClockSkew:     {502, "clock_skew", "InvalidNonce", "exchange", true},
	market.KindRestricted:    {502, "exchange_restricted", "PermissionDenied", "exchange", false},
	market.KindRateLimited:   {503, "upstream_rate_limited", "RateLimitExceeded", "exchange", true},
	market.KindBanned:        {503, "upstream_banned", "DDoSProtection", "exchange", true},
	market.KindTimeout:       {504, "upstream_timeout", "RequestTimeout", "exchange", true},
	market.KindUnavailable:   {502, "upstream_error", "ExchangeNotAvailable", "exchange", true},
	market.KindMaintenance:   {503, "exchange_maintenance", "OnMaintenance", "exchange", true},
	market.KindMalformed:     {502, "upstream_bad_response", "BadResponse", "exchange", true},
	market.KindSuspect:       {502, "upstream_bad_response", "BadResponse", "exchange", true},
	market.KindCircuitOpen:   {503, "circuit_open", "ExchangeNotAvailable", "gateway", true},
	market.KindIsolated:      {503, "isolated", "ExchangeNotAvailable", "gateway", true},
	market.KindWithheld:      {503, "withheld", "ExchangeNotAvailable", "gateway", true},
	market.KindOverloaded:    {503, "overloaded", "RateLimitExceeded", "gateway", true},
	market.KindClientLimited: {429, "client_rate_limited", "RateLimitExceeded", "gateway", true},
	market.KindLocalResource: {503, "local_resource", "ExchangeNotAvailable", "gateway", true},
	market.KindNotSupported:  {501, "not_supported", "NotSupported", "gateway", false},
	market.KindInternal:      {500, "internal", "ExchangeError", "gateway", false},
}

func TestKinds_asProblems(t *testing.T) {
	for _, k := range market.Kinds() {
		if k == market.KindCanceled {
			continue // see TestCanceled
		}
		want, ok := kindProblems[k]
		if !ok {
			t.Errorf("%s has no row here", k)
			continue
		}
		r := newRig(t)
		r.books.err = fmt.Errorf("read book: %w", &market.Error{
			Exchange: "okx", Op: market.OpOrderBook, Kind: k, RetryAfter: 7 * time.Second, Status: 418, Code: "50011",
			Err: errors.New("<html>their very own words</html>"),
		})
		w := r.get(bookURL)
		p := readProblem(t, w)
		if p.Status != want.status || p.Code != want.code || p.CCXTClass != want.class || p.Origin != want.origin || p.Retryable != want.retryable {
			t.Errorf("%s: got %+v, want %+v", k, p, want)
		}
		if p.Exchange == nil || *p.Exchange != "okx" || p.Reason != k.String() || p.Circuit == nil || *p.Circuit != "open" {
			t.Errorf("%s: exchange %v, reason %q, circuit %v", k, p.Exchange, p.Reason, p.Circuit)
		}
		if p.Retryable && (*p.RetryAfterMS < 7000 || *p.RetryAfterMS > 9000) {
			t.Errorf("%s: retry after %d ms, want 7 s and 0-20 %%, in whole seconds", k, *p.RetryAfterMS)
		}
		if p.Retryable != k.Retryable() {
			t.Errorf("%s: the kind says retryable %v", k, k.Retryable())
		}
		if strings.Contains(w.Body.String(), "their very own words") {
			t.Errorf("%s: the exchange's words are passed on: %s", k, w.Body)
		}
		for _, s := range []string{"HTTP status: 418", "code: 50011"} {
			if !strings.Contains(p.Detail, s) {
				t.Errorf("%s: detail lacks %q: %s", k, s, p.Detail)
			}
		}
	}
}

func TestProblem_theGatewaysOwnFault(t *testing.T) {
	r := newRig(t)
	r.books.err = &market.Error{Exchange: "okx", Op: market.OpOrderBook, Kind: market.KindInvalid, OurFault: true}
	p := readProblem(t, r.get(bookURL))
	if p.Status != 502 || p.Code != "upstream_error" || p.Origin != "gateway" || p.Retryable || p.RetryAfterMS != nil {
		t.Errorf("got %+v", p)
	}
	if strings.Contains(p.Detail, "could not be reached") || !strings.Contains(p.Detail, "refused the gateway's own request as wrong") {
		t.Errorf("detail: %q: the exchange was reached", p.Detail)
	}
}

// TestProblem_aPairThatNoListNames: who decided is told apart by origin.
func TestProblem_aPairThatNoListNames(t *testing.T) {
	r := newRig(t)
	word := &market.Error{Exchange: "okx", Op: market.OpOrderBook, Kind: market.KindUnknownSymbol}
	r.books.err = &gateway.Error{Code: gateway.CodeSymbolUnknown, Exchange: "okx", Detail: "okx does not list it; did you mean X/Y?", Err: word}
	p := readProblem(t, r.get(bookURL))
	if p.Status != 404 || p.Origin != "gateway" || p.Retryable || p.CCXTClass != "BadSymbol" || p.Detail != "Okx does not list it; did you mean X/Y?" {
		t.Errorf("our list: got %+v", p)
	}
	r.books.err = &gateway.Error{
		Code: gateway.CodeSymbolUnknown, Detail: "nobody", Err: word, Venues: []gateway.VenueBook{{Exchange: "okx", Err: word}},
	}
	for _, target := range []string{"/v1/price?symbol=A/B", "/v1/orderbooks?symbol=A/B"} {
		if p := readProblem(t, r.get(target)); p.Status != 404 || p.Code != "symbol_unknown" || p.Origin != "gateway" || p.Exchange != nil {
			t.Errorf("%s: got %+v", target, p)
		}
	}
	r.books.err = word
	if p := readProblem(t, r.get(bookURL)); p.Status != 404 || p.Origin != "exchange" {
		t.Errorf("the exchange's own word: got %+v", p)
	}
}

func TestErrorTable_saysWhereRetryingDepends(t *testing.T) {
	table := api.ErrorTable()
	for code, want := range map[string]string{
		"upstream_error": "if it can help", "books_unavailable": "if it can help", "price_unavailable": "if it can help",
		"book_too_stale": "if it can help", "upstream_timeout": "yes", "symbol_unknown": "no",
	} {
		i := strings.Index(table, "`"+code+"`")
		line, _, _ := strings.Cut(table[i:], "\n")
		if cells := strings.Split(line, " | "); cells[2] != want {
			t.Errorf("%s: retry %q, want %q", code, cells[2], want)
		}
	}
}

func TestProblem_unclassifiedIsUnavailable(t *testing.T) {
	r := newRig(t)
	r.books.err = errors.New("something odd with key=abc")
	w := r.get(bookURL)
	if p := readProblem(t, w); p.Code != "upstream_error" || strings.Contains(w.Body.String(), "odd") {
		t.Errorf("got %+v", p)
	}
}

// gatewayCodes reads the closed set of the policy's codes from its source, so that a new one cannot be forgotten here.
func gatewayCodes(t *testing.T) []gateway.Code {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../gateway/problem.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var codes []gateway.Code
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok {
			if id, ok := v.Type.(*ast.Ident); ok && id.Name == "Code" {
				text, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				codes = append(codes, gateway.Code(text))
			}
		}
		return true
	})
	if len(codes) < 9 {
		t.Fatalf("found only %v", codes)
	}
	return codes
}

func TestPolicyCodes_asProblems(t *testing.T) {
	for _, code := range gatewayCodes(t) {
		r := newRig(bare{t}) // no order book has most of them
		r.books.err = &gateway.Error{
			Code: code, Exchange: "okx", Detail: "Said by the policy.", Age: 5 * time.Second,
			Err: &market.Error{Exchange: "okx", Op: market.OpOrderBook, Kind: market.KindCircuitOpen, RetryAfter: 4 * time.Second},
		}
		p := readProblem(t, r.get(bookURL))
		if p.Code != string(code) || p.Origin != "gateway" || p.Detail != "Said by the policy." || p.AgeMS != 5000 || p.Reason != "circuit_open" {
			t.Errorf("%s: got %+v", code, p)
		}
		if p.Retryable && *p.RetryAfterMS < 4000 {
			t.Errorf("%s: retry after %d ms: earlier than the next probe", code, *p.RetryAfterMS)
		}
	}
}

func TestPolicyProblem_isWorthRetryingOnlyIfItsCauseIs(t *testing.T) {
	r := newRig(t)
	r.books.err = &gateway.Error{
		Code: gateway.CodeBookTooStale, Exchange: "okx", Age: time.Hour,
		Err: &market.Error{Exchange: "okx", Op: market.OpOrderBook, Kind: market.KindRestricted},
	}
	if p := readProblem(t, r.get(bookURL)); p.Retryable || p.Reason != "restricted" {
		t.Errorf("got %+v", p)
	}
}

func TestPolicyProblem_withoutATimeIsNotWorthRetrying(t *testing.T) {
	r := newRig(t)
	r.books.err = &gateway.Error{Code: gateway.CodePriceUnavailable, Detail: "nobody lists it"}
	if p := readProblem(t, r.get("/v1/price?symbol=BTC/USDT")); p.Retryable || p.Detail != "Nobody lists it." {
		t.Errorf("got %+v", p)
	}
}

func TestProblem_aTimeInThePastIsASecond(t *testing.T) {
	r := newRig(t)
	r.books.err = &market.Error{Exchange: "okx", Op: market.OpOrderBook, Kind: market.KindBanned, RetryAfter: -time.Minute}
	if p := readProblem(t, r.get(bookURL)); *p.RetryAfterMS != 1000 {
		t.Errorf("got %+v", p)
	}
}

// TestProblem_callersAreSpreadOnce: by a fifth of the wait, and by seconds where that is hours. All of it is used.
func TestProblem_callersAreSpreadOnce(t *testing.T) {
	r := newRig(t)
	waits := map[market.Kind]time.Duration{
		market.KindMaintenance: 50 * time.Second, market.KindIsolated: 25 * time.Second, market.KindWithheld: 25 * time.Second,
	}
	kind := market.KindBanned
	f := func(wait, most time.Duration) {
		t.Helper()
		r.books.err = &market.Error{Exchange: "okx", Op: market.OpOrderBook, Kind: kind, RetryAfter: wait}
		if bound, ok := waits[kind]; ok {
			wait = min(wait, bound)
		}
		low, high := most, wait
		for range 300 {
			p := readProblem(t, r.get(bookURL))
			got := time.Duration(*p.RetryAfterMS) * time.Millisecond
			low, high = min(low, got), max(high, got)
		}
		if low < wait || high > most || low > wait+(most-wait)/2 || high < wait+(most-wait)/2 {
			t.Errorf("a wait of %v is told as %v to %v, want up to %v", wait, low, high, most)
		}
	}
	f(30*time.Second, 36*time.Second)
	f(time.Minute, 72*time.Second)
	f(10*time.Minute, 612*time.Second)
	f(72*time.Hour, 72*time.Hour+12*time.Second)
	kind = market.KindMaintenance
	f(30*time.Second, 36*time.Second)
	f(4*time.Hour, time.Minute)
	for _, kind = range []market.Kind{market.KindIsolated, market.KindWithheld} {
		f(10*time.Second, 12*time.Second)
		f(4*time.Hour, 30*time.Second)
	}
}

func TestProblem_namesEachVenue(t *testing.T) {
	r := newRig(t)
	r.books.err = &gateway.Error{
		Code: gateway.CodePriceUnavailable, RetryAfter: 2500 * time.Millisecond,
		Venues: []gateway.VenueBook{
			{Exchange: "binance", Err: circuitOpen("binance")},
			{Exchange: "okx", Err: &market.Error{Exchange: "okx", Op: market.OpOrderBook, Kind: market.KindUnknownSymbol}},
		},
	}
	w := r.get("/v1/price?symbol=BTC/USDT")
	readProblem(t, w)
	golden(t, "problem_price_unavailable", w.Body.Bytes())
}

func TestCanceled_isLoggedAndNotAnswered(t *testing.T) {
	gone := &market.Error{Exchange: "okx", Op: market.OpOrderBook, Kind: market.KindCanceled, Err: context.Canceled}
	for name, err := range map[string]error{
		"canceled": gone, "bare": context.Canceled, "wrapped": &gateway.Error{Code: gateway.CodeBookTooStale, Exchange: "okx", Err: gone},
		"timeout": &market.Error{Exchange: "okx", Op: market.OpOrderBook, Kind: market.KindTimeout},
	} {
		t.Run(name, func(t *testing.T) { callerLeaves(t, err) })
	}
}

func callerLeaves(t *testing.T, err error) {
	r := newRig(t)
	ctx, leave := context.WithCancel(t.Context())
	r.books.book = func(ctx context.Context, _ gateway.BookQuery) (*gateway.Book, error) {
		leave()
		<-ctx.Done()
		return nil, err
	}
	req, reqErr := http.NewRequestWithContext(ctx, http.MethodGet, bookURL, nil)
	if reqErr != nil {
		t.Fatal(reqErr)
	}
	req.Host = adminHost
	defer func() {
		if p := recover(); p != http.ErrAbortHandler {
			t.Errorf("ended with %v, want the connection broken off: an empty 200 could be taken for an answer", p)
		}
		if !strings.Contains(r.log.String(), "status=499") {
			t.Errorf("log: %s", r.log)
		}
		if n := metric(t, r.registry, "gateway_http_requests_total", "route", "orderbook", "method", "GET", "code", "499"); n != 1 {
			t.Errorf("%v requests with 499", n)
		}
	}()
	serve(r.server.Public(), req)
}

func TestCanceled_butTheCallerIsThere(t *testing.T) {
	r := newRig(t)
	r.books.err = &market.Error{Exchange: "okx", Op: market.OpOrderBook, Kind: market.KindCanceled}
	if p := readProblem(t, r.get(bookURL)); p.Code != "upstream_error" {
		t.Errorf("got %+v", p)
	}
}

func TestCatalogue_isWhole(t *testing.T) {
	seen := map[api.Code]bool{}
	for _, e := range api.Catalogue() {
		if seen[e.Code] {
			t.Errorf("%s appears twice", e.Code)
		}
		seen[e.Code] = true
		if e.Status < 400 || e.Title == "" || e.CCXTClass == "" || e.Meaning == "" || e.Action == "" || e.Origin == "" {
			t.Errorf("%s lacks something: %+v", e.Code, e)
		}
		if e.Retryable && e.Status < 500 && e.Status != http.StatusConflict && e.Status != http.StatusTooManyRequests {
			t.Errorf("%s: %d and retryable", e.Code, e.Status)
		}
	}
	for _, c := range gatewayCodes(t) {
		if !seen[api.Code(c)] {
			t.Errorf("%s of the policy is not in the catalogue", c)
		}
	}
	for k, p := range kindProblems {
		if !seen[api.Code(p.code)] {
			t.Errorf("%s of %s is not in the catalogue", p.code, k)
		}
	}
	rows := strings.Split(strings.TrimSpace(api.ErrorTable()), "\n")
	if len(rows) != len(seen)+2 {
		t.Errorf("the table has %d rows for %d codes", len(rows), len(seen))
	}
	for _, row := range rows {
		if strings.Count(row, "|") != 7 {
			t.Errorf("not a row of six cells: %s", row)
		}
	}
}
