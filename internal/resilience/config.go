package resilience

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"exchange-gateway/internal/market"
)

// Config is what a Guard is made of. Its zero value is usable: defaults for every exchange, gates kept in memory alone.
type Config struct {
	Exchanges  map[market.ExchangeID]Policy // an exchange that is not in it has the defaults
	Keeper     GateKeeper                   // keeps gates across restarts; nil forgets them at exit
	Listener   func(market.Event)           // gets every event in order, one at a time, outside every lock; nil for none
	Random     func() uint64                // must be safe for concurrent use; nil is math/rand/v2
	Logger     *slog.Logger                 // nil discards
	Registerer prometheus.Registerer        // nil registers nothing
}

// Policy is how one exchange is treated.
type Policy struct {
	Classes     map[market.Class]ClassPolicy // a class that is not in it has the defaults
	BudgetShare float64                      // of each of the exchange's rate limits; 0 is DefaultBudgetShare
}

// ClassPolicy is how one class of calls is treated. A field that is zero has the default of its class.
type ClassPolicy struct {
	Timeout     time.Duration // of one attempt
	Deadline    time.Duration // of the call: waiting, every attempt, and the pauses between them
	Consecutive int           // failures in a row that open the circuit ...
	MinSpan     time.Duration // ... if they lie at least this far apart: one burst of errors is one event
	Rate        float64       // share of settled calls that fail and open the circuit ...
	MinSettled  int           // ... of at least so many in the window
	SlowShare   float64       // share of settled calls that are slow and open the circuit
	SlowFactor  float64       // a call is slow when it takes more than this part of Timeout
	Window      time.Duration // over which Rate and SlowShare are counted; at least 3 timeouts
	OpenMin     time.Duration // the first open time; doubles each time the probe fails ...
	OpenMax     time.Duration // ... up to this
}

// DefaultBudgetShare leaves room for whatever else asks from our address, and for limits that are counted differently.
const DefaultBudgetShare = 0.7

// DefaultPolicy is the policy of a class when nothing is configured: timeouts from what the exchanges document (listings
// are megabytes, Binance itself gives up after 10 s), windows in which even a class that is asked seldom settles 10 calls.
func DefaultPolicy(class market.Class) ClassPolicy {
	p := ClassPolicy{
		Timeout: 1500 * time.Millisecond, Deadline: 3 * time.Second, Window: 30 * time.Second,
		Consecutive: 5, MinSpan: 2 * time.Second, Rate: 0.5, MinSettled: 10, SlowShare: 0.8, SlowFactor: 0.6,
		OpenMin: 5 * time.Second, OpenMax: 60 * time.Second,
	}
	switch class {
	case market.ClassMarketData:
	case market.ClassAccount:
		p.Timeout, p.Deadline, p.Window = 3*time.Second, 5*time.Second, 120*time.Second
	case market.ClassReference:
		p.Timeout, p.Deadline, p.Window = 15*time.Second, 20*time.Second, 120*time.Second
	case market.ClassStream:
		p.Timeout, p.Deadline, p.Window = 10*time.Second, 15*time.Second, 60*time.Second
	}
	return p
}

func (p ClassPolicy) withDefaults(class market.Class) ClassPolicy {
	d := DefaultPolicy(class)
	fill(&p.Timeout, d.Timeout)
	fill(&p.Deadline, d.Deadline)
	fill(&p.Consecutive, d.Consecutive)
	fill(&p.MinSpan, d.MinSpan)
	fill(&p.Rate, d.Rate)
	fill(&p.MinSettled, d.MinSettled)
	fill(&p.SlowShare, d.SlowShare)
	fill(&p.SlowFactor, d.SlowFactor)
	fill(&p.Window, d.Window)
	fill(&p.OpenMin, d.OpenMin)
	fill(&p.OpenMax, d.OpenMax)
	return p
}

func fill[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// slow is the time past which a call is slow.
func (p *ClassPolicy) slow() int64 { return int64(float64(p.Timeout) * p.SlowFactor) }

// period is the length of one bucket of the window.
func (p *ClassPolicy) period() time.Duration { return p.Window / buckets }

func (p Policy) share() float64 {
	fill(&p.BudgetShare, DefaultBudgetShare)
	return p.BudgetShare
}

// Validate returns every problem of the configuration at once, nil if there is none.
func (c Config) Validate() error {
	var problems []error
	for _, id := range slices.Sorted(maps.Keys(c.Exchanges)) {
		policy := c.Exchanges[id]
		if s := policy.share(); s <= 0 || s > 1 {
			problems = append(problems, fmt.Errorf("exchanges.%s.budget_share: %v is not above 0 and at most 1", id, s))
		}
		for _, class := range slices.Sorted(maps.Keys(policy.Classes)) {
			if !slices.Contains(market.Classes(), class) {
				problems = append(problems, fmt.Errorf("exchanges.%s.%s: no such class", id, class))
				continue
			}
			p := policy.Classes[class].withDefaults(class)
			for _, problem := range p.problems() {
				problems = append(problems, fmt.Errorf("exchanges.%s.%s.%w", id, class, problem))
			}
		}
	}
	return errors.Join(problems...)
}

// minOpen is the shortest open time. The counting machine calls an open time over one nanosecond after it began, so ours
// has to be the longer one by far.
const minOpen = 100 * time.Millisecond

// Bounds of a policy: past them the arithmetic of instants and counts would be the next thing to fail.
const (
	minTimeout = time.Millisecond
	maxPeriod  = 24 * time.Hour
	maxCount   = 1<<packed - 1 // that a window shows
)

// problems says what is wrong with a policy whose defaults are filled in.
func (p *ClassPolicy) problems() []error {
	var all []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			all = append(all, fmt.Errorf(format, args...))
		}
	}
	check(p.Timeout >= minTimeout, "timeout: %v is shorter than %v", p.Timeout, minTimeout)
	check(p.Deadline >= p.Timeout, "deadline: %v is shorter than the timeout of one attempt, %v", p.Deadline, p.Timeout)
	// A result is booked where its call began: a window that is not much longer than a call forgets failures before they
	// are known, and never trips (zeromicro/go-zero#5011).
	check(p.Window >= 3*p.Timeout, "window: %v is shorter than 3 timeouts, %v", p.Window, 3*p.Timeout)
	check(p.Consecutive > 0 && p.Consecutive <= maxCount, "consecutive: %d is not from 1 to %d", p.Consecutive, maxCount)
	check(p.MinSpan >= 0, "min_span: %v is negative", p.MinSpan)
	check(p.Rate > 0 && p.Rate <= 1, "rate: %v is not above 0 and at most 1", p.Rate)
	check(p.MinSettled > 0 && p.MinSettled <= maxCount, "min_settled: %d is not from 1 to %d", p.MinSettled, maxCount)
	check(p.SlowShare > 0 && p.SlowShare <= 1, "slow_share: %v is not above 0 and at most 1", p.SlowShare)
	check(p.SlowFactor > 0 && p.SlowFactor <= 1, "slow_factor: %v is not above 0 and at most 1", p.SlowFactor)
	check(p.OpenMin >= minOpen, "open_min: %v is shorter than %v", p.OpenMin, minOpen)
	check(p.OpenMax >= p.OpenMin, "open_max: %v is shorter than open_min, %v", p.OpenMax, p.OpenMin)
	for _, d := range []struct {
		name string
		is   time.Duration
	}{{"deadline", p.Deadline}, {"min_span", p.MinSpan}, {"window", p.Window}, {"open_max", p.OpenMax}} {
		check(d.is <= maxPeriod, "%s: %v is longer than %v", d.name, d.is, maxPeriod)
	}
	return all
}
