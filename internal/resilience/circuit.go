package resilience

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"

	"exchange-gateway/internal/market"
)

// leaseGrace is how long after its attempt timeout a probe is believed to be still on its way.
const leaseGrace = time.Second

// Results as the counting machine is told them.
var (
	errFailed  = errors.New("failed")
	errIgnored = errors.New("ignored")
)

// state is a circuit's state in the low bits of its word.
type state int64

const (
	closed state = iota
	open
	halfOpen
)

func (s state) public() market.CircuitState {
	switch s {
	case closed:
		return market.CircuitClosed
	case open:
		return market.CircuitOpen
	case halfOpen:
		return market.CircuitHalfOpen
	}
	return market.CircuitClosed
}

// circuit is one circuit breaker. gobreaker counts, ages the window, and fences the results of an earlier state off; what
// it lacks is here: when it may be asked again (known, drawn at random, growing), the lease of a probe that never ends,
// failures in a row across window edges, slow calls, and a reading that changes nothing.
//
// Every use of the machine is under mu. So a permit that was asked for while closed cannot slip in as a second probe, and
// what the machine calls back may touch the fields below without a lock of its own.
type circuit struct {
	id    market.CircuitID
	class *class
	env   *environment

	// word holds the state in its low two bits and above them the instant until which calls are refused: the end of the
	// open time, or of the lease of the probe in flight. Zero refuses none. One atomic, so no reader sees halves.
	word   atomic.Int64
	recent atomic.Uint64 // failures in a row, and the Kind of the last failure in the low byte
	fixed  atomic.Pointer[fixed]
	worst  atomic.Pointer[worst] // nil before the first failure or slow call
	born   int64

	mu         sync.Mutex
	policy     *ClassPolicy // in force; of a call it is the one that it began with
	machine    *gobreaker.TwoStepCircuitBreaker[struct{}]
	generation uint32
	now        int64 // instant of the step being taken
	since      int64 // of the state
	openFor    int64 // open or half-open in all, up to since
	window     window
	row        uint32 // failures in a row
	rowBegan   int64  // when the first of them settled
	lastKind   market.Kind
	trips      uint32 // opened so often since the last healthy window
	verdict    market.Cause
	tripped    tally // what opened it
	trippedRow uint32
	probing    func(error) // settles the probe in flight, nil without one
}

// environment is what circuits and gates share with their guard.
type environment struct {
	clock  instants
	random func() uint64
	events *events
}

func newCircuit(id market.CircuitID, class *class, env *environment) *circuit {
	c := &circuit{id: id, class: class, env: env, policy: class.policy.Load(), born: env.clock.now()}
	c.now, c.since = c.born, c.born
	c.renew()
	c.fix(market.CauseNone)
	return c
}

// renew starts counting anew, in a window of the length that is in force. The machine's is fixed when it is made, and it
// starts closed: so this is for a circuit that is closed.
func (c *circuit) renew() {
	period := c.policy.period()
	c.machine = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		MaxRequests:  1,
		Interval:     period * buckets,
		BucketPeriod: period,
		// One nanosecond: our own open time decides, and is always longer.
		Timeout:       1,
		ReadyToTrip:   c.readyToTrip,
		OnStateChange: c.changed,
		IsExcluded:    isIgnored,
	})
	c.window.period = int64(period)
	c.window.clear(c.now)
	c.generation++ // what is under way belongs to the machine before
}

// follow puts another policy in force. The state stays, and what depends on it: open until its own time, half-open with
// its probe. Failures in a row go on being counted. A window of another length starts with a fresh count: now if the
// circuit is closed, otherwise when it closes.
func (c *circuit) follow(p *ClassPolicy, now int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.policy, c.now = p, now
	c.renewIfClosed()
}

func (c *circuit) renewIfClosed() {
	if s, _ := c.state(); s == closed && c.window.period != int64(c.policy.period()) {
		c.renew()
	}
}

func isIgnored(err error) bool { return err == errIgnored } // our own sentinel, never wrapped

func pack(s state, until int64) int64 { return until<<2 | int64(s) }

func (c *circuit) state() (s state, until int64) {
	w := c.word.Load()
	return state(w & 3), w >> 2
}

// refuses tells how long calls are still refused, zero if one may pass. It is one atomic load, and changes nothing.
func (c *circuit) refuses(now int64) time.Duration {
	s, until := c.state()
	if s == closed || until <= now {
		return 0
	}
	return time.Duration(until - now)
}

// permit is the leave to make one attempt. It is settled exactly once.
type permit struct {
	circuit    *circuit
	done       func(error)
	began      int64
	slow       int64 // what takes longer is slow
	generation uint32
	probe      bool
}

// acquire returns a permit, or how long to wait before the next one can be had. When an open time is over, exactly one
// caller gets the permit to probe. When the probe's lease is over too, its caller has vanished: the circuit opens again.
//
// The policy is that of the call: what is slow, and how long a probe is believed in, hang on the timeout it runs under.
func (c *circuit) acquire(now int64, policy *ClassPolicy) (permit, time.Duration) {
	if wait := c.refuses(now); wait > 0 {
		return permit{}, wait
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if wait := c.refuses(now); wait > 0 {
		return permit{}, wait
	}
	c.now = now
	if lost := c.probing; lost != nil {
		c.class.metrics.probe(market.CauseProbeLost)
		c.verdict = market.CauseProbeLost
		lost(errFailed)
		return permit{}, c.refuses(now)
	}
	done, err := c.machine.Allow()
	if err != nil {
		// Closed, due, and half-open without a probe are the only ways to here, and the machine lets all of them pass.
		return permit{}, time.Second
	}
	p := permit{circuit: c, done: done, began: now, slow: policy.slow(), generation: c.generation}
	if s, _ := c.state(); s == halfOpen {
		p.probe = true
		c.probing = done
		c.word.Store(pack(halfOpen, now+int64(policy.Timeout+leaseGrace)))
	}
	return p, 0
}

// settle reports how the attempt ended. The result of an attempt that began in an earlier state is dropped: neither a
// late failure nor a late success says anything about now.
func (p permit) settle(now int64, effect market.Effect, kind market.Kind) {
	c := p.circuit
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.generation != c.generation {
		return
	}
	c.now = now
	slow := now-p.began > p.slow
	if p.probe {
		c.settleProbe(p, effect, kind, slow)
		return
	}
	switch effect {
	case market.EffectIgnored:
		p.done(errIgnored)
	case market.EffectFailure:
		c.count(p, tally{settled: 1, failures: 1, slow: one(slow)})
		c.failed(kind)
		c.worsen()
		if c.row >= uint32(c.policy.Consecutive) && now-c.rowBegan >= int64(c.policy.MinSpan) {
			c.verdict = market.CauseConsecutive
		}
		p.done(errFailed)
	case market.EffectSuccess:
		c.count(p, tally{settled: 1, slow: one(slow)})
		if c.row != 0 {
			c.row = 0
			c.showRecent()
		}
		if c.window.sum.failures|c.window.sum.slow != 0 {
			c.worsen()
		}
		if c.trips > 0 && now-c.since >= int64(c.policy.Window) {
			c.trips = 0
			c.fix(market.CauseProbeSucceeded)
		}
		if slow && c.tooSlow() {
			// The machine asks about tripping after failures alone.
			c.verdict = market.CauseSlow
			p.done(errFailed)
			return
		}
		p.done(nil)
	}
}

// settleProbe ends half-open: by a success closed, by a failure or a slow success open. An ignored one frees the slot for
// the next caller.
func (c *circuit) settleProbe(p permit, effect market.Effect, kind market.Kind, slow bool) {
	c.probing = nil
	switch {
	case effect == market.EffectIgnored:
		c.class.metrics.probe(market.CauseNone)
		c.word.Store(pack(halfOpen, 0))
		p.done(errIgnored)
	case effect == market.EffectFailure || slow:
		if effect == market.EffectFailure {
			c.failed(kind)
		}
		c.class.metrics.probe(market.CauseProbeFailed)
		c.verdict = market.CauseProbeFailed
		p.done(errFailed)
	default:
		c.class.metrics.probe(market.CauseProbeSucceeded)
		c.row = 0
		c.showRecent()
		c.verdict = market.CauseProbeSucceeded
		p.done(nil)
		c.renewIfClosed()
	}
}

func one(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

func (c *circuit) count(p permit, t tally) { c.window.add(p.began, c.now, t) }

func (c *circuit) failed(kind market.Kind) {
	if c.row == 0 {
		c.rowBegan = c.now
	}
	c.row++
	c.lastKind = kind
	c.showRecent()
}

func (c *circuit) showRecent() { c.recent.Store(uint64(c.row)<<8 | uint64(c.lastKind)) }

func (c *circuit) tooSlow() bool {
	t := c.window.total(c.now)
	return t.settled >= uint32(c.policy.MinSettled) && float64(t.slow) >= c.policy.SlowShare*float64(t.settled)
}

// readyToTrip is asked by the machine after each failure while closed, under mu. In flight and ignored calls are not in
// the rate: 40 hung calls would dilute it (the usual rule needs 60 further failures then).
func (c *circuit) readyToTrip(counts gobreaker.Counts) bool {
	settled := counts.TotalSuccesses + counts.TotalFailures
	switch {
	case c.verdict != market.CauseNone:
	case settled < uint32(c.policy.MinSettled):
		return false
	case float64(counts.TotalFailures) >= c.policy.Rate*float64(settled):
		c.verdict = market.CauseRate
	case c.tooSlow():
		c.verdict = market.CauseSlow
	default:
		return false
	}
	c.tripped, c.trippedRow = c.window.total(c.now), c.row
	return true
}

// changed is called by the machine at every change of state, under mu.
func (c *circuit) changed(_ string, from, to gobreaker.State) {
	cause := c.verdict
	c.verdict = market.CauseNone
	c.generation++
	if from != gobreaker.StateClosed {
		c.openFor += c.now - c.since
	}
	c.since = c.now
	c.probing = nil
	c.window.clear(c.now)
	switch to {
	case gobreaker.StateOpen:
		c.trips++
		c.word.Store(pack(open, c.now+c.openTime()))
	case gobreaker.StateHalfOpen:
		cause = market.CauseProbeStarted
		c.word.Store(pack(halfOpen, 0))
	case gobreaker.StateClosed:
		c.tripped, c.trippedRow = tally{}, 0
		c.word.Store(pack(closed, 0))
	}
	f := c.fix(cause)
	c.class.metrics.transition(cause)
	c.env.events.add(market.Event{
		Type: market.EventCircuit, Circuit: c.id, From: stateOf(from).public(), To: f.state.public(), Cause: cause,
		Window: f.window(), Kind: c.lastKind, Until: f.openUntil(),
	})
}

func stateOf(s gobreaker.State) state {
	switch s {
	case gobreaker.StateOpen:
		return open
	case gobreaker.StateHalfOpen:
		return halfOpen
	case gobreaker.StateClosed:
		return closed
	}
	return closed
}

// openTime draws how long to stay open: 5, 10, 20, 40, 60 s, of which 0.8 to 1.0, so that replicas that opened together
// do not probe together.
func (c *circuit) openTime() int64 {
	d := c.policy.OpenMin
	for i := uint32(1); i < c.trips && d < c.policy.OpenMax; i++ {
		d *= 2
	}
	d = min(d, c.policy.OpenMax)
	return int64(d) - int64(below(c.env.random(), uint64(d)/5+1))
}
