package gateway_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"

	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

func TestMetrics_countWhatWasServedAndSaved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		h := newHouse(t, func(c *gateway.BooksConfig) { c.Metrics = reg })
		accounts := gateway.NewAccounts(gateway.AccountsConfig{ // counts in the same metrics
			Exchanges: []market.ExchangeID{"alpha"}, Metrics: reg, Accounts: []gateway.NamedAccount{account("a", &fakeAccount{})},
		})
		if _, err := accounts.Balances(t.Context(), spot); err != nil {
			t.Fatal(err)
		}
		h.ask(t, query()) // rest
		h.ask(t, query()) // memory
		h.health["alpha"].refuse(market.OpOrderBook, market.KindCircuitOpen)
		time.Sleep(45 * time.Second)
		h.ask(t, query()) // stale
		if _, err := h.Price(t.Context(), btc, nil, gateway.MaxAge(time.Minute)); err != nil {
			t.Fatal(err)
		}
		h.alpha().set(func(f *fakeVenue) { f.rows = []market.Listing{listing("alpha", usd)} })
		time.Sleep(time.Hour)
		if _, err := h.Markets(t.Context(), "alpha"); err != nil {
			t.Fatal(err)
		}
		want := `
# HELP gateway_listings_refused_total Lists that were not believed: most trading pairs were gone at once.
# TYPE gateway_listings_refused_total counter
gateway_listings_refused_total{exchange="alpha"} 1
# HELP gateway_served_stale_total Stale order books by the reason why they were not live.
# TYPE gateway_served_stale_total counter
gateway_served_stale_total{exchange="alpha",reason="circuit_open"} 2
# HELP gateway_served_total Answers by question, where they came from, and whether they were live or stale.
# TYPE gateway_served_total counter
gateway_served_total{exchange="alpha",freshness="live",question="balances",source="rest"} 1
gateway_served_total{exchange="alpha",freshness="live",question="order_book",source="memory"} 1
gateway_served_total{exchange="alpha",freshness="live",question="order_book",source="rest"} 1
gateway_served_total{exchange="alpha",freshness="stale",question="listings",source="memory"} 1
gateway_served_total{exchange="alpha",freshness="stale",question="order_book",source="memory"} 2
gateway_served_total{exchange="alpha",freshness="stale",question="price",source="memory"} 1
# HELP gateway_upstream_avoided_total Questions that were settled without a call of their own to the exchange.
# TYPE gateway_upstream_avoided_total counter
gateway_upstream_avoided_total{exchange="alpha",question="order_book"} 3
`
		// Those that are still 0 are in TestMetrics_existFromTheStart.
		if err := testutil.GatherAndCompare(counted{reg}, strings.NewReader(want), "gateway_served_total",
			"gateway_served_stale_total", "gateway_upstream_avoided_total", "gateway_listings_refused_total"); err != nil {
			t.Error(err)
		}
		problems, err := testutil.GatherAndLint(reg)
		if err != nil || len(problems) > 0 {
			t.Error(problems, err)
		}
		if n, err := testutil.GatherAndCount(reg, "gateway_served_stale_age_seconds", "gateway_flights",
			"gateway_listings_pairs", "gateway_listings_confirmed_timestamp_seconds"); n != 4 || err != nil {
			t.Errorf("%d series, %v, want 4", n, err)
		}
	})
}

// counted leaves out the counters at 0.
type counted struct{ prometheus.Gatherer }

func (c counted) Gather() ([]*dto.MetricFamily, error) {
	all, err := c.Gatherer.Gather()
	for _, f := range all {
		f.Metric = slices.DeleteFunc(f.Metric, func(m *dto.Metric) bool { return m.Counter != nil && m.Counter.GetValue() == 0 })
	}
	return slices.DeleteFunc(all, func(f *dto.MetricFamily) bool { return len(f.Metric) == 0 }), err
}

// TestMetrics_existFromTheStart: increase() over a series that appears with its first count shows nothing.
func TestMetrics_existFromTheStart(t *testing.T) {
	reg := prometheus.NewRegistry()
	newNativeHouse(t, func(c *gateway.BooksConfig) { c.Metrics = reg }) // alpha is asked in its own form, beta is not
	gateway.NewAccounts(gateway.AccountsConfig{Exchanges: []market.ExchangeID{"alpha"}, Metrics: reg})
	var want strings.Builder
	want.WriteString("# HELP gateway_served_total Answers by question, where they came from, and whether they were live or stale.\n" +
		"# TYPE gateway_served_total counter\n")
	line := func(exchange, question, source string, freshness ...string) {
		for _, f := range freshness {
			fmt.Fprintf(&want, "gateway_served_total{exchange=%q,freshness=%q,question=%q,source=%q} 0\n", exchange, f, question, source)
		}
	}
	for _, exchange := range []string{"alpha", "beta"} {
		for _, question := range []string{"listings", "order_book", "price"} {
			line(exchange, question, "rest", "live")
			line(exchange, question, "memory", "live", "stale")
			line(exchange, question, "redis", "live", "stale")
			if question != "listings" {
				line(exchange, question, "stream", "live")
			}
		}
		line(exchange, "statistics", "rest", "live")
		line(exchange, "statistics", "memory", "live", "stale")
	}
	line("alpha", "balances", "rest", "live")
	line("alpha", "native", "rest", "live")
	line("alpha", "native", "memory", "live", "stale")
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want.String()), "gateway_served_total"); err != nil {
		t.Error(err)
	}
	reasons := 1 // not_asked
	for _, k := range market.Kinds() {
		if k.ServesStale() {
			reasons++
		}
	}
	for name, n := range map[string]int{
		"gateway_served_stale_total": 2 * reasons, "gateway_coalesced_total": 2*3 + 2, "gateway_upstream_avoided_total": 2*3 + 2,
		"gateway_listings_refused_total": 2,
	} {
		if got, err := testutil.GatherAndCount(reg, name); got != n || err != nil {
			t.Errorf("%s: %d series, %v, want %d", name, got, err, n)
		}
	}
}

func TestPolicyTable_isWholeMarkdown(t *testing.T) {
	rows := strings.Split(strings.TrimSuffix(gateway.PolicyTable(), "\n"), "\n")
	if len(rows) != 2+len(gateway.DefaultPolicy().Rules()) {
		t.Fatalf("%d lines", len(rows))
	}
	for _, r := range rows {
		if strings.Count(r, "|") != 6 {
			t.Errorf("%q does not have 5 columns", r)
		}
	}
	for _, want := range []string{
		"| balances | REST through Guard | **never** |",
		"copy of at most 1 s -> REST through Guard -> last-known copy",
	} {
		if !strings.Contains(gateway.PolicyTable(), want) {
			t.Errorf("the table does not say %q:\n%s", want, gateway.PolicyTable())
		}
	}
}

func TestPolicy_everyRuleHasItsReasonAndBalancesHaveNoCopies(t *testing.T) {
	for _, r := range gateway.DefaultPolicy().Rules() {
		if r.Why == "" || r.Asked == "" || r.Failing == "" || r.Stale == "" || len(r.Steps) == 0 {
			t.Errorf("%s: %+v leaves something out", r.Question, r)
		}
	}
	b := gateway.DefaultPolicy().Balances
	if len(b.Steps) != 1 || b.Steps[0] != gateway.StepAsk || b.FreshFor != 0 || b.StaleFor != 0 {
		t.Errorf("balances: %+v, want the exchange and nothing else", b)
	}
}

func TestBooksConfig_saysEverythingThatIsWrong(t *testing.T) {
	err := gateway.BooksConfig{
		Venues: []gateway.Venue{{}}, FreshFor: -1, MaxDepth: -1,
	}.Validate()
	if err == nil || strings.Count(err.Error(), "\n") != 3 {
		t.Errorf("err = %v, want four problems", err)
	}
}
