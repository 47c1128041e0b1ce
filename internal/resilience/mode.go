package resilience

import (
	"fmt"
	"time"

	"exchange-gateway/internal/market"
)

// mode is an operator's word on one class of one exchange. It ends by itself.
type mode struct {
	kind  market.Kind
	until int64
}

// Isolate refuses every call of a class of an exchange, probes and single requests included, until an instant; an empty
// class means all of them. What the circuits count is left alone.
func (g *Guard) Isolate(id market.ExchangeID, class market.Class, until time.Time) error {
	return g.setMode(id, class, &mode{kind: market.KindIsolated, until: g.env.clock.instant(until)})
}

// Withhold refuses like Isolate, and says with its Kind that held copies are not to be served either.
func (g *Guard) Withhold(id market.ExchangeID, class market.Class, until time.Time) error {
	return g.setMode(id, class, &mode{kind: market.KindWithheld, until: g.env.clock.instant(until)})
}

// Release ends what Isolate or Withhold began.
func (g *Guard) Release(id market.ExchangeID, class market.Class) error {
	return g.setMode(id, class, nil)
}

func (g *Guard) setMode(id market.ExchangeID, name market.Class, m *mode) error {
	x := g.find(id)
	if x == nil {
		return fmt.Errorf("no such exchange: %q", id)
	}
	found := false
	for _, c := range x.classes {
		if name == "" || name == c.name {
			c.mode.Store(m)
			found = true
		}
	}
	if !found {
		return fmt.Errorf("no such class: %q", name)
	}
	return nil
}

// isolated tells whether an operator's mode is in force.
func (c *class) isolated(now int64) bool {
	m := c.mode.Load()
	return m != nil && now < m.until
}
