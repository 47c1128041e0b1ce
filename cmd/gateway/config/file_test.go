package config_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"exchange-gateway/cmd/gateway/config"
)

// planted stands where a secret would; no error may hold a part of it.
const planted = "PLANTED5ecret"

// TestLoad_noErrorShowsASecret: whatever is wrong with a file, beside a secret or with it, the error does not show it.
func TestLoad_noErrorShowsASecret(t *testing.T) {
	head := "exchanges:\n  okx:\n    accounts:\n      main:\n"
	for _, text := range []string{
		head + "        key: S\n        secrte: S\n",
		head + "        key: S\n        S: x\n",
		head + "        key: S\n        S\n",
		head + "        key: S\n        secret:S\n",
		head + "        key:S\n        secret:S\n",
		head + "        key: S\n\tsecret: S\n",
		head + "\t\tkey: S\n",
		head + "        key: S\n        key: S\n",
		head + "        key: S\n        secret: [S]\n",
		head + "        key: {S: S}\n        secret: {S}\n",
		head + "        key: S: S\n",
		head + "        key: \"S\n        secret: S\n",
		head + "        key: 'S\n",
		head + "        key: S\n      secret: S\n",
		head + "        key: S\n       secret: S\n",
		head + "        key: S\n          secret: S\n",
		head + "        key: S\n        demo: S\n",
		head + "        key: S\n        secret: @S\n",
		head + "        key: S\n        secret: `S\n",
		head + "        key: S\n        secret: *S\n",
		head + "        key: S\n        secret: &S\n",
		head + "        key: S\n        secret: &x S\n",
		head + "        key: S\n        secret: !S S\n",
		head + "        key: S\n        secret: >S\n",
		head + "        key: S\n        secret: |S\n",
		head + "        key: S\n        secret: {S\n",
		head + "        key: S\n        secret: [S\n",
		head + "        key: S\n        secret: S]\n        x: 1\n",
		head + "        - key: S\n        - secret: S\n",
		head + "        ? S\n        : S\n",
		head + "        ? [S]\n        : S\n",
		head + "        <<: S\n",
		head + "        key: S\n        secret: S\n---\nlisten: S\n",
		"exchanges:\n  okx:\n    accounts:\n      main: S\n",
		"exchanges:\n  okx:\n    accounts:\n      S: {key: S}\n",
		"exchanges:\n  okx:\n    accounts: S\n",
		"exchanges:\n  okx:\n    accounts: [S]\n",
		"exchanges:\n  okx:\n    accounts: {main: {S, S}}\n",
		"exchanges:\n  okx: S\n",
		"exchanges:\n  S: S\n",
		"exchanges: S\n",
		"exchanges:\n  okx:\n    hosts: [https://S:S@example.com]\n",
		"exchanges:\n  okx:\n    budget_share: S\n",
		"exchanges:\n  okx:\n    market_data: {timeout: S}\n",
		"redis:\n  pasword: S\n",
		"redis:\n  password: [S]\n",
		"redis:\n  db: S\n",
		"redis:\n  S: 1\n",
		"redis: S\n",
		"redis: redis://:S@localhost:6379/0\n",
		"redis:\n  addrs: ['redis://:S@localhost:6379/0']\n",
		"redis:\n  addrs: [redis://:S@localhost:6379/0]\n",
		"redis:\n  addrs: [{S: S}]\n",
		"listen: S\n", "log: {level: S}\n", "fresh_for: S\n", "depth_max: S\n", "allow_open: S\n",
		"S\n", "S: S\n", "- S\n", "- S: S\n", "S: [\n", "\"S\n", "%S\n", "%YAML S\n---\nx: S\n",
	} {
		text = strings.ReplaceAll(text, "S", planted)
		_, err := load(t, text, nil, nil)
		if err == nil {
			t.Errorf("no error for\n%s", text)
		} else if strings.Contains(strings.ToLower(err.Error()), strings.ToLower(planted)) {
			t.Errorf("%v\nfor\n%s", err, text)
		}
	}
	for _, source := range []config.Sources{
		{Set: []string{planted}},
		{Set: []string{"exchanges.okx.accounts.main:" + planted}},
		{Set: []string{"redis.db=" + planted}},
		{Set: []string{"redis.addrs=redis://:" + planted + "@h:1"}},
		{Env: []string{"GATEWAY_REDIS_DB=" + planted}},
		{Env: []string{"GATEWAY_REDIS_PASWORD=" + planted}},
		{Env: []string{"GATEWAY_LISTEN=" + planted}},
	} {
		source.Known, source.Home = known, t.TempDir()
		if _, err := config.Load(source); err == nil || strings.Contains(err.Error(), planted) {
			t.Errorf("%+v: %v", source, err)
		}
	}
}

// TestLoad_aFileThatSaysNothing is the defaults.
func TestLoad_aFileThatSaysNothing(t *testing.T) {
	for _, text := range []string{" ", "\n\n", "# nothing yet\n", "---\n", "---\n# nothing\n...\n", "\ufeff", "redis:\nexchanges:\n  okx:\n  # region: eea\nlisten:\n", "{}", "~"} {
		got, err := load(t, text, nil, nil)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		want, _ := load(t, "", nil, nil)
		got.StateDir, got.KeysFile = want.StateDir, want.KeysFile // each load has a home of its own
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%q is %+v", text, got)
		}
	}
}

// TestLoad_readsWhatPeopleWrite: the other ways to write the same.
func TestLoad_readsWhatPeopleWrite(t *testing.T) {
	text := "\ufefflisten: '127.0.0.1:1' # here\r\nredis: {addrs: [\"localhost:6379\", '127.0.0.1:6380'], db: 3}\r\nexchanges:\r\n" +
		"  okx:\r\n    hosts:\r\n      - http://127.0.0.1:1\r\n    account_hosts: [http://127.0.0.1:1]\r\n    market_data: {timeout: 1s, rate: 0.25}\r\n" +
		"    accounts:\r\n      main-2: {key: 0123, secret: true, passphrase: \"a: #b\"}\r\n"
	c, err := load(t, text, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	okx := c.Exchanges["okx"]
	a := okx.Accounts["main-2"]
	if c.Listen != "127.0.0.1:1" || len(c.Redis.Addrs) != 2 || c.Redis.DB != 3 || okx.Hosts[0] != "http://127.0.0.1:1" ||
		okx.AccountHosts[0] != "http://127.0.0.1:1" || okx.MarketData != (config.Class{Timeout: time.Second, Rate: 0.25}) ||
		a.Key.Reveal() != "0123" || a.Secret.Reveal() != "true" || a.Passphrase.Reveal() != "a: #b" {
		t.Errorf("read %+v", c)
	}
	c, err = load(t, "exchanges: {okx: {accounts: {main: {key: k, secret: \"s\"}}}}\nredis:\n  password: |\n    two\n    lines\n", nil, nil)
	if err != nil || c.Redis.Password.Reveal() != "two\nlines\n" {
		t.Errorf("%q, %v", c.Redis.Password.Reveal(), err)
	}
}

// TestLoad_namesTheSettingAndThePlace: a stranger who reads the message alone can mend the file.
func TestLoad_namesTheSettingAndThePlace(t *testing.T) {
	f := func(text string, want ...string) {
		t.Helper()
		_, err := load(t, text, nil, nil)
		if err == nil {
			t.Errorf("%q: no error", text)
			return
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%q: %v\nwant %q in it", text, err, w)
			}
		}
	}
	f("depth_max: many\n", "gateway.yaml: [1:12] depth_max: a whole number")
	f("fresh_for: 5\n", `[1:12] fresh_for: "5" is not a duration`, "300ms")
	f("stale_max_age: 1d\n", `[1:16] stale_max_age: "1d"`, "24h")
	f("exchanges: {okx: {accounts: {main: {key: [X]}}}}\n", "exchanges.okx.accounts.main.key: one value is wanted, not a list")
	f("listen: a:1\n---\nlisten: b:1\n", "[3:", "second document")
	f("a:\n\tb: 1\n", "[2:1] a tab")
	f("log: info\n", "[1:6] log: a group of settings")
	f("listen: {host: x}\n", "listen: one value is wanted")
	f("exchanges: {okx: {hosts: {http: x}}}\n", "exchanges.okx.hosts")
	f("listen: 127.0.0.1:1\n\nin_flight: 0\n", "[3:12] in_flight is 0: it must be 1 to 100000")
	f("exchanges:\n  okx:\n    budget_share: 0\n    market_data: {consecutive: 0, rate: 0, timeout: 0s}\n",
		"[3:19] exchanges.okx.budget_share is 0", "market_data.consecutive is 0", "market_data.rate is 0", "market_data.timeout is 0s")
	f("listen: 127.0.0.1:65536\nadmin_listen: 127.0.0.1:http\n", "[1:9] listen has no port", "[2:15] admin_listen has no port")
	f("listen: 127.0.0.1:9\nadmin_listen: 127.0.0.1:9\n", "[2:15] admin_listen is the same as listen")
	f("redis:\n  addrs: [redis://localhost:6379]\n", "[2:10] redis.addrs [0] must be host:port")
	f("redis:\n  addrs: [localhost:6379, localhost]\n", "[2:10] redis.addrs [1] must be host:port")
	// The parser takes text with a colon inside braces apart.
	f("exchanges: {okx: {hosts: [http://127.0.0.1:1]}}\n", "quotes")
	f("redis: {addrs: [localhost:6379]}\n", "[1:", "redis.addrs", "quotes")
	f("exchanges: {okx: {market_data: {rate: .nan}}}\n", "exchanges.okx.market_data.rate: a number")
	// All problems at once.
	f("fresh_fro: 1s\ndrain: soon\nlog: {levle: info}\nexchanges: {kraken: {}}\nlisten: x\nlisten: y\n",
		"[1:1]", "[2:8]", "[3:7]", "[4:13]", "[6:1] \"listen\" is given twice")
}
