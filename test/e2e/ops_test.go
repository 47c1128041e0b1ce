package e2e_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"exchange-gateway/internal/cache/redistest"
	"exchange-gateway/internal/exchangesim"
	"exchange-gateway/internal/market"
	"exchange-gateway/internal/ops"
)

// orders sends an operator's order, JSON as it is written, and returns what came back.
func (g *gateway) orders(verb, body string, headers ...string) (answer, ops.Outcome) {
	g.t.Helper()
	return g.ordersBy(http.MethodPost, verb, body, headers...)
}

func (g *gateway) ordersBy(method, verb, body string, headers ...string) (a answer, out ops.Outcome) {
	req, err := http.NewRequestWithContext(context.Background(), method, g.admin+"/admin/v1/"+verb, strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if g.key != "" {
		req.Header.Set("Authorization", "Bearer "+g.key)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := g.client.Do(req)
	if err != nil {
		return answer{err: err}, out
	}
	defer res.Body.Close()
	a.status, a.header = res.StatusCode, res.Header
	a.body, a.err = io.ReadAll(res.Body)
	if a.status == http.StatusOK {
		if err := json.Unmarshal(a.body, &out); err != nil {
			g.t.Errorf("%s: %v in %s", verb, err, a.body)
		}
	} else if a.err == nil {
		a.err = json.Unmarshal(a.body, &a)
	}
	return a, out
}

// carriesOut is orders with an order that has to be carried out.
func (g *gateway) carriesOut(verb, body string) ops.Outcome {
	g.t.Helper()
	a, out := g.orders(verb, body)
	if a.status != http.StatusOK {
		g.t.Fatalf("%s %s: %v", verb, body, a)
	}
	return out
}

// overview is GET /v1/circuits.
func (g *gateway) overview() (o ops.Overview) {
	g.t.Helper()
	a := g.get(context.Background(), g.admin+"/v1/circuits")
	if err := json.Unmarshal(a.body, &o); err != nil || a.status != http.StatusOK {
		g.t.Fatalf("/v1/circuits: %v, %v", a, err)
	}
	return o
}

func (g *gateway) exchange(id string) ops.Exchange {
	g.t.Helper()
	for _, x := range g.overview().Exchanges {
		if string(x.ID) == id {
			return x
		}
	}
	g.t.Fatalf("no exchange %s", id)
	return ops.Exchange{}
}

// history is what the first frame of the event stream holds.
func (g *gateway) history() []market.Event {
	g.t.Helper()
	p := run(g.t, "gateway", nil, "events", "--admin="+g.admin, "-o", "json")
	if p.code != 0 {
		g.t.Fatalf("events: exit %d: %s", p.code, p.log.String())
	}
	var all []market.Event
	for line := range strings.Lines(p.out.String()) {
		var ev market.Event
		if err := json.Unmarshal([]byte(line), &ev); err != nil {
			g.t.Fatalf("%s: %v", line, err)
		}
		all = append(all, ev)
	}
	return all
}

// actions are the lines of the audit.
func actions(all []market.Event) []market.Event {
	return slices.DeleteFunc(slices.Clone(all), func(ev market.Event) bool { return ev.Type != market.EventAction })
}

// An isolation sends nothing at all, survives kill -9, and ends by itself.
func TestIsolate_survivesAKillAndEndsByItself(t *testing.T) {
	t.Parallel()
	for name, args := range map[string]func(t *testing.T) []string{
		"state_dir": func(*testing.T) []string { return nil },
		"redis":     func(t *testing.T) []string { return []string{"--redis=" + redistest.Start(t).Addr()} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sim := simulate(t)
			life := before(t, sim, args(t)...).streaming(sim)
			g := life.serve(t)
			g.live("okx", "BTC/USDT")
			out := g.carriesOut("isolate", `{"exchange":"okx","for":"12s","reason":"a test","actor":"night"}`)
			if out.Until == nil || !out.Changed || out.Actor != "local:night" || out.Clients == "" || len(out.Recorded) == 0 {
				t.Errorf("the answer is %+v", out)
			}
			eventually(t, 3*time.Second, "a held book is stale once it is older than fresh_for", func() bool {
				a := g.book("okx", "BTC/USDT")
				if a.status != http.StatusOK {
					t.Fatalf("a held book: %v", a)
				}
				return a.Stale && a.reason() == "isolated"
			})
			// What was under way when it began has ended by now, streams included.
			eventually(t, 3*time.Second, "streams are closed", func() bool { return sim.open("okx") == 0 })
			asked := sim.counted("okx").Requests
			g.live("binance", "BTC/USDT")
			g.kill()
			g = life.serve(t)
			if x := g.exchange("okx"); x.State != ops.StateIsolated || len(x.Overrides) != 1 || x.Overrides[0].Reason != "a test" {
				t.Errorf("after the restart okx is %s with %+v", x.State, x.Overrides)
			}
			for time.Until(*out.Until) > time.Second {
				if a := g.book("okx", "ETH/USDT"); a.status != http.StatusServiceUnavailable && a.status != http.StatusNotFound {
					t.Fatalf("a book that nobody holds: %v", a)
				}
				time.Sleep(200 * time.Millisecond)
			}
			if now := sim.counted("okx").Requests; now != asked {
				t.Errorf("%d requests were sent while it was isolated", now-asked)
			}
			eventually(t, 10*time.Second, "okx is live again", func() bool { a := g.book("okx", "BTC/USDT"); return a.status == 200 && !a.Stale })
			if early := time.Until(*out.Until); early > 0 {
				t.Errorf("it ended %v early", early)
			}
			ended := 0
			for _, ev := range g.history() {
				if ev.Type == market.EventOverride && ev.Override.Exchange == "okx" {
					ended++
				}
			}
			if ended != 1 {
				t.Errorf("%d events tell that it ended, want 1", ended)
			}
		})
	}
}

// A withheld pair answers 503, and nothing else changes: not its exchange's other pairs, not what is asked upstream.
func TestWithhold_onePairAndNothingElse(t *testing.T) {
	t.Parallel()
	sim := simulate(t)
	g := before(t, sim).account(t, "main", "okx").serve(t)
	g.live("okx", "BTC/USDT")
	g.live("okx", "ETH/USDT")
	g.carriesOut("withhold", `{"exchange":"okx","symbol":"BTC/USDT","reason":"wrong book","actor":"night"}`)
	for _, path := range []string{
		"/v1/exchanges/okx/orderbook?symbol=BTC/USDT", "/v1/exchanges/okx/orderbook?symbol=BTC/USDT&max_age_ms=3600000",
		"/v1/exchanges/okx/ticker?symbol=BTC/USDT", "/v1/price?symbol=BTC/USDT&exchanges=okx",
	} {
		a := g.get(context.Background(), g.public+path)
		if a.status != http.StatusServiceUnavailable || !strings.Contains(string(a.body), "withheld") || a.header.Get("Retry-After") == "" {
			t.Errorf("%s: %v", path, a)
		}
	}
	g.live("okx", "ETH/USDT")
	g.live("binance", "BTC/USDT")
	if x := g.exchange("okx"); x.State != ops.StateWithheld || slices.ContainsFunc(x.Circuits, func(c ops.Circuit) bool { return c.State != market.CircuitClosed || c.Isolated }) {
		t.Errorf("okx is %s with %+v", x.State, x.Circuits)
	}
	if out := g.carriesOut("release", `{"exchange":"okx","symbol":"BTC/USDT","reason":"right again","actor":"night"}`); !out.Changed {
		t.Error("the release changed nothing")
	}
	g.live("okx", "BTC/USDT")
	if out := g.carriesOut("release", `{"exchange":"okx","symbol":"BTC/USDT","reason":"once more","actor":"night"}`); out.Changed {
		t.Error("a second release changed something")
	}
}

// A purged book is nowhere any more: an outage finds no copy in memory, in Redis or after a restart.
func TestPurge_leavesNoCopy(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	sim := simulate(t)
	life := before(t, sim, "--redis="+redis.Addr())
	g := life.serve(t)
	g.live("okx", "BTC/USDT")
	g.live("okx", "ETH/USDT")
	inRedis(t, redis, "okx", "BTC/USDT")
	inRedis(t, redis, "okx", "ETH/USDT")
	sim.breaks("okx", exchangesim.Fault{Kind: exchangesim.FaultMaintenance})
	eventually(t, 10*time.Second, "the books are stale", func() bool { return g.book("okx", "BTC/USDT").Stale && g.book("okx", "ETH/USDT").Stale })
	out := g.carriesOut("purge", `{"exchange":"okx","symbol":"BTC/USDT","reason":"wrong book","actor":"night"}`)
	if !slices.Contains(out.Removed, "memory") || !slices.Contains(out.Removed, "redis") {
		t.Errorf("dropped from %v", out.Removed)
	}
	for range 2 {
		if a := g.book("okx", "BTC/USDT"); a.status == http.StatusOK || len(a.Bids) > 0 {
			t.Errorf("a purged book: %v", a)
		}
		if a := g.book("okx", "ETH/USDT"); a.status != http.StatusOK || !a.Stale {
			t.Errorf("another book: %v", a)
		}
		g.kill()
		g = life.serve(t)
	}
	sim.heals("okx")
	eventually(t, 60*time.Second, "okx is live again", func() bool { a := g.book("okx", "BTC/USDT"); return a.status == 200 && !a.Stale })
}

// Two people act at once: each order is carried out, and the audit has all of them, numbered without a hole.
func TestOrders_oftwoPeopleAtOnce(t *testing.T) {
	t.Parallel()
	sim := simulate(t)
	life := before(t, sim)
	var keys []string
	for _, name := range []string{"ann", "bob"} {
		p := run(t, "gateway", life.env, "key", "new", "--state-dir="+life.state, "--scope=ops:write", "--note="+name)
		keys = append(keys, strings.TrimSpace(p.out.String()))
	}
	g := life.serve(t)
	const each = 15
	var mu sync.Mutex
	events := map[string]string{}
	var both sync.WaitGroup
	for i, name := range []string{"ann", "bob"} {
		both.Go(func() {
			for n := range each {
				a, out := g.orders("withhold", fmt.Sprintf(`{"exchange":"okx","symbol":"BTC/USDT","for":"%dm","reason":"%s %d"}`, n+1, name, n), "Authorization", "Bearer "+keys[i])
				if a.status != http.StatusOK || out.Actor != name {
					t.Errorf("%s %d: %v, actor %q", name, n, a, out.Actor)
					return
				}
				mu.Lock()
				events[out.Event] = out.Actor + ": " + out.Reason
				mu.Unlock()
			}
		})
	}
	both.Wait()
	life.env = append(life.env, "GATEWAY_OPS_KEY="+keys[0])
	p := run(t, "gateway", life.env, "events", "--admin="+g.admin, "-o", "json", "--type=action")
	var seqs []uint64
	for line := range strings.Lines(p.out.String()) {
		var ev market.Event
		if err := json.Unmarshal([]byte(line), &ev); err != nil {
			t.Fatal(err)
		}
		if got := ev.Action.Actor + ": " + ev.Action.Reason; events[ev.ID()] != got {
			t.Errorf("event %s is %q, the answer said %q", ev.ID(), got, events[ev.ID()])
		}
		seqs = append(seqs, ev.Seq)
	}
	if len(seqs) != 2*each || !slices.IsSorted(seqs) {
		t.Errorf("the audit has %d lines of %d: %v", len(seqs), 2*each, seqs)
	}
}

// What is not asked for properly is refused, and has no effect.
func TestOrders_refused(t *testing.T) {
	t.Parallel()
	sim := simulate(t)
	g := before(t, sim).serve(t)
	good := `{"exchange":"okx","reason":"a test","actor":"night"}`
	for name, c := range map[string]struct {
		method, body string
		headers      []string
		status       int
		says         string
	}{
		"no reason":        {body: `{"exchange":"okx","actor":"night"}`, status: 400, says: "reason"},
		"blank reason":     {body: `{"exchange":"okx","reason":"  ","actor":"night"}`, status: 400, says: "reason"},
		"no name":          {body: `{"exchange":"okx","reason":"x"}`, status: 400, says: "actor"},
		"another origin":   {body: good, headers: []string{"Origin", "https://evil.example"}, status: 403, says: "origin"},
		"cross-site":       {body: good, headers: []string{"Sec-Fetch-Site", "cross-site"}, status: 403, says: "origin"},
		"by GET":           {method: http.MethodGet, body: "", status: 405, says: "POST"},
		"a form":           {body: good, headers: []string{"Content-Type", "text/plain"}, status: 415, says: "application/json"},
		"no such exchange": {body: `{"exchange":"kraken","reason":"x","actor":"night"}`, status: 400, says: "binance"},
		"too long":         {body: `{"exchange":"okx","for":"25h","reason":"x","actor":"night"}`, status: 400, says: "24"},
		"unknown field":    {body: `{"exchange":"okx","reason":"x","actor":"night","force":true}`, status: 400, says: "force"},
	} {
		a, _ := g.ordersBy(cmp.Or(c.method, http.MethodPost), "isolate", c.body, c.headers...)
		if a.status != c.status || !bytes.Contains(bytes.ToLower(a.body), []byte(strings.ToLower(c.says))) {
			t.Errorf("%s: %v, want %d and a word of %q", name, a, c.status, c.says)
		}
	}
	if x := g.exchange("okx"); len(x.Overrides) > 0 || x.State != ops.StateNotAsked {
		t.Errorf("okx is %s with %+v", x.State, x.Overrides)
	}
	if all := actions(g.history()); len(all) > 0 {
		t.Errorf("the audit has %+v", all)
	}
}

// A probe is refused while an operator or a ban says that nothing is sent.
func TestProbe_refusedUnderIsolation(t *testing.T) {
	t.Parallel()
	sim := simulate(t)
	g := before(t, sim).serve(t)
	g.carriesOut("isolate", `{"exchange":"okx","reason":"a test","actor":"night"}`)
	a, _ := g.orders("probe", `{"exchange":"okx","reason":"a test","actor":"night"}`)
	wait, err := strconv.Atoi(a.header.Get("Retry-After"))
	if a.status != http.StatusConflict || err != nil || wait < 1 || wait > 30 { // an operator may release it at any time
		t.Errorf("a probe under isolation: %v, Retry-After %d", a, wait)
	}
}

// The command line does the same, and its exit code tells how it stands.
func TestCommandLine_operates(t *testing.T) {
	t.Parallel()
	sim := simulate(t)
	g := before(t, sim).serve(t)
	g.live("okx", "BTC/USDT")
	at := "--admin=" + g.admin
	says(t, run(t, "gateway", nil, "status", at), 0, "OK", "okx", "market_data")
	sim.breaks("okx", exchangesim.Fault{Kind: exchangesim.FaultMaintenance})
	g.opens("okx", "BTC/USDT", 20*time.Second)
	says(t, run(t, "gateway", nil, "status", at, "okx"), 3, "DEGRADED", "open")
	says(t, run(t, "gateway", nil, "isolate", at, "okx", "--for=45m", "--reason=upgrade", "--as=night"), 0, "isolate okx until", "local:night")
	says(t, run(t, "gateway", nil, "isolate", at, "okx", "--as=night"), 2, "reason")
	says(t, run(t, "gateway", nil, "probe", at, "okx", "--reason=x", "--as=night"), 1, "isolation of okx is in force")
	says(t, run(t, "gateway", nil, "events", at), 0, "local:night: isolate okx until", "okx market data: failing")
	says(t, run(t, "gateway", nil, "release", at, "okx", "--reason=done", "--as=night"), 0, "release okx")
	says(t, run(t, "gateway", nil, "status", "--admin=http://127.0.0.1:1"), 1, "no gateway answers")
}

// However many watch, an event is encoded once, and every watcher gets every one.
func TestWatchers_shareWhatIsEncoded(t *testing.T) {
	t.Parallel()
	sim := simulate(t)
	g := before(t, sim).serve(t)
	const watchers, orders = 50, 20
	var watching []*process
	for range watchers / 10 { // processes; the others are connections of this one
		watching = append(watching, launch(t, "gateway", nil, "events", "-f", "--admin="+g.admin, "-o", "json"))
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	ctx, cancel := context.WithCancel(t.Context())
	var counts [watchers * 9 / 10]atomic.Int64
	var reading sync.WaitGroup
	defer reading.Wait()
	defer cancel()
	for i := range counts {
		reading.Go(func() { countEvents(ctx, client, g.admin, &counts[i]) })
	}
	eventually(t, 20*time.Second, "everybody watches", func() bool { return g.metric("gateway_ops_watchers") == strconv.Itoa(watchers) })
	for n := range orders {
		g.carriesOut("withhold", fmt.Sprintf(`{"exchange":"okx","symbol":"BTC/USDT","for":"%dm","reason":"a test","actor":"night"}`, n+1))
	}
	eventually(t, 20*time.Second, "everybody got everything", func() bool {
		for i := range counts {
			if counts[i].Load() < orders {
				return false
			}
		}
		for _, p := range watching {
			if len(lines(p.out.String(), `"verb":"withhold"`)) < orders {
				return false
			}
		}
		return true
	})
	if got := g.metric(`gateway_ops_encoded_total{what="event"}`); got != strconv.Itoa(orders) {
		t.Errorf("%s events were encoded for %d watchers of %d", got, watchers, orders)
	}
	for i := range counts {
		if n := counts[i].Load(); n != orders {
			t.Errorf("watcher %d got %d events of %d", i, n, orders)
		}
	}
}

// countEvents counts the event frames of a stream until ctx ends.
func countEvents(ctx context.Context, client *http.Client, admin string, n *atomic.Int64) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, admin+"/v1/circuits/events", nil)
	if err != nil {
		return
	}
	res, err := client.Do(req)
	if err != nil {
		return // the test says that too few watch
	}
	defer res.Body.Close()
	for all := bufio.NewReader(res.Body); ; {
		line, err := all.ReadString('\n')
		if err != nil {
			return
		}
		if line == "event: event\n" {
			n.Add(1)
		}
	}
}
