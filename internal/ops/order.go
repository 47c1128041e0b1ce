package ops

import (
	"time"

	"exchange-gateway/internal/market"
)

// How long an isolation or a withholding lasts.
const (
	DefaultFor = time.Hour
	MaxFor     = 24 * time.Hour
)

// MaxReason is how long a reason may be, in characters. At least one that is not a space is required.
const MaxReason = 200

// Order is what an operator asks for, who and why. It is checked by the Desk; what does not fit its verb is an error.
type Order struct {
	Verb     market.Verb
	Exchange market.ExchangeID // needed, except by reload
	Class    market.Class      // isolate, release, probe: "" is every class
	Pair     market.Pair       // withhold, release: zero is the whole exchange; purge: needed
	Until    time.Time         // isolate, withhold: zero means For
	For      time.Duration     // isolate, withhold: zero means DefaultFor, at most MaxFor
	Reason   string
	Actor    string
}

// Outcome is what became of an order.
type Outcome struct {
	Verb      market.Verb       `json:"verb"`
	Exchange  market.ExchangeID `json:"exchange,omitempty"`
	Class     market.Class      `json:"class,omitempty"`
	Symbol    string            `json:"symbol,omitempty"`
	Actor     string            `json:"actor"`
	Reason    string            `json:"reason"`
	Event     string            `json:"event"`                   // id of the line in the audit
	Changed   bool              `json:"changed"`                 // false: it was so already
	Until     *time.Time        `json:"until,omitempty"`         // when it ends by itself
	Replaced  *Replaced         `json:"replaced,omitempty"`      // isolate, withhold: what was in force about the same before
	Recorded  []string          `json:"recorded"`                // where the audit and the override survive a restart: redis, state_dir; empty: nowhere
	Clients   string            `json:"clients"`                 // a sentence: what clients will see
	Removed   []string          `json:"removed,omitempty"`       // purge: where copies were dropped: memory, redis, stream
	Result    string            `json:"result,omitempty"`        // probe: what the exchange said: a state or a kind; reload: what changed
	Unchanged []string          `json:"needs_restart,omitempty"` // reload: settings that differ and take a restart
}

// Replaced is an isolation or a withholding that gave way to a new one about the same, however long it would have lasted.
type Replaced struct {
	Actor  string    `json:"actor"`
	Reason string    `json:"reason"`
	Until  time.Time `json:"until"`
}

// RefusedError is an order that was not carried out and not audited: it made no sense, or may not be done now.
type RefusedError struct {
	Field    string        // the field at fault, "" if none
	Allowed  []string      // its values, where there are few
	Detail   string        // a sentence
	Wait     time.Duration // when it may be done, zero if waiting does not help
	Conflict bool          // well formed, and refused as things stand: 409; otherwise 400
}

// Error is the sentence.
func (e *RefusedError) Error() string { return e.Detail }
