package market

import "time"

// Event is one thing that happened to circuits, gates and overrides, or that an operator did. Events are numbered without
// holes within a boot, and ordered. Which fields are set depends on Type; the others are zero.
type Event struct {
	Boot string // identifies the process start
	Seq  uint64 // 1 is the first of a boot
	At   time.Time
	Type EventType

	Circuit CircuitID    // of a circuit event
	From    CircuitState // of a circuit event
	To      CircuitState // of a circuit event
	Cause   Cause        // of a circuit event
	Window  Window       // of a circuit event: the counts that made it change
	Gate    GateStatus   // of a gate event
	Kind    Kind         // of the last failure, or why the gate closed
	Until   time.Time    // when the next probe or request is permitted, when the override or the maintenance ends

	Action      Action      // of an action event, which is written down before it has any effect
	Override    Override    // of an override event: the one that ended
	Maintenance Maintenance // of a maintenance event
	Exchange    ExchangeID  // of an action or maintenance event, "" where it is about none
}

// ID is the event's name in streams and links: "boot-seq".
func (e *Event) ID() string { return EventID(e.Boot, e.Seq) }

// About is the exchange that the event is about, "" if it is about none.
func (e *Event) About() ExchangeID {
	switch e.Type {
	case EventCircuit:
		return e.Circuit.Exchange
	case EventGate:
		return e.Gate.Exchange
	case EventOverride:
		return e.Override.Exchange
	case EventAction, EventMaintenance:
	}
	return e.Exchange
}

// EventType tells the kinds of event apart.
type EventType string

// The closed set of event types.
const (
	EventCircuit     EventType = "circuit"     // a circuit changed its state
	EventGate        EventType = "gate"        // a gate closed, or its end moved
	EventAction      EventType = "action"      // an operator asked for something: the audit
	EventOverride    EventType = "override"    // an isolation or a withholding ended by itself
	EventMaintenance EventType = "maintenance" // a maintenance window was announced, began or ended
)

// EventTypes lists every type of event.
func EventTypes() []EventType {
	return []EventType{EventCircuit, EventGate, EventAction, EventOverride, EventMaintenance}
}

// Verb is what an operator asked for.
type Verb string

// The closed set of verbs.
const (
	VerbIsolate  Verb = "isolate"
	VerbRelease  Verb = "release"
	VerbProbe    Verb = "probe"
	VerbWithhold Verb = "withhold"
	VerbPurge    Verb = "purge"
	VerbReload   Verb = "reload"
)

// Verbs lists every verb.
func Verbs() []Verb {
	return []Verb{VerbIsolate, VerbRelease, VerbProbe, VerbWithhold, VerbPurge, VerbReload}
}

// MaxFailed bounds Action.Failed, in bytes.
const MaxFailed = 200

// Action is one line of the audit: who asked for what, and why. An order that was written down and then did not come to its
// effect has a second line, with Failed.
type Action struct {
	Verb   Verb
	Actor  string // the name of the key, or "local:NAME" where no key exists
	Reason string
	Class  Class  // isolate, release, probe: "" means every class
	Pair   Pair   // withhold, release, purge: zero means the whole exchange
	Failed string // why it has no effect, one line of at most MaxFailed bytes; "" when it was asked for
}

// OverrideKind is what an operator put in force.
type OverrideKind string

// The closed set of overrides.
const (
	OverrideIsolate  OverrideKind = "isolate"  // the exchange gets no request at all, probes and streams included
	OverrideWithhold OverrideKind = "withhold" // reads answer 503 `withheld`; the exchange is asked as before
)

// Override is an operator's word on an exchange. It stands beside what the circuits computed and ends by itself.
type Override struct {
	Kind     OverrideKind
	Exchange ExchangeID
	Class    Class // of an isolation: "" means every class
	Pair     Pair  // of a withholding: zero means the whole exchange
	Actor    string
	Reason   string
	Since    time.Time
	Until    time.Time // wall clock, as it was given

	// Ends is Until on this process' clock (package clock), as it was anchored when the override was given or read. It is not
	// kept. Zero: Until was not anchored.
	Ends time.Time
}

// End is when the override ends: what decides is anchored where it can be.
func (o *Override) End() time.Time {
	if !o.Ends.IsZero() {
		return o.Ends
	}
	return o.Until
}

// Same tells whether two overrides are about the same thing, so that the later one takes the place of the earlier.
func (o *Override) Same(p *Override) bool {
	return o.Kind == p.Kind && o.Exchange == p.Exchange && o.Class == p.Class && o.Pair == p.Pair
}

// Maintenance is a time in which an exchange says, or the configuration says, that it is closed.
type Maintenance struct {
	Exchange  ExchangeID
	From      time.Time // zero: it is under way and nobody said since when
	Until     time.Time // zero if unknown
	Note      string    // the exchange's title or the configured words, at most 200 bytes
	Announced bool      // by the exchange; otherwise configured
}

// Active tells whether the window is open.
func (m *Maintenance) Active(now time.Time) bool {
	return !now.Before(m.From) && (m.Until.IsZero() || now.Before(m.Until))
}
