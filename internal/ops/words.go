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
		return sentences(v.banText(), v.duringMaintenance(), v.besideIsolated(), v.besideWithheld())
	case StateIsolated:
		return sentences(v.isolatedText(h), v.besideWithheld())
	case StateOpen, StateHalfOpen:
		return sentences(v.troubleText(v.worst, h), v.alsoText(h), v.duringMaintenance(), v.besideWithheld())
	case StateWithheld:
		return v.withheldText()
	case StateMaintenance:
		return v.maintenanceText()
	case StateLimited:
		return v.limitedText()
	case StateFailing:
		return v.failingText()
	case StateNotAsked:
		return v.notAskedText()
	case StateClosed:
	}
	return ""
}

// failingText is what is wrong where no circuit, hold or operator tells.
func (v *view) failingText() string {
	l := &v.lately
	if answers := l.Live + l.Stale + l.Errors; l.Stale+l.Errors > 0 {
		return fmt.Sprintf("of %d answers in the last 2 min %d were errors and %d stale, though no call is held back", answers, l.Errors, l.Stale)
	}
	return "it did not answer when it was last asked"
}

// notAskedText says since when nobody asks.
func (v *view) notAskedText() string {
	if v.lately.AskedAt.IsZero() {
		return "not asked since the start"
	}
	return "not asked since " + clockTime(v.lately.AskedAt, v.now)
}

// besideIsolated names the isolation that a worse state hides.
func (v *view) besideIsolated() string {
	o := v.isolation()
	if o == nil {
		return ""
	}
	return fmt.Sprintf("besides, %s isolated until %s by %s", isolatedWhat(o), clockTime(o.Until, v.now), o.Actor)
}

// besideWithheld names the withholding that a worse state hides.
func (v *view) besideWithheld() string {
	if v.withholding() == nil {
		return ""
	}
	return "besides, " + v.withheldText()
}

// banText is a gate that shuts the whole exchange.
func (v *view) banText() string {
	g, reason, lasting := v.ban(), "it refuses our address", ""
	if g.Kind == market.KindRestricted {
		reason = "it does not serve our place on earth"
	} else if g.Kind == market.KindRateLimited {
		reason = "it refuses our address for asking too often"
	}
	if !v.since.IsZero() {
		lasting = ", for " + Span(v.now.Sub(v.since)) + " so far"
	}
	return fmt.Sprintf("shut until %s%s: %s (%s), and nothing is sent before", clockTime(g.Until, v.now), lasting, reason, g.Kind)
}

// duringMaintenance explains trouble by a maintenance window that is under way.
func (v *view) duringMaintenance() string {
	if v.window() == nil {
		return ""
	}
	return v.maintenanceText()
}

// troubleText is one circuit: "market data failing for 2 min 14 s, after 5 failures in a row (timeout)".
func (v *view) troubleText(st *market.CircuitStatus, h *history) string {
	left := h.departed(st)
	length := Span(v.now.Sub(left.at))
	if st.State == market.CircuitHalfOpen {
		return fmt.Sprintf("%s is being tried, after %s of failing", circuitName(st), length)
	}
	text := fmt.Sprintf("%s failing for %s", circuitName(st), length)
	if left.why != "" {
		text += ", after " + left.why
	}
	// Why it opened at first is told above; that it was tried again since is news.
	if again := market.CauseText(st.Cause, st.Window, st.LastKind); st.Cause == market.CauseProbeFailed && again != left.why {
		text = sentences(text, again)
	}
	return text
}

func circuitName(st *market.CircuitStatus) string {
	name := market.ClassText(st.ID.Class)
	if st.ID.Family != "" {
		name += " (" + st.ID.Family + ")"
	}
	return name
}

// alsoText names the other circuits that are in trouble.
func (v *view) alsoText(h *history) string {
	var also []string
	for i := range v.circuits {
		if st := &v.circuits[i]; st != v.worst && st.State != market.CircuitClosed {
			state := "failing"
			if st.State == market.CircuitHalfOpen {
				state = "being tried"
			}
			also = append(also, fmt.Sprintf("%s %s for %s", circuitName(st), state, Span(v.now.Sub(h.departed(st).at))))
		}
	}
	if len(also) == 0 {
		return ""
	}
	return "also " + joined(also)
}

func (v *view) isolatedText(h *history) string {
	o := v.isolation()
	text := fmt.Sprintf("%s isolated until %s by %s: %s", isolatedWhat(o), clockTime(o.Until, v.now), o.Actor, o.Reason)
	if v.worst != nil {
		text = sentences(text, "beside that, "+v.troubleText(v.worst, h))
	}
	return text
}

func isolatedWhat(o *market.Override) string {
	if o.Class == "" {
		return "all of it is"
	}
	return market.ClassText(o.Class) + " is"
}

func (v *view) withheldPairs() (pairs []string) {
	for i := range v.overrides {
		o := &v.overrides[i]
		if o.Kind == market.OverrideWithhold && !o.Pair.IsZero() {
			pairs = append(pairs, o.Pair.String())
		}
	}
	return pairs
}

func (v *view) withheldText() string {
	o, pairs := v.withholding(), v.withheldPairs()
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

func (v *view) maintenanceText() string {
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
	return fmt.Sprintf("limited until %s: %s", clockTime(latest, v.now), text)
}

// nextText is when it is tried next, "" where that is not known or said already.
func (v *view) nextText() string {
	if v.state != StateOpen {
		return ""
	}
	switch st := v.worst; {
	case st.ProbeDue:
		return "the next call tries it"
	case st.OpenUntil.After(v.now):
		return "next try at " + clockTime(st.OpenUntil, v.now)
	}
	return ""
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
	if v.unasked() {
		return strings.Join(append(said, v.nobodyText()), "; ")
	}
	if text := v.booksText(); text != "" {
		said = append(said, text)
	} else if s, isolated := v.class(market.ClassStream); isolated || s != market.CircuitClosed {
		said = append(said, "books are live by request; streams are stale")
	}
	switch worst, isolated := v.class(market.ClassAccount); {
	case v.ban() != nil:
		said = append(said, "balances are refused")
	case isolated:
		said = append(said, "balances answer 503 isolated")
	case worst == market.CircuitHalfOpen:
		said = append(said, "balances are refused until it answers")
	case worst != market.CircuitClosed:
		said = append(said, "balances are refused")
	}
	switch {
	case len(said) > 0:
	case len(v.gates) > 0:
		return "what is limited is stale or refused, the rest is live"
	default:
		return "live answers"
	}
	return strings.Join(said, "; ")
}

// nobodyText is what stands for the answers where nobody asks: of what would be refused nothing is told as if it were.
func (v *view) nobodyText() string {
	switch _, isolated := v.class(market.ClassMarketData); {
	case v.ban() != nil || isolated || !v.dead():
		return "nobody asks"
	}
	return "nobody asks; the next one who does finds out whether it answers"
}

// booksText is what those get who ask for books, "" if live ones.
func (v *view) booksText() string {
	l := &v.lately
	pairs, answers := l.Pairs.Live+l.Pairs.Stale+l.Pairs.None, l.Live+l.Stale+l.Errors
	switch {
	case l.Pairs.None > 0 && l.Pairs.None == pairs:
		return "no pair that is asked for can be answered: reads end in an error"
	case l.Pairs.None > 0:
		return fmt.Sprintf("%d of %d pairs that are asked for cannot be answered, the others %s", l.Pairs.None, pairs, v.othersText())
	case v.dead():
		return v.staleBooks()
	case v.state == StateLimited:
		return "" // clientsText says it
	case l.Pairs.Stale > 0 && l.Pairs.Stale == pairs:
		return "books are served stale" + v.oldestText()
	case l.Pairs.Stale > 0:
		return fmt.Sprintf("books of %d of %d pairs that are asked for are served stale%s", l.Pairs.Stale, pairs, v.oldestText())
	case answers >= allErrors && l.Errors == answers:
		return fmt.Sprintf("all of %d answers in the last 2 min were errors", answers)
	case l.Stale+l.Errors > 0 && !v.balancesRefused() && v.state == StateFailing:
		return "some answers were errors or stale"
	}
	return ""
}

// othersText is how the pairs are answered that can be.
func (v *view) othersText() string {
	if v.lately.Pairs.Live == 0 {
		return "are served stale" + v.oldestText()
	}
	return "are live or stale"
}

// staleBooks is what becomes of books while the exchange is not asked for them.
func (v *view) staleBooks() string {
	switch live := v.streaming(); {
	case live == 1:
		return "1 streamed book stays live; other books are served stale" + v.oldestText()
	case live > 1:
		return fmt.Sprintf("%d streamed books stay live; other books are served stale", live) + v.oldestText()
	}
	return "books are served stale" + v.oldestText()
}

func (v *view) oldestText() string {
	if v.oldest == 0 {
		return ""
	}
	return ", the oldest " + Span(v.oldest) + " old"
}
