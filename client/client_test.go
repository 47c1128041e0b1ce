package client_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"exchange-gateway/client"
	"exchange-gateway/internal/api"
)

// golden is an answer that the gateway's own tests hold it to.
func golden(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "internal", "api", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// serve answers every request with one answer and counts them; what was asked last is in asked.
type serve struct {
	*httptest.Server
	calls atomic.Int64
	asked atomic.Pointer[http.Request]
}

func answering(t *testing.T, status int, media, body string, header ...string) *serve {
	t.Helper()
	s := &serve{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.calls.Add(1)
		s.asked.Store(r)
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.Header().Set("Content-Type", media)
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body)) // the client may have hung up
	}))
	t.Cleanup(s.Close)
	return s
}

func connect(t *testing.T, base string, o client.Options) *client.Client {
	t.Helper()
	c, err := client.New(base, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const jsonType = "application/json"

func TestTicker(t *testing.T) {
	s := answering(t, 200, jsonType, golden(t, "ticker.json"))
	before := time.Now()
	x, err := connect(t, s.URL, client.Options{Key: "gw_demo_fake"}).Ticker(t.Context(), "binance", "BTC/USDT", client.MaxAge(1500*time.Microsecond), client.RequireLive)
	if err != nil {
		t.Fatal(err)
	}
	if x.Bid != "64073.00" || x.Mid != "64073.05" || x.Spread != "0.10" || x.BaseVolume != "12345.67890000" || x.QuoteVolume.Known() {
		t.Errorf("numbers: %+v", x)
	}
	f := x.Freshness
	if f.Stale || f.Status != client.StatusLive || f.Source != "rest" || f.Age != 42*time.Millisecond || f.ConfirmedAt.IsZero() || f.Circuit != "closed" || f.HasLag {
		t.Errorf("freshness: %+v", f)
	}
	if age := f.AgeNow(f.ReceivedAt.Add(time.Second)); age != 1042*time.Millisecond {
		t.Errorf("a second later it is %v old", age)
	}
	if f.ReceivedAt.Before(before) || f.AgeNow(before.Add(-time.Hour)) != f.Age {
		t.Errorf("received at %v; the age before that is %v", f.ReceivedAt, f.AgeNow(before.Add(-time.Hour)))
	}
	if st := x.StatsFreshness; !st.Stale || st.Reason != "timeout" || st.Age != time.Minute {
		t.Errorf("freshness of the statistics: %+v", st)
	}
	r := s.asked.Load()
	if r.URL.Path != "/v1/exchanges/binance/ticker" || r.URL.Query().Encode() != "max_age_ms=1&require=live&symbol=BTC%2FUSDT" {
		t.Errorf("asked for %s", r.URL)
	}
	if r.Header.Get("Authorization") != "Bearer gw_demo_fake" || r.Header.Get("User-Agent") != "exchange-gateway-client-go" {
		t.Errorf("headers %v", r.Header)
	}
}

func TestBalance_debt(t *testing.T) {
	s := answering(t, 200, jsonType, `{"exchange":"okx","account":"main","balances":{"BTC":{"free":"0","used":"0","total":"-0.250","debt":"0.250"},`+
		`"USDT":{"free":"5","used":"0","total":"5"}}}`)
	b, err := connect(t, s.URL, client.Options{}).Balance(t.Context(), "okx")
	if err != nil || b.Balances["BTC"].Debt != "0.250" || b.Balances["BTC"].Total != "-0.250" || b.Balances["USDT"].Debt.Known() {
		t.Errorf("%+v, %v", b, err)
	}
}

func TestTickers(t *testing.T) {
	s := answering(t, 200, jsonType, golden(t, "tickers.json"))
	all, err := connect(t, s.URL, client.Options{}).Tickers(t.Context(), "binance", "BTC/USDT", "ETH/USDT")
	if err != nil || len(all) != 2 || all[0].Ticker == nil || all[0].Err != nil || all[1].Ticker != nil || !errors.Is(all[1].Err, client.ErrBookNotHeld) {
		t.Fatalf("%+v, %v", all, err)
	}
	if st := all[0].Ticker.StatsFreshness; st.Status != "unavailable" || !st.Stale || st.Reason != "circuit_open" {
		t.Errorf("statistics that are not there: %+v", st)
	}
	if q := s.asked.Load().URL.Query().Get("symbols"); q != "BTC/USDT,ETH/USDT" {
		t.Errorf("asked for %s", q)
	}
}

func TestOrderBooksAndPrice(t *testing.T) {
	s := answering(t, 200, jsonType, golden(t, "orderbooks.json"))
	all, err := connect(t, s.URL, client.Options{}).OrderBooks(t.Context(), "BTC/USDT", client.Depth(1), client.MaxAge(time.Minute))
	if err != nil || len(all.Venues) != 3 || all.BestBid.Exchange != "binance" || all.BestAsk.Price != "64073.10" {
		t.Fatalf("%+v, %v", all, err)
	}
	stale, down := all.Venues[1], all.Venues[2]
	if !stale.Book.Freshness.Stale || stale.Book.Freshness.Age != 8300*time.Millisecond || *stale.Book.Nonce != 66813971942 || stale.Err != nil {
		t.Errorf("the stale book: %+v", stale)
	}
	if down.Book != nil || !errors.Is(down.Err, client.ErrCircuitOpen) || down.Err.RetryAfter != 3*time.Second {
		t.Errorf("the one that is down: %+v", down)
	}
	if mid, ok := stale.Book.Mid(); !ok || mid.String() != "64073.05" {
		t.Errorf("mid %v %v", mid, ok)
	}
	if spread, ok := stale.Book.Spread(); !ok || spread.String() != "0.1" {
		t.Errorf("spread %v %v", spread, ok)
	}
	p := answering(t, 200, jsonType, golden(t, "price.json"))
	price, err := connect(t, p.URL, client.Options{}).Price(t.Context(), "BTC/USDT", []string{"binance", "okx"}, client.MaxAge(time.Minute))
	if err != nil || price.Exchange != "okx" || price.Mid != "64073.05" || !price.Fallback || !price.Freshness.Stale || len(price.Passed) != 1 ||
		!errors.Is(price.Passed[0].Err, client.ErrCircuitOpen) {
		t.Errorf("%+v, %v", price, err)
	}
	if q := p.asked.Load().URL.Query(); q.Get("exchanges") != "binance,okx" || q.Get("max_age_ms") != "60000" {
		t.Errorf("asked for %v", q)
	}
}

func TestTheOtherRoutes(t *testing.T) {
	ctx := t.Context()
	on := func(name string) *client.Client {
		return connect(t, answering(t, 200, jsonType, golden(t, name)).URL, client.Options{})
	}
	if x, err := on("exchanges.json").Exchanges(ctx); err != nil || len(x.Exchanges) != 3 || !x.Exchanges[0].Has["fetchBalance"] ||
		x.Exchanges[1].Circuits["market_data"] != "open" || len(x.Exchanges[1].Wallets) != 2 || len(x.Degraded) != 1 {
		t.Errorf("exchanges: %+v, %v", x, err)
	}
	if m, err := on("markets.json").Markets(ctx, "binance"); err != nil || len(m.Markets) != 2 || m.Markets[0].Tick != "0.01" || !m.Markets[0].Active ||
		m.Markets[1].MinSize.Known() || m.Markets[1].AliasOf != "BTCUSDT" || m.Freshness.Age != 90*time.Second {
		t.Errorf("markets: %+v, %v", m, err)
	}
	if st, err := on("status.json").Status(ctx, "binance"); err != nil || st.Status != "maintenance" || len(st.Maintenance) != 2 || !st.Maintenance[0].Active ||
		st.Circuits[0].State != "open" || st.Circuits[0].NextProbeAt.IsZero() || st.Gates[0].Kind != "banned" || st.Budgets[0].Used != 17 {
		t.Errorf("status: %+v, %v", st, err)
	}
	if b, err := on("balance.json").Balance(ctx, "okx", client.Account("main"), client.Wallet("funding")); err != nil || b.Account != "main" ||
		b.Balances["BTC"] != (client.Amount{Free: "0.50000000", Used: "0.10000000", Total: "0.60000000"}) || b.ReceivedAt.IsZero() {
		t.Errorf("balance: %+v, %v", b, err)
	}
	if rows, err := on("errors.json").Errors(ctx); err != nil || len(rows) != len(api.Catalogue()) || rows[0].Code != client.ErrInvalidParameter || rows[0].Action == "" {
		t.Errorf("errors: %d, %v", len(rows), err)
	}
}

func TestErrors_tellWhatTheGatewaySaid(t *testing.T) {
	s := answering(t, 503, "application/problem+json", golden(t, "problem_price_unavailable.json"), "Retry-After", "3")
	_, err := connect(t, s.URL, client.Options{}).Price(t.Context(), "BTC/USDT", nil)
	var e *client.Error
	if !errors.As(err, &e) || !errors.Is(err, client.ErrPriceUnavailable) || errors.Is(err, client.ErrCircuitOpen) || e.Status != 503 || !e.Retryable ||
		e.RetryAfter != 3*time.Second || e.CCXTClass != "ExchangeNotAvailable" || e.Origin != "gateway" || len(e.Venues) != 2 ||
		!errors.Is(e.Venues[1].Err, client.ErrSymbolUnknown) || e.Venues[1].Err.Origin != "exchange" {
		t.Errorf("%+v", err)
	}
	s = answering(t, 400, "application/problem+json; charset=utf-8", golden(t, "problem_unknown_parameter.json"))
	_, err = connect(t, s.URL, client.Options{}).OrderBook(t.Context(), "okx", "BTC/USDT")
	if !errors.As(err, &e) || !errors.Is(err, client.ErrUnknownParameter) || e.Retryable || e.Parameter != "max_age" || !slices.Contains(e.Allowed, "max_age_ms") {
		t.Errorf("%+v", err)
	}
}

// A code of a later gateway, fields that nobody knows and a proxy's page are errors all the same.
func TestErrors_fromOthers(t *testing.T) {
	var e *client.Error
	ask := func(status int, media, body string, header ...string) {
		t.Helper()
		_, err := connect(t, answering(t, status, media, body, header...).URL, client.Options{}).OrderBook(t.Context(), "okx", "BTC/USDT")
		if e = nil; !errors.As(err, &e) || e.Status != status || err.Error() == "" {
			t.Fatalf("%d %s: %v", status, body, err)
		}
	}
	ask(503, "application/problem+json", `{"code":"moon_too_bright","status":1,"retryable":true,"retry_after_ms":2500,"phase":{"of":["the","moon"]}}`)
	if e.Code != "moon_too_bright" || !errors.Is(e, client.Code("moon_too_bright")) || e.RetryAfter != 2500*time.Millisecond {
		t.Errorf("a code of a later gateway: %+v", e)
	}
	ask(502, "text/html", "<html>bad gateway: secret</html>", "Retry-After", "7")
	if e.Code != "" || !e.Retryable || e.RetryAfter != 7*time.Second || strings.Contains(e.Error(), "secret") || errors.Is(e, client.Code("")) {
		t.Errorf("a proxy: %v", e)
	}
	ask(503, "application/problem+json", `{"code":`, "Retry-After", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat))
	if e.Code != "" || e.RetryAfter < 59*time.Minute || e.RetryAfter > time.Hour {
		t.Errorf("half a problem: %+v", e)
	}
	ask(302, "text/plain", "", "Location", "http://127.0.0.1:1/elsewhere")
	if e.Retryable {
		t.Errorf("a redirect: %+v", e)
	}
	ask(500, "application/problem+json", strings.Repeat("x", 2<<20))
	ask(503, "application/problem+json", `{"code":"circuit_open","retryable":true,"retry_after_ms":9223372036854775807}`)
	if e.RetryAfter <= 0 {
		t.Errorf("an endless wait: %v", e.RetryAfter)
	}
}

func TestNetworkErrors(t *testing.T) {
	ask := func(base string, timeout time.Duration) error {
		_, err := connect(t, base, client.Options{Key: "gw_demo_fake", Timeout: timeout}).Balance(t.Context(), "okx")
		var n *client.NetworkError
		var e *client.Error
		if !errors.As(err, &n) || errors.As(err, &e) || strings.Contains(err.Error(), "gw_demo_fake") {
			t.Errorf("%v is no network error", err)
		}
		return err
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	if err := ask(gone.URL, 0); errors.Is(err, client.ErrBadAnswer) || strings.Contains(err.Error(), "/v1/") {
		t.Errorf("nobody there: %v", err)
	}
	release := make(chan struct{})
	hung := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer hung.Close()
	defer close(release)
	if err := ask(hung.URL, 50*time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a gateway that hangs: %v", err)
	}
	for what, body := range map[string]string{
		"half":          `{"exchange":"okx","account":"main","balances":{"BTC"`,
		"something":     `{"hello":"world"}`,
		"page":          `<html></html>`,
		"a JSON number": `{"exchange":"okx","account":"main","balances":{"BTC":{"free":1.5,"used":"0","total":"1.5"}}}`,
		"no amount":     `{"exchange":"okx","account":"main","balances":{"BTC":{"free":null,"used":"0","total":"1.5"}}}`,
		"no account":    `{"exchange":"okx","balances":{}}`,
		"huge":          `{"exchange":"` + strings.Repeat("x", 33<<20) + `"}`,
	} {
		if err := ask(answering(t, 200, jsonType, body).URL, 0); !errors.Is(err, client.ErrBadAnswer) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, body := range []string{`{}`, `{"exchange":"okx","symbol":"BTC/USDT","bids":[],"asks":[]}`} {
		if b, err := connect(t, answering(t, 200, jsonType, body).URL, client.Options{}).OrderBook(t.Context(), "okx", "BTC/USDT"); !errors.Is(err, client.ErrBadAnswer) {
			t.Errorf("%s was taken for a book: %+v, %v", body, b, err)
		}
	}
}

// A redirect would take the key elsewhere.
func TestRedirectsAreNotFollowed(t *testing.T) {
	other := answering(t, 200, jsonType, golden(t, "balance.json"))
	s := answering(t, 307, "text/plain", "", "Location", other.URL)
	c := connect(t, s.URL, client.Options{Key: "gw_demo_fake", HTTPClient: &http.Client{}})
	if b, err := c.Balance(t.Context(), "okx"); err == nil || other.calls.Load() != 0 {
		t.Errorf("%+v, %v; the other server was asked %d times", b, err, other.calls.Load())
	}
}

func TestNew_refuses(t *testing.T) {
	for _, base := range []string{"", "127.0.0.1:8080", "ftp://x", "http://", "http://u:p@h", "http://h/?a=b", "http://h/#f", "http://[::1"} {
		if _, err := client.New(base, client.Options{}); err == nil {
			t.Errorf("%q was taken", base)
		}
	}
	for _, o := range []client.Options{{Key: "gw_a\r\nX: y"}, {UserAgent: "a\n"}, {Timeout: -1}, {Silence: -1}, {Retry: client.Retry{Attempts: -1}}} {
		if _, err := client.New("http://h", o); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
}

func TestKeysDoNotShow(t *testing.T) {
	o := client.Options{Key: "gw_demo_fake"}
	c := connect(t, "http://127.0.0.1:1", o)
	for _, v := range []any{o, &o, c, o.Key} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
			if s := fmt.Sprintf(verb, v); strings.Contains(s, "gw_demo_fake") {
				t.Errorf("%s of %T shows the key", verb, v)
			}
		}
	}
}

// Every code of the gateway has a constant, and there is no other.
func TestCodes_areTheCatalogue(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "error.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var named []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if kind, ok := spec.Type.(*ast.Ident); ok && kind.Name == "Code" {
			code, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			named = append(named, code)
		}
		return true
	})
	var want []string
	for _, row := range api.Catalogue() {
		want = append(want, string(row.Code))
	}
	slices.Sort(named)
	slices.Sort(want)
	if !slices.Equal(named, want) {
		t.Errorf("constants %v\nthe catalogue %v", named, want)
	}
}
