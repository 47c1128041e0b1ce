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
	lately      Lately
	oldest      time.Duration // of the stale books that clients read now, zero without one

	answers AnsweringStatus
	state   State
	level   Level
	since   time.Time
	worst   *market.CircuitStatus // the circuit that matters most of those that are not closed, nil if all are
	why     string                // without capital letter and full stop, "" if all is well
	clients string                // likewise
}

// judge finds the most severe state that applies, by the order of the states, and puts it into words. How bad it is follows
// from what clients get; what is in force or under way is at least a notice.
func (v *view) judge(h *history) {
	v.answers = v.answering()
	v.state, v.level = StateClosed, worse(LevelNotice, v.answersLevel())
	ban, isolation, worst, withholding, window := v.ban(), v.isolation(), v.trouble(h), v.withholding(), v.window()
	switch {
	case ban != nil:
		v.state, v.since = StateBanned, h.banned(ban)
	case isolation != nil:
		v.state, v.since = StateIsolated, isolation.Since
	case worst != nil && !v.unasked():
		v.state, v.since = StateOpen, h.departed(worst).at
		if worst.State == market.CircuitHalfOpen {
			v.state = StateHalfOpen
		}
	case withholding != nil:
		v.state, v.since = StateWithheld, withholding.Since
	case window != nil:
		v.state, v.since = StateMaintenance, window.From
	case len(v.gates) > 0:
		v.state = StateLimited
	case v.unasked():
		v.state, v.level, v.since = StateNotAsked, LevelOK, v.lately.AskedAt
	case v.answersLevel() != LevelOK:
		v.state = StateFailing
	default:
		v.level, v.since = LevelOK, h.quiet(v.id, v.now)
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
