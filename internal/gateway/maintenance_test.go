package gateway_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

// windows is what was told of maintenance.
type windows struct {
	mu   sync.Mutex
	told []string
	from time.Time
}

func (w *windows) tell(m market.Maintenance, began bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	until := "open"
	if !m.Until.IsZero() {
		until = m.Until.Sub(w.from).Round(time.Second).String()
	}
	w.told = append(w.told, fmt.Sprintf("%s %s began=%t announced=%t until %s: %s",
		time.Since(w.from).Round(time.Second), m.Exchange, began, m.Announced, until, m.Note))
}

// said empties what was told.
func (w *windows) said() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer func() { w.told = nil }()
	return w.told
}

func newClosedHouse(t *testing.T, change func(*gateway.BooksConfig)) (*house, *windows) {
	t.Helper()
	w := &windows{from: time.Now()}
	h := newHouse(t, func(c *gateway.BooksConfig) {
		c.OnMaintenance = w.tell
		if change != nil {
			change(c)
		}
	}, "alpha", "beta")
	return h, w
}

func TestMaintenance_configuredIsToldOnceEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, w := newClosedHouse(t, func(c *gateway.BooksConfig) {
			c.Maintenance = map[market.ExchangeID][]market.Maintenance{"alpha": {
				{From: time.Now().Add(30 * time.Hour), Until: time.Now().Add(31 * time.Hour), Note: "upgrade", Announced: true},
				{From: time.Now().Add(-time.Hour), Note: "since yesterday"},
			}}
		})
		defer h.run(t)()
		time.Sleep(7*time.Hour + 300*time.Millisecond)
		h.SetMaintenance(map[market.ExchangeID][]market.Maintenance{"alpha": {
			{From: w.from.Add(30 * time.Hour), Until: w.from.Add(31 * time.Hour), Note: "upgrade"},
		}, "omega": {{}}})
		time.Sleep(26 * time.Hour)
		want := []string{
			"1s alpha began=true announced=false until open: since yesterday",
			"6h0m0s alpha began=false announced=false until 31h0m0s: upgrade",
			"7h0m1s alpha began=false announced=false until 7h0m1s: since yesterday",
			"30h0m0s alpha began=true announced=false until 31h0m0s: upgrade",
			"31h0m0s alpha began=false announced=false until 31h0m0s: upgrade",
		}
		if got := w.said(); !slices.Equal(got, want) {
			t.Errorf("told\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if n := h.alpha().count(&h.alpha().statuses); n != 0 {
			t.Errorf("an exchange that nobody uses was asked %d times", n)
		}
	})
}

func TestMaintenance_announcedIsReadEveryMinuteWhileTheExchangeIsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		streamed := false
		h, w := newClosedHouse(t, func(c *gateway.BooksConfig) {
			c.Streamed = func(id market.ExchangeID) bool { return streamed && id == "beta" }
		})
		a, b := h.alpha(), h.venues["beta"]
		a.set(func(f *fakeVenue) { f.statusLatency = 10 * time.Millisecond })
		h.ask(t, query())
		streamed = true
		defer h.run(t)()
		time.Sleep(30*time.Minute + 500*time.Millisecond)
		// Callers use alpha for ten minutes: at 2 min 1 s, 3 min 1 s, ... 9 min 1 s. They ask it nothing beside that.
		if n := a.count(&a.statuses); n != 8 {
			t.Errorf("alpha was asked %d times, want 8", n)
		}
		if n := b.count(&b.statuses); n != 28 {
			t.Errorf("beta was asked %d times, want 28", n)
		}
		if a.statusLane != market.LanePrefetch {
			t.Errorf("asked in lane %v", a.statusLane)
		}
		h.ask(t, query())
		time.Sleep(130 * time.Second)
		before := a.count(&a.statuses)
		for range 460 {
			if s, err := h.Status(t.Context(), "alpha"); err != nil || s.Announced.State != market.VenueMaintenance {
				t.Fatalf("status %+v, %v", s, err)
			}
			time.Sleep(time.Second)
		}
		if n := a.count(&a.statuses) - before; n != 7 && n != 8 {
			t.Errorf("asked %d times in under 8 minutes of looking on, want once a minute", n)
		}
		got := w.said()
		if len(got) < 2 || got[0] != "2m2s alpha began=true announced=true until open: upgrade" {
			t.Errorf("told %q", got)
		}
	})
}

func TestMaintenance_announcedEndIsAForecast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, w := newClosedHouse(t, func(c *gateway.BooksConfig) {
			c.Streamed = func(id market.ExchangeID) bool { return id == "alpha" }
		})
		a := h.alpha()
		a.set(func(f *fakeVenue) { f.ends, f.statusLatency = time.Now().Add(time.Hour), 10*time.Millisecond })
		defer h.run(t)()
		time.Sleep(130 * time.Second)
		s, err := h.Status(t.Context(), "alpha")
		if err != nil || !s.ETA.Equal(a.ends) || len(s.Maintenance) != 1 || !s.Maintenance[0].Until.Equal(a.ends) {
			t.Errorf("status %+v, %v", s, err)
		}
		if until, ok := h.ClosedUntil("alpha"); !ok || !until.Equal(a.ends) {
			t.Errorf("closed until %v, %v", until, ok)
		}
		time.Sleep(90 * time.Minute) // it takes longer than they said
		if m := h.Maintenance("alpha"); len(m) != 1 || !m[0].Until.IsZero() || !m[0].Active(time.Now()) {
			t.Errorf("maintenance %+v, want one without an end", m)
		}
		if _, ok := h.ClosedUntil("alpha"); ok {
			t.Error("the end is known")
		}
		a.set(func(f *fakeVenue) { f.state = market.VenueOK })
		time.Sleep(time.Minute)
		got := w.said()
		if len(got) != 2 || got[0] != "2m2s alpha began=true announced=true until 1h0m0s: upgrade" ||
			!strings.Contains(got[1], "alpha began=false announced=true until 1h3") { // within a minute of 1 h 30 min
			t.Errorf("told %q, want its beginning and its end", got)
		}
		if m := h.Maintenance("alpha"); len(m) != 0 {
			t.Errorf("maintenance %+v", m)
		}
	})
}

// What is announced for later begins by the clock, and goes on as what is announced as under way: one window.
func TestMaintenance_announcedForLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, w := newClosedHouse(t, func(c *gateway.BooksConfig) {
			c.Streamed = func(id market.ExchangeID) bool { return id == "alpha" }
		})
		from, until := time.Now().Add(30*time.Hour), time.Now().Add(31*time.Hour)
		h.alpha().set(func(f *fakeVenue) {
			f.state, f.statusLatency = market.VenueOK, 10*time.Millisecond
			f.planned = []market.Maintenance{{Exchange: "alpha", From: from, Until: until, Note: "upgrade", Announced: true}}
		})
		defer h.run(t)()
		time.Sleep(7 * time.Hour)
		if s := h.Health("alpha"); len(s.Maintenance) != 1 || !s.ETA.IsZero() {
			t.Errorf("status %+v", s)
		}
		time.Sleep(23*time.Hour + 500*time.Millisecond)
		h.alpha().set(func(f *fakeVenue) { f.state, f.began, f.ends, f.planned = market.VenueMaintenance, from, until, nil })
		time.Sleep(10 * time.Minute)
		if told, ok := h.ClosedUntil("alpha"); !ok || !told.Equal(until) {
			t.Errorf("closed until %v, %v", told, ok)
		}
		h.alpha().set(func(f *fakeVenue) { f.state = market.VenueOK }) // early
		time.Sleep(2 * time.Minute)
		got := w.said()
		if len(got) != 3 || got[0] != "6h0m0s alpha began=false announced=true until 31h0m0s: upgrade" ||
			got[1] != "30h0m0s alpha began=true announced=true until 31h0m0s: upgrade" ||
			!strings.Contains(got[2], "alpha began=false announced=true until 30h1") {
			t.Errorf("told\n%s", strings.Join(got, "\n"))
		}
	})
}

// While the circuit of such calls is not closed its probes are left to those who need an answer.
func TestMaintenance_announcementIsNoProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _ := newClosedHouse(t, func(c *gateway.BooksConfig) {
			c.Streamed = func(id market.ExchangeID) bool { return id == "alpha" }
		})
		a := h.alpha()
		defer h.run(t)()
		for _, state := range []market.CircuitState{market.CircuitOpen, market.CircuitHalfOpen} {
			h.health["alpha"].setCircuit(state)
			time.Sleep(10 * time.Minute)
			if n := a.count(&a.statuses); n != 0 {
				t.Errorf("asked %d times while the circuit was %s", n, state)
			}
		}
		h.health["alpha"].setCircuit(market.CircuitClosed)
		time.Sleep(2 * time.Second)
		if n := a.count(&a.statuses); n != 1 {
			t.Errorf("asked %d times once it was closed, want once", n)
		}
	})
}

// An exchange that cannot be heard is believed until its own end, and without one for an hour.
func TestMaintenance_announcedHoldsWhileTheExchangeIsSilent(t *testing.T) {
	for _, c := range []struct {
		what  string
		ends  time.Duration
		holds time.Duration
	}{{"with an end", 3 * time.Hour, 3*time.Hour + 2*time.Minute}, {"without one", 0, time.Hour}} {
		synctest.Test(t, func(t *testing.T) {
			h, _ := newClosedHouse(t, nil)
			if c.ends > 0 {
				h.alpha().set(func(f *fakeVenue) { f.ends = time.Now().Add(c.ends) })
			}
			h.listed(t)
			if _, err := h.Status(t.Context(), "alpha"); err != nil {
				t.Fatal(err)
			}
			h.health["alpha"].refuse(market.OpStatus, market.KindCircuitOpen)
			time.Sleep(c.holds - time.Second)
			if m := h.Maintenance("alpha"); len(m) != 1 {
				t.Errorf("%s: %+v before the end", c.what, m)
			}
			time.Sleep(2 * time.Second)
			if m := h.Maintenance("alpha"); len(m) != 0 {
				t.Errorf("%s: %+v after the end", c.what, m)
			}
		})
	}
}

func TestMaintenance_tellsCallersWhenToComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _ := newClosedHouse(t, nil)
		h.listed(t)
		q := gateway.BookQuery{Exchange: "alpha", Pair: eth}
		after := func() time.Duration {
			t.Helper()
			_, err := h.OrderBook(t.Context(), q)
			if err == nil {
				t.Fatal("answered")
			}
			return retryAfter(t, err)
		}
		f := func(k market.Kind, left, want time.Duration) {
			t.Helper()
			h.alpha().fail(k) // says 7 s
			h.SetMaintenance(nil)
			if got := after(); got != 7*time.Second {
				t.Errorf("%v without a maintenance: %v", k, got)
			}
			window := market.Maintenance{From: time.Now().Add(-time.Hour)}
			if left > 0 {
				window.Until = time.Now().Add(left)
			}
			h.SetMaintenance(map[market.ExchangeID][]market.Maintenance{"alpha": {window}})
			if got := after(); got != want {
				t.Errorf("%v with %v left: %v, want %v", k, left, got, want)
			}
			time.Sleep(time.Second)
		}
		for _, k := range []market.Kind{
			market.KindMaintenance, market.KindUnavailable, market.KindTimeout, market.KindCircuitOpen,
		} {
			f(k, 40*time.Second, 40*time.Second)
			f(k, 3*time.Minute, 50*time.Second) // and a fifth, by which callers are spread: a minute
			f(k, 3*time.Hour, 50*time.Second)
			f(k, 3*time.Second, 7*time.Second)
			f(k, 0, 7*time.Second)
		}
		f(market.KindBanned, 3*time.Minute, 7*time.Second)
		f(market.KindRateLimited, 3*time.Minute, 7*time.Second)

		// A copy that is too old is refused for the same reason; a stale answer stays what it is.
		h.SetMaintenance(map[market.ExchangeID][]market.Maintenance{"alpha": {{Until: time.Now().Add(5 * time.Minute)}}})
		h.alpha().fail(market.KindMaintenance)
		h.store.put("alpha", eth, time.Minute)
		is(t, h.ask(t, q).Freshness, true, gateway.SourceMemory, market.KindMaintenance)
		q.MaxAge = gateway.MaxAge(time.Second)
		if got := after(); got != 50*time.Second {
			t.Errorf("too stale: %v", got)
		}
		if shared, ok := h.alpha().err.(*market.Error); !ok || shared.RetryAfter != 7*time.Second {
			t.Errorf("the call's own error became %v", shared)
		}
		if _, err := h.Price(t.Context(), eth, []market.ExchangeID{"alpha"}, gateway.Age{}); retryAfter(t, err) != 50*time.Second {
			t.Errorf("price: %v", retryAfter(t, err))
		}
	})
}

func TestMaintenance_tellsBalanceCallersToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _ := newClosedHouse(t, nil)
		f := &fakeAccount{refused: true}
		a := gateway.NewAccounts(gateway.AccountsConfig{
			Exchanges: []market.ExchangeID{"alpha"}, ClosedUntil: h.ClosedUntil,
			Accounts: []gateway.NamedAccount{
				{Exchange: "alpha", Name: "main", Wallets: []market.Wallet{market.WalletTrading}, Account: f},
			},
		})
		q := gateway.BalanceQuery{Exchange: "alpha", Wallet: market.WalletTrading}
		_, err := a.Balances(t.Context(), q)
		if got := retryAfter(t, err); got != time.Second {
			t.Errorf("without a maintenance: %v", got)
		}
		h.SetMaintenance(map[market.ExchangeID][]market.Maintenance{"alpha": {{Until: time.Now().Add(5 * time.Minute)}}})
		_, err = a.Balances(t.Context(), q)
		if got := retryAfter(t, err); got != 50*time.Second {
			t.Errorf("during one: %v", got)
		}
	})
}

func TestMaintenance_metrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		h, _ := newClosedHouse(t, func(c *gateway.BooksConfig) { c.Metrics = reg })
		defer h.run(t)()
		check := func(active, until string) {
			t.Helper()
			want := fmt.Sprintf(`# HELP gateway_maintenance_active 1 while a maintenance is under way that is configured or that the exchange announces.
# TYPE gateway_maintenance_active gauge
gateway_maintenance_active{exchange="alpha"} %s
gateway_maintenance_active{exchange="beta"} 0
# HELP gateway_maintenance_until_timestamp_seconds When that maintenance ends, as far as it is known; 0 otherwise.
# TYPE gateway_maintenance_until_timestamp_seconds gauge
gateway_maintenance_until_timestamp_seconds{exchange="alpha"} %s
gateway_maintenance_until_timestamp_seconds{exchange="beta"} 0
`, active, until)
			if err := testutil.GatherAndCompare(reg, strings.NewReader(want),
				"gateway_maintenance_active", "gateway_maintenance_until_timestamp_seconds"); err != nil {
				t.Error(err)
			}
		}
		check("0", "0")
		h.SetMaintenance(map[market.ExchangeID][]market.Maintenance{"alpha": {{Until: time.Unix(1_000_000_000, 0)}}})
		time.Sleep(2 * time.Second) // the bubble's clock begins in the year 2000
		check("1", "1e+09")
		h.SetMaintenance(nil)
		time.Sleep(2 * time.Second)
		check("0", "0")
	})
}

func TestMaintenance_thatEndsBeforeItBeginsIsRefused(t *testing.T) {
	now := time.Now()
	c := gateway.BooksConfig{Books: newStore(), Lists: newStore(), Maintenance: map[market.ExchangeID][]market.Maintenance{
		"alpha": {{From: now, Until: now}},
	}}
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "alpha") {
		t.Errorf("err = %v", err)
	}
}
