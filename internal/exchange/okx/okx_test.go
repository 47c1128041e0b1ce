package okx_test

import (
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/exchange/exchangetest"
	"exchange-gateway/internal/exchange/okx"
	"exchange-gateway/internal/market"
)

var btc = market.Listing{Exchange: "okx", Pair: market.Pair{Base: "BTC", Quote: "USDT"}, Symbol: "BTC-USDT"}

// newVenue is a venue over a rig that answers by the script.
func newVenue(t testing.TB, script exchangetest.Script, change ...func(*exchange.Config)) (*okx.Venue, *exchangetest.Rig) {
	t.Helper()
	rig := exchangetest.NewRig(script)
	c := exchange.Config{Transport: rig, Door: rig}
	for _, f := range change {
		f(&c)
	}
	v, err := okx.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return v, rig
}

func newAccount(t testing.TB, v *okx.Venue, name string, demo bool) market.VenueAccount {
	t.Helper()
	a, err := v.Account(name, fakeCredential(demo))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// always answers every request alike; but for the time, which is good.
func always(p exchangetest.Reply) exchangetest.Script {
	good := fixtures()
	return func(r *http.Request, c market.Call) exchangetest.Reply {
		if c.Op == market.OpTime {
			return good(r, c)
		}
		return p
	}
}

func says(body string) exchangetest.Script { return always(exchangetest.Reply{Body: body}) }

// data is a good answer with rows.
func data(rows string) exchangetest.Script {
	return says(`{"code":"0","msg":"","data":[` + rows + `]}`)
}

// failure is the *market.Error of err.
func failure(t testing.TB, err error) *market.Error {
	t.Helper()
	e, ok := errors.AsType[*market.Error](err)
	if !ok {
		t.Fatalf("err = %v (%T), want a *market.Error", err, err)
	}
	return e
}

func sentOf(rig *exchangetest.Rig, path string) []*http.Request {
	var all []*http.Request
	for _, r := range rig.Requests() {
		if r.URL.Path == path {
			all = append(all, r)
		}
	}
	return all
}

func number(o market.Optional) string {
	if n, ok := o.Get(); ok {
		return n.String()
	}
	return "absent"
}

// recorded reads a recorded payload.
func recorded(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(exchangetest.Recorded(t, "okx"), name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestNew_regions(t *testing.T) {
	f := func(region string, hosts []string, want string) {
		t.Helper()
		v, rig := newVenue(t, fixtures(), func(c *exchange.Config) { c.Region, c.Hosts = region, hosts })
		if _, err := v.OrderBook(t.Context(), btc, 1); err != nil {
			t.Fatal(err)
		}
		a := newAccount(t, v, "main", false)
		if _, err := a.Balances(t.Context(), market.WalletTrading); err != nil {
			t.Fatal(err)
		}
		wantHost, wantRegion, _ := strings.Cut(want, " ")
		for _, r := range rig.Requests() {
			if host := r.URL.Scheme + "://" + r.URL.Host; host != wantHost {
				t.Errorf("region %q, hosts %v: asked %s, want %s", region, hosts, host, want)
			}
		}
		rig.Answer(always(exchangetest.Reply{Status: 401, Body: `{"msg":"API key doesn't exist","code":"50119"}`}))
		if _, err := a.Balances(t.Context(), market.WalletTrading); !strings.HasSuffix(err.Error(), "another region than "+wantRegion) {
			t.Errorf("region %q, hosts %v: %v, want %s", region, hosts, err, want)
		}
	}
	f("", nil, "https://openapi.okx.com global")
	f("global", nil, "https://openapi.okx.com global")
	f("eea", nil, "https://eea.okx.com eea")
	f("us", nil, "https://us.okx.com us")
	f("", []string{"https://eea.okx.com/"}, "https://eea.okx.com eea")
	f("global", []string{"https://www.okx.com"}, "https://www.okx.com global")
	f("us", []string{"http://127.0.0.1:9"}, "http://127.0.0.1:9 us")
}

func TestNew_refuses(t *testing.T) {
	rig := exchangetest.NewRig(fixtures())
	f := func(c exchange.Config, want ...string) {
		t.Helper()
		c.Transport = rig
		v, err := okx.New(c)
		if err == nil {
			t.Fatalf("%+v made %v", c, v)
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("error %q does not say %q", err, w)
			}
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("error %q repeats what may be a password", err)
		}
	}
	f(exchange.Config{}, "door")
	f(exchange.Config{Door: rig, Region: "mars"}, `"mars"`, "global", "eea", "us")
	f(exchange.Config{Door: rig, Region: "GLOBAL"}, "global", "eea", "us")
	f(exchange.Config{Door: rig, Region: "eea", Hosts: []string{"https://openapi.okx.com"}}, "two regions")
	f(exchange.Config{Door: rig, Hosts: []string{"https://openapi.okx.com", "https://us.okx.com"}}, "two regions")
	f(exchange.Config{Door: rig, AccountHosts: []string{"https://eea.okx.com"}, Region: "global"}, "two regions")
	f(exchange.Config{Door: rig, StreamHosts: []string{"wss://wseea.okx.com:8443"}, Region: "global"}, "two regions")
	f(exchange.Config{Door: rig, StreamHosts: []string{"wss://ws.okx.com:8443", "wss://wsus.okx.com:8443"}}, "two regions")
	f(exchange.Config{Door: rig, StreamHosts: []string{"wss://ws.okx.com:8443/ws/v5/public"}}, "base URL")
	f(exchange.Config{Door: rig, StreamHosts: []string{"ws.okx.com:8443"}}, "base URL")
	for _, host := range []string{
		"openapi.okx.com", "ftp://openapi.okx.com", "https://", "https://example.invalid/okx", "https://example.invalid/?a=b",
		"https://user:hunter2@example.invalid", "::", "",
	} {
		f(exchange.Config{Door: rig, Hosts: []string{host}}, "base URL")
	}
}

func TestAccount_isOnePerName(t *testing.T) {
	v, _ := newVenue(t, fixtures())
	if _, err := v.Account("", fakeCredential(false)); err == nil {
		t.Error("an account without a name was made")
	}
	for range 3 {
		newAccount(t, v, "main", false)
	}
	second := newAccount(t, v, "second", false)
	limits := make(map[market.LimitID]market.Limit)
	for _, l := range v.Limits() {
		limits[l.ID] = l
	}
	if len(limits) != 6+2*2 || len(v.Limits()) != len(limits) {
		t.Errorf("limits are %v", v.Limits())
	}
	for _, w := range v.Wallets() {
		c := second.Plan(w).Charges
		if len(c) != 1 || !strings.HasSuffix(string(c[0].Limit), "/second") || limits[c[0].Limit].Capacity == 0 {
			t.Errorf("%s is charged %v", w, c)
		}
	}
	for i := 2; i < 100; i++ {
		newAccount(t, v, "account-"+strings.Repeat("x", i), false)
	}
	if _, err := v.Account("one too many", fakeCredential(false)); err == nil {
		t.Error("accounts are not bounded")
	}
	newAccount(t, v, "main", true) // replacing is no more than before
}

// TestLimits_areTheDocumentedOnes holds the numbers of OKX's documents (state of July 2026), all evenly paced: ccxt#18901,
// bbgo#1534.
func TestLimits_areTheDocumentedOnes(t *testing.T) {
	v, _ := newVenue(t, fixtures())
	newAccount(t, v, "main", false)
	want := map[market.LimitID]string{
		"books": "40/2s", "ticker": "20/2s", "instruments": "20/2s", "time": "10/2s", "status": "1/5s", "stream_connects": "3/1s", "balance/main": "10/2s",
		"funding/main": "6/1s",
	}
	for _, l := range v.Limits() {
		if got := slog.IntValue(l.Capacity).String() + "/" + l.Window.String(); got != want[l.ID] || l.Burst != 1 || l.Reported || l.Aligned {
			t.Errorf("%+v, want %s with a burst of 1, unreported", l, want[l.ID])
		}
		delete(want, l.ID)
	}
	if len(want) != 0 {
		t.Errorf("limits are missing: %v", want)
	}
}

func TestPlan_scopes(t *testing.T) {
	v, _ := newVenue(t, fixtures())
	f := func(c market.Call, want ...market.Scope) {
		t.Helper()
		want = append([]market.Scope{{Kind: market.ScopeExchange}, {Kind: market.ScopeIP}}, want...)
		if len(c.Scopes) != len(want) {
			t.Fatalf("%s passes %v, want %v", c.Op, c.Scopes, want)
		}
		for i := range want {
			if c.Scopes[i] != want[i] {
				t.Errorf("%s passes %v, want %v", c.Op, c.Scopes, want)
			}
		}
		if c.Class != c.Op.Class() || c.Family != "" {
			t.Errorf("%s is of class %s, family %q", c.Op, c.Class, c.Family)
		}
	}
	f(v.Plan(market.OpOrderBook, btc, 100), market.Scope{Kind: market.ScopeEndpoint, Name: "books"}, market.Scope{Kind: market.ScopeSymbol, Name: "BTC-USDT"})
	f(v.Plan(market.OpStatistics, btc, 0), market.Scope{Kind: market.ScopeEndpoint, Name: "ticker"})
	f(v.Plan(market.OpListings, market.Listing{}, 0), market.Scope{Kind: market.ScopeEndpoint, Name: "instruments"})
	f(v.Plan(market.OpTime, market.Listing{}, 0), market.Scope{Kind: market.ScopeEndpoint, Name: "time"})
	f(v.Plan(market.OpStatus, market.Listing{}, 0), market.Scope{Kind: market.ScopeEndpoint, Name: "status"})
	f(v.Plan(market.OpBalances, market.Listing{}, 0))
	f(v.StreamPlan(market.StreamConnect, 29), market.Scope{Kind: market.ScopeEndpoint, Name: "stream_connects"})
	f(v.StreamPlan(market.StreamSubscribe, 29))
	f(newAccount(t, v, "main", false).Plan(market.WalletFunding), market.Scope{Kind: market.ScopeAccount, Name: "main"})
}
