package resilience

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/market"
)

// model is what a circuit should do, written down as plainly as possible: no locks, no machine, every result kept.
type model struct {
	policy     ClassPolicy
	draw       *uint64 // the last random word
	state      market.CircuitState
	generation int
	since      int64
	until      int64
	probing    bool
	trips      int
	row        int
	rowBegan   int64
	results    []modelResult
}

type modelResult struct {
	began        int64
	failed, slow bool
}

type modelPermit struct {
	began      int64
	generation int
	probe      bool
}

func (m *model) change(to market.CircuitState, now int64) {
	m.state, m.since, m.results, m.probing, m.until = to, now, nil, false, 0
	m.generation++
	if to == market.CircuitOpen {
		m.trips++
		d := min(m.policy.OpenMin<<(min(m.trips, 10)-1), m.policy.OpenMax)
		less, _ := bits.Mul64(*m.draw, uint64(d/5)+1)
		m.until = now + int64(d) - int64(less)
	}
}

func (m *model) refuses(now int64) bool { return m.state != market.CircuitClosed && now < m.until }

func (m *model) acquire(now int64) (modelPermit, bool) {
	switch {
	case m.refuses(now):
		return modelPermit{}, false
	case m.probing: // and its lease is over
		m.change(market.CircuitOpen, now)
		return modelPermit{}, false
	case m.state == market.CircuitOpen:
		m.change(market.CircuitHalfOpen, now)
	}
	p := modelPermit{began: now, generation: m.generation, probe: m.state == market.CircuitHalfOpen}
	if p.probe {
		m.probing, m.until = true, now+int64(m.policy.Timeout+leaseGrace)
	}
	return p, true
}

func (m *model) window(now int64) (w market.Window) {
	period := int64(m.policy.Window) / buckets
	for _, r := range m.results {
		if (now-m.since)/period-(r.began-m.since)/period < buckets {
			w.Settled++
			w.Failures += int(one(r.failed))
			w.Slow += int(one(r.slow))
		}
	}
	w.Consecutive = m.row
	return w
}

func (m *model) settle(p modelPermit, now int64, effect market.Effect) {
	if p.generation != m.generation {
		return
	}
	slow := float64(now-p.began) > m.policy.SlowFactor*float64(m.policy.Timeout)
	failed := effect == market.EffectFailure
	if failed {
		if m.row++; m.row == 1 {
			m.rowBegan = now
		}
	}
	if effect == market.EffectSuccess && (!p.probe || !slow) {
		m.row = 0
	}
	switch {
	case effect == market.EffectIgnored:
		if p.probe {
			m.probing, m.until = false, 0
		}
	case p.probe && (failed || slow):
		m.change(market.CircuitOpen, now)
	case p.probe:
		m.change(market.CircuitClosed, now)
	default:
		m.results = append(m.results, modelResult{p.began, failed, slow})
		if !failed && now-m.since >= int64(m.policy.Window) {
			m.trips = 0
		}
		w := m.window(now)
		enough := w.Settled >= m.policy.MinSettled
		inARow := failed && m.row >= m.policy.Consecutive && now-m.rowBegan >= int64(m.policy.MinSpan)
		byRate := failed && enough && float64(w.Failures) >= m.policy.Rate*float64(w.Settled)
		bySlow := (failed || slow) && enough && float64(w.Slow) >= m.policy.SlowShare*float64(w.Settled)
		if inARow || byRate || bySlow {
			m.change(market.CircuitOpen, now)
		}
	}
}

// Random calls, results and pauses: the circuit does in every step what the model does. The seed is in the failure.
func TestCircuit_againstTheModel(t *testing.T) {
	steps := 30_000
	for seed := range uint64(8) {
		synctest.Test(t, func(t *testing.T) { checkModel(t, seed, steps) })
	}
}

func checkModel(t *testing.T, seed uint64, steps int) {
	random := rand.New(rand.NewPCG(seed, 1))
	var draw uint64
	g := New(Config{Random: func() uint64 { draw = random.Uint64(); return draw }})
	x := g.exchange("model")
	c := x.circuit(market.ClassMarketData, "")
	m := &model{policy: *c.policy, draw: &draw, state: market.CircuitClosed, since: c.since}
	type pair struct {
		ours   permit
		models modelPermit
	}
	var inFlight []pair
	seen := make(map[market.CircuitState]int)
	// How bad the exchange is changes now and then, so that all of closed, open and half-open are lived in.
	bad := 0
	for step := range steps {
		now := g.env.clock.now()
		switch random.IntN(10) {
		case 0, 1, 2:
			time.Sleep(time.Duration(random.Int64N(int64(400 * time.Millisecond))))
		case 3:
			time.Sleep(time.Duration(random.Int64N(int64([...]time.Duration{time.Second, 4 * time.Second, time.Minute}[random.IntN(3)]))))
		case 4:
			if random.IntN(50) == 0 {
				bad = random.IntN(11)
			}
		case 5, 6, 7:
			if len(inFlight) > 40 {
				continue // some of them never end
			}
			p, wait := c.acquire(now, c.policy)
			q, ok := m.acquire(now)
			if ok != (wait <= 0) {
				t.Fatalf("seed %d step %d: admitted %v after %v, model %v", seed, step, wait <= 0, wait, ok)
			}
			if ok {
				if p.probe != q.probe {
					t.Fatalf("seed %d step %d: probe %v, model %v", seed, step, p.probe, q.probe)
				}
				inFlight = append(inFlight, pair{p, q})
			}
		default:
			if len(inFlight) == 0 {
				continue
			}
			i := random.IntN(len(inFlight))
			call := inFlight[i]
			inFlight = slices.Delete(inFlight, i, i+1)
			effect := market.EffectSuccess
			switch {
			case random.IntN(10) < bad:
				effect = market.EffectFailure
			case random.IntN(8) == 0:
				effect = market.EffectIgnored
			}
			call.ours.settle(now, effect, market.KindTimeout)
			m.settle(call.models, now, effect)
		}
		now = g.env.clock.now()
		var st market.CircuitStatus
		c.status(now, &st)
		seen[st.State]++
		if st.State != m.state || st.Trips != m.trips || c.refuses(now) > 0 != m.refuses(now) {
			t.Fatalf("seed %d step %d: %+v, model %+v", seed, step, st, m)
		}
		if st.State == market.CircuitClosed && st.Window != m.window(now) {
			t.Fatalf("seed %d step %d: window %+v, model %+v", seed, step, st.Window, m.window(now))
		}
		if s, until := c.state(); s == open && until != m.until {
			t.Fatalf("seed %d step %d: open until %d, model %d", seed, step, until, m.until)
		}
	}
	for _, s := range market.CircuitStates() {
		if seen[s] < steps/200 {
			t.Errorf("seed %d: %d of %d steps in %s: the test does not reach it", seed, seen[s], steps, s)
		}
	}
	if err := g.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}
