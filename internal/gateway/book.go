package gateway

import (
	"context"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// askEvery is how often one question about one pair is put to an exchange at most, whatever the callers accept. No venue
// changes a book meaningfully faster over REST, and 200 ms keeps one impatient bot to 5 calls a second.
const askEvery = 200 * time.Millisecond

// tiers are the depths that are asked for: what exchanges charge little for. Binance charges 5, 25 and 50 up to 100, 500
// and 1,000 levels; OKX and Coinbase charge all depths alike. Asking for a whole tier also lets more readers share a call.
var tiers = [...]int{100, 500, 1000}

func (b *Books) tier(depth int) int {
	for _, t := range tiers {
		if depth <= t {
			return min(t, b.cfg.MaxDepth)
		}
	}
	return b.cfg.MaxDepth
}

// OrderBook answers with one book: a *Book, or an *Error or *market.Error that says why there is none. The book's levels
// are shared; its freshness is the caller's.
func (b *Books) OrderBook(ctx context.Context, q BookQuery) (*Book, error) {
	return b.read(ctx, q, manner{})
}

// manner is how a book is asked for on behalf of a larger question.
type manner struct {
	patience time.Duration // answer within it, and let the call go on; 0 is as long as the exchange's deadline allows
	keep     bool          // the call goes on even when the caller leaves
	part     bool          // a failure is not the answer: whoever asks counts it
}

func (b *Books) read(ctx context.Context, q BookQuery, m manner) (*Book, error) {
	now := clock.Now()
	v, err := b.venue(q.Exchange, now)
	if err != nil {
		return nil, err
	}
	book, err := b.find(ctx, v, q, m, now)
	if err != nil {
		if err = v.ease(err, now); !m.part {
			v.tally.refuse(v.metrics, QuestionBook, err, now)
		}
		return nil, err
	}
	return book, nil
}

// find reads one book of an exchange, unless it is withheld.
func (b *Books) find(ctx context.Context, v *venue, q BookQuery, m manner, now time.Time) (*Book, error) {
	if err := b.withhold(v.ID, q.Pair); err != nil {
		return nil, err
	}
	r := reading{
		b: b, v: v, pair: q.Pair, depth: min(max(q.Depth, 1), b.cfg.MaxDepth), live: q.RequireLive, start: now,
		manner: m, most: b.bound(q.MaxAge), fresh: b.policy.Book.FreshFor,
	}
	if q.MaxAge.Set {
		r.fresh = min(r.fresh, r.most)
	}
	if t := v.table.Load(); t != nil {
		r.e = t.entries[q.Pair]
	}
	if r.e == nil {
		if book, err := r.find(ctx); book != nil || err != nil {
			return b.unlessWithheld(book, err, q)
		}
	}
	book, err := r.walk(ctx)
	r.used(book, err)
	return b.unlessWithheld(book, err, q)
}

// unlessWithheld is the answer, unless it was withheld since the question.
func (b *Books) unlessWithheld(book *Book, err error, q BookQuery) (*Book, error) {
	if late := b.withhold(q.Exchange, q.Pair); late != nil {
		return nil, late
	}
	return book, err
}

// reading is one question for a book on its way through the sources of the policy's row.
type reading struct {
	manner
	b       *Books
	v       *venue
	e       *entry // nil until the pair was found in a list
	pair    market.Pair
	depth   int
	live    bool          // only a live answer will do
	fresh   time.Duration // a copy this young is live and within the caller's bound
	most    time.Duration // the oldest copy that may be served
	start   time.Time
	refused error             // what a call would be refused with
	failed  error             // why the exchange did not answer, once that is known
	missed  *market.OrderBook // an answer that was older than most, nil if there was none
	purged  int               // 1 once a purge overtook an answer; the exchange is asked anew for that once
}

// walk takes the steps of the row in order. Each answers, or fails for good, or leaves it to the next one.
func (r *reading) walk(ctx context.Context) (*Book, error) {
	if l := r.e.listing.Load(); l.Status == market.TradingDelisted {
		return nil, r.v.delisted(r.pair)
	}
	touch(&r.e.asked, r.start)
	r.refused = r.v.peekBook(r.e)
	for _, step := range r.b.policy.Book.Steps {
		var book *Book
		var err error
		switch step {
		case StepLocal:
			book = r.local(r.start)
		case StepFreshCopy:
			book = r.freshCopy(r.start)
		case StepAsk:
			book, err = r.ask(ctx)
		case StepLastKnown:
			book, err = r.lastKnown(ctx)
		case StepVenues: // of prices alone
		}
		if book != nil || err != nil {
			return book, err
		}
	}
	return nil, r.failed
}

// freshCopy answers with a copy that is live as it is.
func (r *reading) freshCopy(now time.Time) *Book {
	c, ok := r.b.cfg.Books.Book(r.v.ID, r.pair)
	if !ok || !c.Complete(r.depth) {
		return nil
	}
	if age, known := c.Age(now); !known || age > r.fresh || r.fresh == 0 {
		return nil
	}
	if _, invalid := r.e.invalidated(c, now); invalid {
		return nil
	}
	r.v.metrics.saved(QuestionBook)
	return r.answer(c, copySource(c), market.KindNone, now)
}

func copySource(b *market.OrderBook) Source {
	if b.Anchor.IsZero() {
		return SourceMemory
	}
	return SourceRedis
}

// usable tells whether a copy may be served to this caller if the exchange does not answer.
func (r *reading) usable(c *market.OrderBook, now time.Time) bool {
	age, known := c.Age(now)
	return known && age <= r.most && !r.live
}

// usableCopy tells whether such a copy is in memory.
func (r *reading) usableCopy() bool {
	c, ok := r.b.cfg.Books.Book(r.v.ID, r.pair)
	return ok && r.usable(c, clock.Now())
}

// lastKnown answers with the newest copy there is, labelled with why it is not live, or with the reason why it may not.
func (r *reading) lastKnown(ctx context.Context) (*Book, error) {
	kind := market.KindOf(r.failed)
	if !market.ServesStale(r.failed) {
		return nil, r.failed
	}
	if r.live && limited(r.failed) {
		return nil, r.failed
	}
	if r.live && r.missed != nil {
		return nil, r.tooStale(r.missed, clock.Now())
	}
	if r.live {
		return nil, r.notLive()
	}
	c, ok := r.b.cfg.Books.Recall(ctx, r.v.ID, r.pair)
	if !ok {
		if ctx.Err() != nil {
			return nil, r.v.left(ctx, market.OpOrderBook)
		}
		return nil, r.failed
	}
	now := clock.Now()
	switch {
	case r.usable(c, now):
		return r.answer(c, copySource(c), kind, now), nil
	case limited(r.failed):
		return nil, r.failed
	}
	return nil, r.tooStale(c, now)
}

func (r *reading) notLive() error {
	c, ok := r.b.cfg.Books.Book(r.v.ID, r.pair)
	if !ok {
		return r.failed
	}
	age, _ := c.Age(clock.Now())
	return &Error{
		Code: CodeNotLive, Exchange: r.v.ID, Detail: "a live order book was required and only an older copy is held",
		RetryAfter: retryAfter(r.failed), Age: age, Err: r.failed,
	}
}

func (r *reading) tooStale(c *market.OrderBook, now time.Time) error {
	age, known := c.Age(now)
	detail := "the newest copy is " + age.Round(time.Millisecond).String() + " old, and at most " + r.most.String() +
		" is accepted"
	if !known {
		detail = "the age of the newest copy is not known"
	}
	return &Error{
		Code: CodeBookTooStale, Exchange: r.v.ID, Detail: detail, RetryAfter: retryAfter(r.failed), Age: age, Err: r.failed,
	}
}

// answer labels a book. A copy that was not fetched for this question, nor is kept by a stream that is vouched for, is live
// if it is younger than fresh_for and was not invalidated since; everything else is stale, for the reason given.
func (r *reading) answer(c *market.OrderBook, source Source, reason market.Kind, now time.Time) *Book {
	out := &Book{OrderBook: c, Shown: r.depth}
	if r.e != nil {
		out.Listing = *r.e.listing.Load()
	}
	out.Freshness = r.b.label(r.v, r.e, c, source, reason, now)
	r.b.served(r.v, r.warner(), c, &out.Freshness, now)
	if r.e != nil {
		r.e.note(c, &out.Freshness, now)
	}
	return out
}

func (r *reading) warner() *warner {
	if r.e != nil {
		return &r.e.warn
	}
	return &r.v.warn
}

// label makes the freshness of one answer. It reads the book's clocks and moves none.
func (b *Books) label(v *venue, e *entry, c *market.OrderBook, source Source, reason market.Kind, now time.Time) Freshness {
	age, known := c.Age(now)
	f := Freshness{
		Source: source, Age: age, ConfirmedAt: c.ConfirmedAt, ChangedAt: c.ChangedAt, Circuit: v.circuit(v.books),
	}
	if f.copied() {
		why, invalid := e.invalidated(c, now)
		if invalid && reason == market.KindNone {
			reason = why
		}
		if invalid || !known || age > b.policy.Book.FreshFor {
			f.Stale, f.Reason = true, reason
		}
	}
	if !c.ExchangeTime.IsZero() {
		f.Lag, f.HasLag = clock.Wall(c.ConfirmedAt).Sub(c.ExchangeTime), true
	}
	return f
}

// served counts one answer, and warns when it is old.
func (b *Books) served(v *venue, w *warner, c *market.OrderBook, f *Freshness, now time.Time) {
	v.metrics.answer(QuestionBook, f)
	if f.Reason != market.KindClientLimited { // which says nothing about the exchange
		v.tally.answered(f, now)
	}
	if !f.Stale {
		return
	}
	v.metrics.staleBook(f)
	if f.Age > b.cfg.StaleWarnAfter {
		w.stale(b.log, c, *f, now)
	}
}
