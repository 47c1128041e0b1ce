package ops_test

import (
	"context"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// mayBeEmpty are the annotations that the demo gives nothing to show, and why. Every panel has data.
var mayBeEmpty = map[string]string{
	"internals.json, annotation Gateway started": "it starts once, before the first scrape",
	"overview.json, annotation Gateway started":  "it starts once, before the first scrape",
}

// TestOutage runs the demo through an outage under a real Prometheus. Every metric that is named anywhere exists, every
// rule evaluates, every panel and annotation of Grafana's gets data, and the alert on an open circuit fires.
func TestOutage(t *testing.T) {
	t.Parallel()
	prometheus := tool(t, "prometheus")
	demo := start(t, build(t), "demo", "--listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0", "--every=24s", "--outage=12s")
	welcome := regexp.MustCompile(`listens on http://(\S+?),[\s\S]*curl http://(\S+)/metrics`)
	var public, admin string
	eventually(t, time.Minute, "the demo says where it listens", func() bool {
		m := welcome.FindStringSubmatch(demo.out.String())
		if m != nil {
			public, admin = m[1], m[2]
		}
		return m != nil
	})
	prom := scrape(t, prometheus, admin)
	ctx, cancel := context.WithCancel(t.Context())
	var visitors sync.WaitGroup
	visitors.Go(func() { visit(ctx, public, admin) })
	t.Cleanup(func() { cancel(); visitors.Wait() })

	t.Run("each metric exists", func(t *testing.T) { eachMetricExists(t, admin) })
	var n int
	eventually(t, 90*time.Second, "the alert on an open circuit fires", func() bool {
		n, _ = prom.numbers(t.Context(), `ALERTS{alertname="GatewayCircuitOpen",alertstate="firing",exchange="okx"}`)
		return n > 0
	})
	act(t, admin, "isolate", `{"exchange":"coinbase","for":"1m","reason":"to see it in the graphs","actor":"test"}`)
	eventually(t, time.Minute, "a book that is given up is counted", func() bool { // once it is streamed
		act(t, admin, "purge", `{"exchange":"binance","symbol":"BTC/USDT","reason":"to see it in the graphs","actor":"test"}`)
		n, _ = prom.numbers(t.Context(), `increase(gateway_feed_resyncs_total{exchange="binance"}[30s]) > 0`)
		return n > 0
	})
	eventually(t, 90*time.Second, "the circuit closes again", func() bool {
		n, _ = prom.numbers(t.Context(), `increase(gateway_circuit_transitions_total{to="closed",exchange="okx"}[30s]) > 0`)
		return n > 0
	})
	t.Run("each rule evaluates", func(t *testing.T) { eachRuleEvaluates(t, prom) })
	t.Run("each query of a runbook is one", func(t *testing.T) {
		for _, q := range runbookQuestions(t) {
			if _, err := prom.numbers(t.Context(), q.expr); err != nil {
				t.Errorf("%s: %s: %v", q.where, q.expr, err)
			}
		}
	})
	t.Run("each panel has data", func(t *testing.T) { eachPanelHasData(t, prom) })
	demo.stop(t)
	if demo.err != nil {
		t.Errorf("the demo ended with %v", demo.err)
	}
}

// visit does what the demo's own bot does not: it asks for the gateway's health and for many books at once, as a load
// balancer and other bots would, until ctx ends.
func visit(ctx context.Context, public, admin string) {
	client := &http.Client{Timeout: 10 * time.Second}
	get := func(url string) {
		if req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil); err == nil {
			if res, err := client.Do(req); err == nil {
				_, _ = io.Copy(io.Discard, res.Body) // what it says is not the subject
				res.Body.Close()
			}
		}
	}
	every := time.NewTicker(500 * time.Millisecond)
	defer every.Stop()
	for {
		get("http://" + admin + "/readyz")
		get("http://" + public + "/v1/exchanges/okx/balance?account=main")
		get("http://" + public + "/v1/exchanges/binance/tickers?symbols=BTC/USDT,ETH/USDT")
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
	}
}

// act does what an operator does.
func act(t *testing.T, admin, verb, order string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+admin+"/admin/v1/"+verb, strings.NewReader(order))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close() // only read
	if body, err := io.ReadAll(res.Body); err != nil || res.StatusCode != http.StatusOK {
		t.Errorf("%s: %s %s %v", verb, res.Status, body, err)
	}
}

// eachMetricExists: each metric that a rule, alert, panel or runbook names is one of /metrics, from the first scrape on:
// a counter that is born with the first failure is no increase to an alert.
func eachMetricExists(t *testing.T, admin string) {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+admin+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close() // only read
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	exist := map[string]bool{"up": true} // which Prometheus makes
	for _, m := range regexp.MustCompile(`(?m)^([a-z_]+)(?:\{.*\})? [0-9eE.+-]+$`).FindAllSubmatch(text, -1) {
		exist[string(m[1])] = true
	}
	missing := map[string][]string{}
	for _, q := range slices.Concat(ruleQuestions(t), panelQuestions(t), runbookQuestions(t)) {
		for _, name := range names(q.expr) {
			if !exist[name] && !strings.Contains(name, ":") {
				missing[name] = append(missing[name], q.where)
			}
		}
	}
	for name, where := range missing {
		t.Errorf("/metrics has no %s, which is used by %s", name, strings.Join(where, "; "))
	}
}

func eachRuleEvaluates(t *testing.T, prom *server) {
	var data struct {
		Groups []struct {
			Rules []struct {
				Name, Health, LastError string
			} `json:"rules"`
		} `json:"groups"`
	}
	n := 0
	if err := prom.ask(t.Context(), "/api/v1/rules", nil, &data); err != nil {
		t.Fatal(err)
	}
	for _, g := range data.Groups {
		for _, r := range g.Rules {
			if n++; r.Health != "ok" {
				t.Errorf("%s: %s %s", r.Name, r.Health, r.LastError)
			}
		}
	}
	if want := len(ruleQuestions(t)); n != want {
		t.Errorf("Prometheus has %d rules, want %d", n, want)
	}
}

// eachPanelHasData waits for it: some of what it asks takes a few seconds to be there.
func eachPanelHasData(t *testing.T, prom *server) {
	left := panelQuestions(t)
	known := map[string]bool{}
	for _, q := range left {
		known[q.where] = true
	}
	for where := range mayBeEmpty {
		if !known[where] {
			t.Errorf("%q may be empty and is nowhere", where)
		}
	}
	for end := time.Now().Add(30 * time.Second); ; {
		var empty []question
		for _, q := range left {
			n, err := prom.numbers(t.Context(), q.expr)
			if err != nil {
				t.Fatalf("%s: %s: %v", q.where, q.expr, err)
			}
			if n == 0 && mayBeEmpty[q.where] == "" {
				empty = append(empty, q)
			}
		}
		if left = empty; len(left) == 0 {
			return
		}
		if time.Now().After(end) {
			break
		}
		time.Sleep(time.Second)
	}
	for _, q := range left {
		t.Errorf("%s has no data: %s", q.where, q.expr)
	}
}
