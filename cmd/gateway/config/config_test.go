package config_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"exchange-gateway/cmd/gateway/config"
	"exchange-gateway/internal/api/keys"
	"exchange-gateway/internal/market"
)

var known = []market.ExchangeID{"binance", "okx"}

func load(t *testing.T, yaml string, env, set []string) (config.Config, error) {
	t.Helper()
	s := config.Sources{Env: env, Set: set, Known: known, Home: t.TempDir()}
	if yaml != "" {
		s.File = filepath.Join(t.TempDir(), "gateway.yaml")
		if err := os.WriteFile(s.File, []byte(yaml), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return config.Load(s)
}

func TestLoad_needsNothing(t *testing.T) {
	c, err := load(t, "", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.Listen != "127.0.0.1:8080" || c.FreshFor != time.Second || len(c.Exchanges) != 2 || !c.Exchanges["okx"].On() {
		t.Errorf("defaults are %+v", c)
	}
	if !strings.HasSuffix(c.KeysFile, "exchange-gateway/keys.yaml") {
		t.Errorf("keys file is %s", c.KeysFile)
	}
}

func TestLoad_strongestWins(t *testing.T) {
	file := "listen: 127.0.0.1:1\nstale_wait: 100ms\nfresh_for: 2s\nexchanges:\n  okx:\n    region: eea\n    market_data: {timeout: 1s}\n"
	env := []string{
		"GATEWAY_STALE_WAIT=200ms", "GATEWAY_FRESH_FOR=3s", "GATEWAY_EXCHANGES_OKX_MARKET_DATA_DEADLINE=4s",
		"GATEWAY_EXCHANGES_OKX_ACCOUNTS_MAIN_BOT_SECRET=fake", "GATEWAY_EXCHANGES_OKX_ACCOUNTS_MAIN_BOT_KEY=fake",
		"GATEWAY_REDIS_ADDRS=127.0.0.1:1,127.0.0.1:2", "GATEWAY_EXCHANGES_BINANCE_ENABLED=false", "HOME=/",
	}
	c, err := load(t, file, env, []string{"fresh_for=4s", "exchanges.okx.market_data.open_max=30s"})
	if err != nil {
		t.Fatal(err)
	}
	okx := c.Exchanges["okx"]
	if c.Listen != "127.0.0.1:1" || c.StaleWait != 200*time.Millisecond || c.FreshFor != 4*time.Second {
		t.Errorf("listen %s, stale_wait %v, fresh_for %v", c.Listen, c.StaleWait, c.FreshFor)
	}
	if okx.Region != "eea" || okx.MarketData != (config.Class{Timeout: time.Second, Deadline: 4 * time.Second, OpenMax: 30 * time.Second}) {
		t.Errorf("okx is %+v", okx)
	}
	if okx.Accounts["main_bot"].Secret.Reveal() != "fake" {
		t.Errorf("accounts are %v", okx.Accounts)
	}
	if len(c.Redis.Addrs) != 2 || c.Exchanges["binance"].On() {
		t.Errorf("redis %v, binance on: %v", c.Redis.Addrs, c.Exchanges["binance"].On())
	}
}

func TestLoad_secretsFromFiles(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("fake-secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	yaml := "exchanges:\n  okx:\n    accounts:\n      main: {key: fake-key, secret_file: " + secret + "}\n"
	c, err := load(t, yaml, []string{"GATEWAY_REDIS_PASSWORD_FILE=" + secret, "GATEWAY_EXCHANGES_OKX_ACCOUNTS_MAIN_PASSPHRASE_FILE=" + secret}, nil)
	if err != nil {
		t.Fatal(err)
	}
	a := c.Exchanges["okx"].Accounts["main"]
	for _, s := range []market.Secret{a.Secret, a.Passphrase, c.Redis.Password} {
		if s.Reveal() != "fake-secret" {
			t.Errorf("a secret is %q", s.Reveal())
		}
	}
	var out bytes.Buffer
	if err := config.Print(&out, c); err != nil || strings.Contains(out.String(), "fake-") {
		t.Errorf("printed, %v:\n%s", err, out.String())
	}
}

// TestExchange_streams: public reads from one venue and streams from another would be two venues' books under one name.
func TestExchange_streams(t *testing.T) {
	on, off := true, false
	f := func(e config.Exchange, want bool) {
		t.Helper()
		if got := e.Streaming(); got != want {
			t.Errorf("%+v streams: %v, want %v", e, got, want)
		}
	}
	own := []string{"https://example.com"}
	f(config.Exchange{}, true)
	f(config.Exchange{Streams: &off}, false)
	f(config.Exchange{Hosts: own}, false)
	f(config.Exchange{Hosts: own, StreamHosts: []string{"wss://example.com"}}, true)
	f(config.Exchange{Hosts: own, Streams: &on}, true)
}

func TestLoad_saysWhatIsWrong(t *testing.T) {
	f := func(yaml string, env, set []string, want ...string) {
		t.Helper()
		_, err := load(t, yaml, env, set)
		if err == nil {
			t.Fatalf("%q %v %v: no error, want %v", yaml, env, set, want)
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%q %v %v: error is %v, want %q in it", yaml, env, set, err, w)
			}
		}
	}
	f("listen: 127.0.0.1:1\nfresh_fro: 1s\n", nil, nil, "[2:1]", "fresh_fro")
	f("exchanges:\n  okx:\n    regoin: eea\n", nil, nil, "[3:5]", "regoin")
	f("exchanges:\n  kraken: {}\n", nil, nil, "[2:3]", "kraken", "binance, okx")
	f("stale_wait: soon\n", nil, nil, "[1:13]")
	f("", []string{"GATEWAY_FRESH_FRO=1s"}, nil, "GATEWAY_FRESH_FRO", "fresh_for")
	f("", []string{"GATEWAY_EXCHANGES_OKX_REGOIN=eea"}, nil, "regoin")
	f("", []string{"GATEWAY_EXCHANGES_KRAKEN_REGION=eea"}, nil, "kraken")
	f("", nil, []string{"fresh_for"}, "path=value")
	f("", nil, []string{"exchanges.okx.market_data=1"}, "group")
	f("", nil, []string{"fresh_for=1"}, "duration")
	f("", nil, []string{"fresh_for=0s", "in_flight=0", "log.level=loud"}, "fresh_for", "in_flight", "log.level")
	f("", nil, []string{"stale_max_age=1h1s"}, "stale_max_age is 1h0m1s: it must be 1s to 1h0m0s") // what the policy states
	f("", nil, []string{"exchanges.okx.hosts=ftp://x"}, "exchanges.okx.hosts", "base URL")
	f("", nil, []string{"exchanges.okx.account_hosts=https://x/api"}, "exchanges.okx.account_hosts", "base URL")
	f("", nil, []string{"exchanges.okx.accounts.main.key=k"}, "needs a key and a secret")
	f("", nil, []string{"exchanges.okx.stream_hosts=https://x"}, "exchanges.okx.stream_hosts", "wss://")
	f("", nil, []string{"exchanges.okx.warm=BTC/USDT,nonsense"}, "exchanges.okx.warm", "[1]")
	f("", nil, []string{"exchanges.okx.warm=BTC/USDT", "exchanges.okx.streams=false"}, "exchanges.okx.warm", "no streams")
	f("exchanges: {okx: {hosts: [https://example.com], warm: [BTC/USDT]}}", nil, nil, "exchanges.okx.warm", "stream_hosts")
	f("exchanges: {okx: {warm: ["+strings.Repeat("BTC/USDT,", 301)+"]}}", nil, nil, "exchanges.okx.warm", "at most 300")
}

func TestCheckExposure(t *testing.T) {
	f := func(want string, set ...string) {
		t.Helper()
		c, err := load(t, "", nil, set)
		if err != nil {
			t.Fatal(err)
		}
		err = c.CheckExposure("")
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", set, err, want)
		}
	}
	market, ops, over := keysFile(t, time.Time{}, "market:read"), keysFile(t, time.Time{}, "ops:write"), keysFile(t, time.Now().Add(-time.Hour), "market:read", "ops:read")
	empty := filepath.Join(t.TempDir(), "keys.yaml")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f("")
	f("", "listen=[::1]:8080", "admin_listen=localhost:0")
	f("gateway key new", "listen=0.0.0.0:8080")
	f("gateway key new", "listen=:8080")
	f("", "listen=0.0.0.0:8080", "allow_open=true")
	f("tls_cert_file", "listen=0.0.0.0:8080", "keys_file="+market)
	f("", "listen=0.0.0.0:8080", "keys_file="+market, "allow_plain=true")
	f("", "listen=0.0.0.0:8080", "keys_file="+market, "tls_cert_file=c", "tls_key_file=k")
	f("", "listen=0.0.0.0:8080", "keys_file="+market+"/below-a-file", "allow_plain=true")
	f("no valid client key", "listen=0.0.0.0:8080", "keys_file="+empty, "allow_plain=true")
	f("no valid client key", "listen=0.0.0.0:8080", "keys_file="+over, "allow_plain=true")
	f("no key with ops:read", "admin_listen=0.0.0.0:8081")
	f("no key with ops:read", "admin_listen=0.0.0.0:8081", "keys_file="+market, "allow_plain=true")
	f("no key with ops:read", "admin_listen=0.0.0.0:8081", "keys_file="+over, "allow_plain=true")
	f("", "admin_listen=0.0.0.0:8081", "keys_file="+market, "allow_open=true")
	f("in the clear", "admin_listen=0.0.0.0:8081", "keys_file="+ops)
	f("in the clear", "admin_listen=0.0.0.0:8081", "keys_file="+ops, "allow_open=true")
	f("", "admin_listen=0.0.0.0:8081", "keys_file="+ops, "allow_plain=true")
	f("", "admin_listen=0.0.0.0:8081", "keys_file="+ops, "tls_cert_file=c", "tls_key_file=k")
}

// keysFile is a file with one key of those scopes that ends at a time, zero for never.
func keysFile(t *testing.T, expires time.Time, scopes ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys.yaml")
	all, err := keys.ParseScopes(scopes...)
	if err != nil {
		t.Fatal(err)
	}
	k, _, err := keys.New(all, "", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	k.Expires = expires
	if err := keys.Append(path, k); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestCheckTLS: a pair that is none is refused with both names.
func TestCheckTLS(t *testing.T) {
	c, err := load(t, "", nil, []string{"tls_cert_file=c", "tls_key_file=k"})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.CheckTLS(); err == nil || !strings.Contains(err.Error(), "tls_cert_file and tls_key_file") {
		t.Errorf("got %v", err)
	}
	c.TLSCertFile, c.TLSKeyFile = "", ""
	if err := c.CheckTLS(); err != nil {
		t.Error(err)
	}
}

func FuzzLoad(f *testing.F) {
	for _, text := range []string{"listen: 127.0.0.1:1\n", "exchanges:\n  okx: {region: eea}\n", "a: [", "? :", "stale_wait: soon"} {
		f.Add(text)
	}
	file := filepath.Join(f.TempDir(), "gateway.yaml")
	f.Fuzz(func(t *testing.T, text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := config.Load(config.Sources{File: file, Known: known, Home: "/nowhere"})
		if err == nil && (c.DepthDefault < 1 || c.InFlight < 1) {
			t.Fatalf("%q loads as %+v", text, c)
		}
	})
}

// TestLoad_defaultMaxAgeFollows: nobody who says how old a copy may be at most has to say it twice; who says something that
// contradicts it is told so.
func TestLoad_defaultMaxAgeFollows(t *testing.T) {
	f := func(yaml string, env, set []string, want time.Duration) {
		t.Helper()
		c, err := load(t, yaml, env, set)
		if want == 0 {
			if err == nil || !strings.Contains(err.Error(), "default_max_age is") || strings.Contains(err.Error(), "stale_max_age is") {
				t.Errorf("%q %v %v: %v", yaml, env, set, err)
			}
			return
		}
		if err != nil || c.DefaultMaxAge != want {
			t.Errorf("%q %v %v: %v, %v, want %v", yaml, env, set, c.DefaultMaxAge, err, want)
		}
	}
	f("", nil, nil, time.Hour)
	f("stale_max_age: 30m\n", nil, nil, 30*time.Minute)
	f("", []string{"GATEWAY_STALE_MAX_AGE=30m"}, nil, 30*time.Minute)
	f("", nil, []string{"stale_max_age=30m"}, 30*time.Minute)
	f("stale_max_age: 1h\n", nil, nil, time.Hour)
	f("stale_max_age: 30m\ndefault_max_age: 30s\n", nil, nil, 30*time.Second)
	f("stale_max_age: 30m\ndefault_max_age: 1h\n", nil, nil, 0)
	f("stale_max_age: 30m\n", []string{"GATEWAY_DEFAULT_MAX_AGE=31m"}, nil, 0)
	f("stale_max_age: 30m\n", nil, []string{"default_max_age=1h"}, 0)
}
