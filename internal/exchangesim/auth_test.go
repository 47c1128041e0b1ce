package exchangesim_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/exchangesim"
)

func TestBinance_refusesBadSignedCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := newSim(t, exchangesim.Config{})
		b := inMemory(t, sim.Venue("binance"))
		k := key(t, "binance-hmac")
		now := time.Now()
		ask := func(query string) reply {
			return b.do(t.Context(), "/api/v3/account?"+query, map[string]string{"X-MBX-APIKEY": k.Key})
		}
		good := binanceSigned(t, k, "", now)

		ask(good).want(t, 200, `"balances":[`)
		b.do(t.Context(), "/api/v3/account?"+good, nil).want(t, 401, `"code":-2014`)
		b.do(t.Context(), "/api/v3/account?"+good, map[string]string{"X-MBX-APIKEY": strings.Repeat("y", 64)}).want(t, 401, `"code":-2015`)
		ask("signature=00").want(t, 400, "'timestamp' was not sent")
		ask(fmt.Sprintf("timestamp=%d", now.UnixMilli())).want(t, 400, "'signature' was not sent")
		ask("timestamp=abc&signature=00").want(t, 400, `"code":-1100`)
		ask(good[:len(good)-1]+"0").want(t, 400, `"code":-1022`)
		sig := good[strings.LastIndex(good, "signature="):]
		ask(sig+"&timestamp="+fmt.Sprint(now.UnixMilli())).want(t, 400, `"code":-1022`) // the signature is not last
		ask(binanceSigned(t, k, "foo=1", now)).want(t, 400, `"code":-1104`)
		ask(binanceSigned(t, k, "recvWindow=60001", now)).want(t, 400, `"code":-1131`)

		// The window, to the millisecond.
		for _, tc := range []struct {
			query string
			at    time.Duration
			want  string
		}{
			{"", 999 * time.Millisecond, `"balances"`},
			{"", time.Second, "1000ms ahead"},
			{"recvWindow=60000", time.Hour, "1000ms ahead"}, // a larger window does not help a clock that runs ahead
			{"", -5 * time.Second, `"balances"`},
			{"", -5001 * time.Millisecond, "outside of the recvWindow"},
			{"recvWindow=60000", -time.Minute, `"balances"`},
			{"recvWindow=100.5", -101 * time.Millisecond, "outside of the recvWindow"},
		} {
			r := ask(binanceSigned(t, k, tc.query, now.Add(tc.at)))
			if !strings.Contains(r.body, tc.want) {
				t.Errorf("%q at %v: %s, want %s", tc.query, tc.at, r.body, tc.want)
			}
		}
	})
}

func TestBinance_takesEveryKeyType(t *testing.T) {
	rsa, err := exchangesim.NewRSACredential()
	if err != nil {
		t.Fatal(err)
	}
	sim := newSim(t, exchangesim.Config{Credentials: append(exchangesim.ExampleCredentials(), rsa)})
	b := inMemory(t, sim.Venue("binance"))
	for _, k := range []exchangesim.Credential{key(t, "binance-hmac"), key(t, "binance-ed25519"), rsa} {
		b.binanceAccount(k, "omitZeroBalances=true", time.Now()).want(t, 200, `"asset":"1INCH"`)
		b.do(t.Context(), "/api/v3/account?"+binanceSigned(t, k, "", time.Now())+"A", map[string]string{"X-MBX-APIKEY": k.Key}).want(t, 400, `"code":-1022`)
	}
	// Micros are taken too.
	k := key(t, "binance-hmac")
	payload := fmt.Sprintf("timestamp=%d", time.Now().UnixMicro())
	b.do(t.Context(), fmt.Sprintf("/api/v3/account?%s&signature=%x", payload, mac([]byte(k.Secret), payload)), map[string]string{"X-MBX-APIKEY": k.Key}).want(t, 200, "balances")
}

func TestOKX_refusesBadSignedCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := newSim(t, exchangesim.Config{})
		o := inMemory(t, sim.Venue("okx"))
		k, demo, eea := key(t, "okx"), key(t, "okx-demo"), key(t, "okx-eea")
		path := "/api/v5/account/balance"
		for name, code := range map[string]string{
			"OK-ACCESS-KEY": "50103", "OK-ACCESS-PASSPHRASE": "50104", "OK-ACCESS-SIGN": "50106", "OK-ACCESS-TIMESTAMP": "50107",
		} {
			o.okxSigned(k, path, time.Now(), map[string]string{name: ""}).want(t, 401, code)
		}
		o.okxSigned(k, path, time.Now(), map[string]string{"OK-ACCESS-TIMESTAMP": "2026-01-01 00:00:00"}).want(t, 401, "50112")
		o.okxSigned(k, path, time.Now().Add(31*time.Second), nil).want(t, 401, "50102")
		o.okxSigned(k, path, time.Now().Add(-31*time.Second), nil).want(t, 401, "50102")
		o.okxSigned(k, path, time.Now(), map[string]string{"OK-ACCESS-KEY": "00000000-0000-4000-8000-00000000ffff"}).want(t, 401, "50119")
		o.okxSigned(k, path, time.Now(), map[string]string{"OK-ACCESS-PASSPHRASE": "other"}).want(t, 401, "50105")
		o.okxSigned(k, path, time.Now(), map[string]string{"OK-ACCESS-SIGN": base64.StdEncoding.EncodeToString(make([]byte, 32))}).want(t, 401, "50113")
		o.okxSigned(demo, path, time.Now(), nil).want(t, 401, "50101")
		o.okxSigned(k, path, time.Now(), map[string]string{"x-simulated-trading": "1"}).want(t, 401, "50101")
		o.okxSigned(demo, path, time.Now(), map[string]string{"x-simulated-trading": "1"}).want(t, 200, `"code":"0"`)
		o.okxSigned(eea, path, time.Now(), nil).want(t, 401, "50119") // wrong region looks like a wrong key
		o.base = "https://eea.okx.com"
		o.okxSigned(eea, path, time.Now(), nil).want(t, 200, `"code":"0"`)
		o.okxSigned(k, path, time.Now(), nil).want(t, 401, "50119")
	})
}

func TestCoinbaseExchange_refusesBadSignedCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := newSim(t, exchangesim.Config{})
		c := inMemory(t, sim.Venue("coinbase"))
		k := key(t, "coinbase-exchange")
		c.exchangeSigned(k, "/accounts", time.Now()).want(t, 200, `"available":"0","balance":"0.0000000000000000"`)
		c.get("/accounts").want(t, 401, "CB-ACCESS-KEY header is required")
		c.exchangeSigned(k, "/accounts", time.Now().Add(-31*time.Second)).want(t, 401, "request timestamp expired")
		bad := k
		bad.Passphrase = "other"
		c.exchangeSigned(bad, "/accounts", time.Now()).want(t, 401, "Invalid Passphrase")
		bad = k
		bad.Secret = base64.StdEncoding.EncodeToString([]byte("other"))
		c.exchangeSigned(bad, "/accounts", time.Now()).want(t, 401, "invalid signature")
		bad = k
		bad.Key = key(t, "coinbase-es256").Key // an Advanced Trade key
		c.exchangeSigned(bad, "/accounts", time.Now()).want(t, 401, "Invalid API Key")
		c.do(t.Context(), "/accounts", map[string]string{"User-Agent": ""}).want(t, 400, "User-Agent header is required.")
		c.do(t.Context(), "/products/BTC-USD", map[string]string{"User-Agent": ""}).want(t, 400, "User-Agent header is required.")
	})
}

func TestCoinbaseAdvanced_refusesBadTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := newSim(t, exchangesim.Config{})
		c := inMemory(t, sim.Venue("coinbase"))
		now := time.Now().Unix()
		for _, name := range []string{"coinbase-es256", "coinbase-ed25519"} {
			k := key(t, name)
			path := "/api/v3/brokerage/accounts?limit=1"
			for what, edit := range map[string]func(h, cl map[string]any){
				"alg":      func(h, _ map[string]any) { h["alg"] = "HS256" },
				"none":     func(h, _ map[string]any) { h["alg"] = "none" },
				"kid":      func(h, _ map[string]any) { h["kid"] = "organizations/x/apiKeys/y" },
				"sub":      func(_, cl map[string]any) { cl["sub"] = "other" },
				"iss":      func(_, cl map[string]any) { cl["iss"] = "other" },
				"no exp":   func(_, cl map[string]any) { delete(cl, "exp") },
				"too long": func(_, cl map[string]any) { cl["exp"] = now + 121 },
				"expired":  func(_, cl map[string]any) { cl["nbf"], cl["exp"] = now-200, now-80 },
				"early":    func(_, cl map[string]any) { cl["nbf"], cl["exp"] = now+60, now+180 },
				"query":    func(_, cl map[string]any) { cl["uri"] = cl["uri"].(string) + "?limit=1" },
				"method":   func(_, cl map[string]any) { cl["uri"] = strings.Replace(cl["uri"].(string), "GET", "POST", 1) },
				"scheme":   func(_, cl map[string]any) { cl["uri"] = strings.Replace(cl["uri"].(string), "GET ", "GET https://", 1) },
				"no uri":   func(_, cl map[string]any) { delete(cl, "uri") },
			} {
				if r := c.advancedSigned(k, path, edit); r.status != http.StatusUnauthorized || r.body != "Unauthorized" {
					t.Errorf("%s, %s: %d %s", name, what, r.status, r.body)
				}
			}
			c.advancedSigned(k, path, nil).want(t, 200, `"has_next":true`)
			c.advancedSigned(k, path, func(_, cl map[string]any) { // as ccxt does for Ed25519 keys
				cl["uris"] = []any{cl["uri"]}
				delete(cl, "uri")
				cl["iss"] = "coinbase-cloud"
			}).want(t, 200, `"has_next":true`)
		}
		// DER instead of raw r||s, and a token on a public call.
		k := key(t, "coinbase-es256")
		tok := token(t, k, "GET api.coinbase.com/api/v3/brokerage/accounts", time.Now(), nil)
		parts := strings.Split(tok, ".")
		der := base64.RawURLEncoding.EncodeToString(append([]byte{0x30, 0x45}, make([]byte, 69)...))
		c.do(t.Context(), "/api/v3/brokerage/accounts", map[string]string{"Authorization": "Bearer " + parts[0] + "." + parts[1] + "." + der}).want(t, 401, "Unauthorized")
		c.do(t.Context(), "/api/v3/brokerage/market/products/BTC-USD", map[string]string{"Authorization": "Bearer nonsense"}).want(t, 401, "Unauthorized")
		if got := sim.Venue("coinbase").Stats().ByCredential["unknown"]; got != 3 {
			t.Errorf("%d requests of unknown keys, want 3", got)
		}
	})
}

func TestCoinbaseAdvanced_pagesAccounts(t *testing.T) {
	sim := newSim(t, exchangesim.Config{})
	c := inMemory(t, sim.Venue("coinbase"))
	k := key(t, "coinbase-ed25519")
	var page struct {
		Accounts []struct{ Currency string }
		HasNext  bool `json:"has_next"`
		Cursor   string
		Size     int
	}
	seen := map[string]bool{}
	sizes := []int{}
	for cursor := ""; ; cursor = page.Cursor {
		page.Cursor = ""
		c.advancedSigned(k, "/api/v3/brokerage/accounts?cursor="+cursor, nil).decode(t, &page)
		for _, a := range page.Accounts {
			seen[a.Currency] = true
		}
		sizes = append(sizes, page.Size)
		if !page.HasNext {
			break
		}
	}
	if fmt.Sprint(sizes) != "[49 21]" || len(seen) != 70 || !seen["ZERO63"] {
		t.Errorf("pages of %v with %d currencies, want 49 and 21 with 70", sizes, len(seen))
	}
	c.advancedSigned(k, "/api/v3/brokerage/accounts?limit=1000", nil).want(t, 200, `"size":70`)
	c.advancedSigned(k, "/api/v3/brokerage/accounts?cursor=nonsense", nil).want(t, 400, "INVALID_ARGUMENT")
	c.get("/api/v3/brokerage/accounts").want(t, 401, "Unauthorized")
}
