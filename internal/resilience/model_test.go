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
	counts     int64 // since when results are counted: the state's beginning, or that of a window of another length
	until      int64
	probing    bool
	trips      int
	row        int
	rowBegan   int64
	results    []modelResult
	counted    time.Duration // the length of the window that counts
	worst      map[int64]market.Worst
}

type modelResult struct {
	began        int64
	failed, slow bool
}

type modelPermit struct {
	began      int64
	slow       int64
	generation int
	probe      bool
}

func (m *model) change(to market.CircuitState, now int64) {
	m.state, m.since, m.counts, m.results, m.probing, m.until = to, now, now, nil, false, 0
	m.generation++
	if to == market.CircuitClosed {
		m.counted = m.policy.Window
	}
	if to == market.CircuitOpen {
		m.trips++
		d := min(m.policy.OpenMin<<(min(m.trips, 10)-1), m.policy.OpenMax)
		less, _ := bits.Mul64(*m.draw, uint64(d/5)+1)
		m.until = now + int64(d) - int64(less)
	}
}

// follow puts another policy in force.
func (m *model) follow(p ClassPolicy, now int64) {
	m.policy = p
	if m.state == market.CircuitClosed && p.Window != m.counted {
		m.counted, m.counts, m.results = p.Window, now, nil
		m.generation++
	}
}

// order ends the open time.
func (m *model) order(now int64) {
	if m.state == market.CircuitOpen {
		m.until = min(m.until, max(now, m.since+2))
	}
}

// worsen keeps the worst of the hour.
func (m *model) worsen(now int64) {
	w := m.window(now)
	hour := m.worst[now/int64(time.Hour)]
	hour.Consecutive = max(hour.Consecutive, w.Consecutive)
	if w.Settled >= m.policy.MinSettled {
		hour.FailureShare = max(hour.FailureShare, float64(w.Failures*10_000/w.Settled)/10_000)
		hour.SlowShare = max(hour.SlowShare, float64(w.Slow*10_000/w.Settled)/10_000)
	}
	m.worst[now/int64(time.Hour)] = hour
}

// worstOf is the worst of 24 hours.
func (m *model) worstOf(now int64) (sum market.Worst) {
	for i := range int64(24) {
		hour := m.worst[now/int64(time.Hour)-i]
		sum.Consecutive = max(sum.Consecutive, hour.Consecutive)
		sum.FailureShare = max(sum.FailureShare, hour.FailureShare)
		sum.SlowShare = max(sum.SlowShare, hour.SlowShare)
	}
	return sum
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
	p := modelPermit{began: now, slow: int64(m.policy.SlowFactor * float64(m.policy.Timeout)), generation: m.generation, probe: m.state == market.CircuitHalfOpen}
	if p.probe {
		m.probing, m.until = true, now+int64(m.policy.Timeout+leaseGrace)
	}
	return p, true
}

func (m *model) window(now int64) (w market.Window) {
	period := int64(m.counted) / buckets
	for _, r := range m.results {
		if (now-m.counts)/period-(r.began-m.counts)/period < buckets {
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
	slow := now-p.began > p.slow
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
		m.worsen(now)
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

// modelPolicies are what operators change between: windows of other lengths, and other thresholds in the same.
func modelPolicies() []ClassPolicy {
	usual := DefaultPolicy(market.ClassMarketData)
	short, long, strict := usual, usual, usual
	short.Timeout, short.Window, short.OpenMin = time.Second, 7*time.Second, 2*time.Second
	long.Window, long.Consecutive = 90*time.Second, 8
	strict.Rate, strict.SlowShare, strict.MinSettled = 0.3, 0.5, 6
	return []ClassPolicy{usual, short, long, strict}
}

// Random calls, results, pauses, new policies and orders to probe: the circuit does in every step what the model does. The seed is in the failure.
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
	m := &model{
		policy: *c.policy, draw: &draw, state: market.CircuitClosed, since: c.since, counts: c.since, counted: c.policy.Window,
		worst: make(map[int64]market.Worst),
	}
	policies := modelPolicies()
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
			if random.IntN(300) == 0 {
				time.Sleep(time.Duration(random.Int64N(int64(20 * time.Hour))))
			}
		case 4:
			switch random.IntN(50) {
			case 0:
				bad = random.IntN(11)
			case 1:
				p := policies[random.IntN(len(policies))]
				c.follow(&p, now)
				m.follow(p, now)
			case 2:
				c.expire(now)
				m.order(now)
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
		worst, of := m.worstOf(now), c.worstOf(now)
		worst.Since = of.Since
		if of != worst {
			t.Fatalf("seed %d step %d: worst %+v, model %+v", seed, step, of, worst)
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
