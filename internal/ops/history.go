package ops

import (
	"sync"
	"time"

	"exchange-gateway/internal/market"
)

// history is what the Board remembers of events, to say since when an exchange is as it is: a circuit that is probed every
// minute has been in trouble since it left closed, not since its last probe.
type history struct {
	boot string // events of earlier lives say nothing about circuits and gates of this one

	mu    sync.Mutex
	left  map[market.CircuitID]departure  // of the circuits that are not closed
	gates map[gateKey]gateSpan            // of the gates that shut the whole exchange
	calm  map[market.ExchangeID]time.Time // when the last trouble or override of an exchange ended
}

type gateKey struct {
	exchange market.ExchangeID
	kind     market.ScopeKind
}

type gateSpan struct{ since, until time.Time }

// departure is when and why a circuit left closed.
type departure struct {
	at  time.Time
	why string
}

// note takes an event in. The maps hold one entry per circuit, exchange and whole gate at most.
func (h *history) note(ev *market.Event) {
	if ev.Boot != h.boot {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.left == nil {
		h.left = make(map[market.CircuitID]departure)
		h.gates = make(map[gateKey]gateSpan)
		h.calm = make(map[market.ExchangeID]time.Time)
	}
	switch ev.Type {
	case market.EventCircuit:
		if ev.To == market.CircuitClosed {
			delete(h.left, ev.Circuit)
			h.calm[ev.Circuit.Exchange] = ev.At
		} else if _, known := h.left[ev.Circuit]; !known {
			h.left[ev.Circuit] = departure{ev.At, market.CauseText(ev.Cause, ev.Window, ev.Kind)}
		}
	case market.EventGate:
		if !whole(ev.Gate.Scope.Kind) {
			return
		}
		k := gateKey{ev.Gate.Exchange, ev.Gate.Scope.Kind}
		span := h.gates[k]
		if !ev.At.Before(span.until) {
			span.since = ev.At
		}
		span.until = later(span.until, ev.Until)
		h.gates[k] = span
	case market.EventOverride:
		h.calm[ev.Override.Exchange] = ev.At
	case market.EventAction:
		if ev.Action.Verb == market.VerbRelease {
			h.calm[ev.Exchange] = ev.At
		}
	case market.EventMaintenance:
		if end := ev.Maintenance.Until; !end.IsZero() && !end.After(ev.At) {
			h.calm[ev.Exchange] = ev.At
		}
	}
}

// departed is when and why a circuit left closed; what the circuit itself says, if its events were not heard.
func (h *history) departed(st *market.CircuitStatus) departure {
	h.mu.Lock()
	defer h.mu.Unlock()
	if d, known := h.left[st.ID]; known {
		return d
	}
	return departure{st.Since, market.CauseText(st.Cause, st.Window, st.LastKind)}
}

// banned is since when a gate is closed, zero if that is not known.
func (h *history) banned(g *market.GateStatus) time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.gates[gateKey{g.Exchange, g.Scope.Kind}].since
}

// quiet is since when an exchange is well, zero if it was always so.
func (h *history) quiet(id market.ExchangeID, now time.Time) time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := h.calm[id]
	for k, span := range h.gates {
		if k.exchange == id && !span.until.After(now) {
			at = later(at, span.until)
		}
	}
	return at
}
