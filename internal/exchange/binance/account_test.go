package binance_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/exchange/binance"
	"exchange-gateway/internal/exchange/exchangetest"
	"exchange-gateway/internal/market"
)

func rows(b *market.Balances) string {
	var parts []string
	for _, r := range b.Rows {
		parts = append(parts, fmt.Sprintf("%s %v+%v=%v", r.Asset, r.Free, r.Used, r.Total))
	}
	return strings.Join(parts, "; ")
}

func TestBalances(t *testing.T) {
	f := func(text, want, ledger string, updated int64) {
		t.Helper()
		b, err := balancesOf(t, text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			return
		}
		same(t, "rows", rows(b), want)
		same(t, "account type", b.AccountType, ledger)
		if updated == 0 {
			same(t, "updated", b.UpdatedAt, time.Time{})
		} else {
			same(t, "updated", b.UpdatedAt.UnixMilli(), updated)
		}
	}
	// With omitZeroBalances an empty account has no rows: that is no error.
	f(`{"accountType":"SPOT","updateTime":1772459340067,"balances":[]}`, "", "spot", 1772459340067)
	// An account of 2020, without uid, permissions and commission rates. An old one may be called MARGIN.
	f(`{"makerCommission":15,"accountType":"MARGIN","balances":[{"asset":"BTC","free":"1.00000000","locked":"0.50000000"}]}`,
		"BTC 1.00000000+0.50000000=1.50000000", "margin", 0)
	// What is locked alone is not zero; zero rows are left out; a key that cannot trade still answers.
	f(`{"canTrade":false,"balances":[{"asset":"A","free":"0.00000000","locked":"7"},{"asset":"B","free":"0","locked":"0.00000000"}]}`,
		"A 0.00000000+7=7.00000000", "spot", 0)
	// LDUSDT is a receipt of Earn, LDO a coin: neither is touched.
	f(`{"balances":[{"asset":"USDT","free":"1","locked":"0"},{"asset":"LDUSDT","free":"100","locked":"0"},{"asset":"LDO","free":"3","locked":"0"}]}`,
		"USDT 1+0=1; LDUSDT 100+0=100; LDO 3+0=3", "spot", 0)
	// A total of more than 18 digits is still exact.
	f(`{"balances":[{"asset":"SHIB","free":"123456789012345678.00000000","locked":"0.00000001"}]}`,
		"SHIB 123456789012345678.00000000+0.00000001=123456789012345678.00000001", "spot", 0)
	f(`{"updateTime":1772459340067123,"balances":[{"asset":"测试币","free":"3","locked":"0"}]}`, "测试币 3+0=3", "spot", 1772459340067)
}

// TestBalances_refuses: what cannot be read whole is an error, never a shorter list and never zero.
func TestBalances_refuses(t *testing.T) {
	const bad = `{"asset":"BTC","free":%s,"locked":"0"}`
	for _, amount := range []string{`""`, `null`, `"NaN"`, `"1,5"`, `" 1"`, `{}`, `[]`, `true`, `"1e999"`, `"0x10"`, `"-"`} {
		text := `{"balances":[{"asset":"ETH","free":"1","locked":"0"},` + fmt.Sprintf(bad, amount) + `]}`
		b, err := balancesOf(t, text)
		if e := asError(t, err); b != nil || e.Kind != market.KindMalformed || !strings.Contains(err.Error(), "row 2 of 2") {
			t.Errorf("free %s: %v, %v", amount, b, err)
		}
	}
	// Error bodies have been decoded as an empty wallet elsewhere.
	for text, kind := range map[string]market.Kind{
		`{"code":-2015,"msg":"Invalid API-key, IP, or permissions for action."}`: market.KindAuth,
		`{"code":-1003,"msg":"Too much request weight used."}`:                   market.KindRateLimited,
		`{"code":-1000,"msg":"An unknown error."}`:                               market.KindUnavailable,
		`{"msg":"no code"}`: market.KindUnavailable,
	} {
		b, err := balancesOf(t, text)
		if e := asError(t, err); b != nil || e.Kind != kind {
			t.Errorf("%s: %v, %v, want %v", text, b, err, kind)
		}
	}
	// An error names the row and quotes nothing of it.
	_, err := balancesOf(t, `{"balances":[{"asset":"`+exampleSecret+`","free":"`+exampleSecret+`","locked":"0"}]}`)
	if strings.Contains(err.Error(), "EXAMPLE") {
		t.Errorf("the error quotes the row: %v", err)
	}
}

// TestBalances_owesNothing: the spot wallet cannot owe. What is borrowed on margin is another wallet, which is not read, also
// where an old account calls its spot wallet MARGIN; and an amount below zero, should one come, is not hidden.
func TestBalances_owesNothing(t *testing.T) {
	b, err := balancesOf(t, `{"accountType":"MARGIN","balances":[`+
		`{"asset":"BTC","free":"-0.25000000","locked":"0.00000000","borrowed":"0.25000000","interest":"0.00001000"}]}`)
	if err != nil || len(b.Rows) != 1 {
		t.Fatalf("%+v, %v", b, err)
	}
	if r := b.Rows[0]; r.Free.String() != "-0.25000000" || r.Total.Sign() >= 0 || !r.Debt.IsZero() {
		t.Errorf("got %+v", r)
	}
}

func TestBalances_wallets(t *testing.T) {
	v, rig := venueOn(t, good)
	same(t, "wallets", fmt.Sprint(v.Wallets()), "[trading]")
	_, err := account(t, v, credential(exampleSecret)).Balances(t.Context(), market.WalletFunding)
	if e := asError(t, err); e.Kind != market.KindNotSupported || e.Op != market.OpBalances || len(rig.Trail()) != 0 {
		t.Errorf("got %v after %d steps", err, len(rig.Trail()))
	}
}

// TestBalances_clock: the exchange's time is asked for once, at the hosts that the signed request goes to, and again
// after half an hour.
func TestBalances_clock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, rig := venueOn(t, good)
		first, second := account(t, v, credential(exampleSecret)), account(t, v, credential(exampleSecret))
		ask := func(a market.VenueAccount, want string) {
			t.Helper()
			rig.Answer(good)
			if _, err := a.Balances(t.Context(), market.WalletTrading); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, r := range rig.Requests() {
				got = append(got, r.URL.Host+r.URL.Path)
			}
			same(t, "requests", strings.Join(got, " "), want)
		}
		ask(first, "api.binance.com/api/v3/time api.binance.com/api/v3/account")
		ask(second, "api.binance.com/api/v3/account")
		time.Sleep(29 * time.Minute)
		ask(first, "api.binance.com/api/v3/account")
		time.Sleep(2 * time.Minute)
		ask(first, "api.binance.com/api/v3/time api.binance.com/api/v3/account")
	})
}

// TestBalances_noClock: without the exchange's time nothing is signed.
func TestBalances_noClock(t *testing.T) {
	for text, kind := range map[string]market.Kind{
		`{}`: market.KindUnavailable, `{"serverTime":0}`: market.KindMalformed, `{"serverTime":-1}`: market.KindMalformed,
		`{"serverTime":"soon"}`: market.KindMalformed, `{"code":-1003,"msg":""}`: market.KindRateLimited,
	} {
		v, rig := venueOn(t, body(text))
		_, err := account(t, v, credential(exampleSecret)).Balances(t.Context(), market.WalletTrading)
		if e := asError(t, err); e.Kind != kind || e.Op != market.OpTime || rig.Count(exchangetest.Sent) != 1 {
			t.Errorf("%s: %v after %d requests, want %v", text, err, rig.Count(exchangetest.Sent), kind)
		}
	}
}

// TestTime_microseconds: the exchange can be made to count microseconds; then a time has 16 digits.
func TestTime_microseconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		same(t, "signed time", signedTime(t, `{"serverTime":1741046400062507}`), 1741046400062)
	})
}

// TestTime_aged: a time out of a cache has gone on since.
func TestTime_aged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, rig := venueOn(t, func(r *http.Request, c market.Call) exchangetest.Reply {
			if c.Op == market.OpTime {
				return exchangetest.Reply{Body: `{"serverTime":1741046400062}`, Header: http.Header{"Age": {"30"}}}
			}
			return good(r, c)
		})
		if _, err := account(t, v, credential(exampleSecret)).Balances(t.Context(), market.WalletTrading); err != nil {
			t.Fatal(err)
		}
		sent := rig.Requests()
		same(t, "signed time", sent[len(sent)-1].URL.Query().Get("timestamp"), "1741046430062")
	})
}

func hosts(rs []*http.Request) string {
	var all []string
	for _, r := range rs {
		all = append(all, r.URL.Scheme+"://"+r.URL.Host)
	}
	return strings.Join(all, " ")
}

// down refuses connections but to the hosts named.
func down(except ...string) exchangetest.Script {
	return func(r *http.Request, c market.Call) exchangetest.Reply {
		for _, h := range except {
			if r.URL.Host == h {
				return good(r, c)
			}
		}
		return exchangetest.Reply{Err: fmt.Errorf("dial: no route"), NoDial: true}
	}
}

// TestHosts: a public read goes on to the next host when one cannot be reached or refuses our place on earth; a signed
// request never goes to the host that has market data only; a ban stops all.
func TestHosts(t *testing.T) {
	const all = "https://api.binance.com https://api-gcp.binance.com https://data-api.binance.vision"
	geo := func(r *http.Request, c market.Call) exchangetest.Reply {
		if r.URL.Host == "data-api.binance.vision" {
			return good(r, c)
		}
		return refusal(451, 0)
	}
	for name, c := range map[string]struct {
		script exchangetest.Script
		want   string
		kind   market.Kind
	}{
		"the last one answers":           {down("data-api.binance.vision"), all, market.KindNone},
		"the first answers":              {good, "https://api.binance.com", market.KindNone},
		"none answers":                   {down(), all, market.KindUnavailable},
		"only market data is served":     {geo, all, market.KindNone},
		"nothing is served":              {always(refusal(451, 0)), all, market.KindRestricted},
		"a ban":                          {always(refusal(418, -1003)), "https://api.binance.com", market.KindBanned},
		"a trouble of the exchange":      {always(refusal(500, -1000)), "https://api.binance.com", market.KindUnavailable},
		"a connection that breaks later": {always(exchangetest.Reply{Err: fmt.Errorf("reset")}), "https://api.binance.com", market.KindUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			v, rig := venueOn(t, c.script)
			_, err := v.OrderBook(t.Context(), btcusdt, 100)
			same(t, "kind", market.KindOf(err), c.kind)
			same(t, "hosts", hosts(rig.Requests()), c.want)
			trail := rig.Trail()
			for _, s := range trail[:len(trail)-1] {
				if s.What == exchangetest.Observed && s.Observation.Err != nil && s.Observation.Err.Refusal != nil {
					t.Errorf("a host that gave way to the next closed %+v", s.Observation.Err.Refusal)
				}
			}
		})
	}
	t.Run("balances and status", func(t *testing.T) {
		v, rig := venueOn(t, down())
		_, err := account(t, v, credential(exampleSecret)).Balances(t.Context(), market.WalletTrading)
		same(t, "kind", market.KindOf(err), market.KindUnavailable)
		same(t, "hosts", hosts(rig.Requests()), "https://api.binance.com https://api-gcp.binance.com")
		rig.Answer(down())
		_, err = v.Status(t.Context())
		same(t, "kind", market.KindOf(err), market.KindUnavailable)
		same(t, "hosts", hosts(rig.Requests()), "https://api.binance.com https://api-gcp.binance.com")
	})
}

// TestHosts_configured: hosts given replace the adapter's own, and signed requests go where accounts are served.
func TestHosts_configured(t *testing.T) {
	for name, c := range map[string]struct {
		config  exchange.Config
		demo    bool
		public  string
		account string
		gate    market.ScopeKind // that a geography refusal of a balance closes
	}{
		"none":      {exchange.Config{}, false, "https://api.binance.com", "https://api.binance.com", market.ScopeEndpoint},
		"demo":      {exchange.Config{}, true, "https://api.binance.com", "https://demo-api.binance.com", market.ScopeEndpoint},
		"one":       {exchange.Config{Hosts: []string{"http://127.0.0.1:9/"}}, false, "http://127.0.0.1:9", "http://127.0.0.1:9", market.ScopeExchange},
		"one, demo": {exchange.Config{Hosts: []string{"http://127.0.0.1:9"}}, true, "http://127.0.0.1:9", "http://127.0.0.1:9", market.ScopeExchange},
		"data only": {
			exchange.Config{Hosts: []string{"https://data-api.binance.vision"}},
			false, "https://data-api.binance.vision",
			"https://api.binance.com", market.ScopeEndpoint,
		},
		"both": {
			exchange.Config{Hosts: []string{"https://a.example"}, AccountHosts: []string{"https://b.example"}},
			false,
			"https://a.example", "https://b.example", market.ScopeEndpoint,
		},
	} {
		t.Run(name, func(t *testing.T) {
			rig := exchangetest.NewRig(good)
			c.config.Transport, c.config.Door = rig, rig
			v := venueWith(t, c.config)
			if _, err := v.OrderBook(t.Context(), btcusdt, 100); err != nil {
				t.Fatal(err)
			}
			same(t, "public", hosts(rig.Requests()), c.public)
			rig.Answer(good)
			key := credential(exampleSecret)
			key.Demo = c.demo
			a := account(t, v, key)
			if _, err := a.Balances(t.Context(), market.WalletTrading); err != nil {
				t.Fatal(err)
			}
			same(t, "account", hosts(rig.Requests()), c.account+" "+c.account)
			rig.Answer(always(refusal(451, 0)))
			_, err := a.Balances(t.Context(), market.WalletTrading)
			e := asError(t, err)
			same(t, "gate", scopeOf(e), c.gate)
			passes := false
			for _, s := range a.Plan(market.WalletTrading).Scopes {
				passes = passes || s == e.Refusal.Scope
			}
			same(t, "the gate is one that the call passes", passes, true)
		})
	}
}

func TestNew_refuses(t *testing.T) {
	rig := exchangetest.NewRig(good)
	for name, c := range map[string]exchange.Config{
		"no door":     {Transport: rig},
		"a region":    {Transport: rig, Door: rig, Region: "us"},
		"a bare name": {Transport: rig, Door: rig, Hosts: []string{"api.binance.com"}},
		"a query":     {Transport: rig, Door: rig, AccountHosts: []string{"https://api.binance.com/?a=b"}},
		"a password":  {Transport: rig, Door: rig, Hosts: []string{"https://me:" + url.QueryEscape(exampleSecret) + "@api.binance.com"}},
	} {
		v, err := binance.New(c)
		if err == nil || v != nil || strings.Contains(err.Error(), exampleSecret) {
			t.Errorf("%s: %v, %v", name, v, err)
		}
	}
}

func FuzzBalances(f *testing.F) {
	f.Add(`{"balances":[{"asset":"BTC","free":"0.00225109","locked":"0.00123000"}],"updateTime":1}`)
	f.Add(`{"balances":[]}`)
	f.Add(`{"balances":[{"asset":"A","free":1e-5,"locked":"0"}],"accountType":"SPOT"}`)
	f.Add(`{"code":-2015}`)
	f.Fuzz(func(t *testing.T, text string) {
		b, err := balancesOf(t, text)
		if err != nil {
			if e := asError(t, err); b != nil || e.Kind.Local() {
				t.Fatalf("%q: %v, %v", text, b, err)
			}
			return
		}
		seen := make(map[string]bool)
		for _, r := range b.Rows {
			total := r.Free.Decimal().Add(r.Used.Decimal())
			if r.Asset == "" || seen[r.Asset] || !r.Total.Decimal().Equal(total) || r.Free.IsZero() && r.Used.IsZero() {
				t.Fatalf("%q: row %+v", text, r)
			}
			seen[r.Asset] = true
		}
	})
}
