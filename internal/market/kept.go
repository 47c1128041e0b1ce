package market

import "time"

// Verdict is what became of an answer that was offered to a store of last-known books. It is a metric label.
type Verdict string

// The closed set of verdicts.
const (
	VerdictStored    Verdict = "stored"    // it is newer and stands now
	VerdictConfirmed Verdict = "confirmed" // it is the version that stands already: the exchange vouched for it again
	VerdictOlder     Verdict = "older"     // it is older than what stands and was dropped; what stands was not refreshed
	VerdictShallower Verdict = "shallower" // it is newer, but what stands is deeper and not past its bound
	VerdictReset     Verdict = "reset"     // it is older, as were several before it: the exchange started anew, so it stands now
	VerdictUnaged    Verdict = "unaged"    // its age cannot be known: never stored, never live
	VerdictPurged    Verdict = "purged"    // the exchange vouched for it before an operator dropped every copy: never stored
)

// Verdicts lists every verdict.
func Verdicts() []Verdict {
	return []Verdict{
		VerdictStored, VerdictConfirmed, VerdictOlder, VerdictShallower, VerdictReset, VerdictUnaged,
		VerdictPurged,
	}
}

// Listings is one exchange's whole list of spot pairs, as it was confirmed at one moment. It is immutable once published
// and safe for concurrent use.
type Listings struct {
	Exchange    ExchangeID
	Rows        []Listing
	ConfirmedAt time.Time // when the request for the list was sent
	Anchor      time.Time // of a copy from a shared store, as in OrderBook; zero otherwise

	// Native is the answer as it came, where the exchange's own form has a question with this answer. It is large, so only
	// what an adapter returns has it, and no copy.
	Native *NativeAnswer
}

// Age is how long ago the exchange vouched for the list; false when that cannot be known, as in OrderBook.Age.
func (l *Listings) Age(now time.Time) (time.Duration, bool) {
	return age(now, l.ConfirmedAt, l.Anchor)
}

// age is the time since anchor, or since confirmedAt without one.
func age(now, confirmedAt, anchor time.Time) (time.Duration, bool) {
	if confirmedAt.IsZero() {
		return 0, false
	}
	if anchor.IsZero() {
		anchor = confirmedAt
	}
	d := now.Sub(anchor)
	if d < -futureTolerance {
		return 0, false
	}
	return max(d, 0), true
}
