package e2e_test

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// says checks an exit code and that all words are in what the program wrote, and returns that.
func says(t *testing.T, p *process, code int, words ...string) string {
	t.Helper()
	text := p.out.String() + p.log.String()
	if p.code != code {
		t.Errorf("%v: exit %d, want %d: %s", p.cmd.Args[1:], p.code, code, text)
	}
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("%v: %q is not in: %s", p.cmd.Args[1:], w, text)
		}
	}
	return text
}

// file writes a file for a test and gives its path.
func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCommandLine(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"serve", "demo", "key", "config", "healthcheck", "version"} {
		says(t, run(t, "gateway", nil, "--help"), 0, command, "orders")
		says(t, run(t, "gateway", nil, command, "--help"), 0, "Usage: gateway "+command)
	}
	says(t, run(t, "gateway", nil, "version"), 0, "exchange-gateway ")
	says(t, run(t, "gateway", nil, "version", "--json"), 0, `"version":`, `"go":"go1.`)
	for _, args := range [][]string{{"--nope"}, {"serve", "--lisen=x"}, {"nope"}, {"key", "new"}, {"config"}, {"demo", "--every=soon"}, {"version", "extra"}} {
		says(t, run(t, "gateway", nil, args...), 2, "gateway: ")
	}
	says(t, run(t, "exchangesim", nil, "--help"), 0, "--replay", "POST   /v1/faults")
	if p := run(t, "exchangesim", nil, "--nope"); p.code == 0 {
		t.Error("exchangesim takes a flag that it does not have")
	}
}

func TestConfigCheck(t *testing.T) {
	t.Parallel()
	says(t, run(t, "gateway", nil, "config", "check"), 0, "the configuration is good")
	good := file(t, "good.yaml", "stale_wait: 200ms\nexchanges:\n  okx:\n    region: eea\n    market_data: {timeout: 1s}\n  coinbase: {enabled: false}\n")
	says(t, run(t, "gateway", nil, "config", "check", "--config="+good), 0, "the configuration is good")
	says(t, run(t, "gateway", []string{"GATEWAY_CONFIG=" + good}, "config", "print"), 0, "region: eea", "stale_wait: 200ms")

	f := func(yaml string, words ...string) {
		t.Helper()
		says(t, run(t, "gateway", nil, "config", "check", "-c", file(t, "bad.yaml", yaml)), 1, words...)
	}
	f("listen: 127.0.0.1:1\nfresh_fro: 1s\n", "[2:1]", "fresh_fro")
	f("exchanges:\n  okx:\n    regoin: eea\n", "[3:5]", "regoin")
	f("exchanges:\n  kraken: {}\n", "[2:3]", "kraken")
	f("stale_wait: soon\n", "[1:13]", "soon")
	f("depth_max: many\n", "[1:12]")
	f("listen: [127.0.0.1:1\n", "bad.yaml", "[1:")
	f("listen: a\nlisten: b\n", "[2:1]")
	f("fresh_for: 1ms\nin_flight: 0\nlog: {level: loud}\n", "fresh_for", "in_flight", "log.level")
	f("exchanges: {okx: {region: mars}}\n", "exchanges.okx", "mars")
	f("exchanges: {okx: {hosts: [example.com]}}\n", "base URL")
	f("exchanges: {okx: {account_hosts: [example.com]}}\n", "exchanges.okx.account_hosts", "base URL")
	f("exchanges: {okx: {market_data: {timeout: 20s, window: 30s}}}\n", "window")
	f("exchanges: {binance: {accounts: {main: {key: example}}}}\n", "exchanges.binance.accounts.main")
	f("exchanges: {binance: {accounts: {main: {key: example, secret: '-----BEGIN PRIVATE KEY-----'}}}}\n", "exchanges.binance.accounts.main")
	f("exchanges: {binance: {ca_file: /nowhere/ca.pem}}\n", "/nowhere/ca.pem")
	f("redis: {master: m}\n", "redis.addrs")
	f("tls_cert_file: x\n", "tls_key_file")
	says(t, run(t, "gateway", []string{"GATEWAY_FRESH_FRO=1s"}, "config", "check"), 1, "GATEWAY_FRESH_FRO")
	says(t, run(t, "gateway", nil, "config", "check", "--set", "fresh_for=1"), 1, "--set fresh_for", "duration")
	says(t, run(t, "gateway", nil, "config", "check", "--config=/nowhere.yaml"), 1, "/nowhere.yaml")
	says(t, run(t, "gateway", nil, "serve", "--set", "stale_wait=soon"), 1, "stale_wait")
}

func TestConfigPrint_hidesSecrets(t *testing.T) {
	t.Parallel()
	secret := file(t, "secret", "EXAMPLE-FROM-A-FILE\n")
	yaml := file(t, "gateway.yaml", "redis: {addrs: ['127.0.0.1:6379'], password: EXAMPLE-REDIS}\nexchanges:\n  binance:\n    accounts:\n      main: {key: EXAMPLE-KEY, secret_file: "+secret+"}\n")
	text := says(t, run(t, "gateway", accountEnv(t, "other", "okx"), "config", "print", "--config="+yaml), 0, "listen: 127.0.0.1:8080", "main:", "other:", "127.0.0.1:6379", "stale_wait: 300ms")
	okx := credential(t, "okx")
	for _, s := range []string{"EXAMPLE-KEY", "EXAMPLE-FROM-A-FILE", "EXAMPLE-REDIS", okx.Key, okx.Secret, okx.Passphrase} {
		if strings.Contains(text, s) {
			t.Errorf("config print shows %q:\n%s", s, text)
		}
	}
	// What is printed can be read again where no secret is in it.
	plain := says(t, run(t, "gateway", nil, "config", "print", "--set=exchanges.okx.region=eea"), 0, "region: eea")
	says(t, run(t, "gateway", nil, "config", "check", "--config="+file(t, "again.yaml", plain)), 0, "good")
}

// A key made beside a running gateway works without a restart, and only for what it is for.
func TestKeyNew_worksAtOnce(t *testing.T) {
	t.Parallel()
	sim := simulate(t)
	life := before(t, sim).account(t, "main", "okx").account(t, "other", "binance-hmac")
	g := life.serve(t)
	if a := g.balance("okx", "main"); a.status != http.StatusUnauthorized || a.Code != "unauthenticated" || !strings.Contains(string(a.body), "gateway key new") {
		t.Errorf("without any key: %v, want 401 and how to make one", a)
	}
	g.key = life.newKey(t, "account:read:okx/main")
	spent := eventually(t, 5*time.Second, "the new key works", func() bool { return g.balance("okx", "main").status == http.StatusOK })
	t.Logf("the key worked %v after it was made", spent)
	a := g.balance("okx", "main")
	if len(a.Balances) == 0 || a.header.Get("Cache-Control") != "no-store" {
		t.Errorf("balance: %v %v", a, a.header)
	}
	if a := g.balance("binance", "other"); a.status != http.StatusForbidden || a.Code != "forbidden" {
		t.Errorf("another account: %v, want 403", a)
	}
	g.key = g.key[:len(g.key)-1] + "!"
	if a := g.balance("okx", "main"); a.status != http.StatusUnauthorized {
		t.Errorf("a wrong key: %v, want 401", a)
	}
	kept, err := os.ReadFile(filepath.Join(life.state, "keys.yaml"))
	info, serr := os.Stat(filepath.Join(life.state, "keys.yaml"))
	if err != nil || serr != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("keys file: %v %v %v", err, serr, info)
	}
	_, secret, _ := strings.Cut(strings.TrimPrefix(g.key[:len(g.key)-1], "gw_"), "_")
	if strings.Contains(string(kept), secret) {
		t.Error("the keys file holds the key itself")
	}
	says(t, run(t, "gateway", life.env, "key", "new", "--state-dir="+life.state, "--scope=account:write"), 1, "account:write")
}

func TestHealthcheck(t *testing.T) {
	t.Parallel()
	g := before(t, simulate(t)).serve(t)
	admin := strings.TrimPrefix(g.admin, "http://")
	says(t, run(t, "gateway", nil, "healthcheck", "--admin-listen="+admin), 0, "ok")
	g.signal(syscall.SIGTERM)
	g.wait(5 * time.Second)
	says(t, run(t, "gateway", nil, "healthcheck", "--admin-listen="+admin), 1, "not up")
}

// The gateway is not opened to a network by accident.
func TestExposure(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	f := func(words string, args ...string) {
		t.Helper()
		says(t, run(t, "gateway", nil, append([]string{"serve", "--state-dir=" + state, "--admin-listen=127.0.0.1:0"}, args...)...), 1, words)
	}
	f("gateway key new", "--listen=0.0.0.0:0")
	f("gateway key new", "--listen=[::]:0")
	f("admin_listen", "--listen=127.0.0.1:0", "--admin-listen=0.0.0.0:0")
	says(t, run(t, "gateway", nil, "key", "new", "--state-dir="+state, "--scope=market:read"), 0, "gw_")
	f("tls_cert_file", "--listen=0.0.0.0:0")
	f("tls_cert_file", "--listen=127.0.0.1:0", "--set", "tls_cert_file=/nowhere", "--set", "tls_key_file=/nowhere")
}

// Two gateways cannot have one port: the second says so and ends.
func TestServe_portTaken(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	at := taken.Addr().String()
	for _, args := range [][]string{
		{"serve", "--listen=" + at, "--admin-listen=127.0.0.1:0"},
		{"serve", "--listen=127.0.0.1:0", "--admin-listen=" + at},
		{"demo", "--listen=" + at, "--admin-listen=127.0.0.1:0"},
		{"demo", "--listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0", "--control=" + at},
	} {
		says(t, run(t, "gateway", nil, args...), 1, at, "address already in use")
	}
	both := []string{"--listen=" + at, "--admin-listen=" + at}
	for _, args := range [][]string{{"serve", both[0], "--admin-listen=127.0.0.1:0"}, {"demo", "--listen=127.0.0.1:0", both[1]}} {
		says(t, run(t, "gateway", nil, args...), 1, at+" is taken", "HOST:PORT")
	}
}
