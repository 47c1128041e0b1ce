package binance_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/cache"
	"exchange-gateway/internal/compat/binance"
	"exchange-gateway/internal/exchange"
	dialect "exchange-gateway/internal/exchange/binance"
	"exchange-gateway/internal/exchangesim"
	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
	"exchange-gateway/internal/resilience"
)

// chain is the facade over everything that is real: policy, store, guard and adapter, up to the simulated exchange.
type chain struct {
	*binance.Facade
	t   *testing.T
	sim *exchangesim.Venue
}

type health struct{ *resilience.Guard }

func (h health) Circuit(id market.CircuitID) market.CircuitStatus {
	s, _ := h.Guard.Circuit(id)
	return s
}

// onChain runs a test in a bubble, whose clock stands at the start of 2026.
func onChain(t *testing.T, test func(*testing.T, chain)) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 1, 1, 0, 0, 7, 0, time.UTC)))
		sim, err := exchangesim.New(exchangesim.Config{Seed: 5})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(sim.Close)
		c := chain{t: t, sim: sim.Venue("binance")}
		guard := resilience.New(resilience.Config{})
		v, err := dialect.New(exchange.Config{Door: guard.Door(binance.ID), Transport: c.sim.Transport()})
		if err != nil {
			t.Fatal(err)
		}
		store := cache.New(cache.Config{}, nil, slog.New(slog.DiscardHandler), nil)
		books := gateway.NewBooks(gateway.BooksConfig{
			Venues: []gateway.Venue{{
				ID: binance.ID, Data: guard.MarketData(v), Plan: v.Plan, Health: health{guard}, Native: guard.Native(binance.ID, v),
			}},
			Books: store, Lists: store, Inventory: guard,
		})
		t.Cleanup(func() {
			over, cancel := context.WithCancel(context.Background())
			cancel()
			if err := errors.Join(books.Run(over), guard.Close(context.Background())); err != nil {
				t.Error(err)
			}
		})
		if c.Facade, err = binance.New(binance.Config{Books: books, Lists: books}); err != nil {
			t.Fatal(err)
		}
		test(t, c)
	})
}

// asked is how often the exchange was asked for a path.
func (c chain) asked(path string) int { return c.sim.Stats().ByPath["/api/v3/"+path] }

func (c chain) spoil(f exchangesim.Fault) {
	c.t.Helper()
	if _, err := c.sim.Inject(f); err != nil {
		c.t.Fatal(err)
	}
}

// depthAnswer is a book in Binance's form.
type depthAnswer struct {
	LastUpdateID int64 `json:"lastUpdateId"`
	Bids, Asks   [][2]string
}

// TestChain_equalsTheExchange: every answer is the exchange's own, whether it came through the gateway's books or not.
func TestChain_equalsTheExchange(t *testing.T) {
	onChain(t, func(t *testing.T, c chain) {
		for _, symbol := range []string{"BTCUSDT", "SHIBUSDT", "DUSTETH", "HALTUSDT"} {
			var got depthAnswer
			a := get(t, c.Facade, "/api/v3/depth?limit=50&symbol="+symbol)
			decode(t, a.Body, &got)
			truth, err := c.sim.BookBySeq(symbol, got.LastUpdateID, 50)
			if err != nil || len(got.Bids) != len(truth.Bids) || len(got.Asks) != len(truth.Asks) || len(got.Bids) == 0 {
				t.Fatalf("%s: %d bids and %d asks: %v", symbol, len(got.Bids), len(got.Asks), err)
			}
			for i, l := range got.Bids {
				if price, size := market.MustNumber(l[0]), market.MustNumber(l[1]); !price.Equal(market.MustNumber(truth.Bids[i].Price)) ||
					!size.Equal(market.MustNumber(truth.Bids[i].Size)) {
					t.Fatalf("%s, bid %d: %v, want %+v", symbol, i, l, truth.Bids[i])
				}
			}
			if a.Freshness.Stale {
				t.Errorf("%s: stale: %+v", symbol, a.Freshness)
			}
		}
		for _, target := range []string{
			"exchangeInfo", "exchangeInfo?showPermissionSets=false", "exchangeInfo?symbol=BTCUSDT", "exchangeInfo?permissions=MARGIN",
			"exchangeInfo?symbolStatus=HALT", "ticker/price?symbol=BTCUSDT", "ticker/24hr", "ticker/bookTicker?symbol=ETHUSDT",
			"klines?symbol=BTCUSDT&interval=1h&limit=30", "trades?symbol=BTCUSDT&limit=5", "aggTrades?symbol=BTCUSDT&limit=5", "avgPrice?symbol=BTCUSDT",
		} {
			ours, theirs := get(t, c.Facade, "/api/v3/"+target).Body, c.direct(target)
			if canonical(t, ours) != canonical(t, theirs) {
				t.Errorf("%s:\n%.300s\n%.300s", target, ours, theirs)
			}
		}
	})
}

// direct asks the exchange itself, at the same moment of the bubble's clock.
func (c chain) direct(target string) []byte {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, "https://api.binance.com/api/v3/"+target, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	res, err := c.sim.Transport().RoundTrip(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		c.t.Fatalf("%s: %d %v", target, res.StatusCode, err)
	}
	return body
}

// canonical is JSON without its order of fields.
func canonical(t *testing.T, text []byte) string {
	t.Helper()
	var v any
	decode(t, text, &v)
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestChain_asksOnce: what many bots ask at once is asked once, lists for an hour, and candles by each for itself.
func TestChain_asksOnce(t *testing.T) {
	onChain(t, func(t *testing.T, c chain) {
		crowd := func(target string) {
			var wg sync.WaitGroup
			for range 50 {
				wg.Go(func() {
					if _, err := c.Answer(t.Context(), request("/api/v3/"+target)); err != nil {
						t.Errorf("%s: %v", target, err)
					}
				})
			}
			wg.Wait()
		}
		crowd("exchangeInfo")
		crowd("exchangeInfo?showPermissionSets=false")
		crowd("exchangeInfo?symbol=BTCUSDT")
		time.Sleep(30 * time.Minute)
		crowd("exchangeInfo")
		if n := c.asked("exchangeInfo"); n != 1 {
			t.Errorf("the list was asked for %d times by 200 requests of half an hour, want once", n)
		}
		crowd("ticker/24hr")
		crowd("ticker/24hr?symbol=ETHUSDT")
		crowd("depth?symbol=ETHUSDT")
		if n, m := c.asked("ticker/24hr"), c.asked("depth"); n != 2 || m != 1 {
			t.Errorf("two questions for figures and one for a book were asked %d and %d times by 150 requests", n, m)
		}
		for range 3 {
			get(t, c.Facade, "/api/v3/klines?symbol=ETHUSDT&interval=1m&limit=5")
		}
		if a := get(t, c.Facade, "/api/v3/trades?symbol=ETHUSDT&limit=5"); a.FreshFor != 0 || a.Freshness.Stale {
			t.Errorf("trades are kept for %v", a.FreshFor)
		}
		if n := c.asked("klines"); n != 3 {
			t.Errorf("candles were asked for %d times by 3 requests: they are not kept", n)
		}
		before := c.sim.Requests("")
		for _, target := range []string{"depth?symbol=NOPE", "klines?symbol=ETHUSDT&interval=1x", "order?symbol=ETHUSDT", "ping", "time"} {
			_, _ = c.Answer(t.Context(), request("/api/v3/"+target)) // refused or answered without the exchange
		}
		if n := c.sim.Requests(""); n != before {
			t.Errorf("%d requests for what the exchange need not be asked", n-before)
		}
	})
}

// TestChain_outage: an error at once for whoever did not say an age, and never a stale book.
func TestChain_outage(t *testing.T) {
	onChain(t, func(t *testing.T, c chain) {
		for _, target := range []string{"depth?symbol=BTCUSDT", "ticker/24hr?symbol=BTCUSDT", "ticker/24hr", "exchangeInfo"} {
			get(t, c.Facade, "/api/v3/"+target)
		}
		c.spoil(exchangesim.Fault{Kind: exchangesim.FaultUnavailable, For: time.Hour})
		time.Sleep(2 * time.Second) // a book is live for one
		for round := range 5 {
			for _, target := range []string{"depth?symbol=BTCUSDT", "ticker/bookTicker?symbol=BTCUSDT", "ticker/24hr?symbol=BTCUSDT", "ticker/24hr", "klines?symbol=BTCUSDT&interval=1m"} {
				if a, err := c.Answer(t.Context(), request("/api/v3/"+target)); err == nil {
					t.Errorf("round %d, %s: answered in an outage, %+v", round, target, a.Freshness)
				}
			}
			time.Sleep(time.Second)
		}
		r := request("/api/v3/depth?symbol=BTCUSDT")
		r.MaxAge = gateway.MaxAge(time.Minute)
		if a, err := c.Answer(t.Context(), r); err != nil || !a.Freshness.Stale || a.Freshness.Age < 2*time.Second {
			t.Errorf("a caller who takes a book of a minute ago: %+v, %v", a, err)
		}
		time.Sleep(time.Minute)
		if _, err := c.Answer(t.Context(), r); err == nil {
			t.Error("a caller who takes a book of a minute ago was given an older one")
		}
		if a := get(t, c.Facade, "/api/v3/exchangeInfo?symbol=BTCUSDT"); len(a.Body) == 0 {
			t.Error("the list of symbols does not outlive the outage")
		}
		if n := c.asked("depth") + c.asked("klines") + c.asked("ticker/24hr"); n > 60 {
			t.Errorf("%d requests in an outage of a minute", n)
		}
	})
}

// TestChain_refusals: what Binance refuses reaches the bot with Binance's code.
func TestChain_refusals(t *testing.T) {
	onChain(t, func(t *testing.T, c chain) {
		_, err := c.Answer(t.Context(), request("/api/v3/klines?symbol=BTCUSDT&interval=1m&timeZone=%2B15:00"))
		e, ok := errors.AsType[*market.Error](err)
		if !ok || e.Kind != market.KindInvalid || e.Code != "-1130" || e.OurFault {
			t.Errorf("err = %v: %s", err, fmt.Sprintf("%+v", e))
		}
	})
}
