package ops

import (
	"time"

	"exchange-gateway/internal/market"
)

// Overview is everything that an operator sees at one moment. Its JSON is the answer of GET /v1/circuits and each `state`
// of its event stream; the dashboard, the plain page and `gateway status` show it and nothing else. It names no account.
type Overview struct {
	Instance     string      `json:"instance"`
	Version      string      `json:"version"`
	Boot         string      `json:"boot"`
	Now          time.Time   `json:"now"`
	StartedAt    time.Time   `json:"started_at"`
	HistorySince time.Time   `json:"history_since"` // events from here on are known, 24 hours back at most
	LastEvent    string      `json:"last_event"`    // id of the newest event that this shows, "" before the first
	Level        Level       `json:"level"`         // of the worst exchange
	Headline     string      `json:"headline"`      // the worst state in words, and who else is not well
	Degraded     []string    `json:"degraded"`      // parts of the gateway itself that do not work as configured
	Exchanges    []Exchange  `json:"exchanges"`     // in their configured order, always the same
	Books        []Book      `json:"books"`         // answered in the last 10 min or streamed, at most 200, the oldest ages first
	Clients      []ClientUse `json:"clients"`       // that did most in the last minute, at most 10
}

// Level is how bad it is.
type Level string

// The closed set of levels, from good to bad.
const (
	LevelOK       Level = "ok"       // clients get live answers, or nobody asks; nothing is in force
	LevelNotice   Level = "notice"   // something is in force or under way, and clients get live answers or somebody wanted it so
	LevelDegraded Level = "degraded" // some clients get stale answers or errors
	LevelDown     Level = "down"     // an exchange: nobody who asks for it gets an answer; the gateway: no exchange answers
)

// State is the one word for an exchange: the worst of what is true of it.
type State string

// The closed set of states, from bad to good.
const (
	StateBanned      State = "banned"      // a gate of the whole exchange or of our address is closed
	StateIsolated    State = "isolated"    // an operator isolated it
	StateOpen        State = "open"        // at least one circuit is open
	StateHalfOpen    State = "half_open"   // at least one circuit is being probed, none is open
	StateFailing     State = "failing"     // clients get stale answers or errors, and nothing above or below explains it
	StateWithheld    State = "withheld"    // an operator withheld it or one of its pairs
	StateMaintenance State = "maintenance" // it announced maintenance that is under way, or one is configured; its circuits are closed
	StateLimited     State = "limited"     // a gate of one endpoint, account or symbol is closed
	StateNotAsked    State = "not_asked"   // no client asks, so nobody is hurt, whatever its circuits say
	StateClosed      State = "closed"      // all is well
)

// Exchange is one card of the dashboard.
type Exchange struct {
	ID          market.ExchangeID `json:"id"`
	State       State             `json:"state"`
	Level       Level             `json:"level"`
	Why         string            `json:"why"`           // a sentence, "" when all is well
	Clients     string            `json:"clients"`       // a sentence: what clients get now
	Since       *time.Time        `json:"since"`         // of State, null if unknown or always so; trouble counts from when the circuit left closed
	NextProbe   *time.Time        `json:"next_probe_at"` // of the circuit that State is about, null unless open
	ProbeDue    bool              `json:"probe_due"`     // open, its time is over, and nobody has called since
	LastSuccess *time.Time        `json:"last_success"`  // the last attempt that ended well
	Circuits    []Circuit         `json:"circuits"`
	Overrides   []Override        `json:"overrides"`
	Gates       []Gate            `json:"gates"`
	Budgets     []Budget          `json:"budgets"`
	Streams     *Streams          `json:"streams"` // null where nothing is streamed
	Maintenance []Maintenance     `json:"maintenance"`
	Served      Served            `json:"served"`
	Answering   Answering         `json:"answering"`
	Samples     SampleColumns     `json:"samples"`
	Failures    []Failure         `json:"failures"` // the last 20 attempts that went wrong, newest first
}

// Circuit is one circuit: what it computed, beside what an operator put in force.
type Circuit struct {
	Class       market.Class        `json:"class"`
	Family      string              `json:"family,omitempty"`
	State       market.CircuitState `json:"state"`    // computed; an isolation does not change it
	Isolated    bool                `json:"isolated"` // the override
	ProbeDue    bool                `json:"probe_due"`
	Since       time.Time           `json:"since"`
	OpenUntil   *time.Time          `json:"open_until"`
	Trips       int                 `json:"trips"`
	Cause       market.Cause        `json:"cause,omitempty"` // of the last change
	CauseText   string              `json:"cause_text"`      // in words, with the counts: "5 failures in a row (timeout)"
	LastFailure string              `json:"last_failure,omitempty"`
	Window      Window              `json:"window"`
	Thresholds  Thresholds          `json:"thresholds"`
	Worst       Worst               `json:"worst"`
}

// Window is what the circuit counted: in its rolling window while closed, at its trip otherwise.
type Window struct {
	Settled     int `json:"settled"`
	Failures    int `json:"failures"`
	Slow        int `json:"slow"`
	Consecutive int `json:"consecutive"`
}

// Thresholds are the settings in force.
type Thresholds struct {
	Consecutive int     `json:"consecutive"`
	MinSpanMS   int64   `json:"min_span_ms"`
	Rate        float64 `json:"rate"`
	SlowShare   float64 `json:"slow_share"`
	SlowMS      int64   `json:"slow_ms"`
	MinSettled  int     `json:"min_settled"`
	WindowMS    int64   `json:"window_ms"`
	TimeoutMS   int64   `json:"timeout_ms"`
	DeadlineMS  int64   `json:"deadline_ms"`
	OpenMinMS   int64   `json:"open_min_ms"`
	OpenMaxMS   int64   `json:"open_max_ms"`
}

// Worst is the worst of the last 24 hours, to be compared with Thresholds.
type Worst struct {
	Since        time.Time `json:"since"`
	Consecutive  int       `json:"consecutive"`
	FailureShare float64   `json:"failure_share"`
	SlowShare    float64   `json:"slow_share"`
}

// Override is what an operator put in force.
type Override struct {
	Kind   market.OverrideKind `json:"kind"`
	Class  market.Class        `json:"class,omitempty"`
	Symbol string              `json:"symbol,omitempty"`
	Actor  string              `json:"actor"`
	Reason string              `json:"reason"`
	Since  time.Time           `json:"since"`
	Until  time.Time           `json:"until"`
}

// Gate is one closed gate.
type Gate struct {
	Scope market.ScopeKind `json:"scope"`
	Name  string           `json:"name,omitempty"` // never of an account
	Kind  string           `json:"kind"`
	Until time.Time        `json:"until"`
}

// Budget is one rate limit of the exchange with the part that the gateway permits itself.
type Budget struct {
	Limit    string `json:"limit"` // those of accounts are one row, the fullest
	Capacity int    `json:"capacity"`
	Share    int    `json:"share"`
	Used     int    `json:"used"`
	Waiting  int    `json:"waiting"`
	WindowMS int64  `json:"window_ms"`
}

// Streams is how an exchange's streams stand.
type Streams struct {
	Connections int        `json:"connections"`
	LastFrame   *time.Time `json:"last_frame"`
	Live        int        `json:"live"`
	Syncing     int        `json:"syncing"`
	Stale       int        `json:"stale"`
	Wanted      int        `json:"wanted"`
	Queued      int        `json:"queued"`
	ETAMS       *int64     `json:"eta_ms"`
}

// Maintenance is one window that is open or comes within 24 hours.
type Maintenance struct {
	From      *time.Time `json:"from"`
	Until     *time.Time `json:"until"`
	Active    bool       `json:"active"`
	Announced bool       `json:"announced"`
	Note      string     `json:"note"`
}

// Served counts what clients of the REST API got about an exchange in the last five minutes.
type Served struct {
	Live    int `json:"live"`
	Stale   int `json:"stale"`
	Refused int `json:"refused"` // errors in place of an answer, for the exchange's or the gateway's reason
	// OldestMS is the greatest age of a book that was answered, null if none was.
	OldestMS *int64 `json:"oldest_ms"`
}

// Answering is what clients get of an exchange: Level follows from it.
type Answering struct {
	Status  AnsweringStatus `json:"status"`
	AskedAt *time.Time      `json:"asked_at"` // when a client last asked, null if none has
	Live    int             `json:"live"`     // answers of the last 2 min
	Stale   int             `json:"stale"`
	Errors  int             `json:"errors"` // but a client's own mistakes, and refusals of require=live
	Wanted  int             `json:"wanted"` // stale or errors because an operator wanted it so; not in the others
	Pairs   AnsweringPairs  `json:"pairs"`
}

// AnsweringPairs are the pairs that were asked for in the last 10 min, by what one who asks now gets, without a bound of its own.
type AnsweringPairs struct {
	Live   int `json:"live"`
	Stale  int `json:"stale"`
	None   int `json:"none"` // an error
	Wanted int `json:"wanted"`
}

// AnsweringStatus is Answering in one word.
type AnsweringStatus string

// The closed set of it, from bad to good.
const (
	AnsweringNone     AnsweringStatus = "none"      // no pair that is asked for can be answered, or at least 5 answers were all errors
	AnsweringSome     AnsweringStatus = "some"      // some are stale or errors
	AnsweringWanted   AnsweringStatus = "wanted"    // whatever is stale or an error, an operator wanted it so
	AnsweringNotAsked AnsweringStatus = "not_asked" // nobody asks
	AnsweringLive     AnsweringStatus = "live"      // all live
)

// AnsweringStatuses lists the set.
func AnsweringStatuses() []AnsweringStatus {
	return []AnsweringStatus{AnsweringNone, AnsweringSome, AnsweringWanted, AnsweringNotAsked, AnsweringLive}
}

// SampleColumns are the last five minutes in steps, oldest first, for sparklines. All columns have the same length.
type SampleColumns struct {
	From     time.Time `json:"from"`
	StepMS   int64     `json:"step_ms"`
	Attempts []int     `json:"attempts"`
	Failures []int     `json:"failures"`
	Refused  []int     `json:"refused"`
	Retries  []int     `json:"retries"`
	P50MS    []*int64  `json:"p50_ms"` // null without an attempt
	P99MS    []*int64  `json:"p99_ms"`
}

// Failure is one attempt that went wrong.
type Failure struct {
	At        time.Time `json:"at"`
	Op        market.Op `json:"op"`
	Kind      string    `json:"kind"`
	Status    int       `json:"status,omitempty"`
	Code      string    `json:"code,omitempty"`
	ElapsedMS int64     `json:"elapsed_ms"`
}

// Book is one book that clients get or could get.
type Book struct {
	Exchange      market.ExchangeID `json:"exchange"`
	Symbol        string            `json:"symbol"`
	Status        string            `json:"status"` // live, stale, syncing, withheld
	Source        string            `json:"source"`
	Reason        string            `json:"reason,omitempty"`
	ConfirmedAt   *time.Time        `json:"confirmed_at"`
	ChangedAt     *time.Time        `json:"changed_at"`
	ServedAt      *time.Time        `json:"served_at"`
	AgeMS         *int64            `json:"age_ms"`       // null if nothing is held
	FreshForMS    int64             `json:"fresh_for_ms"` // up to this age it is live
	StaleMaxMS    int64             `json:"stale_max_ms"` // beyond this age it is not served
	Bid           *string           `json:"bid"`
	Ask           *string           `json:"ask"`
	Spread        *string           `json:"spread"`
	Streamed      bool              `json:"streamed"`
	Epoch         string            `json:"epoch,omitempty"`
	Sequence      *int64            `json:"sequence"`
	Resyncs       int               `json:"resyncs"`     // since the book is streamed
	LastResync    *time.Time        `json:"last_resync"` //
	ResyncReason  string            `json:"resync_reason,omitempty"`
	StreamedSince *time.Time        `json:"streamed_since"`
	Watched       bool              `json:"-"` // a client subscribes to it
}

// ClientUse is what a client of the gateway does. All callers without a key together are one.
type ClientUse struct {
	Client   string `json:"client"`         // its name in the keys file, or market.Keyless
	Requests int64  `json:"requests"`       // of the last minute, refused ones included
	Refused  int64  `json:"refused"`        // of the last minute, for the client's quota or its share of what is done at once
	Upstream int64  `json:"upstream_units"` // of exchanges' limits, spent on its behalf in the last minute
	InFlight int    `json:"in_flight"`      // requests that are being answered
	Streams  int    `json:"streams"`        // connections
}
