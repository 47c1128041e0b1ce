package market

import "time"

// SampleLength is how long one Sample counts, and Samples how many are kept: five minutes.
const (
	SampleLength = 5 * time.Second
	Samples      = 60
)

// Sample is what one exchange was asked, and how it went, in one SampleLength.
type Sample struct {
	At       time.Time     // when the sample began
	Attempts int           // requests that ended
	Failures int           // of these, those that count against a circuit
	Refused  int           // calls that were not sent: open circuit, gate, override, budget
	Retries  int           // attempts beyond the first of their call
	P50, P99 time.Duration // of the attempts, zero without one; the upper edge of a bucket of a factor 1.5
}

// Failure is one attempt that went wrong, for people. It holds no key, URL, account name or byte of the exchange's answer.
type Failure struct {
	At       time.Time
	Exchange ExchangeID
	Op       Op
	Kind     Kind
	Status   int    // HTTP status, zero without an answer
	Code     string // the exchange's own code, at most 40 printable ASCII characters, "" if none
	Host     string // who answered, where the answer was not the exchange's own, as in Error
	Elapsed  time.Duration
}

// ServedBook is one book that was answered lately or is streamed.
type ServedBook struct {
	Exchange    ExchangeID
	Pair        Pair
	Source      string // stream, rest, memory, redis: of the last answer
	Stale       bool   // the last answer was labelled stale
	Reason      string // why, "" if it was not
	ConfirmedAt time.Time
	ChangedAt   time.Time // zero if unknown
	ServedAt    time.Time // the last answer, zero if it is only streamed
	Sequence    Sequence
	Bid, Ask    Optional // best prices, absent on an empty side
}
