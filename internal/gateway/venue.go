package gateway

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// venue is everything that is kept about one exchange: the table of its pairs with what was fetched for each, and the
// questions that are under way.
type venue struct {
	Venue
	books   market.CircuitID
	crew    *crew
	metrics *venueMetrics
	warn    warner // of books that are found without a list

	table    atomic.Pointer[table]
	adopting sync.Mutex // serializes the adoption of lists
	lists    slot[*market.Listings]

	announced atomic.Pointer[market.VenueStatus]
	status    slot[market.VenueStatus]

	natives *natives  // answers in the exchange's own form
	whole   wholeList // its list of pairs in that form
	halted  slot[[]market.Listing]

	configured atomic.Pointer[[]market.Maintenance]
	tally      tally
	nameless   nameless

	asked atomic.Int64 // when a caller last asked, in nanoseconds since 1970; 0 if never
}

func newVenue(v Venue, most int, log *slog.Logger, m *metrics) *venue {
	w := &venue{
		Venue: v,
		books: market.CircuitID{Exchange: v.ID, Class: market.ClassMarketData},
		crew:  newCrew(v.ID, most, log), natives: newNatives(),
	}
	w.whole.init(v.Native)
	w.metrics = m.venue(v.ID, w.crew.count, v.Native != nil)
	return w
}

// activeFor is how long after a caller's last question background work goes on for an exchange.
const activeFor = 10 * time.Minute

// touch notes that a caller asks.
func (v *venue) touch(now time.Time) { touch(&v.asked, now) }

func (v *venue) active(now time.Time) bool {
	a := v.asked.Load()
	return a != 0 && clock.Nanoseconds(now)-a < int64(activeFor)
}

// inUse tells whether callers asked for the exchange lately or something of it is streamed: only then it is asked for what
// nobody waits for.
func (b *Books) inUse(v *venue, now time.Time) bool { return v.active(now) || b.cfg.Streamed(v.ID) }

func (v *venue) askedAt() time.Time {
	if a := v.asked.Load(); a != 0 {
		return clock.FromNanoseconds(a)
	}
	return time.Time{}
}

func (v *venue) circuit(id market.CircuitID) market.CircuitState { return v.Health.Circuit(id).State }

// peek is why a call of op that concerns no single pair would be refused now.
func (v *venue) peek(op market.Op) error {
	return v.Health.Peek(v.Plan(op, market.Listing{Exchange: v.ID}, 0))
}

var (
	errSlow   = errors.New("no answer in the time that this question may take")
	errOld    = errors.New("the answer is older than what the exchange said before")
	errPurged = errors.New("an operator dropped every copy of this book while the exchange was asked")
	errPast   = errors.New("the exchange answered from a cache, with a book older than is accepted")
	errAge    = errors.New("the age of the answer cannot be known")
)

// retrySlow is what a caller is told to wait after a wait that we ended: the call may end at any moment.
const retrySlow = time.Second

// slow is the error of a question whose call did not end in the time that the caller has. The call goes on.
func (v *venue) slow(op market.Op) error {
	return &market.Error{Exchange: v.ID, Op: op, Kind: market.KindTimeout, RetryAfter: retrySlow, Err: errSlow}
}

// left is the error of a caller whose context ended.
func (v *venue) left(ctx context.Context, op market.Op) error {
	return &market.Error{Exchange: v.ID, Op: op, Kind: market.KindOf(ctx.Err()), Err: context.Cause(ctx)}
}

// told is the error of a flight as those see it who still wait for it: a call that was cancelled although they wait was
// cancelled by our own end.
func (v *venue) told(op market.Op, err error) error {
	if market.KindOf(err) != market.KindCanceled {
		return err
	}
	return &market.Error{Exchange: v.ID, Op: op, Kind: market.KindOverloaded, RetryAfter: busyFor, Err: errStopping}
}

// retryAfter is the exchange's or the circuit's word on when to try again, as a caller is told it; zero if there is none.
func retryAfter(err error) time.Duration {
	var d time.Duration
	if e, ok := errors.AsType[*Error](err); ok {
		d = e.RetryAfter
	}
	if e, ok := errors.AsType[*market.Error](err); ok {
		d = max(d, e.Wait())
	}
	return d
}
