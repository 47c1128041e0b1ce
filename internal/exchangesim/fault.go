package exchangesim

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// FaultKind names what goes wrong. The set is closed.
type FaultKind string

// Faults that end the request.
const (
	FaultStatus      FaultKind = "status"      // Status, Body, ContentType and Header as given
	FaultHang        FaultKind = "hang"        // read the request, never answer
	FaultHangBody    FaultKind = "hang_body"   // the head and half of the true answer, then silence
	FaultReset       FaultKind = "reset"       // RST instead of an answer
	FaultResetBody   FaultKind = "reset_body"  // RST after half of the true answer
	FaultClose       FaultKind = "close"       // FIN instead of an answer
	FaultTruncate    FaultKind = "truncate"    // FIN after half of the announced body
	FaultCutJSON     FaultKind = "cut_json"    // half of the true body, announced as the whole
	FaultHTML        FaultKind = "html"        // one of the CDN pages: Page, Status
	FaultWrongJSON   FaultKind = "wrong_json"  // 200 with valid JSON of another shape
	FaultEmpty       FaultKind = "empty"       // 200 without a body
	FaultUnavailable FaultKind = "unavailable" // 503 in the venue's own words: overloaded, not maintenance
	FaultMaintenance FaultKind = "maintenance" // the venue's documented form; its status endpoint says so too
	FaultRateLimit   FaultKind = "rate_limit"  // 429 in the venue's own words, RetryAfter if set
	FaultBan         FaultKind = "ban"         // Binance 418 until the fault ends (For), or for RetryAfter, or for 2 min; elsewhere Cloudflare 1015
	FaultGeoBlock    FaultKind = "geo_block"   // Binance 451 with code 0, OKX 50121, Coinbase 451
	FaultDeadKey     FaultKind = "dead_key"    // private calls only: the key is refused
)

// Faults that change the answer; several add up.
//
// An account has no past here: its balances are the present ones. So FaultOlder leaves balances alone, and the venue's time as well,
// which is off with FaultSkew. FaultCached reaches every answer: prices, books and the time are those of Age ago, balances are the
// present ones, and all say that they are Age old, in whole seconds rounded down.
const (
	FaultLatency  FaultKind = "latency"   // wait Latency first; Binance gives up after 10 s with 504 and -1007
	FaultSkew     FaultKind = "skew"      // the venue's clock is off by Skew: time, Date, signatures, stamps
	FaultOlder    FaultKind = "older"     // market data as of Age ago (default 2 s), as OKX's caches give at random
	FaultCached   FaultKind = "cached"    // every answer from a cache that says so: Age, Cf-Cache-Status or X-Cache
	FaultCrossed  FaultKind = "crossed"   // best bid above best ask
	FaultNegative FaultKind = "negative"  // a level with a negative size
	FaultZero     FaultKind = "zero"      // the best bid with size zero
	FaultOneSided FaultKind = "one_sided" // no asks
	FaultNoLevels FaultKind = "no_levels" // neither bids nor asks
	FaultHalted   FaultKind = "halted"    // the listing shows no pair trading
)

// Faults of streams. They never meet a request. Those of the whole connection (silent, freeze, half_open, storm, cut) last until they
// end; Count and Percent say how many connections they meet. The others meet single messages with market data, or subscriptions.
// Nothing is lost by silent and freeze: what changed meanwhile is sent in one message afterwards. Of a deep Binance book that
// is at most two minutes, with a gap before.
//
// FaultCrossed also spoils updates of streams unless its Class says otherwise. A REST snapshot that is older than the stream is
// FaultOlder with Class market_data.
const (
	FaultGap           FaultKind = "gap"                 // the message is not sent
	FaultDuplicate     FaultKind = "duplicate"           // it is sent twice
	FaultReorder       FaultKind = "reorder"             // it is sent after the next one of its symbol
	FaultMalformed     FaultKind = "malformed"           // half of it is sent
	FaultSilent        FaultKind = "silent"              // the connection stays open and sends nothing, not even pings and pongs
	FaultFreeze        FaultKind = "freeze"              // Symbol (or all) sends nothing, not even keep-alives, while others go on
	FaultHalfOpen      FaultKind = "half_open"           // streams open when it begins: nothing is read or written; reset when it ends
	FaultStorm         FaultKind = "storm"               // every stream is reset now, and each new one Latency (default 1 s) after it was opened
	FaultCut           FaultKind = "cut"                 // streams open when it begins get the venue's notice and are closed Latency later (default: as the venue does)
	FaultRefuse        FaultKind = "refuse_subscription" // in the venue's own words
	FaultResetSequence FaultKind = "reset_sequence"      // OKX, at once and once: the next message falls back to small sequences, as is legal; at most 31 per symbol
	FaultLostReset     FaultKind = "lost_reset"          // the same, and the message that tells of it is lost
)

// Classes of endpoints, as counted and as faults are narrowed.
const (
	ClassMarketData = "market_data" // order books and quotes
	ClassReference  = "reference"   // listings, statistics, time, status
	ClassAccount    = "account"     // all that needs a key
	ClassStream     = "stream"      // handshakes of streams, and all that happens on them
	classOther      = "other"       // paths that the venue does not have
)

// Fault is something that goes wrong at one venue. Zero values of the narrowing fields mean "any".
type Fault struct {
	Kind FaultKind

	Path       string // prefix of the request path
	Class      string
	Symbol     string // the venue's own name, as sent
	Credential string // name of a credential

	Count   int           // only the next Count requests
	For     time.Duration // only so long
	Percent int           // only this share of the requests that match, drawn from Seed; 0 means all
	Seed    uint64

	Status         int
	Body           string
	ContentType    string
	Header         map[string]string
	Page           string // html: see Pages
	Latency        time.Duration
	Skew           time.Duration
	Age            time.Duration
	RetryAfter     time.Duration // 0: no Retry-After header
	RetryAfterDate bool          // as HTTP-date instead of seconds

	until time.Time // when it ends, if For was given
}

// validate finds what would make a fault do nothing or be misunderstood.
func (f Fault) validate() error {
	switch f.Kind {
	case FaultStatus:
		if f.Status < 200 || f.Status > 599 {
			return fmt.Errorf("fault status: status %d is not within 200..599", f.Status)
		}
	case FaultHTML:
		if _, ok := pages[f.Page]; !ok {
			return fmt.Errorf("fault html: no page %q: one of %s", f.Page, strings.Join(Pages(), ", "))
		}
	case FaultLatency:
		if f.Latency <= 0 {
			return fmt.Errorf("fault latency: latency must be above zero")
		}
	case FaultSkew:
		if f.Skew == 0 {
			return fmt.Errorf("fault skew: skew must not be zero")
		}
	case FaultHang, FaultHangBody, FaultReset, FaultResetBody, FaultClose, FaultTruncate, FaultCutJSON, FaultWrongJSON, FaultEmpty,
		FaultUnavailable, FaultMaintenance, FaultRateLimit, FaultBan, FaultGeoBlock, FaultDeadKey, FaultOlder, FaultCached,
		FaultCrossed, FaultNegative, FaultZero, FaultOneSided, FaultNoLevels, FaultHalted, FaultGap, FaultDuplicate, FaultReorder,
		FaultMalformed, FaultSilent, FaultFreeze, FaultHalfOpen, FaultStorm, FaultCut, FaultRefuse, FaultResetSequence, FaultLostReset:
	default:
		return fmt.Errorf("unknown fault kind %q", f.Kind)
	}
	switch f.Class {
	case "":
	case ClassStream:
		if !f.Kind.streamOnly() && !f.Kind.meetsHandshake() && f.Kind != FaultCrossed {
			return fmt.Errorf("fault %s: it does nothing to streams", f.Kind)
		}
	case ClassMarketData, ClassReference, ClassAccount:
		if f.Kind.streamOnly() {
			return fmt.Errorf("fault %s: it does nothing outside streams, and class is %q", f.Kind, f.Class)
		}
	default:
		return fmt.Errorf("fault %s: unknown class %q", f.Kind, f.Class)
	}
	if f.Kind.streamOnly() && f.Credential != "" {
		return fmt.Errorf("fault %s: streams of market data have no credential", f.Kind)
	}
	if f.Percent < 0 || f.Percent > 100 || f.Count < 0 || f.For < 0 || f.Age < 0 || f.RetryAfter < 0 {
		return fmt.Errorf("fault %s: percent must be within 0..100; count, for, age and retry_after must not be negative", f.Kind)
	}
	return nil
}

// validFor is validate with what only some venues do.
func (v *Venue) validFor(f Fault) error {
	if v.id != "okx" && (f.Kind == FaultResetSequence || f.Kind == FaultLostReset) {
		return fmt.Errorf("fault %s: only OKX resets its sequences", f.Kind)
	}
	// Coinbase has books behind a key as well.
	if v.id != "coinbase" && f.Kind == FaultOlder && f.Class == ClassAccount {
		return fmt.Errorf("fault %s: a balance has no past here; the fault cached reaches it", f.Kind)
	}
	return f.validate()
}

// faultJSON is the wire form of a Fault: durations as text.
type faultJSON struct {
	Kind           FaultKind         `json:"kind"`
	Path           string            `json:"path,omitempty"`
	Class          string            `json:"class,omitempty"`
	Symbol         string            `json:"symbol,omitempty"`
	Credential     string            `json:"credential,omitempty"`
	Count          int               `json:"count,omitempty"`
	For            duration          `json:"for,omitempty"`
	Percent        int               `json:"percent,omitempty"`
	Seed           uint64            `json:"seed,omitempty"`
	Status         int               `json:"status,omitempty"`
	Body           string            `json:"body,omitempty"`
	ContentType    string            `json:"content_type,omitempty"`
	Header         map[string]string `json:"header,omitempty"`
	Page           string            `json:"page,omitempty"`
	Latency        duration          `json:"latency,omitempty"`
	Skew           duration          `json:"skew,omitempty"`
	Age            duration          `json:"age,omitempty"`
	RetryAfter     duration          `json:"retry_after,omitempty"`
	RetryAfterDate bool              `json:"retry_after_date,omitempty"`
}

// MarshalJSON writes the form that the control endpoint and schedule files use.
func (f Fault) MarshalJSON() ([]byte, error) {
	return json.Marshal(faultJSON{
		f.Kind, f.Path, f.Class, f.Symbol, f.Credential, f.Count, duration(f.For), f.Percent, f.Seed, f.Status, f.Body, f.ContentType, f.Header, f.Page,
		duration(f.Latency), duration(f.Skew), duration(f.Age), duration(f.RetryAfter), f.RetryAfterDate,
	})
}

// UnmarshalJSON reads that form, refuses unknown fields and validates.
func (f *Fault) UnmarshalJSON(data []byte) error {
	var w faultJSON
	if err := decodeStrict(data, &w); err != nil {
		return err
	}
	*f = Fault{
		Kind: w.Kind, Path: w.Path, Class: w.Class, Symbol: w.Symbol, Credential: w.Credential, Count: w.Count, For: time.Duration(w.For),
		Percent: w.Percent, Seed: w.Seed, Status: w.Status, Body: w.Body, ContentType: w.ContentType, Header: w.Header, Page: w.Page,
		Latency: time.Duration(w.Latency), Skew: time.Duration(w.Skew), Age: time.Duration(w.Age), RetryAfter: time.Duration(w.RetryAfter),
		RetryAfterDate: w.RetryAfterDate,
	}
	return f.validate()
}

// duration is a time.Duration that is text in JSON, such as "1m30s".
type duration time.Duration

func (d duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

func (d *duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	*d = duration(v)
	return err
}
