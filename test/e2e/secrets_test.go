package e2e_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"exchange-gateway/internal/cache/redistest"
	"exchange-gateway/internal/exchangesim"
)

// shapes are what secrets look like that no test knows beforehand: signatures and what is signed.
var shapes = map[string]*regexp.Regexp{
	"a signature in a query":            regexp.MustCompile(`(?i)signature(=|%3D|":)`),
	"a signed query":                    regexp.MustCompile(`timestamp=\d{10}|recvWindow=`),
	"an HMAC or Ed25519 key in hex":     regexp.MustCompile(`\b[0-9a-f]{64}\b`),
	"an HMAC in base64":                 regexp.MustCompile(`[A-Za-z0-9+/]{43}=`),
	"a JWT":                             regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.`),
	"a private key":                     regexp.MustCompile(`PRIVATE KEY`),
	"a client key":                      regexp.MustCompile(`gw_[a-z0-9]+_[a-z0-9]{8,}`),
	"a header of a request to exchange": regexp.MustCompile(`(?i)X-MBX-APIKEY|OK-ACCESS-|CB-ACCESS-|Bearer [A-Za-z0-9_.-]{20}`),
}

// leaks are the secrets that a text holds.
func leaks(text string, secrets map[string]string) []string {
	var found []string
	for name, secret := range secrets {
		if strings.Contains(text, secret) {
			found = append(found, name)
		}
	}
	for name, shape := range shapes {
		if m := shape.FindString(text); m != "" {
			found = append(found, name+": "+m)
		}
	}
	slices.Sort(found)
	return found
}

// parts are the pieces of a credential whose appearance would give it away.
func parts(c exchangesim.Credential) map[string]string {
	all := map[string]string{c.Name + " key": c.Key}
	if c.Passphrase != "" {
		all[c.Name+" passphrase"] = c.Passphrase
	}
	for line := range strings.Lines(c.Secret) {
		if line = strings.TrimSpace(line); len(line) > 12 && !strings.HasPrefix(line, "-----") {
			all[c.Name+" secret "+line[:4]] = line
		}
	}
	return all
}

// A session of every venue, key type and kind of trouble at debug level leaks nothing: not in the log, not in an answer,
// not in a metric.
func TestSecrets_appearNowhere(t *testing.T) {
	t.Parallel()
	const password = "example-redis-password"
	redis := redistest.Start(t)
	keysOut := filepath.Join(t.TempDir(), "keys.json")
	sim := simulate(t, "--keys-out="+keysOut)
	redis.Do("CONFIG", "SET", "requirepass", password)
	var known []exchangesim.Credential
	readJSON(t, keysOut, &known)

	life := before(t, sim, "--log-level=debug", "--redis="+redis.Addr())
	life.env = append(life.env, "GATEWAY_REDIS_PASSWORD="+password)
	for _, id := range ids() {
		// The circuits stay closed, so that every trouble is met and not avoided.
		for _, set := range []string{"timeout=400ms", "deadline=1200ms", "consecutive=1000", "rate=1"} {
			life = life.with("exchanges."+id+".account."+set, "exchanges."+id+".market_data."+set)
		}
	}
	secrets := map[string]string{"redis password": password}
	accounts := map[string][]string{} // by exchange
	dir := t.TempDir()
	for _, c := range known {
		if c.Region != "" && c.Region != "global" || c.Demo {
			continue // needs another region or another host
		}
		at := "GATEWAY_EXCHANGES_" + upper(c.Venue) + "_ACCOUNTS_" + upper(strings.ReplaceAll(c.Name, "-", "_")) + "_"
		file := filepath.Join(dir, c.Name) // the secret through a file, the rest through the environment
		if err := os.WriteFile(file, []byte(c.Secret), 0o600); err != nil {
			t.Fatal(err)
		}
		life.env = append(life.env, at+"KEY="+c.Key, at+"SECRET_FILE="+file)
		if c.Passphrase != "" {
			life.env = append(life.env, at+"PASSPHRASE="+c.Passphrase)
		}
		accounts[c.Venue] = append(accounts[c.Venue], strings.ReplaceAll(c.Name, "-", "_"))
		for name, part := range parts(c) {
			secrets[name] = part
		}
	}
	key := life.newKey(t, "account:read", "market:read")
	_, rest, _ := strings.Cut(key, "_")
	_, secret, _ := strings.Cut(rest, "_")
	secrets["client key"] = secret
	g := life.serve(t)
	g.key = key

	var mu sync.Mutex
	seen := map[int]int{}
	look := func(what string, a answer) {
		mu.Lock()
		seen[a.status]++
		mu.Unlock()
		if a.err != nil {
			t.Errorf("%s: %v", what, a)
		}
		text := string(a.body)
		for name, values := range a.header {
			text += name + ": " + strings.Join(values, ", ") + "\n"
		}
		for _, l := range leaks(text, secrets) {
			t.Errorf("%s: the answer shows %s", what, l)
		}
		if strings.Contains(text, rawBody) {
			t.Errorf("%s: the answer shows the exchange's own body: %s", what, text)
		}
	}
	var all sync.WaitGroup
	for _, id := range ids() {
		all.Go(func() { session(sim, g, id, accounts[id], look) })
	}
	all.Wait()

	// Callers put their key where it does not belong, or send a wrong one.
	for _, path := range []string{
		"/v1/exchanges/okx/orderbook?symbol=BTC/USDT&api_key=" + key, "/v1/exchanges/okx/orderbook?symbol=" + key, "/v1/exchanges/" + key + "/orderbook",
		"/" + key, "/v1/exchanges/okx/balance?account=" + key, "/v1/price?symbol=BTC/USDT&exchanges=" + key,
	} {
		a := g.get(t.Context(), g.public+path)
		if a.err != nil || a.status < 400 {
			t.Errorf("%s: %v", path, a)
		}
	}
	wrong := *g
	wrong.key = key[:len(key)-4] + "aaaa"
	secrets["wrong client key"] = strings.TrimPrefix(wrong.key, "gw_")
	look("wrong key", wrong.get(t.Context(), g.public+"/v1/exchanges/okx/balance"))

	look("metrics", g.get(t.Context(), g.admin+"/metrics"))
	if seen[http.StatusOK] < 20 || seen[http.StatusBadGateway] == 0 || seen[http.StatusServiceUnavailable] == 0 || seen[http.StatusGatewayTimeout] == 0 || seen[http.StatusUnauthorized] == 0 {
		t.Errorf("the session was too quiet to prove anything: %v answers by status", seen)
	}
	g.kill()
	log := g.log.String() + g.out.String()
	if len(lines(log, `"level":"DEBUG"`)) < 20 {
		t.Error("the log has hardly any line of level debug: it proves nothing")
	}
	for line := range strings.Lines(log) {
		for _, l := range leaks(line, secrets) {
			t.Errorf("the log shows %s: %s", l, line)
		}
	}
	t.Logf("%d answers by status: %v; %d bytes of log", len(seen), seen, len(log))
}

// rawBody is in the body of an exchange's error that must not reach a caller.
const rawBody = "RAW-BODY-OF-THE-EXCHANGE"

// session asks one exchange for books and balances, in health and in each kind of trouble.
func session(sim *venues, g *gateway, id string, accounts []string, look func(string, answer)) {
	ask := func(what string) {
		look(id+", "+what+": book", g.book(id, pairOf(id), "max_age_ms=60000"))
		for _, account := range accounts {
			look(id+", "+what+": balance of "+account, g.balance(id, account))
		}
	}
	ask("healthy")
	elsewhere := map[string]string{"Location": sim.urls["control"] + "/v1/venues?signature=x"}
	for _, f := range []exchangesim.Fault{
		{Kind: exchangesim.FaultReset},
		{Kind: exchangesim.FaultTruncate},
		{Kind: exchangesim.FaultWrongJSON},
		{Kind: exchangesim.FaultEmpty},
		{Kind: exchangesim.FaultHTML, Page: "nginx_502"},
		{Kind: exchangesim.FaultSkew, Skew: 2 * time.Minute},
		{Kind: exchangesim.FaultStatus, Status: 400, Body: `{"code":-1102,"msg":"` + rawBody + `","error":"` + rawBody + `"}`},
		{Kind: exchangesim.FaultStatus, Status: 500, Body: rawBody},
		{Kind: exchangesim.FaultStatus, Status: 302, Header: elsewhere},
		{Kind: exchangesim.FaultHang},
		{Kind: exchangesim.FaultMaintenance},
		{Kind: exchangesim.FaultDeadKey},
		{Kind: exchangesim.FaultRateLimit, RetryAfter: time.Second},
		{Kind: exchangesim.FaultBan, RetryAfter: time.Minute},
	} {
		sim.breaks(id, f)
		ask(string(f.Kind))
		sim.heals(id)
	}
	ask("healed")
}

// The patterns find what they are for: a grep that matches nothing proves nothing.
func TestLeaks_findsWhatItIsFor(t *testing.T) {
	secrets := map[string]string{"known": "s3cret"}
	for _, text := range []string{
		"x=s3cret", "GET /api/v3/account?timestamp=1795917600118&signature=00", "https://h/?recvWindow=5000", strings.Repeat("0a", 32),
		strings.Repeat("Q", 43) + "=", "eyJhbGciOiJFUzI1NiJ9.e30.x", "-----BEGIN EC PRIVATE KEY-----", "gw_3nuv2lvt_syqwhrqp7ymcxg26", "OK-ACCESS-SIGN: x",
	} {
		if len(leaks(text, secrets)) == 0 {
			t.Errorf("%q passes", text)
		}
	}
	line, err := json.Marshal(map[string]string{"request_id": "ruun2s5u-1", "key_id": "wy4foblh", "err": "binance: order_book: banned (HTTP 418) code -1003"})
	if err != nil {
		t.Fatal(err)
	}
	if found := leaks(string(line), secrets); len(found) > 0 {
		t.Errorf("a plain line is taken for %v", found)
	}
}
