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
