package resilience

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"exchange-gateway/internal/market"
)

// exchange is what the guard keeps of one exchange.
type exchange struct {
	id     market.ExchangeID
	guard  *Guard
	env    *environment
	gates  *gates
	ledger *ledger

	samples  *samples
	failures failures

	classes  [4]*class                  // in the order of market.Classes
	ops      []*opMetrics               // a handful, those asked most first: a walk is cheaper than a map
	circuits atomic.Pointer[[]*circuit] // replaced, never changed

	mu sync.Mutex // covers adding to circuits, and changing policies
}

// class is what the circuits of one class share.
type class struct {
	name     market.Class
	policy   atomic.Pointer[ClassPolicy] // replaced, never changed; with the defaults filled in
	metrics  *classMetrics
	samples  *samples // of the exchange
	tokens   retryTokens
	isolated atomic.Int64 // by an operator, until this instant
}

func newExchange(g *Guard, id market.ExchangeID, policy Policy) *exchange {
	x := &exchange{
		id: id, guard: g, env: g.env,
		gates:   newGates(id, g.env, g.saver, g.metrics),
		ledger:  newLedger(g.env.clock, policy.share()),
		samples: newSamples(g.env.clock.now()),
	}
	for i, name := range market.Classes() {
		k := &class{name: name, metrics: g.metrics.class(id, name), samples: x.samples}
		p := policy.Classes[name].withDefaults(name)
		k.policy.Store(&p)
		k.tokens.fill()
		x.classes[i] = k
	}
	for _, op := range market.Ops() {
		x.ops = append(x.ops, g.metrics.op(id, op))
	}
	for _, kind := range market.ScopeKinds() {
		g.metrics.closings.WithLabelValues(string(id), string(kind))
	}
	g.metrics.unsaved.WithLabelValues(string(id))
	x.circuits.Store(&[]*circuit{})
	// Those of accounts appear with the account: their families are the adapter's to know.
	for _, name := range []market.Class{market.ClassMarketData, market.ClassReference, market.ClassStream} {
		x.circuit(name, "")
	}
	return x
}

// class returns what a class shares; a class that nobody knows counts as reference.
func (x *exchange) class(name market.Class) *class {
	for _, c := range x.classes {
		if c.name == name {
			return c
		}
	}
	return x.classes[1]
}

// maxCircuits bounds the circuits of one exchange. They come from adapters, not from callers; past it a family shares the
// circuit of its class.
const maxCircuits = 16

// circuit returns a circuit, made if need be.
func (x *exchange) circuit(class market.Class, family string) *circuit {
	if c := x.findCircuit(class, family); c != nil {
		return c
	}
	return x.newCircuit(class, family)
}

func (x *exchange) newCircuit(class market.Class, family string) *circuit {
	x.mu.Lock()
	defer x.mu.Unlock()
	all := *x.circuits.Load()
	if len(all) >= maxCircuits {
		family = ""
	}
	if c := x.findCircuit(class, family); c != nil {
		return c
	}
	k := x.class(class)
	c := newCircuit(market.CircuitID{Exchange: x.id, Class: class, Family: family}, k, x.env)
	all = append(all[:len(all):len(all)], c)
	x.circuits.Store(&all)
	return c
}

func (x *exchange) findCircuit(class market.Class, family string) *circuit {
	for _, c := range *x.circuits.Load() {
		if c.id.Class == class && c.id.Family == family {
			return c
		}
	}
	return nil
}

// op returns the handles of an operation. One that is not in market.Ops comes from code too, so their number is bounded.
func (x *exchange) op(op market.Op) *opMetrics {
	for _, m := range x.ops {
		if m.op == op {
			return m
		}
	}
	return x.guard.metrics.op(x.id, op)
}

// What a refusal wraps: the exchange was not asked, whatever the Kind says that closed the gate.
var (
	errNotSent      = errors.New("not sent")
	errNotOpen      = errors.New("not sent: the gates of the last life are not loaded yet")
	errUnknownLimit = errors.New("not sent: the call is charged to a rate limit that the exchange did not state")
)

// notSent tells whether an error is a refusal of ours, also when an adapter wrapped or copied it.
func notSent(err error) bool {
	return errors.Is(err, errNotSent) || errors.Is(err, market.ErrKeptForOthers) || errors.Is(err, errNotOpen) || errors.Is(err, errUnknownLimit)
}

// leastWait is the shortest time after which anybody is told to come back. Beyond it the times in errors are exact, for
// they are also read as the instant at which something ends; whoever passes one on to many callers spreads them.
const leastWait = time.Second

// refusal is the error of a call that is not sent.
func (x *exchange) refusal(call *market.Call, kind market.Kind, wait time.Duration, why error) *market.Error {
	e := &market.Error{Exchange: x.id, Op: call.Op, Kind: kind, Err: why}
	if wait > 0 || kind.Retryable() {
		e.RetryAfter = max(wait, leastWait)
	}
	return e
}

// refuse counts a call that is not sent.
func (k *class) refuse(kind market.Kind, now int64) {
	k.metrics.refuse(kind)
	k.samples.refuse(now)
}

// unpaid is the error of a call or request that no budget can pay for.
func (x *exchange) unpaid(call *market.Call, k *class, err error, wait time.Duration, now int64) *market.Error {
	kind := market.KindOverloaded
	if err == errUnknownLimit { // our own sentinel, never wrapped
		kind = market.KindInternal
	}
	k.refuse(kind, now)
	return x.refusal(call, kind, wait, err)
}

// turnsAway refuses a call whose circuit is open or that turnsAwayRequest refuses; nil lets it pass. It does no I/O and
// takes under 100 ns while nothing is closed.
func (x *exchange) turnsAway(call *market.Call, c *circuit, now int64) *market.Error {
	if e := x.turnsAwayRequest(call, c.class, now); e != nil {
		return e
	}
	if wait := c.refuses(now); wait > 0 {
		c.class.refuse(market.KindCircuitOpen, now)
		return x.refusal(call, market.KindCircuitOpen, wait, errNotSent)
	}
	return nil
}

// turnsAwayRequest refuses a request for an operator's isolation or a closed gate; nil lets it pass.
func (x *exchange) turnsAwayRequest(call *market.Call, k *class, now int64) *market.Error {
	if wait := k.isolation(now); wait > 0 {
		k.refuse(market.KindIsolated, now)
		return x.refusal(call, market.KindIsolated, wait, errNotSent)
	}
	if kind, wait := x.gates.refuses(call.Scopes, now); wait > 0 {
		k.refuse(kind, now)
		return x.refusal(call, kind, wait, errNotSent)
	}
	if !x.guard.opened.Load() {
		k.refuse(market.KindInternal, now)
		return x.refusal(call, market.KindInternal, 0, errNotOpen)
	}
	return nil
}
