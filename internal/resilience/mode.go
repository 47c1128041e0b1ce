package resilience

import (
	"fmt"
	"time"

	"exchange-gateway/internal/market"
)

// Isolate refuses every call of a class of an exchange until an instant, which is then over by itself; an empty class
// means all of them. Probes, retries and single requests of calls under way are refused too; a request that has been sent
// ends and counts as it would have. What the circuits count is left alone.
func (g *Guard) Isolate(id market.ExchangeID, class market.Class, until time.Time) error {
	return g.isolate(id, class, g.env.clock.instant(until))
}

// Release ends what Isolate began.
func (g *Guard) Release(id market.ExchangeID, class market.Class) error {
	return g.isolate(id, class, 0)
}

func (g *Guard) isolate(id market.ExchangeID, name market.Class, until int64) error {
	_, classes, err := g.classes(id, name)
	for _, k := range classes {
		k.isolated.Store(until)
	}
	return err
}

// classes returns a class of an exchange, or all of them if none is named.
func (g *Guard) classes(id market.ExchangeID, name market.Class) (*exchange, []*class, error) {
	x := g.find(id)
	if x == nil {
		return nil, nil, fmt.Errorf("no such exchange: %q", id)
	}
	if name == "" {
		return x, x.classes[:], nil
	}
	for i, k := range x.classes {
		if k.name == name {
			return x, x.classes[i : i+1], nil
		}
	}
	return nil, nil, fmt.Errorf("no such class: %q", name)
}

// isolation tells how long the class is still isolated, zero if it is not.
func (k *class) isolation(now int64) time.Duration {
	return time.Duration(max(k.isolated.Load()-now, 0))
}

// opProbe names the order in the text of its refusal. It is no call.
const opProbe market.Op = "probe"

// Probe ends the open times of a class of an exchange now, of every class if none is named: the next call of each open
// circuit is its probe, exactly one. Circuits that are not open are left alone. It sends nothing itself.
//
// It is refused with a *market.Error while one of the classes is isolated (KindIsolated) or a gate of the whole exchange or
// of our address is closed (the gate's Kind): then a probe would be turned away, or make a ban worse. Its RetryAfter is
// the time until then, exactly. A refused one has changed nothing.
func (g *Guard) Probe(id market.ExchangeID, name market.Class) error {
	x, classes, err := g.classes(id, name)
	if err != nil {
		return err
	}
	now := g.env.clock.now()
	for _, k := range classes {
		if wait := k.isolation(now); wait > 0 {
			return &market.Error{
				Exchange: id, Op: opProbe, Kind: market.KindIsolated, RetryAfter: wait,
				Err: fmt.Errorf("%w: class %s", errNotSent, k.name),
			}
		}
	}
	if kind, wait := x.gates.refuses(nil, now); wait > 0 {
		return &market.Error{Exchange: id, Op: opProbe, Kind: kind, RetryAfter: wait, Err: errNotSent}
	}
	for _, c := range *x.circuits.Load() {
		if name == "" || name == c.class.name {
			c.expire(now)
		}
	}
	return nil
}

// expire ends the open time, if there is one. The counting machine calls its own over later than a nanosecond after it
// began, so no end of ours may be earlier.
func (c *circuit) expire(now int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, until := c.state()
	end := max(now, c.since+2)
	if s != open || until <= end {
		return
	}
	f := *c.fixed.Load()
	f.until = c.env.clock.wall(end).UnixNano()
	c.fixed.Store(&f)
	c.word.Store(pack(open, end))
}
