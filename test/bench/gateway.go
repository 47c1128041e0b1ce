package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// gateway is the program itself, asked with a client key.
type gateway struct {
	*process
	key   string
	admin string // host:port
}

// build builds the program into dir as it is shipped, once.
func build(ctx context.Context, dir string) (string, error) {
	program := filepath.Join(dir, "gateway")
	if fileExists(program) {
		return program, nil
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", program, "./cmd/gateway")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build ./cmd/gateway: %w: %s", err, out)
	}
	return program, nil
}

// client is who asks. Its quota is beyond what wrk and the subscribers reach: a quota is counted on every request, and ends none.
const client = "bench"

func quota() []string {
	return []string{"--requests-per-second", "100000", "--upstream-per-minute", "1000000", "--streams", "10000"}
}

// newKey makes a client key in a state directory.
func newKey(ctx context.Context, program, state string) (string, error) {
	key, err := exec.CommandContext(ctx, program, "key", "new", "--state-dir", state, "--client", client, "--scope", "market:read").Output()
	if err != nil {
		return "", fmt.Errorf("gateway key new: %w", err)
	}
	set := append([]string{"client", "set", client, "--state-dir", state}, quota()...)
	if out, err := exec.CommandContext(ctx, program, set...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("gateway client set: %w: %s", err, out)
	}
	return strings.TrimSpace(string(key)), nil
}

// startGateway makes a client key and runs the gateway with its defaults before one exchange.
func startGateway(ctx context.Context, program, state, exchange string, args ...string) (*gateway, error) {
	return startGatewayIn(ctx, nil, program, state, exchange, args...)
}

// startGatewayIn is startGateway with variables added to the environment.
func startGatewayIn(ctx context.Context, env []string, program, state, exchange string, args ...string) (*gateway, error) {
	key, err := newKey(ctx, program, state)
	if err != nil {
		return nil, err
	}
	args = append([]string{
		"serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--state-dir", state, "--log-format", "json",
		"--set", "exchanges.binance.hosts=" + exchange, "--set", "exchanges.okx.enabled=false", "--set", "exchanges.coinbase.enabled=false",
	}, args...)
	g := &gateway{key: key}
	if g.process, err = startIn(ctx, env, g.listening, program, args...); err != nil {
		return nil, err
	}
	return g, nil
}

// listening finds the addresses in the line that the program logs when it serves.
func (g *gateway) listening(line string) (string, bool) {
	var l struct{ Msg, Public, Admin string }
	if json.Unmarshal([]byte(line), &l) != nil || l.Msg != "listening" {
		return "", false
	}
	g.admin = l.Admin
	return l.Public, true
}

// metric is the value of one series, named as the gateway's metrics name it.
func (g *gateway) metric(ctx context.Context, series string) (float64, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+g.admin+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	_, text, err := fetch(http.DefaultClient, r)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, series+" "); ok {
			return strconv.ParseFloat(strings.TrimSpace(value), 64)
		}
	}
	return 0, fmt.Errorf("the gateway has no metric %s", series)
}

// bookURL is the book of base against USDT.
func (g *gateway) bookURL(base string, depth int) string {
	return fmt.Sprintf("http://%s/v1/exchanges/binance/orderbook?symbol=%s/USDT&depth=%d", g.addr, base, depth)
}

func (g *gateway) authorization() string { return "Bearer " + g.key }

// answer is what is looked at of a book or a problem.
type answer struct {
	Status    int `json:"-"`
	Text      []byte
	Stale     bool
	Code      string
	Bids      [][2]string
	Freshness struct{ Source, Reason, Circuit string }
}

// ask sends the question for a book and reads the answer's bytes.
func (g *gateway) ask(ctx context.Context, c *http.Client, base string, depth int) (status int, text []byte, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, g.bookURL(base, depth), nil)
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Authorization", g.authorization())
	return fetch(c, r)
}

// book asks for a book, and tells how long the answer took.
func (g *gateway) book(ctx context.Context, c *http.Client, base string, depth int) (answer, time.Duration, error) {
	began := time.Now()
	status, text, err := g.ask(ctx, c, base, depth)
	took := time.Since(began)
	if err != nil {
		return answer{}, took, err
	}
	var a answer
	if err := json.Unmarshal(text, &a); err != nil {
		return a, took, fmt.Errorf("answer for %s: %w", base, err)
	}
	a.Status, a.Text = status, text
	return a, took, nil
}

// good asks for a book that has to come.
func (g *gateway) good(ctx context.Context, base string, depth int) (answer, error) {
	a, _, err := g.book(ctx, http.DefaultClient, base, depth)
	if err == nil && (a.Status != http.StatusOK || len(a.Bids) != depth) {
		err = fmt.Errorf("book of %s: status %d, %s, %d of %d bids", base, a.Status, a.Code, len(a.Bids), depth)
	}
	return a, err
}

// openCircuit asks for books that nobody holds until the circuit refuses. The exchange has to be broken. They are
// different ones, as a book that just failed is not asked for again at once.
func (g *gateway) openCircuit(ctx context.Context) error {
	for i := range coins / 4 {
		a, _, err := g.book(ctx, http.DefaultClient, coin(coins-2-i), 100)
		if err != nil {
			return err
		}
		if a.Code == "circuit_open" {
			return nil
		}
	}
	return errNotOpen
}

var errNotOpen = errors.New("the circuit does not open")

// unread is the base of a pair that is never asked for while the circuit is closed.
var unread = coin(coins - 1)

// fetch sends a request and reads the whole answer.
func fetch(c *http.Client, r *http.Request) (status int, body []byte, err error) {
	res, err := c.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	body, err = io.ReadAll(res.Body)
	return res.StatusCode, body, err
}
