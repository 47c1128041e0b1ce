package ops

import (
	"fmt"
	"time"

	"exchange-gateway/internal/market"
)

// effect makes circuits and streams do what is in force. It is told the whole list and works out what that changes, so an
// order, its end, a restart and the word of another process are one and the same thing.
type effect struct {
	guard     Guard
	feed      Feed
	exchanges []market.ExchangeID

	isolated map[circuitClass]time.Time // until when, as the guard was told
	cut      map[market.ExchangeID]bool
	withheld map[bookKey]bool
}

type circuitClass struct {
	exchange market.ExchangeID
	class    market.Class
}

func newEffect(guard Guard, feed Feed, exchanges []market.ExchangeID) effect {
	return effect{
		guard: guard, feed: feed, exchanges: exchanges, isolated: make(map[circuitClass]time.Time),
		cut: make(map[market.ExchangeID]bool), withheld: make(map[bookKey]bool),
	}
}

// apply brings a list about. An error leaves a part undone; applying another list is always possible.
func (e *effect) apply(list []market.Override) error {
	for _, id := range e.exchanges {
		if err := e.isolate(id, list); err != nil {
			return err
		}
	}
	if e.feed != nil {
		e.stream(list)
	}
	return nil
}

// isolate gives every class of an exchange the latest end of the isolations that are about it: one of the whole exchange
// and one of a class may be in force together, and the shorter must not end the longer.
func (e *effect) isolate(id market.ExchangeID, list []market.Override) error {
	wanted := make(map[market.Class]time.Time)
	for i := range list {
		o := &list[i]
		if o.Kind != market.OverrideIsolate || o.Exchange != id {
			continue
		}
		for _, class := range market.Classes() {
			if o.Class == "" || o.Class == class {
				wanted[class] = later(wanted[class], o.End())
			}
		}
	}
	changed, same := 0, true
	first := wanted[market.Classes()[0]]
	for _, class := range market.Classes() {
		if !wanted[class].Equal(e.isolated[circuitClass{id, class}]) {
			changed++
		}
		same = same && wanted[class].Equal(first)
	}
	if changed == 0 {
		return nil
	}
	if same && changed > 1 {
		return e.set(id, "", first, market.Classes()...)
	}
	for _, class := range market.Classes() {
		if until := wanted[class]; !until.Equal(e.isolated[circuitClass{id, class}]) {
			if err := e.set(id, class, until, class); err != nil {
				return err
			}
		}
	}
	return nil
}

// set tells the guard, and remembers for which classes.
func (e *effect) set(id market.ExchangeID, class market.Class, until time.Time, classes ...market.Class) error {
	var err error
	if until.IsZero() {
		err = e.guard.Release(id, class)
	} else {
		err = e.guard.Isolate(id, class, until)
	}
	if err != nil {
		return fmt.Errorf("isolate or release %s: %w", id, err)
	}
	for _, c := range classes {
		if until.IsZero() {
			delete(e.isolated, circuitClass{id, c})
		} else {
			e.isolated[circuitClass{id, c}] = until
		}
	}
	return nil
}

// stream cuts and wakes streams, and tells their subscribers what is withheld.
func (e *effect) stream(list []market.Override) {
	for _, id := range e.exchanges {
		_, cut := e.isolated[circuitClass{id, market.ClassStream}]
		switch {
		case cut && !e.cut[id]:
			e.feed.Cut(id)
			e.cut[id] = true
		case !cut && e.cut[id]:
			e.feed.Wake(id)
			delete(e.cut, id)
		}
	}
	wanted := make(map[bookKey]bool)
	for i := range list {
		if o := &list[i]; o.Kind == market.OverrideWithhold {
			wanted[bookKey{o.Exchange, o.Pair}] = true
		}
	}
	for k := range e.withheld {
		if !wanted[k] {
			e.feed.Withhold(k.exchange, k.pair, false)
			delete(e.withheld, k)
		}
	}
	for k := range wanted {
		if !e.withheld[k] {
			e.feed.Withhold(k.exchange, k.pair, true)
			e.withheld[k] = true
		}
	}
}
