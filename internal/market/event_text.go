package market

import (
	"fmt"
	"strings"
	"time"
)

// Text is the event in words, one line without its time: for terminals, messages and readers who do not know our fields.
func (e *Event) Text() string {
	switch e.Type {
	case EventCircuit:
		return e.circuitText()
	case EventGate:
		return fmt.Sprintf("%s: nothing is sent to %s before %s (%s)", e.Gate.Exchange, scopeText(e.Gate.Scope), clock(e), e.Kind)
	case EventAction:
		return e.actionText()
	case EventOverride:
		o := &e.Override
		word := "isolation"
		if o.Kind == OverrideWithhold {
			word = "withholding"
		}
		return fmt.Sprintf("%s: the %s by %s has ended (%s)", aimText(o.Exchange, o.Class, o.Pair), word, o.Actor, o.Reason)
	case EventMaintenance:
		return e.maintenanceText()
	}
	return string(e.Type)
}

// Ending is a note that an override ends soon, in minutes: its seconds matter.
func (o *Override) Ending() string {
	word := "isolation"
	if o.Kind == OverrideWithhold {
		word = "withholding"
	}
	return fmt.Sprintf("%s: the %s by %s ends at %s (%s)", aimText(o.Exchange, o.Class, o.Pair), word, o.Actor, o.Until.UTC().Format("15:04:05 UTC"), o.Reason)
}

func (e *Event) circuitText() string {
	s := fmt.Sprintf("%s %s: %s", e.Circuit.Exchange, ClassText(e.Circuit.Class), CircuitText(e.To))
	if e.Circuit.Family != "" {
		s = fmt.Sprintf("%s %s (%s): %s", e.Circuit.Exchange, ClassText(e.Circuit.Class), e.Circuit.Family, CircuitText(e.To))
	}
	if why := CauseText(e.Cause, e.Window, e.Kind); why != "" {
		s += ", " + why
	}
	if !e.Until.IsZero() && e.To == CircuitOpen {
		s += ", next try at " + clock(e)
	}
	return s
}

// CircuitText is what a circuit finds, as people say it.
func CircuitText(s CircuitState) string {
	switch s {
	case CircuitClosed:
		return "answers"
	case CircuitOpen:
		return "failing"
	case CircuitHalfOpen:
		return "trying"
	}
	return string(s)
}

// CauseText is why a circuit changed, in words and with the counts; "" where the state says it all.
func CauseText(c Cause, w Window, last Kind) string {
	kind := ""
	if last != KindNone {
		kind = fmt.Sprintf(" (%s)", last)
	}
	switch c {
	case CauseNone:
		return ""
	case CauseConsecutive:
		return fmt.Sprintf("%d failures in a row%s", w.Consecutive, kind)
	case CauseRate:
		return fmt.Sprintf("%d of %d calls failed%s", w.Failures, w.Settled, kind)
	case CauseSlow:
		return fmt.Sprintf("%d of %d calls were slow", w.Slow, w.Settled)
	case CauseProbeStarted:
		return "a probe is under way"
	case CauseProbeFailed:
		return "the probe failed" + kind
	case CauseProbeLost:
		return "the probe never ended"
	case CauseProbeSucceeded:
		return "the probe succeeded"
	}
	return string(c)
}

func (e *Event) actionText() string {
	a := &e.Action
	s := fmt.Sprintf("%s: %s", a.Actor, a.Verb)
	if e.Exchange != "" {
		s += " " + aimText(e.Exchange, a.Class, a.Pair)
	}
	if a.Failed != "" {
		return s + " failed (" + a.Failed + ")"
	}
	if !e.Until.IsZero() {
		s += " until " + clock(e)
	}
	return s + " (" + a.Reason + ")"
}

func (e *Event) maintenanceText() string {
	m := &e.Maintenance
	who := "maintenance is configured"
	if m.Announced {
		who = "the exchange announces maintenance"
	}
	s := fmt.Sprintf("%s: %s", m.Exchange, who)
	if !m.From.IsZero() {
		s += " from " + m.From.UTC().Format("2 Jan 15:04 UTC")
	}
	if !m.Until.IsZero() {
		s += " until " + m.Until.UTC().Format("2 Jan 15:04 UTC")
	}
	if !m.Until.IsZero() && !m.Until.After(e.At) {
		s = fmt.Sprintf("%s: the maintenance has ended", m.Exchange)
	}
	if m.Note != "" {
		s += " (" + m.Note + ")"
	}
	return s
}

// ClassText is a class as people say it.
func ClassText(c Class) string { return strings.ReplaceAll(string(c), "_", " ") }

// aimText is what an order or an override is about.
func aimText(id ExchangeID, c Class, p Pair) string {
	switch {
	case c != "":
		return string(id) + " " + ClassText(c)
	case !p.IsZero():
		return string(id) + " " + p.String()
	}
	return string(id)
}

func scopeText(s Scope) string {
	text := ""
	switch s.Kind {
	case ScopeExchange:
		return "the exchange"
	case ScopeIP:
		return "the exchange from this address"
	case ScopeEndpoint:
		text = "the endpoint"
	case ScopePublic:
		text = "the public API"
	case ScopeAccount:
		return "an account"
	case ScopeSymbol:
		text = "the pair"
	}
	if s.Name != "" {
		text += " " + s.Name
	}
	return text
}

// clock is when the event's hold ends, as people say it: without the day where that is the event's own, or so near that
// nobody mistakes it.
func clock(e *Event) string {
	until, at := e.Until.UTC(), e.At.UTC()
	if near := until.Sub(at).Abs() < 2*time.Minute; near || until.YearDay() == at.YearDay() && until.Year() == at.Year() {
		return until.Format("15:04:05 UTC")
	}
	return until.Format("2 Jan 15:04 UTC")
}
