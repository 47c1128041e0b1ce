package feed_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/exchange/binance"
	"exchange-gateway/internal/exchange/coinbase"
	"exchange-gateway/internal/exchange/okx"
	"exchange-gateway/internal/exchangesim"
	"exchange-gateway/internal/feed"
	"exchange-gateway/internal/market"
	"exchange-gateway/internal/resilience"
)

// streamed is a venue that is also a market.Streamer, as the adapters are.
type streamed interface {
	market.Venue
	market.Streamer
}

// simulated is a feed of one simulated exchange, over the real adapter, guard and door, in memory.
type simulated struct {
	*feed.Feed
	t     *testing.T
	sim   *exchangesim.Venue
	keys  []feed.Key
	stop  func()
	truth *truth
}

// pairsOf are the pairs that are streamed at each exchange: its names, and one that hardly changes last.
var pairsOf = map[market.ExchangeID][]string{
	"binance":  {"SOLUSDT", "SHIBUSDT", "RUNEEUR"},
	"okx":      {"SOL-USDT", "USDC-USDT", "LTC-EUR"},
	"coinbase": {"ETH-USD", "1INCH-USD"},
}

func simulate(t *testing.T, id market.ExchangeID) *simulated {
	t.Helper()
	sim, err := exchangesim.New(exchangesim.Config{Seed: 11})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sim.Close)
	x := &simulated{t: t, sim: sim.Venue(string(id))}
	pipe, err := sim.StartPipe(t.Context(), x.sim, exchangesim.StartOptions{})
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DialContext: pipe.DialContext}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		if err := pipe.Close(); err != nil {
			t.Error(err)
		}
	})
	guard := resilience.New(resilience.Config{})
	t.Cleanup(func() {
		if err := guard.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	cfg := exchange.Config{
		ID: id, Door: guard.Door(id), Transport: transport, Hosts: []string{"http://sim.test"}, StreamHosts: []string{"ws://sim.test"},
	}
	var v streamed
	switch id {
	case "binance":
		v, err = binance.New(cfg)
	case "okx":
		v, err = okx.New(cfg)
	case "coinbase":
		v, err = coinbase.New(cfg)
	}
	if err != nil {
		t.Fatal(err)
	}
	x.truth = &truth{t: t, sim: x.sim, id: id, told: map[feed.Key]int{}}
	x.Feed = feed.New(feed.Config{
		Venues:   []feed.Venue{{ID: id, Streamer: v, Data: guard.MarketData(v), Do: guard.Do}},
		Listener: x.truth,
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- x.Run(ctx) }()
	x.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(x.stop)
	for _, symbol := range pairsOf[id] {
		l := simulatedListing(id, symbol)
		x.keys = append(x.keys, feed.Key{Exchange: id, Pair: l.Pair})
		if _, err := x.Watch(l, market.StreamBest); err != nil {
			t.Fatal(err)
		}
	}
	return x
}

func simulatedListing(id market.ExchangeID, symbol string) market.Listing {
	base, quote, ok := strings.Cut(symbol, "-")
	if !ok {
		base, quote = symbol[:len(symbol)-4], symbol[len(symbol)-4:]
		if strings.HasSuffix(symbol, "EUR") {
			base, quote = symbol[:len(symbol)-3], "EUR"
		}
	}
	return market.Listing{
		Exchange: id, Pair: market.Pair{Base: base, Quote: quote}, Symbol: symbol, Status: market.TradingActive,
	}
}

// truth is a listener that compares what it is told as live with the simulator's own book of that sequence, or of that
// time where the exchange has no sequence.
type truth struct {
	t   *testing.T
	sim *exchangesim.Venue
	id  market.ExchangeID

	mu       sync.Mutex
	told     map[feed.Key]int
	compared int
	states   []string
}

func (x *truth) Loaded(v feed.View) { x.compare(v, true) }

func (x *truth) Changed(v feed.View, _, _ []market.Level) { x.compare(v, false) }

func (x *truth) BestChanged(feed.View) {}

func (x *truth) FreshnessChanged(v feed.View) {
	x.mu.Lock()
	defer x.mu.Unlock()
	f := v.Freshness()
	x.states = append(x.states, fmt.Sprintf("%s %s %v", v.Symbol(), f.State, f.Reason))
}

// compare compares one change in twenty: a comparison costs a millisecond, and what is wrong stays wrong.
func (x *truth) compare(v feed.View, always bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.told[v.Key()]++
	if v.Freshness().State != feed.StateLive || !always && x.told[v.Key()]%20 != 0 {
		return
	}
	const depth = 10
	var want exchangesim.Book
	var err error
	if q := v.Sequence(); q.Known {
		want, err = x.sim.BookBySeq(v.Symbol(), q.Value, depth)
	} else {
		want, err = x.sim.Book(v.Symbol(), v.ExchangeTime(), depth)
	}
	if err != nil {
		x.t.Errorf("%s at %v: %v", v.Symbol(), v.Sequence(), err)
		return
	}
	f := func(side string, own []market.Level, theirs []exchangesim.Level) {
		if len(own) != len(theirs) {
			x.t.Errorf("%s at %v: %d %s, want %d", v.Symbol(), v.Sequence(), len(own), side, len(theirs))
			return
		}
		for i := range own {
			if !own[i].Price.Equal(market.MustNumber(theirs[i].Price)) || !own[i].Size.Equal(market.MustNumber(theirs[i].Size)) {
				x.t.Errorf("%s at %v: %s %d is %v, want %v", v.Symbol(), v.Sequence(), side, i, own[i], theirs[i])
				return
			}
		}
	}
	f("bid", v.Bids(nil, depth), want.Bids)
	f("ask", v.Asks(nil, depth), want.Asks)
	x.compared++
}

func (x *truth) seen() (compared int, states []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.compared, append([]string(nil), x.states...)
}

// settle lets time pass until every book is live, and tells how long that took.
func (x *simulated) settle(most time.Duration) (took time.Duration) {
	x.t.Helper()
	began := time.Now()
	for time.Since(began) < most {
		if x.Status(x.keys[0].Exchange).Live == len(x.keys) {
			return time.Since(began)
		}
		sleep(200 * time.Millisecond)
	}
	for _, b := range x.Books(x.keys[0].Exchange) {
		if b.Freshness.State != feed.StateLive {
			x.t.Errorf("%s is %s (%v) after %v", b.Symbol, b.Freshness.State, b.Freshness.Reason, most)
		}
	}
	return most
}

func TestFeed_simulatedExchanges(t *testing.T) {
	faults := map[string]exchangesim.Fault{
		"undisturbed":    {},
		"gap":            {Kind: exchangesim.FaultGap, Class: exchangesim.ClassStream, Count: 1},
		"reorder":        {Kind: exchangesim.FaultReorder, Class: exchangesim.ClassStream, Count: 2},
		"half a message": {Kind: exchangesim.FaultMalformed, Class: exchangesim.ClassStream, Count: 1},
		"crossed":        {Kind: exchangesim.FaultCrossed, Class: exchangesim.ClassStream, Count: 1},
		"storm":          {Kind: exchangesim.FaultStorm, For: 10 * time.Second},
		"cut":            {Kind: exchangesim.FaultCut, Latency: 20 * time.Second, For: 25 * time.Second},
		"silent":         {Kind: exchangesim.FaultSilent, For: 40 * time.Second},
		"maintenance":    {Kind: exchangesim.FaultMaintenance, For: 10 * time.Second},
	}
	for id := range pairsOf {
		for name, fault := range faults {
			t.Run(string(id)+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					x := simulate(t, id)
					first := x.settle(30 * time.Second)
					sleep(5 * time.Second)
					if fault.Kind != "" {
						if _, err := x.sim.Inject(fault); err != nil {
							t.Fatal(err)
						}
					}
					sleep(max(fault.For, 5*time.Second))
					back := x.settle(3 * time.Minute)
					sleep(5 * time.Second)
					compared, states := x.truth.seen()
					if compared < 3 {
						t.Errorf("%d comparisons", compared)
					}
					stale := 0
					for _, s := range states {
						if strings.Contains(s, " stale ") {
							stale++
						}
					}
					if quiet := name == "undisturbed" || name == "cut" && id != "coinbase"; quiet != (stale == 0) {
						t.Errorf("stale %d times: %q", stale, states)
					}
					x.stop()
					t.Logf("live after %v, %d comparisons, stale %d times, back within %v", first, compared, stale, max(fault.For, 5*time.Second)+back)
				})
			})
		}
	}
}

// TestFeed_simulatedQuietAndFrozen: a pair that hardly changes stays live beyond its exchange's
// bound; one of which nothing comes while others go on is stale within it.
func TestFeed_simulatedQuietAndFrozen(t *testing.T) {
	for id, bound := range map[market.ExchangeID]time.Duration{
		"binance": time.Minute, "okx": 75 * time.Second, "coinbase": time.Minute,
	} {
		t.Run(string(id), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := simulate(t, id)
				x.settle(30 * time.Second)
				sleep(100 * time.Second) // longer than any bound
				if _, states := x.truth.seen(); len(states) != len(x.keys) {
					t.Errorf("states %q, want each live once", states)
				}
				began := time.Now()
				fault := exchangesim.Fault{Kind: exchangesim.FaultFreeze, Symbol: pairsOf[id][0], For: 2 * time.Minute}
				if _, err := x.sim.Inject(fault); err != nil {
					t.Fatal(err)
				}
				var at time.Duration
				for at == 0 && time.Since(began) < fault.For {
					sleep(100 * time.Millisecond)
					if _, f, _ := x.Book(x.keys[0]); f.State == feed.StateStale {
						at = time.Since(began)
					}
				}
				if at == 0 || at > bound+100*time.Millisecond {
					t.Errorf("stale after %v, want within %v", at, bound)
				}
				if _, f, _ := x.Book(x.keys[1]); f.State != feed.StateLive {
					t.Errorf("another book is %s", f.State)
				}
				sleep(fault.For - time.Since(began))
				back := x.settle(2 * time.Minute)
				t.Logf("stale after %v, live %v after the end", at, back)
			})
		})
	}
}

// TestCut_simulatedExchanges cuts the real adapters off while books are being loaded and while they are live: the exchange
// sees nothing more, and is asked as at a start once it is woken.
func TestCut_simulatedExchanges(t *testing.T) {
	for id := range pairsOf {
		for name, after := range map[string]time.Duration{"starting": 150 * time.Millisecond, "live": 20 * time.Second} {
			t.Run(string(id)+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					x := simulate(t, id)
					sleep(after)
					x.Cut(id)
					sleep(time.Second) // what was sent has arrived
					before := x.sim.Stats()
					sleep(5 * time.Minute)
					if diff := cmp.Diff(before, x.sim.Stats()); diff != "" || len(x.Status(id).Connections) != 0 {
						t.Errorf("seen while it was cut: %s", diff)
					}
					for _, b := range x.Books(id) {
						if b.Freshness.State != feed.StateStale || b.Freshness.Reason != market.KindIsolated {
							t.Errorf("%s is %s (%v)", b.Symbol, b.Freshness.State, b.Freshness.Reason)
						}
					}
					x.Wake(id)
					t.Logf("live %v after it was woken", x.settle(5*time.Second))
				})
			})
		}
	}
}
