package market

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// EventID is "boot-seq".
func EventID(boot string, seq uint64) string { return fmt.Sprintf("%s-%d", boot, seq) }

// eventDoc is an event as it is written down and sent: one shape for history, API and dashboard. Absent is null or left
// out; times are RFC 3339 in UTC.
type eventDoc struct {
	ID       string     `json:"id"`
	At       time.Time  `json:"at"`
	Type     EventType  `json:"type"`
	Exchange ExchangeID `json:"exchange,omitempty"`

	Class  Class        `json:"class,omitempty"`
	Family string       `json:"family,omitempty"`
	From   CircuitState `json:"from,omitempty"`
	To     CircuitState `json:"to,omitempty"`
	Cause  Cause        `json:"cause,omitempty"`
	Window *windowDoc   `json:"window,omitempty"`

	Scope *scopeDoc  `json:"scope,omitempty"`
	Kind  string     `json:"kind,omitempty"` // of the last failure, or why the gate closed
	Until *time.Time `json:"until,omitempty"`

	Verb     Verb         `json:"verb,omitempty"`
	Override OverrideKind `json:"override,omitempty"`
	Actor    string       `json:"actor,omitempty"`
	Reason   string       `json:"reason,omitempty"`
	Symbol   string       `json:"symbol,omitempty"`
	Failed   string       `json:"failed,omitempty"`
	Since    *time.Time   `json:"since,omitempty"`

	Note      string `json:"note,omitempty"`
	Announced bool   `json:"announced,omitempty"`
}

type windowDoc struct {
	Settled     int `json:"settled"`
	Failures    int `json:"failures"`
	Slow        int `json:"slow"`
	Consecutive int `json:"consecutive"`
}

type scopeDoc struct {
	Kind ScopeKind `json:"kind"`
	Name string    `json:"name,omitempty"` // never of an account: whose it is, is nobody's business
}

// MarshalJSON writes the event as history, API and dashboard know it.
func (e Event) MarshalJSON() ([]byte, error) {
	d := eventDoc{ID: e.ID(), At: e.At.UTC(), Type: e.Type, Exchange: e.Exchange, Until: instant(e.Until)}
	switch e.Type {
	case EventCircuit:
		d.Exchange, d.Class, d.Family = e.Circuit.Exchange, e.Circuit.Class, e.Circuit.Family
		d.From, d.To, d.Cause = e.From, e.To, e.Cause
		w := windowDoc(e.Window)
		d.Window = &w
		d.Kind = named(e.Kind)
	case EventGate:
		d.Exchange, d.Kind = e.Gate.Exchange, named(e.Kind)
		d.Scope = &scopeDoc{Kind: e.Gate.Scope.Kind}
		if e.Gate.Scope.Kind != ScopeAccount {
			d.Scope.Name = e.Gate.Scope.Name
		}
	case EventAction:
		a := &e.Action
		d.Verb, d.Actor, d.Reason, d.Class, d.Symbol, d.Failed = a.Verb, a.Actor, a.Reason, a.Class, symbol(a.Pair), a.Failed
	case EventOverride:
		o := &e.Override
		d.Exchange, d.Override, d.Class, d.Symbol = o.Exchange, o.Kind, o.Class, symbol(o.Pair)
		d.Actor, d.Reason, d.Since, d.Until = o.Actor, o.Reason, instant(o.Since), instant(o.Until)
	case EventMaintenance:
		m := &e.Maintenance
		d.Exchange, d.Since, d.Until, d.Note, d.Announced = m.Exchange, instant(m.From), instant(m.Until), m.Note, m.Announced
	}
	return json.Marshal(d)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (e *Event) UnmarshalJSON(text []byte) error {
	var d eventDoc
	if err := json.Unmarshal(text, &d); err != nil {
		return fmt.Errorf("event: %w", err)
	}
	var err error
	if e.Boot, e.Seq, err = ParseEventID(d.ID); err != nil {
		return err
	}
	kind, pair := Kind(0), Pair{}
	if d.Kind != "" {
		if kind, err = parseKind(d.Kind); err != nil {
			return err
		}
	}
	if d.Symbol != "" {
		if pair, err = ParsePair(d.Symbol); err != nil {
			return fmt.Errorf("event: %w", err)
		}
	}
	*e = Event{Boot: e.Boot, Seq: e.Seq, At: d.At, Type: d.Type, Until: moment(d.Until)}
	switch d.Type {
	case EventCircuit:
		e.Circuit = CircuitID{Exchange: d.Exchange, Class: d.Class, Family: d.Family}
		e.From, e.To, e.Cause, e.Kind = d.From, d.To, d.Cause, kind
		if d.Window != nil {
			e.Window = Window(*d.Window)
		}
	case EventGate:
		e.Kind = kind
		e.Gate = GateStatus{Exchange: d.Exchange, Kind: kind, Until: e.Until}
		if d.Scope != nil {
			e.Gate.Scope = Scope(*d.Scope)
		}
	case EventAction:
		e.Exchange = d.Exchange
		e.Action = Action{Verb: d.Verb, Actor: d.Actor, Reason: d.Reason, Class: d.Class, Pair: pair, Failed: d.Failed}
	case EventOverride:
		e.Override = Override{
			Kind: d.Override, Exchange: d.Exchange, Class: d.Class, Pair: pair, Actor: d.Actor, Reason: d.Reason,
			Since: moment(d.Since), Until: e.Until,
		}
	case EventMaintenance:
		e.Exchange = d.Exchange
		e.Maintenance = Maintenance{Exchange: d.Exchange, From: moment(d.Since), Until: e.Until, Note: d.Note, Announced: d.Announced}
	default:
		return fmt.Errorf("event: unknown type %.40q", d.Type)
	}
	return nil
}

// ParseEventID reads "boot-seq".
func ParseEventID(text string) (boot string, seq uint64, err error) {
	boot, number, ok := strings.Cut(text, "-")
	if ok && boot != "" && len(text) <= 64 {
		if _, err := fmt.Sscanf(number, "%d", &seq); err == nil && EventID(boot, seq) == text {
			return boot, seq, nil
		}
	}
	return "", 0, fmt.Errorf("%.64q is not an event's id: it reads BOOT-NUMBER", text)
}

func parseKind(text string) (Kind, error) {
	for _, k := range Kinds() {
		if k.String() == text {
			return k, nil
		}
	}
	return KindNone, fmt.Errorf("event: unknown kind %.40q", text)
}

func named(k Kind) string {
	if k == KindNone {
		return ""
	}
	return k.String()
}

func symbol(p Pair) string {
	if p.IsZero() {
		return ""
	}
	return p.String()
}

func instant(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func moment(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}
