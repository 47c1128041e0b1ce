package hostile_test

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"exchange-gateway/test/hostile/attack"
)

const (
	greedyQuota = 50 // requests a second
	greedyFor   = 10 * time.Second
	hoarderFor  = 6 * time.Second
	greedyTimes = 10 // its quota, that it sends
)

// TestGreedyClient_requests lets one client send ten times its quota. It is refused what is beyond it, and told how long to
// wait; another client's books and balances are as before.
func TestGreedyClient_requests(t *testing.T) {
	s := newStage(t)
	greedy, modest := s.newKey(t, "greedy"), s.newKey(t, "modest")
	s.operate(t, "client", "set", "greedy", "--requests-per-second="+strconv.Itoa(greedyQuota))
	s.raise(t)

	calm := s.watch(modest)
	balances := s.balances(modest, 4)
	calm.verdict(t, 40)
	balances.judge(t, victimBound)

	v := s.watch(modest)
	a := attacks(t, attack.Order{Target: s.public, Load: &attack.Load{
		Key: greedy, Paths: []string{bookPath("okx", "BTC/USDT"), bookPath("binance", "BTC/USDT")},
		Rate: greedyTimes * greedyQuota, For: greedyFor,
	}})
	during := s.balances(modest, 8)
	load := a.report(2 * time.Minute).Load
	bound := v.verdict(t, 100)
	during.judge(t, bound)
	v.asFreshAs(t, calm, bound)
	if load == nil {
		t.Fatal("the greedy client did not report")
	}
	t.Logf("the greedy client: %+v", *load)
	served, refused := load.Statuses[http.StatusOK], load.Statuses[http.StatusTooManyRequests]
	// A full bucket at its start, what is refilled meanwhile, and a second for a process that began late.
	if most := greedyQuota * (int(greedyFor/time.Second) + 2); served > most || served < greedyQuota*int(greedyFor/time.Second)/2 {
		t.Errorf("%d requests of the greedy client were served, want about %d and at most %d", served, most-greedyQuota, most)
	}
	if refused < served || served+refused != load.Sent || load.Codes["client_rate_limited"] != refused || load.Failed > 0 {
		t.Errorf("answers %v, codes %v: want nothing but 200 and 429 client_rate_limited", load.Statuses, load.Codes)
	}
	if load.NoRetry > 0 || load.NoLimits > 0 {
		t.Errorf("%d refusals without Retry-After, %d answers without the RateLimit headers: %q", load.NoRetry, load.NoLimits,
			load.Limits)
	}
	if want := []string{
		`"requests";q=50;w=1, "upstream";q=2000;w=60`,
		`"requests";r=0;t=1, "upstream";r=`,
	}; len(load.Limits) != 2 ||
		load.Limits[0] != want[0] || !strings.HasPrefix(load.Limits[1], want[1]) {
		t.Errorf("headers of a refusal %q, want %q", load.Limits, want)
	}
	m := s.metrics()
	if limited := m[`gateway_client_requests_total{client="greedy",outcome="rate"}`]; !atLeast(t, limited, refused) {
		t.Errorf("counted %q refusals, want at least %d", limited, refused)
	}
	if limited := m[`gateway_client_requests_total{client="modest",outcome="rate"}`]; limited != "0" {
		t.Errorf("counted %q refusals of the other client, want 0", limited)
	}
}

// TestGreedyClient_upstream lets one client cause calls to an exchange without end, for books that nobody has asked for. Its
// own quota ends that; another client's cold books of the same exchange, and its balances, wait for nothing.
func TestGreedyClient_upstream(t *testing.T) {
	const quota = 300 // units a minute
	s := newStage(t)
	greedy, modest := s.newKey(t, "greedy"), s.newKey(t, "modest")
	s.operate(t, "client", "set", "greedy", "--upstream-per-minute="+strconv.Itoa(quota))
	s.raise(t)
	if a := s.get(s.public, cold("binance", "ETH/USDT"),
		modest); a.status != http.StatusOK { // the exchange tells its limits with the first answer
		t.Fatalf("a first book: %d %.200s", a.status, a.body)
	}

	var paths []string
	for _, pair := range []string{"ETH/USDT", "SOL/USDT", "ETH/BTC", "BTC/USDC", "BNB/USDT", "SHIB/USDT"} {
		paths = append(paths, cold("binance", pair)+"&depth=1000")
	}
	v := s.watch(modest)
	a := attacks(t, attack.Order{Target: s.public, Load: &attack.Load{Key: greedy, Paths: paths, Rate: 60, For: hoarderFor}})
	reads := s.asks(modest, 3, func(n int) string { return cold([]string{"binance", "okx"}[n%2], "XRP/USDT") })
	balances := s.balances(modest, 3)
	load := a.report(2 * time.Minute).Load
	bound := v.verdict(t, 100)
	reads.judge(t, bound)
	balances.judge(t, bound)
	if load == nil {
		t.Fatal("the greedy client did not report")
	}
	t.Logf("the greedy client: %+v", *load)
	served, refused := load.Statuses[http.StatusOK], load.Statuses[http.StatusTooManyRequests]
	if served == 0 || refused < served || served+refused != load.Sent || load.Codes["client_rate_limited"] != refused {
		t.Errorf("answers %v, codes %v: want some served, most refused with 429 client_rate_limited, and nothing else",
			load.Statuses, load.Codes)
	}
	if load.NoRetry > 0 || load.NoLimits > 0 {
		t.Errorf("%d refusals without Retry-After, %d answers without the RateLimit headers: %q", load.NoRetry, load.NoLimits,
			load.Limits)
	}
	weight := s.metrics()[`gateway_client_upstream_weight_total{client="greedy"}`]
	// A client may owe the rest of what it has begun: at most one call for each of its books.
	const deepest = 50 // units of 1,000 levels at Binance
	if most := 2*quota + len(paths)*deepest; atLeast(t, weight, most+1) || !atLeast(t, weight, quota/2) {
		t.Errorf("the greedy client caused %s units, want about %d and at most %d", weight, quota, most)
	}
}

// cold is a book that has to be asked for: a copy is not young enough.
func cold(exchange, pair string) string {
	return "/v1/exchanges/" + exchange + "/orderbook?symbol=" + url.QueryEscape(pair) + "&max_age_ms=0"
}

func atLeast(t *testing.T, value string, n int) bool {
	t.Helper()
	got, err := strconv.ParseFloat(value, 64) // Prometheus writes 1.6e+07
	if err != nil {
		t.Fatalf("a metric of %q", value)
	}
	return int(got) >= n
}

// asking is a client that asks once a second, waiting for each answer.
type asking struct {
	path string
	all  []answer
}

func (s *stage) balances(key string, times int) *asking {
	return s.asks(key, times, func(int) string { return "/v1/exchanges/okx/balance" })
}

// asks asks so many times, once a second, and returns at the end.
func (s *stage) asks(key string, times int, path func(int) string) *asking {
	a := &asking{path: path(0)}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for n := range times {
		a.all = append(a.all, s.get(s.public, path(n), key))
		<-tick.C
	}
	return a
}

// slowest is how long a call to a simulated exchange takes beyond an answer from memory: the exchange's own time, and the
// even pace of an exchange's limit.
const slowest = time.Second

func (a *asking) judge(t *testing.T, bound time.Duration) {
	t.Helper()
	var tooks []time.Duration
	for _, one := range a.all {
		tooks = append(tooks, one.took)
		if one.err != nil || one.status != http.StatusOK || strings.Contains(string(one.body), `"stale":true`) {
			t.Errorf("%s: %d %v %.200s", a.path, one.status, one.err, one.body)
		}
	}
	t.Logf("%s: %d times, the slowest %v", a.path, len(tooks), slices.Max(tooks))
	if worst := slices.Max(tooks); worst > bound+slowest {
		t.Errorf("%s took %v, want at most %v", a.path, worst, bound+slowest)
	}
}

// asFreshAs compares the ages of books with those of another time. The exchanges say something about each book many times
// a second.
func (v *victim) asFreshAs(t *testing.T, calm *victim, bound time.Duration) {
	t.Helper()
	before, now := percentile(calm.ages, 99), percentile(v.ages, 99)
	t.Logf("ages of books: p99 %v, before %v", now, before)
	if now > before+bound {
		t.Errorf("p99 of the ages of books %v, want about the %v of before", now, before)
	}
}
