package binance_test

import (
	"errors"
	"testing"
	"time"

	"exchange-gateway/internal/exchangesim"
	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

const (
	statusPath = "/sapi/v1/system/status"
	normal     = `{"status":0,"msg":"normal"}`
	shut       = `{"status":1,"msg":"system_maintenance"}`
)

// announced is a state that was read some time ago.
func announced(s market.VenueState, ago time.Duration) *gateway.Status {
	return &gateway.Status{Announced: market.VenueStatus{State: s, CheckedAt: time.Now().Add(-ago)}}
}

func TestSystemStatus_isWhatIsAnnounced(t *testing.T) {
	f, gw := stage(t)
	for state, want := range map[market.VenueState]string{market.VenueOK: normal, market.VenueMaintenance: shut} {
		gw.status = announced(state, time.Minute)
		if a := get(t, f, statusPath); string(a.Body) != want {
			t.Errorf("%s: %s", state, a.Body)
		}
	}
	gw.status = announced(market.VenueUnknown, 0)
	if r := refusal(t, f, request(statusPath)); r.Status != 404 || gw.lists != 0 {
		t.Errorf("nothing announced: %v", r)
	}
	gw.status = &gateway.Status{Announced: market.VenueStatus{State: market.VenueUnknown}}
	if _, err := f.Answer(t.Context(), request(statusPath)); market.KindOf(err) != market.KindUnavailable || gw.lists != 1 {
		t.Errorf("nothing was read yet: %v, after %d looks at the list that makes it used", err, gw.lists)
	}
	if len(gw.natives)+len(gw.books) != 0 {
		t.Error("somebody was asked about prices")
	}
}

// TestSystemStatus_isNeverOld: what could not be read anew, is old, or is from before a trouble that lasts, is an error.
func TestSystemStatus_isNeverOld(t *testing.T) {
	now := time.Now()
	open := func(class market.Class, since time.Duration) market.CircuitStatus {
		return market.CircuitStatus{
			ID: market.CircuitID{Exchange: "binance", Class: class}, State: market.CircuitOpen, Since: now.Add(-since), OpenUntil: now.Add(time.Hour),
		}
	}
	window := []market.Maintenance{{Exchange: "binance", From: now.Add(-time.Minute), Until: now.Add(time.Hour)}}
	for _, x := range []struct {
		name   string
		age    time.Duration
		change func(*gateway.Status)
		kind   market.Kind // KindNone: it is given
	}{
		{"read lately", 2 * time.Minute, func(*gateway.Status) {}, market.KindNone},
		{"old", 163 * time.Second, func(*gateway.Status) {}, market.KindUnavailable},
		{"the last reading failed", 163 * time.Second, func(s *gateway.Status) { s.AnnouncedError = market.KindTimeout }, market.KindTimeout},
		{"from before its circuit opened", time.Minute, func(s *gateway.Status) { s.Circuits = append(s.Circuits, open(market.ClassReference, 30*time.Second)) }, market.KindCircuitOpen},
		{"from before that of books opened", time.Minute, func(s *gateway.Status) { s.Circuits = append(s.Circuits, open(market.ClassMarketData, 0)) }, market.KindCircuitOpen},
		{"read since then", time.Second, func(s *gateway.Status) { s.Circuits = append(s.Circuits, open(market.ClassMarketData, time.Minute)) }, market.KindNone},
		{"accounts are in trouble", time.Minute, func(s *gateway.Status) { s.Circuits = append(s.Circuits, open(market.ClassAccount, 0)) }, market.KindNone},
		{"isolated", time.Second, func(s *gateway.Status) {
			s.Circuits = []market.CircuitStatus{{ID: market.CircuitID{Class: market.ClassReference}, State: market.CircuitClosed, Isolated: true}}
		}, market.KindIsolated},
		{"banned", time.Second, func(s *gateway.Status) {
			s.Gates = []market.GateStatus{{Scope: market.Scope{Kind: market.ScopeIP}, Kind: market.KindBanned, Until: now.Add(time.Hour)}}
		}, market.KindBanned},
		{"a pair's book cannot be true", time.Second, func(s *gateway.Status) {
			s.Gates = []market.GateStatus{{Scope: market.Scope{Kind: market.ScopeSymbol}, Kind: market.KindSuspect, Until: now.Add(time.Hour)}}
		}, market.KindNone},
	} {
		for state, body := range map[market.VenueState]string{market.VenueOK: normal, market.VenueMaintenance: shut} {
			f, gw := stage(t)
			gw.status = announced(state, x.age)
			x.change(gw.status)
			a, err := f.Answer(t.Context(), request(statusPath))
			if x.kind == market.KindNone {
				if err != nil || string(a.Body) != body {
					t.Errorf("%s, %s: %v", x.name, state, err)
				}
			} else if e, ok := errors.AsType[*market.Error](err); !ok || a != nil || e.Kind != x.kind || e.Exchange != "binance" {
				t.Errorf("%s, %s: %v, %v, want an error %v", x.name, state, a, err, x.kind)
			} else if long := x.kind == market.KindBanned || x.kind == market.KindCircuitOpen; long != (e.RetryAfter > 59*time.Minute) {
				t.Errorf("%s: try again after %v", x.name, e.RetryAfter)
			}
			// A window that is open, configured or announced, is maintenance whatever can be read now.
			gw.status.Maintenance = window
			if a := get(t, f, statusPath); string(a.Body) != shut {
				t.Errorf("%s, %s, in a window: %s", x.name, state, a.Body)
			}
		}
	}
}

// TestChain_systemStatusInAnOutage: "normal" ends with the exchange's answers, is back with them, and is asked for again.
func TestChain_systemStatusInAnOutage(t *testing.T) {
	onChain(t, func(t *testing.T, c chain) {
		ask := func() (string, error) {
			a, err := c.Answer(t.Context(), request(statusPath))
			if err != nil {
				return "", err
			}
			return string(a.Body), nil
		}
		if got, err := ask(); got != normal {
			t.Fatal(got, err)
		}
		for _, kind := range []exchangesim.FaultKind{exchangesim.FaultUnavailable, exchangesim.FaultHang} {
			c.spoil(exchangesim.Fault{Kind: kind, For: 3 * time.Minute})
			began := time.Now()
			for time.Since(began) < 3*time.Minute-5*time.Second {
				_, _ = c.Answer(t.Context(), request("/api/v3/depth?symbol=BTCUSDT"))
				if got, err := ask(); err == nil && time.Since(began) > 20*time.Second {
					t.Errorf("%v after the beginning of an outage (%s): %s", time.Since(began), kind, got)
				}
				time.Sleep(5 * time.Second)
			}
			time.Sleep(3 * time.Minute)
			if _, err := c.Answer(t.Context(), request("/api/v3/depth?symbol=BTCUSDT")); err != nil {
				t.Errorf("after the outage: %v", err)
			}
			if got, err := ask(); got != normal {
				t.Errorf("after the outage: %q, %v", got, err)
			}
		}
	})
}

// TestChain_maintenance: while the exchange says that it is closed, everything that asks it is told so, whichever circuit has
// opened since and whether its announcement was read or not.
func TestChain_maintenance(t *testing.T) {
	for _, read := range []bool{false, true} {
		onChain(t, func(t *testing.T, c chain) {
			targets := []string{
				"/api/v3/depth?symbol=BTCUSDT", "/api/v3/ticker/bookTicker?symbol=BTCUSDT", "/api/v3/ticker/price?symbol=BTCUSDT", "/api/v3/ticker/24hr",
				"/api/v3/klines?symbol=BTCUSDT&interval=1m",
			}
			for _, target := range targets {
				get(t, c.Facade, target)
			}
			c.spoil(exchangesim.Fault{Kind: exchangesim.FaultMaintenance, For: time.Hour})
			time.Sleep(2 * time.Minute) // what was announced before is old by then
			for round := range 40 {
				for _, target := range targets {
					a, err := c.Answer(t.Context(), request(target))
					if kind := market.KindOf(err); a != nil || kind != market.KindMaintenance {
						t.Fatalf("round %d, announcement read: %t, %s: %v, %v", round, read, target, a, err)
					}
				}
				if read {
					if a := get(t, c.Facade, statusPath); string(a.Body) != shut {
						t.Errorf("round %d: %s", round, a.Body)
					}
				}
				time.Sleep(3 * time.Second)
			}
		})
	}
}

// TestAnswer_maintenanceIsSaid for what a closed exchange looks like, and for nothing else.
func TestAnswer_maintenanceIsSaid(t *testing.T) {
	now := time.Now()
	closed := &gateway.Status{Maintenance: []market.Maintenance{{Exchange: "binance", From: now.Add(-time.Hour)}}}
	over := &gateway.Status{Maintenance: []market.Maintenance{{Exchange: "binance", From: now.Add(-time.Hour), Until: now.Add(-time.Minute)}}}
	circuit := func(class market.Class, state market.CircuitState) *gateway.Status {
		return &gateway.Status{Circuits: []market.CircuitStatus{{ID: market.CircuitID{Class: class}, State: state, LastKind: market.KindMaintenance}}}
	}
	for _, x := range []struct {
		health *gateway.Status
		kind   market.Kind
		want   market.Kind
	}{
		{closed, market.KindCircuitOpen, market.KindMaintenance},
		{closed, market.KindUnavailable, market.KindMaintenance},
		{closed, market.KindTimeout, market.KindMaintenance},
		{closed, market.KindBanned, market.KindBanned},
		{closed, market.KindWithheld, market.KindWithheld},
		{closed, market.KindClientLimited, market.KindClientLimited},
		{over, market.KindCircuitOpen, market.KindCircuitOpen},
		{nil, market.KindCircuitOpen, market.KindCircuitOpen},
		{circuit(market.ClassReference, market.CircuitOpen), market.KindCircuitOpen, market.KindMaintenance},
		{circuit(market.ClassMarketData, market.CircuitHalfOpen), market.KindCircuitOpen, market.KindMaintenance},
		{circuit(market.ClassMarketData, market.CircuitClosed), market.KindCircuitOpen, market.KindCircuitOpen},
		{circuit(market.ClassAccount, market.CircuitOpen), market.KindCircuitOpen, market.KindCircuitOpen},
	} {
		f, gw := stage(t)
		gw.health = x.health
		gw.book = func(gateway.BookQuery) (*gateway.Book, error) {
			failed := &market.Error{Exchange: "binance", Op: market.OpOrderBook, Kind: x.kind, RetryAfter: 2 * time.Second}
			return nil, &gateway.Error{Code: gateway.CodeNotLive, Exchange: "binance", RetryAfter: 9 * time.Second, Err: failed}
		}
		_, err := f.Answer(t.Context(), request("/api/v3/depth?symbol=BTCUSDT"))
		if got := market.KindOf(err); got != x.want {
			t.Errorf("%v of %+v: %v, want %v", x.kind, x.health, got, x.want)
		}
		if e, ok := errors.AsType[*market.Error](err); x.want == market.KindMaintenance && (!ok || e.RetryAfter != 9*time.Second || e.Op != market.OpOrderBook) {
			t.Errorf("%v: %+v", x.kind, e)
		}
	}
}
