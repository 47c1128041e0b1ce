package market

// Kind says what went wrong with a call to an exchange. The set is closed and append-only, and it is public: retry,
// circuit, fallback, HTTP status, metric label and log field all read it. Classify once, in the adapter; above it only
// compare.
type Kind uint8

// The closed set of kinds. Their texts are stable.
const (
	KindNone          Kind = iota // no error
	KindInvalid                   // the request was wrong
	KindUnknownSymbol             // the exchange does not know the pair
	KindDelisted                  // the exchange once had the pair
	KindAuth                      // the exchange refused our credential
	KindClockSkew                 // the exchange refused our clock
	KindRestricted                // the exchange does not serve our place on earth
	KindRateLimited               // we asked too often
	KindBanned                    // we are shut out for a while
	KindTimeout                   // no answer in time
	KindUnavailable               // dial, TLS, reset, EOF, 5xx, an answer that is not the exchange's own; and every error that nobody classified
	KindMaintenance               // the exchange says that it is closed
	KindMalformed                 // an answer of the exchange that cannot be decoded, or has a code that nobody here knows
	KindSuspect                   // an answer that decodes, and cannot be true: a crossed book, a balance out of a cache
	KindCircuitOpen               // not asked: the circuit is open
	KindIsolated                  // not asked: an operator isolated the exchange
	KindWithheld                  // not answered: an operator withheld it
	KindOverloaded                // not asked: our own queue or budget is full
	KindCanceled                  // the caller went away
	KindNotSupported              // the exchange has no such thing
	KindInternal                  // our own fault
	KindClientLimited             // not asked: the client has used up its own quota of calls to exchanges
	KindLocalResource             // not asked: this machine had no descriptor, port or memory left, or its proxy refused the connection
	kindCount
)

// Effect is what an outcome means to a circuit.
type Effect uint8

// The closed set of effects.
const (
	EffectSuccess Effect = iota // the exchange answered
	EffectFailure               // the exchange is in trouble
	EffectIgnored               // says nothing about the exchange's health
)

// RetryRule says whether an attempt that failed may be repeated within the same call.
type RetryRule uint8

// The closed set of retry rules.
const (
	RetryNever    RetryRule = iota
	RetryOnce               // at most one more attempt
	RetryBackoff            // up to the attempts of the policy, with full jitter
	RetryAtGate             // when the gate that it closed opens before the deadline
	RetryResync             // once, after the clock was measured again
	RetryNextHost           // at once on the next configured host, if there is one
)

// kindFacts is one row of the table in the README: everything that is decided by Kind alone.
type kindFacts struct {
	text   string
	effect Effect
	retry  RetryRule
	stale  bool // a stale order book may be served instead
	local  bool // no request was sent
	passes bool // the caller may try again later and succeed
}

// kinds is the table. The reasons: an exchange that refuses our request, key or clock is up (success); one that limits or
// bans us says nothing about its health (ignored); only silence, breakage and maintenance are failures.
var kinds = [kindCount]kindFacts{
	KindNone:          {text: "none", effect: EffectSuccess},
	KindInvalid:       {text: "invalid", effect: EffectSuccess, stale: true},
	KindUnknownSymbol: {text: "unknown_symbol", effect: EffectSuccess},
	KindDelisted:      {text: "delisted", effect: EffectSuccess},
	KindAuth:          {text: "auth", effect: EffectSuccess, stale: true},
	KindClockSkew:     {text: "clock_skew", effect: EffectSuccess, retry: RetryResync, stale: true, passes: true},
	KindRestricted:    {text: "restricted", effect: EffectIgnored, retry: RetryNextHost, stale: true},
	KindRateLimited:   {text: "rate_limited", effect: EffectIgnored, retry: RetryAtGate, stale: true, passes: true},
	KindBanned:        {text: "banned", effect: EffectIgnored, stale: true, passes: true},
	KindTimeout:       {text: "timeout", effect: EffectFailure, retry: RetryBackoff, stale: true, passes: true},
	KindUnavailable:   {text: "unavailable", effect: EffectFailure, retry: RetryBackoff, stale: true, passes: true},
	KindMaintenance:   {text: "maintenance", effect: EffectFailure, stale: true, passes: true},
	KindMalformed:     {text: "malformed", effect: EffectFailure, retry: RetryOnce, stale: true, passes: true},
	KindSuspect:       {text: "suspect", effect: EffectIgnored, stale: true, passes: true},
	KindCircuitOpen:   {text: "circuit_open", effect: EffectIgnored, stale: true, local: true, passes: true},
	KindIsolated:      {text: "isolated", effect: EffectIgnored, stale: true, local: true, passes: true},
	KindWithheld:      {text: "withheld", effect: EffectIgnored, local: true, passes: true},
	KindOverloaded:    {text: "overloaded", effect: EffectIgnored, stale: true, local: true, passes: true},
	KindCanceled:      {text: "canceled", effect: EffectIgnored},
	KindNotSupported:  {text: "not_supported", effect: EffectIgnored, stale: true},
	KindInternal:      {text: "internal", effect: EffectIgnored},
	KindClientLimited: {text: "client_limited", effect: EffectIgnored, stale: true, local: true, passes: true},
	KindLocalResource: {text: "local_resource", effect: EffectIgnored, stale: true, local: true, passes: true},
}

// Kinds lists every kind of error.
func Kinds() []Kind {
	all := make([]Kind, 0, kindCount-1)
	for k := KindInvalid; k < kindCount; k++ {
		all = append(all, k)
	}
	return all
}

func (k Kind) facts() kindFacts {
	if k >= kindCount {
		return kinds[KindInternal]
	}
	return kinds[k]
}

// String is the stable text: metric label, log field, `reason` of a stale book.
func (k Kind) String() string { return k.facts().text }

// MarshalText writes the stable text.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Effect is what this outcome means to a circuit.
func (k Kind) Effect() Effect { return k.facts().effect }

// Retry is how an attempt that ended like this may be repeated within the call.
func (k Kind) Retry() RetryRule { return k.facts().retry }

// ServesStale tells whether a stale order book may be served instead of this error. For auth and clock_skew this holds
// because a public read needs no credential, for invalid and not_supported because a book is asked for in our own words: see
// the function ServesStale for those of a caller. A balance is never served stale whatever this says.
func (k Kind) ServesStale() bool { return k.facts().stale }

// Local tells whether the exchange was never asked.
func (k Kind) Local() bool { return k.facts().local }

// Retryable tells whether the caller may try the same request again later. Such an error carries a RetryAfter.
func (k Kind) Retryable() bool { return k.facts().passes }
