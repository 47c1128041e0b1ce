package client

import (
	"encoding/json"
	"math"
	"time"
)

// Freshness says how far data can be trusted.
type Freshness struct {
	// Stale is true for everything that is not live: the exchange does not vouch for it now, or nobody can know.
	Stale bool
	// Status is "live" or "stale"; of a streamed book also "syncing", "withheld" or "unsubscribed".
	Status string
	// Source is where the gateway had it from: "stream", "rest", "memory", "redis".
	Source string
	// Age is how long ago the exchange last vouched for it, when the gateway sent it: by the gateway's clock alone. AgeNow
	// goes on from there.
	Age time.Duration
	// ConfirmedAt is when the exchange last vouched for it, ChangedAt when it last changed; zero if unknown.
	ConfirmedAt, ChangedAt time.Time
	// Reason is why it is stale: "circuit_open", "timeout", ...; "" while live. A streamed book can have those of the Reason
	// constants, too, which are this client's own.
	Reason string
	// Circuit is the state of the circuit: "closed", "open", "half_open"; "" if unknown.
	Circuit string
	// ExchangeLag is how far the exchange's stamp lay behind the gateway's clock; HasLag is false if that is not known.
	ExchangeLag time.Duration
	HasLag      bool
	// ReceivedAt is when this client received it, by its own clock.
	ReceivedAt time.Time
}

// The states of a Freshness, as the gateway calls them.
const (
	StatusLive         = "live"         // the exchange vouches for it
	StatusStale        = "stale"        // old, or nobody vouches for it
	StatusSyncing      = "syncing"      // of a stream: no book yet
	StatusWithheld     = "withheld"     // of a stream: an operator took the book away
	StatusUnsubscribed = "unsubscribed" // of a stream: the gateway ended the subscription
)

// AgeNow is the age at now: it goes on growing from when the data was received, whatever the two clocks say. What the
// answer needed on its way is not in it. A book of a stream that is live counts from its last message here: it may be vouched
// for since.
func (f *Freshness) AgeNow(now time.Time) time.Duration {
	since := max(0, now.Sub(f.ReceivedAt))
	if since > math.MaxInt64-f.Age {
		return math.MaxInt64
	}
	return f.Age + since
}

// wireFreshness is the JSON of it.
type wireFreshness struct {
	Status      string    `json:"status"`
	Source      string    `json:"source"`
	AgeMS       int64     `json:"age_ms"`
	ConfirmedAt time.Time `json:"confirmed_at"`
	ChangedAt   time.Time `json:"changed_at"`
	Reason      string    `json:"reason"`
	Circuit     string    `json:"circuit"`
	LagMS       *int64    `json:"exchange_lag_ms"`
}

// UnmarshalJSON reads the part of an answer. What is not said to be live is stale: a missing status proves nothing.
func (f *Freshness) UnmarshalJSON(text []byte) error {
	var w wireFreshness
	if err := json.Unmarshal(text, &w); err != nil {
		return err
	}
	*f = Freshness{
		Stale: w.Status != StatusLive, Status: w.Status, Source: w.Source, Age: milliseconds(max(0, w.AgeMS)),
		ConfirmedAt: w.ConfirmedAt, ChangedAt: w.ChangedAt, Reason: w.Reason, Circuit: w.Circuit, ReceivedAt: time.Now(),
	}
	if w.LagMS != nil {
		f.ExchangeLag, f.HasLag = milliseconds(*w.LagMS), true
	}
	return nil
}

// MarshalJSON writes what UnmarshalJSON reads, with the age as it was when the data was received.
func (f Freshness) MarshalJSON() ([]byte, error) {
	w := struct {
		Status      string     `json:"status"`
		Source      *string    `json:"source"`
		AgeMS       int64      `json:"age_ms"`
		ConfirmedAt *time.Time `json:"confirmed_at"`
		ChangedAt   *time.Time `json:"changed_at"`
		Reason      *string    `json:"reason"`
		Circuit     *string    `json:"circuit"`
		LagMS       *int64     `json:"exchange_lag_ms"`
	}{
		Status: f.Status, Source: orNull(f.Source), AgeMS: roundUp(f.Age), ConfirmedAt: orNull(f.ConfirmedAt),
		ChangedAt: orNull(f.ChangedAt), Reason: orNull(f.Reason), Circuit: orNull(f.Circuit),
	}
	if f.HasLag {
		lag := f.ExchangeLag.Milliseconds()
		w.LagMS = &lag
	}
	return json.Marshal(w)
}

func orNull[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// roundUp is d in whole milliseconds: an age is never told younger than it is.
func roundUp(d time.Duration) int64 {
	ms := d.Milliseconds()
	if time.Duration(ms)*time.Millisecond < d {
		ms++
	}
	return ms
}

// milliseconds bounds what would not fit.
func milliseconds(n int64) time.Duration {
	const most = int64(math.MaxInt64 / time.Millisecond)
	return time.Duration(min(max(n, -most), most)) * time.Millisecond
}
