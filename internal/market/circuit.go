package market

import "time"

// CircuitID names one circuit. Family is "" except where an exchange has several account APIs.
type CircuitID struct {
	Exchange ExchangeID
	Class    Class
	Family   string
}

// String is "okx/market_data" or "coinbase/account/advanced".
func (c CircuitID) String() string {
	s := string(c.Exchange) + "/" + string(c.Class)
	if c.Family != "" {
		s += "/" + c.Family
	}
	return s
}

// CircuitState is the state that a circuit computed from what it saw. An operator's isolation is not a state: it is shown
// beside it.
type CircuitState string

// The closed set of states.
const (
	CircuitClosed   CircuitState = "closed"
	CircuitOpen     CircuitState = "open"
	CircuitHalfOpen CircuitState = "half_open"
)

// CircuitStates lists every state.
func CircuitStates() []CircuitState {
	return []CircuitState{CircuitClosed, CircuitOpen, CircuitHalfOpen}
}

// Cause is why a circuit changed its state.
type Cause string

// The closed set of causes.
const (
	CauseNone           Cause = ""
	CauseConsecutive    Cause = "consecutive"     // so many failures in a row, over a while
	CauseRate           Cause = "rate"            // too large a share of settled calls failed
	CauseSlow           Cause = "slow"            // too large a share of settled calls was slow
	CauseProbeStarted   Cause = "probe_started"   // open to half-open
	CauseProbeFailed    Cause = "probe_failed"    // half-open to open
	CauseProbeLost      Cause = "probe_lost"      // the probe never ended
	CauseProbeSucceeded Cause = "probe_succeeded" // half-open to closed
)

// Window is what a circuit counted in its rolling window.
type Window struct {
	Settled     int // successes + failures; calls in flight and ignored ones are not in it
	Failures    int
	Slow        int
	Consecutive int // failures in a row, counted across window edges
}

// CircuitStatus is one circuit as read, which never changes it.
type CircuitStatus struct {
	ID        CircuitID
	State     CircuitState
	ProbeDue  bool      // open, its time is over, and nobody has called since
	Since     time.Time // of the state
	OpenUntil time.Time // when the next probe is permitted, zero unless open
	Trips     int       // how often it opened since its last healthy window; the open time doubles with each
	Cause     Cause     // of the last change
	LastKind  Kind      // of the last failure
	Window    Window
	Isolated  bool  // an operator's override
	Worst     Worst // of the last 24 hours
}

// Worst is the worst that a circuit's window held within the last 24 hours, or since Since if that is later: what the
// thresholds are to be compared with. Each figure has its own moment.
type Worst struct {
	Since        time.Time
	Consecutive  int     // failures in a row
	FailureShare float64 // of at least the settled calls that the policy asks for
	SlowShare    float64 // likewise
}

// GateStatus is one closed gate.
type GateStatus struct {
	Exchange ExchangeID
	Scope    Scope
	Kind     Kind
	Until    time.Time
}

// BudgetStatus is one rate limit with the part of it that the gateway uses.
type BudgetStatus struct {
	Exchange ExchangeID
	Limit    Limit
	Share    int // units a window that the gateway allows itself
	Used     int // units that the gateway counts as used in the current window
	Waiting  int // calls queued for it
}
