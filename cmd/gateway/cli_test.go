package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// gateway runs the program and returns what it wrote.
func gateway(t *testing.T, env []string, args ...string) (out, errOut string, err error) {
	t.Helper()
	var o, e bytes.Buffer
	err = run(t.Context(), system{args: args, env: env, out: &o, err: &e})
	return o.String(), e.String(), err
}

func TestKeyNew_scopesThatReachNothing(t *testing.T) {
	dir := t.TempDir()
	f := func(scope, wantErr, wantWarning string) {
		t.Helper()
		out, warned, err := gateway(t, nil, "key", "new", "--state-dir", dir, "--scope", scope)
		if (err != nil) != (wantErr != "") || err != nil && (!strings.Contains(err.Error(), wantErr) || out != "") {
			t.Errorf("%s: %v, printed %d bytes", scope, err, len(out))
		}
		if strings.Contains(warned, "Warning") != (wantWarning != "") || !strings.Contains(warned, wantWarning) {
			t.Errorf("%s: said %s", scope, warned)
		}
	}
	f("account:read:kraken/x", `"kraken" is unknown`, "")
	f("account:read:kraken", "binance coinbase okx", "")
	f("account:read:okx/nobody", "", `no account "nobody" of okx`)
	f("account:read:okx", "", "")
	f("market:read", "", "")
}

// TestKeyNew_noPlaceForTheKey: a clear error, and no key is shown that would not work.
func TestKeyNew_noPlaceForTheKey(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{}, {"--state-dir", file}} {
		out, _, err := gateway(t, nil, append([]string{"key", "new", "--scope", "market:read"}, args...)...)
		if err == nil || out != "" {
			t.Errorf("%v: %v, printed %d bytes", args, err, len(out))
		}
	}
}

func TestConfigCheck_refuses(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	f := func(want string, set ...string) {
		t.Helper()
		args := []string{"config", "check", "--state-dir", dir}
		for _, s := range set {
			args = append(args, "--set", s)
		}
		_, _, err := gateway(t, nil, args...)
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", set, err, want)
		}
	}
	f("")
	f("65535", "listen=127.0.0.1:65536")
	f("same as listen", "listen=127.0.0.1:1", "admin_listen=127.0.0.1:1")
	f("no certificate and its key", "tls_cert_file="+file("c.pem", "x"), "tls_key_file="+file("k.pem", "y"))
	f("host:port", "redis.addrs=redis://localhost:6379")
	f("consecutive is 0", "exchanges.okx.account.consecutive=0")
	f("keys.yaml", "keys_file="+file("keys.yaml", "keys: nonsense"))
}

// TestHints_nameTheProgram as it was called: there is no gateway in the path of somebody who ran make.
func TestHints_nameTheProgram(t *testing.T) {
	dir := t.TempDir()
	f := func(want string, args ...string) {
		t.Helper()
		var said bytes.Buffer
		err := run(t.Context(), system{program: "./bin/gateway", args: append(args, "--state-dir", dir), out: &said, err: &said})
		if text := said.String() + fmt.Sprint(err); !strings.Contains(text, want) || strings.Contains(text, "'gateway ") || strings.Contains(text, ": gateway key") {
			t.Errorf("%v: said %s, want %q", args, text, want)
		}
	}
	f("./bin/gateway key new --scope", "key", "list")
	f("'./bin/gateway key new'", "config", "check", "--listen", "0.0.0.0:0")
	f("'./bin/gateway key new --scope ops:read'", "serve", "--admin-listen", "0.0.0.0:0")
	f("./bin/gateway key new --client desk-a", "client", "set", "desk-a", "--streams", "2")
	f("Run './bin/gateway --help'", "nonsense")
	f("", "key", "new", "--client", "desk-a", "--scope", "market:read")
	f("./bin/gateway key revoke ", "key", "new", "--client", "desk-a", "--scope", "market:read")
}

// TestConfigCheck_saysEverythingAtOnce: one file with every kind of mistake takes one run, not one for each kind; and a mistake
// is told once, not again as what follows from it.
func TestConfigCheck_saysEverythingAtOnce(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "gateway.yaml")
	text := `listen: 0.0.0.0:8080
fresh_fro: 1s
stale_wait: soon
in_flight: 0
depth_default: 500
depth_max: 200
keys_file: nonsense.yaml
tls_cert_file: cert.pem
tls_key_file: key.pem
redis: {password_file: nowhere}
log: info
exchanges:
  okx:
    region: mars
    ca_file: nowhere.pem
    market_data: {timeout: 5s, deadline: 1s}
    accounts:
      main: {key_file: nowhere, secret: s}
      half: {key: k, secert: s}
      other: {key: k, secret: s}
  binance:
    region: eu
    hosts: [nonsense]
    stream_hosts: 1
    warm: [BTC]
    accounts: {main: {key: k, secret: "-----BEGIN NONSENSE-----"}}
  kraken: {}
`
	for name, text := range map[string]string{"gateway.yaml": text, "nonsense.yaml": "keys: nonsense", "cert.pem": "x", "key.pem": "y"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(dir, "nonsense.yaml"), 0o666); err != nil {
		t.Fatal(err)
	}
	_, _, err := gateway(t, []string{"GATEWAY_DRIAN=1s", "GATEWAY_DEPTH_MAX=0"}, "config", "check", "--config", path, "--state-dir", dir)
	if err == nil {
		t.Fatal("no error")
	}
	lines := strings.Split(err.Error(), "\n")
	for _, want := range []string{
		`"fresh_fro" is no setting`, "stale_wait: ", "in_flight is 0", "depth_max is 0", "nonsense.yaml: [1:7]", "chmod 600", "tls_cert_file and tls_key_file", "redis.password_file: ",
		"log: a group of settings", `exchanges.okx: okx: unknown region "mars"`, "exchanges.okx.ca_file: ", "exchanges.okx.market_data.deadline", "exchanges.okx.accounts.main.key_file: ", "exchanges.okx.accounts.half",
		"exchanges.okx.accounts.other: ", "exchanges.binance: ", "exchanges.binance.hosts [0]", "exchanges.binance.stream_hosts", "exchanges.binance.warm [0]", "exchanges.binance.accounts.main: ", `exchange "kraken" is unknown`, "GATEWAY_DRIAN",
	} {
		found := 0
		for _, line := range lines {
			if strings.Contains(line, want) {
				found++
			}
		}
		if found != 1 {
			t.Errorf("%d lines say %q", found, want)
		}
	}
	for _, twice := range []string{"needs a key", "depth_default is", "log.level", "no streams"} {
		if strings.Contains(err.Error(), twice) {
			t.Errorf("%q is said of a mistake that is told already", twice)
		}
	}
}

// TestConfigPrint_hidesWhatThereIs, and only that.
func TestConfigPrint_hidesWhatThereIs(t *testing.T) {
	env := []string{
		"HOME=" + t.TempDir(), "GATEWAY_REDIS_PASSWORD=", "GATEWAY_EXCHANGES_OKX_ACCOUNTS_MY_BOT_KEY=fake-key",
		"GATEWAY_EXCHANGES_OKX_ACCOUNTS_MY_BOT_SECRET=fake-secret",
	}
	out, _, err := gateway(t, env, "config", "print")
	if err != nil || strings.Contains(out, "fake-") || strings.Contains(out, "password") || !strings.Contains(out, "my_bot:") || !strings.Contains(out, "budget_share: 0.7") {
		t.Errorf("%v\n%s", err, out)
	}
}
