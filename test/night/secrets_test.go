package night

import (
	"bytes"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/cmd/gateway/app"
	"exchange-gateway/cmd/gateway/config"
	"exchange-gateway/internal/exchangesim"
	"exchange-gateway/internal/market"
)

// secrets are texts that may stand in nothing that the gateway says, each with a word for what it is.
type secrets struct {
	mu   sync.Mutex
	what map[string]string
}

func (s *secrets) add(what, text string) {
	if len(text) < 8 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.what[text] = what
}

// credential adds everything of a key that only its owner and the exchange may know.
func (s *secrets) credential(c exchangesim.Credential) {
	s.add(c.Name+": key", c.Key)
	s.add(c.Name+": passphrase", c.Passphrase)
	if _, id, ok := strings.Cut(c.Key, "/apiKeys/"); ok {
		s.add(c.Name+": key id", id)
	}
	for line := range strings.Lines(c.Secret) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "-----") {
			s.add(c.Name+": secret", line)
			s.add(c.Name+": secret", line[:len(line)/2])
		}
	}
}

// watched notes the signatures of the requests that really left.
type watched struct {
	http.RoundTripper
	seen *secrets
}

// RoundTrip implements http.RoundTripper.
func (w watched) RoundTrip(r *http.Request) (*http.Response, error) {
	q := r.URL.Query()
	if text := q.Get("signature"); text != "" {
		w.seen.add("signature", text)
		w.seen.add("signature", url.QueryEscape(text))
		w.seen.add("signed query", r.URL.RawQuery)
		w.seen.add("signed time", "timestamp="+q.Get("timestamp"))
	}
	for _, name := range []string{"Ok-Access-Sign", "Cb-Access-Sign"} {
		w.seen.add(name, r.Header.Get(name))
	}
	if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		for i, part := range strings.Split(token, ".") {
			w.seen.add(fmt.Sprintf("part %d of a token", i+1), part)
		}
	}
	return w.RoundTripper.RoundTrip(r)
}

// keyed are the accounts of every kind of key, and broken ones of keys that the exchange knows.
func keyed(t testing.TB) (map[market.ExchangeID]map[string]config.Account, []exchangesim.Credential) {
	t.Helper()
	known := exchangesim.ExampleCredentials()
	rsa, err := exchangesim.NewRSACredential()
	if err != nil {
		t.Fatal(err)
	}
	known = append(known, rsa)
	all := map[market.ExchangeID]map[string]config.Account{}
	for _, id := range ids {
		all[id] = map[string]config.Account{}
	}
	for _, c := range known {
		if c.Region == "" {
			all[market.ExchangeID(c.Venue)][c.Name] = asAccount(c)
		}
	}
	// The right key with a wrong secret, and a key that nobody knows.
	for id, name := range credentials {
		wrong := all[id][name]
		wrong.Secret = all[id][otherOf(id)].Secret
		all[id]["wrong-secret"] = wrong
		stranger := all[id][name]
		stranger.Key = market.NewSecret(strings.Replace(stranger.Key.Reveal(), "e0", "f9", 1) + "9")
		all[id]["stranger"] = stranger
	}
	return all, known
}

// otherOf is a credential whose secret is of a shape that the exchange knows, and not the secret of the usual one.
func otherOf(id market.ExchangeID) string {
	return map[market.ExchangeID]string{"binance": "binance-second", "okx": "okx-demo", "coinbase": "coinbase-ed25519"}[id]
}

// faults are all that can go wrong with an answer.
var faults = []exchangesim.Fault{
	{Kind: exchangesim.FaultHang},
	{Kind: exchangesim.FaultHangBody},
	{Kind: exchangesim.FaultReset},
	{Kind: exchangesim.FaultResetBody},
	{Kind: exchangesim.FaultClose},
	{Kind: exchangesim.FaultTruncate},
	{Kind: exchangesim.FaultCutJSON},
	{Kind: exchangesim.FaultWrongJSON},
	{Kind: exchangesim.FaultEmpty},
	{Kind: exchangesim.FaultUnavailable},
	{Kind: exchangesim.FaultMaintenance},
	{Kind: exchangesim.FaultRateLimit},
	{Kind: exchangesim.FaultBan},
	{Kind: exchangesim.FaultGeoBlock},
	{Kind: exchangesim.FaultDeadKey},
	{Kind: exchangesim.FaultCrossed},
	{Kind: exchangesim.FaultSkew, Skew: time.Minute},
	{Kind: exchangesim.FaultHTML, Page: "cloudfront_403"},
	{Kind: exchangesim.FaultHTML, Page: "cloudflare_1015"},
	{Kind: exchangesim.FaultHTML, Page: "coinbase_502"},
	{Kind: exchangesim.FaultStatus, Status: 302, Header: map[string]string{"Location": "https://example.com/?signature=elsewhere"}},
	{Kind: exchangesim.FaultStatus, Status: 401, Body: "no"},
	{Kind: exchangesim.FaultStatus, Status: 500, Body: "{}"},
}

// TestNoSecrets greps everything that the gateway says, in logs at debug level, answers, metrics and errors of start-up,
// while all exchanges, kinds of keys and faults are gone through, for every key, secret and signature.
func TestNoSecrets(t *testing.T) {
	for _, region := range []string{"", "eea"} {
		t.Run("region "+region, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { noSecrets(t, region) })
		})
	}
}

func noSecrets(t *testing.T, region string) {
	accounts, known := keyed(t)
	if region != "" { // OKX alone has some
		accounts = map[market.ExchangeID]map[string]config.Account{"okx": {"okx-eea": credential(t, "okx-eea")}}
	}
	hidden := &secrets{what: map[string]string{}}
	for _, c := range known {
		hidden.credential(c)
	}
	var said bytes.Buffer
	s := newStage(t, setting{
		log: &said, sim: exchangesim.Config{Credentials: known}, watch: hidden,
		conf: func(c *config.Config) {
			for _, id := range ids {
				e := c.Exchanges[id]
				e.Accounts = accounts[id]
				if id == "okx" {
					e.Region = region
				}
				c.Exchanges[id] = e
			}
		},
	})
	hidden.add("client key", s.key)
	hidden.add("client key's secret", s.key[strings.LastIndexByte(s.key, '_')+1:])
	stranger := "gw_stranger_" + strings.Repeat("neverissued", 3)
	hidden.add("a key that is none of ours", stranger)

	answers := &bytes.Buffer{}
	round := func() {
		for _, target := range []string{"/v1/exchanges", "/v1/orderbooks?symbol=BTC/USDT", "/v1/price?symbol=BTC/USDT", "/readyz"} {
			record(answers, s.get(target))
		}
		for id, all := range accounts {
			pair := s.pairs(id, 1)[0]
			record(answers, s.book(id, pair))
			record(answers, s.ticker(id, pair))
			record(answers, s.get("/v1/exchanges/"+string(id)+"/status"))
			record(answers, s.get("/v1/exchanges/"+string(id)+"/markets"))
			for name := range all {
				target := "/v1/exchanges/" + string(id) + "/balance?account=" + name
				record(answers, s.get(target, "Authorization", "Bearer "+s.key))
				record(answers, s.get(target, "X-API-Key", stranger))
				record(answers, s.get(target+"&apikey="+stranger, "Authorization", "Bearer "+s.key))
			}
		}
	}
	round()
	balances := strings.Count(answers.String(), `"balances":`)
	if want := workingAccounts(accounts); balances != want {
		t.Errorf("%d accounts answered, want %d: the rest would be no test", balances, want)
	}
	for _, f := range faults {
		for id := range accounts {
			s.inject(id, f)
		}
		round()
		for id := range accounts {
			if met := s.venue(id).Faults(); met[0].Hits == 0 && f.Kind != exchangesim.FaultDeadKey {
				t.Errorf("%s: no request met the fault %s %s", id, f.Kind, f.Page)
			}
			s.venue(id).ClearFaults()
		}
		time.Sleep(20 * time.Minute) // every gate is open again
	}
	record(answers, ask(t.Context(), s.app.Admin(), http.MethodGet, "/metrics"))

	synctest.Wait()
	s.log.kept.mu.Lock()
	defer s.log.kept.mu.Unlock()
	t.Logf("%d texts that must not appear; %d KiB of log, %d KiB of answers and metrics, %d log lines at debug level",
		len(hidden.what), said.Len()>>10, answers.Len()>>10, bytes.Count(said.Bytes(), []byte("level=DEBUG")))
	if len(hidden.what) < 50 || said.Len() < 10_000 {
		t.Error("too little was said or signed for a test")
	}
	hidden.grep(t, "log", said.Bytes())
	hidden.grep(t, "answers", answers.Bytes())
}

// workingAccounts counts the accounts whose balances the exchange gives.
func workingAccounts(all map[market.ExchangeID]map[string]config.Account) (n int) {
	for _, accounts := range all {
		for name := range accounts {
			if name != "wrong-secret" && name != "stranger" {
				n++
			}
		}
	}
	return n
}

func record(to *bytes.Buffer, a answer) {
	fmt.Fprintln(to, a.status, a.header)
	to.Write(a.body)
	to.WriteByte('\n')
}

// grep fails for every secret in a text, and for anything that only a signed URL has.
func (s *secrets) grep(t *testing.T, where string, text []byte) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for secret, what := range s.what {
		if i := bytes.Index(text, []byte(secret)); i >= 0 {
			t.Errorf("%s in the %s: %q", what, where, text[max(0, i-120):min(len(text), i+40)])
		}
	}
	for _, mark := range []string{"signature=", "recvWindow=", "PRIVATE KEY", "Bearer ey"} {
		if i := bytes.Index(text, []byte(mark)); i >= 0 {
			t.Errorf("%q in the %s: %q", mark, where, text[max(0, i-120):min(len(text), i+40)])
		}
	}
}

// TestNoSecretsAtStart: a credential that cannot be used is refused without being shown.
func TestNoSecretsAtStart(t *testing.T) {
	_, known := keyed(t)
	hidden := &secrets{what: map[string]string{}}
	for _, c := range known {
		hidden.credential(c)
	}
	refused := 0
	for _, c := range known {
		for _, spoil := range []func(string) string{
			func(s string) string { return s[:len(s)/2] },
			func(s string) string { return "x" + s + "\x00" },
			func(s string) string { return strings.ReplaceAll(s, "-----BEGIN", "-----BEGUN") },
			encrypted,
		} {
			conf := usual(t)
			a := asAccount(c)
			a.Secret = market.NewSecret(spoil(c.Secret))
			e := conf.Exchanges[market.ExchangeID(c.Venue)]
			e.Accounts = map[string]config.Account{account: a}
			conf.Exchanges[market.ExchangeID(c.Venue)] = e
			var said bytes.Buffer
			_, err := app.New(conf, app.Options{Log: debugLog(&said)})
			if err != nil {
				refused++
				hidden.grep(t, "error of "+c.Name, []byte(err.Error()))
			}
			hidden.grep(t, "log of "+c.Name, said.Bytes())
			fmt.Fprintf(&said, "%v %+v %#v", conf, conf, conf)
			hidden.grep(t, "configuration printed", said.Bytes())
		}
	}
	t.Logf("%d broken credentials were refused", refused)
	if refused == 0 {
		t.Error("no broken credential was refused")
	}
}

// encrypted is a key of a kind that nobody here reads, with the bytes of the real one in it.
func encrypted(secret string) string {
	raw := []byte(secret)
	if block, _ := pem.Decode(raw); block != nil {
		raw = block.Bytes
	}
	if _, err := x509.ParsePKCS1PrivateKey(raw); err == nil {
		raw = raw[1:]
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "OPENSSH PRIVATE KEY", Bytes: []byte(base64.StdEncoding.EncodeToString(raw))}))
}
