package resilience

import (
	"fmt"

	"exchange-gateway/internal/market"
)

// Policy returns how an exchange is treated as things stand, with every default filled in. One that is not known yet would
// be treated like this.
func (g *Guard) Policy(id market.ExchangeID) Policy {
	x := g.find(id)
	if x == nil {
		return g.config.Exchanges[id].withDefaults()
	}
	p := Policy{Classes: make(map[market.Class]ClassPolicy, len(x.classes)), BudgetShare: x.ledger.shared()}
	for _, k := range x.classes {
		p.Classes[k.name] = *k.policy.Load()
	}
	return p
}

// Thresholds is the part of Policy that is about one class, without making all of it. A class that nobody knows has the
// policy of reference data, as its calls do.
func (g *Guard) Thresholds(id market.ExchangeID, class market.Class) ClassPolicy {
	if x := g.find(id); x != nil {
		return *x.class(class).policy.Load()
	}
	return g.config.Exchanges[id].Classes[class].withDefaults(class)
}

// SetPolicy changes how an exchange is treated from now on; what the policy leaves out has the default again. One that
// Validate finds fault with changes nothing.
//
// Calls under way end by the policy that they began with. Circuits keep their state and their failures in a row; one whose
// window gets another length counts afresh in it, and calls under way no longer count there. A new budget share holds at
// once, also for calls that wait.
func (g *Guard) SetPolicy(id market.ExchangeID, policy Policy) error {
	if err := (Config{Exchanges: map[market.ExchangeID]Policy{id: policy}}).Validate(); err != nil {
		return err
	}
	x := g.find(id)
	if x == nil {
		return fmt.Errorf("no such exchange: %q", id)
	}
	policy = policy.withDefaults()
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, k := range x.classes {
		p := policy.Classes[k.name]
		if p == *k.policy.Load() {
			continue
		}
		k.policy.Store(&p)
		for _, c := range *x.circuits.Load() {
			if c.class == k {
				c.follow(&p, g.env.clock.now())
			}
		}
	}
	x.ledger.reshare(policy.BudgetShare)
	return nil
}

// withDefaults is the policy with every class and every field filled in.
func (p Policy) withDefaults() Policy {
	out := Policy{Classes: make(map[market.Class]ClassPolicy, len(market.Classes())), BudgetShare: p.share()}
	for _, class := range market.Classes() {
		out.Classes[class] = p.Classes[class].withDefaults(class)
	}
	return out
}
