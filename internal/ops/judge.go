package ops

import (
	"time"

	"exchange-gateway/internal/market"
)

// view is one exchange as read, and what is made of it.
type view struct {
	id          market.ExchangeID
	now         time.Time
	circuits    []market.CircuitStatus
	gates       []market.GateStatus
	budgets     []market.BudgetStatus
	overrides   []market.Override
	maintenance []market.Maintenance
	streams     *Streams
	oldest      time.Duration // of the stale books that clients read now, zero without one

	state   State
	level   Level
	since   time.Time
	worst   *market.CircuitStatus // the circuit that state is about, nil if it is about none
	why     string                // without capital letter and full stop, "" if all is well
	clients string                // likewise
}

// judge finds the worst that is true, by the order of the states, and puts it into words.
func (v *view) judge(h *history) {
	v.state, v.level = StateClosed, LevelOK
	switch {
	case v.ban() != nil:
		g := v.ban()
		v.state, v.level, v.since = StateBanned, LevelDegraded, h.banned(g)
	case v.isolation() != nil:
		v.state, v.level, v.since = StateIsolated, LevelNotice, v.isolation().Since
	case v.pick(market.CircuitOpen, h):
		v.state, v.level = StateOpen, v.circuitLevel()
	case v.pick(market.CircuitHalfOpen, h):
		v.state, v.level = StateHalfOpen, v.circuitLevel()
	case v.withholding() != nil:
		v.state, v.level, v.since = StateWithheld, LevelNotice, v.withholding().Since
	case v.window() != nil:
		v.state, v.level, v.since = StateMaintenance, LevelNotice, v.window().From
	case len(v.gates) > 0:
		v.state, v.level = StateLimited, LevelNotice
	default:
		v.since = h.quiet(v.id, v.now)
	}
	// An isolation is wanted, but what else is wrong beside it counts as without it.
	if v.state == StateIsolated && !v.dead() && v.troubled(market.CircuitOpen, market.CircuitHalfOpen) && v.circuitLevel() == LevelDegraded {
		v.level = LevelDegraded
	}
	v.why, v.clients = v.whyText(h), v.clientsText()
}

// ban is the gate that shuts the whole exchange for longest, nil if none does.
func (v *view) ban() *market.GateStatus {
	var longest *market.GateStatus
	for i := range v.gates {
		if g := &v.gates[i]; whole(g.Scope.Kind) && (longest == nil || g.Until.After(longest.Until)) {
			longest = g
		}
	}
	return longest
}

// isolation is the isolation that reaches furthest: of the whole exchange before one of a class, nil if there is none.
func (v *view) isolation() *market.Override {
	return v.override(market.OverrideIsolate)
}

// withholding is the withholding that reaches furthest, nil if there is none.
func (v *view) withholding() *market.Override {
	return v.override(market.OverrideWithhold)
}

// override is the first of a kind: those of a whole exchange are sorted before the others.
func (v *view) override(kind market.OverrideKind) *market.Override {
	for i := range v.overrides {
		if v.overrides[i].Kind == kind {
			return &v.overrides[i]
		}
	}
	return nil
}

// window is the maintenance that is under way, nil if there is none.
func (v *view) window() *market.Maintenance {
	for i := range v.maintenance {
		if v.maintenance[i].Active(v.now) {
			return &v.maintenance[i]
		}
	}
	return nil
}

// pick takes the circuit in a state that matters most, false if there is none: what clients feel first, by the order of the
// classes, and of those the one that has been so for longest.
func (v *view) pick(state market.CircuitState, h *history) bool {
	for _, class := range []market.Class{market.ClassMarketData, market.ClassAccount, market.ClassStream, market.ClassReference} {
		for i := range v.circuits {
			st := &v.circuits[i]
			if st.State != state || st.ID.Class != class {
				continue
			}
			if since := h.open(st); v.worst == nil || since.Before(v.since) {
				v.worst, v.since = st, since
			}
		}
		if v.worst != nil {
			return true
		}
	}
	return false
}

// circuitLevel tells trouble that clients feel (no live books, no balances) from trouble that they do not.
func (v *view) circuitLevel() Level {
	for i := range v.circuits {
		st := &v.circuits[i]
		if st.State != market.CircuitClosed && (st.ID.Class == market.ClassMarketData || st.ID.Class == market.ClassAccount) {
			return LevelDegraded
		}
	}
	return LevelNotice
}

func (v *view) troubled(states ...market.CircuitState) bool {
	for i := range v.circuits {
		for _, s := range states {
			if v.circuits[i].State == s {
				return true
			}
		}
	}
	return false
}

// class is the worst state of the circuits of a class, and whether it is isolated.
func (v *view) class(class market.Class) (worst market.CircuitState, isolated bool) {
	worst = market.CircuitClosed
	for i := range v.circuits {
		st := &v.circuits[i]
		if st.ID.Class != class {
			continue
		}
		if st.State == market.CircuitOpen || (st.State == market.CircuitHalfOpen && worst == market.CircuitClosed) {
			worst = st.State
		}
	}
	for i := range v.overrides {
		if o := &v.overrides[i]; o.Kind == market.OverrideIsolate && (o.Class == "" || o.Class == class) {
			isolated = true
		}
	}
	return worst, isolated
}

// dead tells whether no request for a book is answered by the exchange now.
func (v *view) dead() bool {
	worst, isolated := v.class(market.ClassMarketData)
	return v.ban() != nil || isolated || worst != market.CircuitClosed
}
