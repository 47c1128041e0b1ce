package ops

import (
	"fmt"
	"strings"

	"exchange-gateway/internal/market"
)

// What people read: sentences about an exchange for somebody who is tired and was not there when it began.

// whyText is why an exchange is in its state, "" if all is well.
func (v *view) whyText(h *history) string {
	switch v.state {
	case StateBanned:
		g := v.ban()
		return fmt.Sprintf("%s until %s: no request is sent before", banText(g), clockTime(g.Until, v.now)) + v.lasting()
	case StateIsolated:
		return v.isolatedText(h)
	case StateOpen, StateHalfOpen:
		return v.troubleText(v.worst, h) + v.alsoText(h)
	case StateWithheld:
		return v.withheldText()
	case StateMaintenance:
		return maintenanceText(v)
	case StateLimited:
		return v.limitedText()
	case StateClosed:
	}
	return ""
}

// lasting is ", for 2 min 14 s so far" where that is known.
func (v *view) lasting() string {
	if v.since.IsZero() {
		return ""
	}
	return ", for " + span(v.now.Sub(v.since)) + " so far"
}

func banText(g *market.GateStatus) string {
	switch g.Kind {
	case market.KindRestricted:
		return "it does not serve our place on earth, and is not asked again"
	case market.KindRateLimited:
		return "it refuses our address for asking too often"
	default:
		return fmt.Sprintf("it shut our address out (%s)", g.Kind)
	}
}

// troubleText is one circuit: "market data open for 2 min 14 s after 5 failures in a row (timeout)".
func (v *view) troubleText(st *market.CircuitStatus, h *history) string {
	name := className(st.ID.Class)
	if st.ID.Family != "" {
		name += " (" + st.ID.Family + ")"
	}
	length := span(v.now.Sub(h.open(st)))
	cause := causeText(st)
	if st.State == market.CircuitHalfOpen {
		return fmt.Sprintf("%s is being probed, after %s of trouble", name, length)
	}
	text := fmt.Sprintf("%s open for %s", name, length)
	if cause != "" {
		text += " after " + cause
	}
	if st.ProbeDue {
		text += "; the next call will probe"
	}
	return text
}

// alsoText names the other circuits that are in trouble.
func (v *view) alsoText(h *history) string {
	var also []string
	for i := range v.circuits {
		if st := &v.circuits[i]; st != v.worst && st.State != market.CircuitClosed {
			name := className(st.ID.Class)
			if st.ID.Family != "" {
				name += " (" + st.ID.Family + ")"
			}
			also = append(also, fmt.Sprintf("%s %s for %s", name, stateText(st.State), span(v.now.Sub(h.open(st)))))
		}
	}
	if len(also) == 0 {
		return ""
	}
	return "; also " + joined(also)
}

func stateText(s market.CircuitState) string {
	switch s {
	case market.CircuitOpen:
		return "open"
	case market.CircuitHalfOpen:
		return "being probed"
	case market.CircuitClosed:
		return "closed"
	}
	return string(s)
}

// causeText is why a circuit changed last, with the counts that made it; "" if it never did.
func causeText(st *market.CircuitStatus) string {
	w, kind := st.Window, ""
	if st.LastKind != market.KindNone {
		kind = " (" + st.LastKind.String() + ")"
	}
	switch st.Cause {
	case market.CauseConsecutive:
		if st.State == market.CircuitOpen {
			return fmt.Sprintf("%d failures in a row%s", w.Consecutive, kind)
		}
		return "failures in a row" + kind
	case market.CauseRate:
		return fmt.Sprintf("%d failures of %d calls%s", w.Failures, w.Settled, kind)
	case market.CauseSlow:
		return fmt.Sprintf("%d slow answers of %d calls", w.Slow, w.Settled)
	case market.CauseProbeStarted:
		return "a probe was sent"
	case market.CauseProbeFailed:
		return fmt.Sprintf("%s failed%s", probes(st.Trips-1), kind)
	case market.CauseProbeLost:
		return "a probe that never ended"
	case market.CauseProbeSucceeded:
		return "a probe that was answered"
	case market.CauseNone:
	}
	return ""
}

// probes is how many probes failed: a circuit opens once by itself and again with each.
func probes(n int) string {
	if n <= 1 {
		return "a probe"
	}
	return fmt.Sprintf("%d probes in a row", n)
}

func (v *view) isolatedText(h *history) string {
	o := v.isolation()
	text := fmt.Sprintf("%s isolated until %s by %s: %s", isolatedWhat(o), clockTime(o.Until, v.now), o.Actor, o.Reason)
	if v.pick(market.CircuitOpen, h) || v.pick(market.CircuitHalfOpen, h) {
		text += fmt.Sprintf("; beside that, %s", v.troubleText(v.worst, h))
	}
	v.worst, v.since = nil, o.Since
	return text
}

func isolatedWhat(o *market.Override) string {
	if o.Class == "" {
		return "all of it is"
	}
	return className(o.Class) + " is"
}

func (v *view) withheldText() string {
	var pairs []string
	for i := range v.overrides {
		o := &v.overrides[i]
		if o.Kind == market.OverrideWithhold && !o.Pair.IsZero() {
			pairs = append(pairs, o.Pair.String())
		}
	}
	o := v.withholding()
	what := "all of it is"
	switch {
	case o.Pair.IsZero():
	case len(pairs) == 1:
		what = pairs[0] + " is"
	case len(pairs) <= 3:
		what = joined(pairs) + " are"
	default:
		what = fmt.Sprintf("%s and %d other pairs are", pairs[0], len(pairs)-1)
	}
	return fmt.Sprintf("%s withheld until %s by %s: %s", what, clockTime(o.Until, v.now), o.Actor, o.Reason)
}

func maintenanceText(v *view) string {
	m := v.window()
	text := "maintenance that it announced is under way"
	if !m.Announced {
		text = "configured maintenance is under way"
	}
	if !m.Until.IsZero() {
		text += " until " + clockTime(m.Until, v.now)
	}
	if m.Note != "" {
		text += ": " + m.Note
	}
	return text
}

func (v *view) limitedText() string {
	latest, scopes := v.gates[0].Until, []string{}
	for i := range v.gates {
		g := &v.gates[i]
		latest = later(latest, g.Until)
		name := string(g.Scope.Kind)
		if g.Scope.Kind != market.ScopeAccount && g.Scope.Name != "" {
			name += " " + g.Scope.Name
		}
		if text := fmt.Sprintf("%s (%s)", name, g.Kind); len(scopes) < 3 {
			scopes = append(scopes, text)
		}
	}
	text := joined(scopes)
	if more := len(v.gates) - len(scopes); more > 0 {
		text = fmt.Sprintf("%s and %d more", strings.Join(scopes, ", "), more)
	}
	return fmt.Sprintf("not asked until %s: %s", clockTime(latest, v.now), text)
}

// clientsText is what clients get now.
func (v *view) clientsText() string {
	var said []string
	if o := v.withholding(); o != nil {
		if o.Pair.IsZero() {
			return "books, prices, 24 h statistics and balances answer 503 withheld"
		}
		said = append(said, "the withheld pairs answer 503 withheld")
	}
	if v.dead() {
		said = append(said, v.staleBooks())
	} else if s, isolated := v.class(market.ClassStream); isolated || s != market.CircuitClosed {
		said = append(said, "books are live by request; streams are stale")
	}
	switch worst, isolated := v.class(market.ClassAccount); {
	case v.ban() != nil:
		said = append(said, "balances refused")
	case isolated:
		said = append(said, "balances answer 503 isolated")
	case worst == market.CircuitHalfOpen:
		said = append(said, "balances refused until the probe is answered")
	case worst != market.CircuitClosed:
		said = append(said, "balances refused")
	}
	if len(said) == 0 {
		return "live answers"
	}
	return strings.Join(said, "; ")
}

// staleBooks is what becomes of books while the exchange is not asked for them.
func (v *view) staleBooks() string {
	_, cut := v.class(market.ClassStream)
	if live := v.streams; live != nil && live.Live > 0 && !cut {
		return fmt.Sprintf("%s stay live; other books are served stale", counted(live.Live, "streamed book", "streamed books")) + v.oldestText()
	}
	return "books are served stale" + v.oldestText()
}

func (v *view) oldestText() string {
	if v.oldest == 0 {
		return ""
	}
	return ", the oldest " + span(v.oldest) + " old"
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// headline is the worst of all exchanges, in words.
func headline(views []view) (Level, string) {
	level, dead, troubled := LevelOK, 0, 0
	var worst *view
	for i := range views {
		v := &views[i]
		if v.dead() {
			dead++
		}
		if v.level != LevelOK {
			troubled++
		}
		if worst == nil || rank(v) > rank(worst) {
			worst = v
		}
		if severity(v.level) > severity(level) {
			level = v.level
		}
	}
	switch {
	case worst == nil:
		return LevelOK, "No exchange is enabled."
	case troubled == 0:
		return LevelOK, fmt.Sprintf("All is well: %s.", counted(len(views), "exchange answers", "exchanges answer"))
	}
	if dead == len(views) {
		level = LevelDown
	}
	text := string(worst.id) + ": " + worst.why + "; " + worst.clients + "."
	switch {
	case level == LevelDown && len(views) > 1:
		text = "No exchange answers. " + text
	case troubled > 1:
		text = fmt.Sprintf("%d of %d exchanges are not as usual. ", troubled, len(views)) + text
	}
	return level, text
}

func severity(l Level) int {
	switch l {
	case LevelOK:
		return 0
	case LevelNotice:
		return 1
	case LevelDegraded:
		return 2
	case LevelDown:
		return 3
	}
	return 0
}

// rank orders exchanges by how bad they are: by level, then by state.
func rank(v *view) int {
	states := []State{StateClosed, StateLimited, StateMaintenance, StateWithheld, StateHalfOpen, StateOpen, StateIsolated, StateBanned}
	for i, s := range states {
		if s == v.state {
			return severity(v.level)*len(states) + i
		}
	}
	return 0
}
