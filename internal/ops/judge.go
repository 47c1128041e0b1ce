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
	worst   *market.CircuitStatus // the circuit that matters most of those that are not closed, nil if all are
	why     string                // without capital letter and full stop, "" if all is well
	clients string                // likewise
}

// judge finds the worst that is true, by the order of the states, and puts it into words.
func (v *view) judge(h *history) {
	v.state, v.level = StateClosed, LevelOK
	ban, isolation, worst, withholding, window := v.ban(), v.isolation(), v.trouble(h), v.withholding(), v.window()
	switch {
	case ban != nil:
		v.state, v.level, v.since = StateBanned, LevelDegraded, h.banned(ban)
	case isolation != nil:
		// It is wanted; trouble that is not isolated counts as without it.
		v.state, v.level, v.since = StateIsolated, worse(LevelNotice, v.felt()), isolation.Since
	case worst != nil:
		v.state, v.level, v.since = StateOpen, worse(LevelNotice, v.felt()), h.departed(worst).at
		if worst.State == market.CircuitHalfOpen {
			v.state = StateHalfOpen
		}
	case withholding != nil:
		v.state, v.level, v.since = StateWithheld, LevelNotice, withholding.Since
	case window != nil:
		v.state, v.level, v.since = StateMaintenance, LevelNotice, window.From
	case len(v.gates) > 0:
		v.state, v.level = StateLimited, v.limitedLevel()
	default:
		v.since = h.quiet(v.id, v.now)
	}
	v.worst = worst
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

// trouble is the circuit that matters most of those that are not closed, nil if all are: an open one before one that is being
// probed, then what clients feel first, by the order of the classes, then the one that has been so for longest.
func (v *view) trouble(h *history) *market.CircuitStatus {
	for _, state := range []market.CircuitState{market.CircuitOpen, market.CircuitHalfOpen} {
		for _, class := range []market.Class{market.ClassMarketData, market.ClassAccount, market.ClassStream, market.ClassReference} {
			var first *market.CircuitStatus
			for i := range v.circuits {
				st := &v.circuits[i]
				if st.State == state && st.ID.Class == class && (first == nil || h.departed(st).at.Before(h.departed(first).at)) {
					first = st
				}
			}
			if first != nil {
				return first
			}
		}
	}
	return nil
}

// felt is degraded if there is trouble that clients feel and nobody wanted: no answers about books, or none about balances.
// Without streams and reference data they still get live answers.
func (v *view) felt() Level {
	for i := range v.circuits {
		st := &v.circuits[i]
		_, isolated := v.class(st.ID.Class)
		if st.State != market.CircuitClosed && !isolated && (st.ID.Class == market.ClassMarketData || st.ID.Class == market.ClassAccount) {
			return LevelDegraded
		}
	}
	return LevelOK
}

// limitedLevel tells gates that many clients feel, of an endpoint or of all public data, from those of one account or pair.
func (v *view) limitedLevel() Level {
	for i := range v.gates {
		if k := v.gates[i].Scope.Kind; k == market.ScopePublic || k == market.ScopeEndpoint {
			return LevelDegraded
		}
	}
	return LevelNotice
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

// dead tells whether the exchange answers no request for a book now.
func (v *view) dead() bool {
	worst, isolated := v.class(market.ClassMarketData)
	return v.ban() != nil || isolated || worst != market.CircuitClosed
}

// streaming is how many books are live by stream.
func (v *view) streaming() int {
	if v.streams == nil {
		return 0
	}
	return v.streams.Live
}
