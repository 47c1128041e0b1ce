package okx_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/exchange/exchangetest"
	"exchange-gateway/internal/exchange/okx"
	"exchange-gateway/internal/market"
)

// docsSecret is the sample secret of OKX's documents. The signatures that they print beside it do not follow from it; the
// ones here were computed with two other implementations.
const docsSecret = "22582BD0CFF14C41EDBF1AB98506286D"

func TestSignature_vectors(t *testing.T) {
	const stamp = "2020-12-08T09:08:57.715Z"
	f := func(secret, at, method, path, body, want string) {
		t.Helper()
		if got := okx.Signature(secret, at, method, path, body); got != want {
			t.Errorf("%s%s%s%s: %s, want %s", at, method, path, body, got, want)
		}
	}
	f(docsSecret, stamp, "GET", "/api/v5/account/balance", "", "AkD5YszBhggtIyjDlmTy/9PpNVntel+1Lff8wh0qpQw=")
	f(docsSecret, stamp, "GET", "/api/v5/account/balance?ccy=BTC", "", "HiZhvSfMtWJA3uUIVXV3a/bSXNPCWvYFXoGCVS8V4zY=")
	f(docsSecret, stamp, "GET", "/api/v5/account/balance?ccy=BTC,ETH", "", "oah2EOT2Fnz1bjkgiAnuKl+zFQzDG3/nqPUqyYzArrE=")
	f(docsSecret, stamp, "GET", "/api/v5/account/balance?ccy=BTC%2CETH", "", "X/i/q53ENYaVFJP/x3gMqfyuIw8hS3HPa3eFxfQQFaY=")
	f(docsSecret, stamp, "GET", "/api/v5/asset/balances", "", "tD2JyPoMgjlc4YSaUuw6rMf5ZQyhDkotKh9nVXDVJ4c=")
	f(docsSecret, "1704876947", "GET", "/users/self/verify", "", "5/36BgGV6m/6pmdc20zdqk0mzF5ZalmzzPD2fo3wavU=")
	f(docsSecret, stamp, "POST", "/api/v5/account/set-leverage", `{"instId":"BTC-USDT","lever":"5","mgnMode":"isolated"}`, "eCnnCgWLjlQ9XnpUkrcny3qNq3WW/81KNrDr/XR6Xv8=")
	f("chNOOS4KvNXR_Xq4k4c9qsfoKWvnDecLATCRlcBwyKDYnWgO", stamp, "GET", "/api/v5/account/balance", "", "PJ61e1nb2F2Qd7D8SPiaIcx2gjdELc+o0ygzre9z33k=")
}

// clockAt answers the time endpoint with a moment of the exchange's clock that stands still.
func clockAt(millis string, rest exchangetest.Script) exchangetest.Script {
	return clockBody(`{"code":"0","msg":"","data":[{"ts":"`+millis+`"}]}`, rest)
}

func clockBody(body string, rest exchangetest.Script) exchangetest.Script {
	return func(r *http.Request, c market.Call) exchangetest.Reply {
		if c.Op == market.OpTime {
			return exchangetest.Reply{Body: body}
		}
		return rest(r, c)
	}
}

// TestBalances_wire holds the whole signed request against the vectors: headers, path, the exchange's time in UTC.
func TestBalances_wire(t *testing.T) {
	here := time.Local
	time.Local = time.FixedZone("elsewhere", 9*60*60) // a local time in a signature is the most common cause of 50102
	defer func() { time.Local = here }()
	synctest.Test(t, func(t *testing.T) {
		v, rig := newVenue(t, clockAt("1607418537715", fixtures())) // 2020-12-08T09:08:57.715Z
		c := fakeCredential(false)
		c.Secret = market.NewSecret(docsSecret)
		a, err := v.Account("main", c)
		if err != nil {
			t.Fatal(err)
		}
		c.Demo = true
		demo, err := v.Account("demo", c)
		if err != nil {
			t.Fatal(err)
		}
		f := func(a market.Account, w market.Wallet, path, sign, simulated string) {
			t.Helper()
			rig.Answer(clockAt("1607418537715", fixtures()))
			if _, err := a.Balances(t.Context(), w); err != nil {
				t.Fatal(err)
			}
			sent := sentOf(rig, path)
			if len(sent) != 1 || sent[0].URL.RequestURI() != path || sent[0].Method != http.MethodGet {
				t.Fatalf("sent %v", sent)
			}
			for name, want := range map[string]string{
				"OK-ACCESS-KEY": c.Key.Reveal(), "OK-ACCESS-PASSPHRASE": c.Passphrase.Reveal(), "OK-ACCESS-SIGN": sign,
				"OK-ACCESS-TIMESTAMP": "2020-12-08T09:08:57.715Z", "x-simulated-trading": simulated,
			} {
				if got := sent[0].Header.Get(name); got != want {
					t.Errorf("%s: %s = %q, want %q", path, name, got, want)
				}
			}
		}
		f(a, market.WalletTrading, "/api/v5/account/balance", "AkD5YszBhggtIyjDlmTy/9PpNVntel+1Lff8wh0qpQw=", "")
		f(a, market.WalletFunding, "/api/v5/asset/balances", "tD2JyPoMgjlc4YSaUuw6rMf5ZQyhDkotKh9nVXDVJ4c=", "")
		f(demo, market.WalletTrading, "/api/v5/account/balance", "AkD5YszBhggtIyjDlmTy/9PpNVntel+1Lff8wh0qpQw=", "1")
		if _, err := v.OrderBook(t.Context(), btc, 1); err != nil {
			t.Fatal(err)
		}
		for _, r := range sentOf(rig, "/api/v5/market/books") {
			if r.Header.Get("x-simulated-trading") != "" || r.Header.Get("OK-ACCESS-KEY") != "" {
				t.Errorf("a public request carries %v", r.Header)
			}
		}
	})
}

// TestBalances_clock: measured once before the first signed request, again after a refusal of our time, and no sooner.
func TestBalances_clock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, rig := newVenue(t, fixtures())
		a := newAccount(t, v, "main", false)
		asked := func() int { return len(sentOf(rig, "/api/v5/public/time")) }
		for range 3 {
			if _, err := a.Balances(t.Context(), market.WalletTrading); err != nil {
				t.Fatal(err)
			}
		}
		if n := asked(); n != 1 {
			t.Fatalf("three balances asked for the time %d times, want 1", n)
		}
		rig.Answer(always(exchangetest.Reply{Status: 401, Body: `{"msg":"Timestamp request expired","code":"50102"}`}))
		_, err := a.Balances(t.Context(), market.WalletTrading)
		if e := failure(t, err); e.Kind != market.KindClockSkew || e.Kind.Retry() != market.RetryResync || asked() != 0 {
			t.Fatalf("err = %v after %d measurements", err, asked())
		}
		rig.Answer(clockAt("1607418537715", fixtures()))
		if _, err := a.Balances(t.Context(), market.WalletTrading); err != nil || asked() != 1 {
			t.Fatalf("err = %v after %d measurements, want the clock measured again, once", err, asked())
		}
		if got := sentOf(rig, "/api/v5/account/balance")[0].Header.Get("OK-ACCESS-TIMESTAMP"); got != "2020-12-08T09:08:57.715Z" {
			t.Errorf("signed at %s", got)
		}
	})
}

// TestBalances_agedClock: a time out of a cache has gone on since.
func TestBalances_agedClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		script := clockAt("1607418537715", fixtures())
		v, rig := newVenue(t, func(r *http.Request, c market.Call) exchangetest.Reply {
			p := script(r, c)
			if c.Op == market.OpTime {
				p.Header = http.Header{"Age": {"30"}}
			}
			return p
		})
		if _, err := newAccount(t, v, "main", false).Balances(t.Context(), market.WalletTrading); err != nil {
			t.Fatal(err)
		}
		if got := sentOf(rig, "/api/v5/account/balance")[0].Header.Get("OK-ACCESS-TIMESTAMP"); got != "2020-12-08T09:09:27.715Z" {
			t.Errorf("signed at %s", got)
		}
	})
}

// TestBalances_withoutClock: nothing is signed with a time that nobody knows, and an old measurement is better than none.
func TestBalances_withoutClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good := fixtures()
		noTime := func(r *http.Request, c market.Call) exchangetest.Reply {
			if c.Op == market.OpTime {
				return exchangetest.Reply{Status: http.StatusBadGateway}
			}
			return good(r, c)
		}
		v, rig := newVenue(t, noTime)
		a := newAccount(t, v, "main", false)
		_, err := a.Balances(t.Context(), market.WalletTrading)
		if e := failure(t, err); e.Kind != market.KindUnavailable || e.Op != market.OpTime || len(rig.Requests()) != 1 {
			t.Fatalf("err = %v after %d requests", err, len(rig.Requests()))
		}
		rig.Answer(good)
		if _, err := a.Balances(t.Context(), market.WalletTrading); err != nil {
			t.Fatal(err)
		}
		time.Sleep(31 * time.Minute)
		rig.Answer(noTime)
		if _, err := a.Balances(t.Context(), market.WalletTrading); err != nil || len(rig.Requests()) != 2 {
			t.Fatalf("err = %v after %d requests: a measurement of half an hour ago is good for a window of 30 s", err, len(rig.Requests()))
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := a.Balances(ctx, market.WalletTrading); !errors.Is(err, market.ErrCanceled) {
			t.Errorf("err = %v for a caller that had left", err)
		}
		if n := len(sentOf(rig, "/api/v5/account/balance")); n != 1 {
			t.Errorf("%d signed requests: one was for a caller that had left", n)
		}
	})
}

// TestBalances_unreadableTime: an answer that is no time is not taken for one.
func TestBalances_unreadableTime(t *testing.T) {
	for _, rows := range []string{``, `{}`, `null`, `{"ts":""}`, `{"ts":"soon"}`, `{"ts":"0"}`, `{"ts":"-5"}`, `{"ts":"1796000000500000"}`, `{"ts":1.5}`, `{"ts":"1"},{"ts":"2"}`} {
		v, rig := newVenue(t, clockBody(`{"code":"0","msg":"","data":[`+rows+`]}`, fixtures()))
		_, err := newAccount(t, v, "main", false).Balances(t.Context(), market.WalletTrading)
		if e := failure(t, err); e.Kind != market.KindMalformed || e.Op != market.OpTime || len(rig.Requests()) != 1 {
			t.Errorf("%s: %v after %d requests", rows, err, len(rig.Requests()))
		}
	}
}

// TestBalances_signsEachAttempt: the next host gets a request that was signed when it was sent.
func TestBalances_signsEachAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good := fixtures()
		v, rig := newVenue(t, func(r *http.Request, c market.Call) exchangetest.Reply {
			if c.Op == market.OpBalances && r.URL.Host == "a.invalid" {
				return exchangetest.Reply{Delay: 1500 * time.Millisecond, NoDial: true, Err: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}}
			}
			return good(r, c)
		}, func(c *exchange.Config) { c.AccountHosts = []string{"https://a.invalid", "https://b.invalid"} })
		if _, err := newAccount(t, v, "main", false).Balances(t.Context(), market.WalletTrading); err != nil {
			t.Fatal(err)
		}
		sent := sentOf(rig, "/api/v5/account/balance")
		if len(sent) != 2 {
			t.Fatalf("%d attempts", len(sent))
		}
		first, second := sent[0].Header, sent[1].Header
		if a, b := first.Get("OK-ACCESS-TIMESTAMP"), second.Get("OK-ACCESS-TIMESTAMP"); !strings.HasSuffix(a, ":20.500Z") || !strings.HasSuffix(b, ":22.000Z") {
			t.Errorf("signed at %s and %s", a, b)
		}
		if first.Get("OK-ACCESS-SIGN") == second.Get("OK-ACCESS-SIGN") {
			t.Error("both attempts carry one signature")
		}
	})
}

func TestAccount_saysWhatIsExpected(t *testing.T) {
	v, rig := newVenue(t, fixtures())
	f := func(want string, change func(*market.Credential)) {
		t.Helper()
		c := fakeCredential(false)
		change(&c)
		_, err := v.Account("main", c)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Fatalf("err = %v, want a sentence with %q", err, want)
		}
		for _, s := range []string{c.Key.Reveal(), c.Secret.Reveal(), c.Passphrase.Reveal()} {
			if s != "" && strings.Contains(err.Error(), s) {
				t.Errorf("%v repeats %q", err, s)
			}
		}
	}
	f("API key", func(c *market.Credential) { c.Key = market.Secret{} })
	f("API key", func(c *market.Credential) { c.Key = market.NewSecret(" 00000000-0000") })
	f("API key", func(c *market.Credential) { c.Key = market.NewSecret(strings.Repeat("0", 257)) })
	f("secret key", func(c *market.Credential) { c.Secret = market.Secret{} })
	f("secret key", func(c *market.Credential) { c.Secret = market.NewSecret("EXAMPLE\n") })
	f("PEM", func(c *market.Credential) { c.Secret = market.NewSecret("-----BEGIN PRIVATE KEY-----") })
	f("passphrase", func(c *market.Credential) { c.Passphrase = market.Secret{} })
	f("passphrase", func(c *market.Credential) { c.Passphrase = market.NewSecret("Passphräse") })
	f("passphrase", func(c *market.Credential) { c.Passphrase = market.NewSecret("trailing ") })
	ok := fakeCredential(false)
	ok.Passphrase = market.NewSecret("Example: a b, c!")
	if _, err := v.Account("main", ok); err != nil {
		t.Error(err)
	}
	if n := len(rig.Requests()); n != 0 {
		t.Errorf("binding accounts sent %d requests", n)
	}
}

// signatureOf signs what is on the wire, by the documented rule.
func signatureOf(c market.Credential, r *http.Request) string {
	return okx.Signature(c.Secret.Reveal(), r.Header.Get("OK-ACCESS-TIMESTAMP"), r.Method, r.URL.RequestURI(), "")
}
