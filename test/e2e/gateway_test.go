package e2e_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func upper(s string) string { return strings.ToUpper(s) }

// setup is how a gateway is started, as often as a test wants.
type setup struct {
	state string   // state_dir
	env   []string //
	args  []string // after `serve`
	files int      // descriptors that it may have, 0 for as many as this process
	name  string   // of the program, "" for gateway
}

// before is a gateway in front of the simulated exchanges, with a state directory of its own.
func before(t *testing.T, v *venues, args ...string) setup {
	t.Helper()
	s := setup{state: filepath.Join(t.TempDir(), "state")}
	for _, id := range ids() {
		at := "GATEWAY_EXCHANGES_" + upper(id) + "_"
		if v.urls[id] == "" { // left out of the simulation
			s.env = append(s.env, at+"ENABLED=false")
			continue
		}
		s.env = append(s.env, at+"HOSTS="+v.urls[id], at+"ACCOUNT_HOSTS="+v.urls[id])
		if v.ca != "" {
			s.env = append(s.env, at+"CA_FILE="+v.ca)
		}
	}
	s.args = slices.Concat([]string{"serve", "--listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0", "--log-format=json"}, args)
	return s
}

// with adds settings, "path=value".
func (s setup) with(settings ...string) setup {
	s.args = slices.Clone(s.args)
	for _, set := range settings {
		s.args = append(s.args, "--set", set)
	}
	return s
}

// account adds an account.
func (s setup) account(t *testing.T, name, credential string) setup {
	t.Helper()
	s.env = append(slices.Clone(s.env), accountEnv(t, name, credential)...)
	return s
}

// gateway is a running gateway.
type gateway struct {
	*process
	public, admin string // base URLs
	key           string // sent with every request if not empty
	client        *http.Client
}

// serve starts a gateway and waits until it listens.
func (s setup) serve(t *testing.T) *gateway {
	t.Helper()
	args := slices.Concat(s.args, []string{"--state-dir=" + s.state})
	g := &gateway{}
	if s.files == 0 {
		g.process = launch(t, cmp.Or(s.name, "gateway"), s.env, args...)
	} else {
		limited := slices.Concat([]string{"-c", fmt.Sprintf(`ulimit -n %d && exec "$0" "$@"`, s.files), filepath.Join(programs, "gateway")}, args)
		g.process = launchIn(t, "", append([]string{"HOME=" + t.TempDir()}, s.env...), "/bin/sh", limited...)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 128}
	g.client = &http.Client{Transport: transport, Timeout: 30 * time.Second}
	t.Cleanup(transport.CloseIdleConnections)
	eventually(t, 10*time.Second, "gateway listens", func() bool {
		if g.ended() {
			t.Fatalf("gateway ended with %d: %s", g.code, g.log.String())
		}
		for _, line := range lines(g.log.String(), `"msg":"listening"`) {
			var at struct{ Public, Admin string }
			if json.Unmarshal([]byte(line), &at) == nil {
				g.public, g.admin = "http://"+at.Public, "http://"+at.Admin
				return true
			}
		}
		return false
	})
	return g
}

// newKey makes a client key with `gateway key new`.
func (s setup) newKey(t *testing.T, scopes ...string) string {
	t.Helper()
	args := []string{"key", "new", "--state-dir=" + s.state}
	for _, scope := range scopes {
		args = append(args, "--scope="+scope)
	}
	p := run(t, "gateway", s.env, args...)
	key := strings.TrimSpace(p.out.String())
	if p.code != 0 || !strings.HasPrefix(key, "gw_") {
		t.Fatalf("key new: exit %d, %q", p.code, p.log.String())
	}
	return key
}

// answer is what came back: a book, a problem, or anything.
type answer struct {
	status int
	header http.Header
	body   []byte
	took   time.Duration
	err    error // no answer came

	Symbol    string
	Stale     bool
	Freshness struct {
		Status, Source, Circuit string
		Reason                  *string
		AgeMS                   int64     `json:"age_ms"`
		ConfirmedAt             time.Time `json:"confirmed_at"`
	}
	Bids, Asks [][2]string
	Balances   map[string]struct{ Free, Used, Total string }
	Code       string
	Origin     string
	Reason     string // of a problem
	Degraded   []string
}

// String says what matters in a failure.
func (a answer) String() string {
	if a.err != nil {
		return a.err.Error()
	}
	body := a.body
	if len(body) > 400 {
		body = body[:400]
	}
	return fmt.Sprintf("%d in %v: %s", a.status, a.took.Round(time.Microsecond), body)
}

func (a answer) age() time.Duration { return time.Duration(a.Freshness.AgeMS) * time.Millisecond }

// reason is why a book is stale, "" if it is not.
func (a answer) reason() string {
	if a.Freshness.Reason == nil {
		return ""
	}
	return *a.Freshness.Reason
}

// get asks a URL. It does not fail the test: many tests ask a gateway that is about to end.
func (g *gateway) get(ctx context.Context, target string) (a answer) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return answer{err: err}
	}
	if g.key != "" {
		req.Header.Set("Authorization", "Bearer "+g.key)
	}
	start := time.Now()
	res, err := g.client.Do(req)
	if err != nil {
		return answer{err: err, took: time.Since(start)}
	}
	defer res.Body.Close()
	a.status, a.header = res.StatusCode, res.Header
	a.body, a.err = io.ReadAll(res.Body)
	a.took = time.Since(start)
	if a.err == nil && strings.Contains(res.Header.Get("Content-Type"), "json") {
		a.err = json.Unmarshal(a.body, &a)
	}
	return a
}

func (g *gateway) book(exchange, pair string, more ...string) answer {
	return g.get(context.Background(), g.bookURL(exchange, pair, more...))
}

func (g *gateway) bookURL(exchange, pair string, more ...string) string {
	return g.public + "/v1/exchanges/" + exchange + "/orderbook?symbol=" + url.QueryEscape(pair) + strings.Join(append([]string{""}, more...), "&")
}

func (g *gateway) balance(exchange, account string) answer {
	return g.get(context.Background(), g.public+"/v1/exchanges/"+exchange+"/balance?account="+account)
}

// live reads a book that has to be live.
func (g *gateway) live(exchange, pair string) answer {
	g.t.Helper()
	a := g.book(exchange, pair)
	if a.status != http.StatusOK || a.Stale || len(a.Bids) == 0 {
		g.t.Fatalf("%s %s: %v, want a live book", exchange, pair, a)
	}
	return a
}

// circuit is the state of a circuit, from the status route.
func (g *gateway) circuit(exchange, class string) (state string, openUntil time.Time) {
	g.t.Helper()
	a := g.get(context.Background(), g.public+"/v1/exchanges")
	var doc struct {
		Exchanges []struct {
			Exchange string
			Circuits map[string]string
		}
	}
	if err := json.Unmarshal(a.body, &doc); err != nil {
		g.t.Fatalf("/v1/exchanges: %v", a)
	}
	for _, e := range doc.Exchanges {
		if e.Exchange == exchange {
			state = e.Circuits[class]
		}
	}
	var line struct {
		NextProbe time.Time `json:"next_probe"`
	}
	changes := lines(g.log.String(), `"circuit changed"`, `"exchange":"`+exchange+`"`, `"class":"`+class+`"`, `"to":"open"`)
	if n := len(changes); n > 0 {
		if err := json.Unmarshal([]byte(changes[n-1]), &line); err != nil {
			g.t.Fatalf("%s: %v", changes[n-1], err)
		}
	}
	return state, line.NextProbe
}

// opens asks for a book until the circuit behind it is open. Every answer has to be a 200.
func (g *gateway) opens(exchange, pair string, within time.Duration) {
	g.t.Helper()
	eventually(g.t, within, exchange+": the circuit of books opens", func() bool {
		a := g.book(exchange, pair)
		if a.status != http.StatusOK {
			g.t.Fatalf("%s %s: %v, want a stale book", exchange, pair, a)
		}
		return a.Freshness.Circuit == "open"
	})
}

// metric is the value of a series as it is printed, "" if there is none.
func (g *gateway) metric(series string) string {
	g.t.Helper()
	a := g.get(context.Background(), g.admin+"/metrics")
	for line := range strings.Lines(string(a.body)) {
		if value, ok := strings.CutPrefix(line, series+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
