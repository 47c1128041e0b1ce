package api_test

import (
	"net/http"
	"strings"
	"testing"

	"exchange-gateway/internal/api"
	"exchange-gateway/internal/api/keys"
	"exchange-gateway/internal/market"
)

func TestBalance_isForTheKeysAccountsOnly(t *testing.T) {
	f := func(scope, target string, status int, code, account string) {
		t.Helper()
		k, secret := newKey(t, scope)
		r := newRig(t, func(c *api.Config) { c.Keys = keys.NewRing(k) })
		w := r.get("/v1/exchanges/"+target, "Authorization", "Bearer "+secret)
		if w.Code != status {
			t.Errorf("%s for %s: status %d, want %d: %s", scope, target, w.Code, status, w.Body)
		}
		if status != http.StatusOK {
			if p := readProblem(t, w); p.Code != code || len(r.accounts.asked) != 0 {
				t.Errorf("%s for %s: %s after %v, want %s and nobody asked", scope, target, p.Code, r.accounts.asked, code)
			}
			return
		}
		if len(r.accounts.asked) != 1 || r.accounts.asked[0].Account != account {
			t.Errorf("%s for %s: asked %v, want account %q", scope, target, r.accounts.asked, account)
		}
	}
	f("account:read", "binance/balance?account=main", 200, "", "main")
	f("account:read", "okx/balance", 200, "", "") // the policy picks or says what to add
	f("account:read:binance", "binance/balance?account=spare", 200, "", "spare")
	f("account:read:binance/main", "binance/balance?account=main", 200, "", "main")
	f("account:read:binance/main", "binance/balance", 200, "", "main")
	f("account:read:binance/gone", "binance/balance", 200, "", "gone") // the policy says that it is unknown
	f("account:read:binance/main", "binance/balance?account=spare", 403, "forbidden", "")
	f("account:read:binance/main", "binance/balance?account=nosuch", 403, "forbidden", "")
	f("account:read:binance/main", "okx/balance", 403, "forbidden", "")
	f("account:read:okx", "binance/balance", 403, "forbidden", "")
	f("market:read", "binance/balance", 403, "forbidden", "")
	f("ops:write", "okx/balance?account=main", 403, "forbidden", "")
}

func TestBalance_severalAccountsFitTheKey(t *testing.T) {
	k, secret := newKey(t, "account:read:binance/main", "account:read:binance/spare", "account:read:okx/other", "account:read:okx/main")
	r := newRig(t, func(c *api.Config) { c.Keys = keys.NewRing(k) })
	p := readProblem(t, r.get("/v1/exchanges/binance/balance", "X-API-Key", secret))
	if p.Code != "account_ambiguous" || strings.Join(p.Allowed, " ") != "main spare" {
		t.Errorf("got %+v", p)
	}
	if w := r.get("/v1/exchanges/okx/balance?wallet=funding", "X-API-Key", secret); w.Code != http.StatusOK {
		t.Errorf("only one has the wallet: status %d: %s", w.Code, w.Body)
	}
	if got := r.accounts.asked[0]; got.Account != "main" || got.Wallet != market.WalletFunding {
		t.Errorf("asked %+v", got)
	}
}

// TestBalance_neverOfAnAccountThatTheKeyMayNotRead: also if the policy picked one that the key may not read.
func TestBalance_neverOfAnAccountThatTheKeyMayNotRead(t *testing.T) {
	k, secret := newKey(t, "account:read:binance/other")
	r := newRig(t, func(c *api.Config) {
		c.Keys = keys.NewRing(k)
	})
	r.accounts.answerAs = "main"
	w := r.get("/v1/exchanges/binance/balance?account=other", "X-API-Key", secret)
	if p := readProblem(t, w); p.Code != "forbidden" || strings.Contains(w.Body.String(), "0.5") {
		t.Errorf("got %s", w.Body)
	}
}

func TestUnauthenticated_saysTheSameWhateverIsWrong(t *testing.T) {
	k, secret := newKey(t, "account:read")
	r := newRig(t, func(c *api.Config) { c.Keys = keys.NewRing(k) })
	other := "a"
	if strings.HasSuffix(secret, other) {
		other = "b"
	}
	id := strings.Split(secret, "_")[1]
	var first string
	for _, headers := range [][]string{
		{},
		{"Authorization", "Bearer " + secret[:len(secret)-1] + other},
		{"Authorization", "Bearer " + strings.Replace(secret, id, "aaaaaaaa", 1)},
		{"Authorization", "Bearer nonsense"},
		{"Authorization", secret},
		{"X-API-Key", "Bearer " + secret},
		{"X-API-Key", secret, "X-API-Key", secret},
		{"X-API-Key", secret, "Authorization", "Bearer " + secret[:len(secret)-1] + other},
		{"X-API-Key", secret + "\x00"},
		{"X-API-Key", strings.Repeat("gw_", 1000)},
	} {
		w := r.get("/v1/exchanges/binance/balance", headers...)
		p := readProblem(t, w)
		if p.Code != "unauthenticated" {
			t.Errorf("%q: %s", headers, p.Code)
		}
		if first == "" {
			first = p.Detail
		}
		if p.Detail != first {
			t.Errorf("%q: %q differs from %q", headers, p.Detail, first)
		}
	}
	for _, headers := range [][]string{
		{"Authorization", "Bearer " + secret},
		{"Authorization", "bearer  " + secret},
		{"X-API-Key", secret},
		{"X-API-Key", secret, "Authorization", "Bearer " + secret},
	} {
		if w := r.get("/v1/exchanges/okx/balance", headers...); w.Code != http.StatusOK {
			t.Errorf("%q: status %d", headers, w.Code)
		}
	}
}

func TestUnauthenticated_saysHowToMakeTheFirstKey(t *testing.T) {
	p := readProblem(t, newRig(t).get("/v1/exchanges/binance/balance"))
	if !strings.Contains(p.Detail, "gateway key new --scope account:read") {
		t.Errorf("detail: %s", p.Detail)
	}
}

func TestMarketData_needsAKeyWhereConfigured(t *testing.T) {
	market, marketKey := newKey(t, "market:read")
	account, accountKey := newKey(t, "account:read")
	r := newRig(t, func(c *api.Config) {
		c.Keys, c.MarketNeedsKey, c.OpsNeedsKey = keys.NewRing(market, account), true, true
	})
	for target, code := range map[string]string{bookURL: "unauthenticated", "/v1/exchanges": "unauthenticated"} {
		if p := readProblem(t, r.get(target)); p.Code != code {
			t.Errorf("%s: %s, want %s", target, p.Code, code)
		}
	}
	if p := readProblem(t, r.get(bookURL, "X-API-Key", accountKey)); p.Code != "forbidden" || !strings.Contains(p.Detail, "market:read") {
		t.Errorf("got %+v", p)
	}
	if w := r.get(bookURL, "X-API-Key", marketKey); w.Code != http.StatusOK {
		t.Errorf("status %d", w.Code)
	}
	for _, free := range []string{"/livez", "/readyz", "/v1/errors"} {
		if w := r.get(free); w.Code != http.StatusOK {
			t.Errorf("%s: status %d", free, w.Code)
		}
	}
	if p := readProblem(t, do(r.server.Admin(), http.MethodGet, "/metrics")); p.Code != "unauthenticated" {
		t.Errorf("/metrics: %s", p.Code)
	}
}
