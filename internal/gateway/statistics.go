package gateway

import (
	"context"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// asideWait is how long an answer waits for something that it can do without, and of which nothing is held: statistics of
// a ticker, the announcement in a status. Beyond it the part is missing, and the call goes on for the next one who asks.
const asideWait = time.Second

// figures are the statistics of one answer, or why there are none.
type figures struct {
	s          *market.Statistics
	freshness  Freshness
	unanswered market.Kind
}

// inquiry is a question for statistics that was put and not yet answered, so that the book can be asked for meanwhile.
type inquiry struct {
	b      *Books
	v      *venue
	e      *entry
	f      *flight[*market.Statistics]
	start  time.Time
	failed error
}

// inquire asks for statistics if the ones that are held are not fresh.
func (b *Books) inquire(ctx context.Context, v *venue, e *entry) inquiry {
	i := inquiry{b: b, v: v, e: e, start: clock.Now()}
	if s := e.figures.Load(); s != nil {
		if age, known := s.Age(i.start); known && age <= b.policy.Statistics.FreshFor {
			v.metrics.saved(QuestionStatistics)
			return i
		}
	}
	l := *e.listing.Load()
	if i.failed = v.Health.Peek(v.Plan(market.OpStatistics, l, 0)); i.failed != nil {
		v.metrics.saved(QuestionStatistics)
		return i
	}
	f, joined, _, err := e.statistics.enter(ctx, v.crew, 0, askEvery, fetchFigures(v, e))
	if joined {
		v.metrics.shared(QuestionStatistics)
	}
	if i.f, i.failed = f, err; f == nil && err == nil {
		i.failed = v.slow(market.OpStatistics) // given up a moment ago
	}
	return i
}

func fetchFigures(v *venue, e *entry) ask[*market.Statistics] {
	l := *e.listing.Load()
	return func(ctx context.Context) (*market.Statistics, error) {
		s, err := v.Data.Statistics(ctx, l)
		if err == nil {
			e.keep(s)
		}
		return s, err
	}
}

// keep makes s the last-known figures unless newer ones are held: by the exchange's own stamp, and by confirmation
// without one.
func (e *entry) keep(s *market.Statistics) {
	e.keeping.Lock()
	defer e.keeping.Unlock()
	if !s.ConfirmedAt.After(e.forgotten) {
		return
	}
	if old := e.figures.Load(); old == nil || !older(s, old) {
		e.figures.Store(s)
	}
}

func older(s, old *market.Statistics) bool {
	if !s.ExchangeTime.IsZero() && !old.ExchangeTime.IsZero() {
		return s.ExchangeTime.Before(old.ExchangeTime)
	}
	return s.ConfirmedAt.Before(old.ConfirmedAt)
}

// answer waits for the exchange, less long for one who holds figures already and no longer than spare if there is one, and
// says what there is then.
func (i *inquiry) answer(ctx context.Context, spare time.Duration) figures {
	source := SourceMemory
	if i.f != nil {
		limit := asideWait
		if i.held(clock.Now()) != nil {
			limit = i.b.cfg.StaleWait
		}
		limit -= clock.Since(i.start)
		if spare > 0 {
			limit = min(limit, spare)
		}
		switch i.f.await(ctx, max(limit, time.Nanosecond)) {
		case landed:
			if i.failed = i.f.err; i.failed == nil && i.e.figures.Load() == i.f.value {
				source = SourceREST
			}
		case late:
			i.e.statistics.leave(i.f, true)
			i.failed = i.v.slow(market.OpStatistics)
		case gone:
			i.e.statistics.leave(i.f, false)
			i.failed = i.v.left(ctx, market.OpStatistics)
		}
	}
	return i.b.figures(i.v, i.e, source, market.KindOf(i.failed), clock.Now())
}

// unheard is why the exchange would not be heard, or was not heard last, about figures that nobody asks for now.
func (v *venue) unheard(e *entry) market.Kind {
	if refused := v.Health.Peek(v.Plan(market.OpStatistics, *e.listing.Load(), 0)); refused != nil {
		return market.KindOf(refused)
	}
	return market.KindOf(e.statistics.failure())
}

// abandon is for one who wants no answer any more.
func (i *inquiry) abandon() {
	if i.f != nil {
		i.e.statistics.leave(i.f, true)
	}
}

// held are the last-known figures that may still be served.
func (i *inquiry) held(now time.Time) *market.Statistics { return i.b.heldFigures(i.e, now) }

func (b *Books) heldFigures(e *entry, now time.Time) *market.Statistics {
	s := e.figures.Load()
	if s == nil {
		return nil
	}
	if age, known := s.Age(now); !known || age > b.policy.Statistics.StaleFor {
		return nil
	}
	return s
}

// figures labels what is held. reason is why the exchange was not heard, if it was asked.
func (b *Books) figures(v *venue, e *entry, source Source, reason market.Kind, now time.Time) figures {
	s := b.heldFigures(e, now)
	if s == nil {
		return figures{unanswered: reason}
	}
	age, _ := s.Age(now)
	f := Freshness{
		Source: source, Age: age, ConfirmedAt: s.ConfirmedAt,
		Circuit: v.circuit(market.CircuitID{Exchange: v.ID, Class: market.ClassReference}),
	}
	if source != SourceREST && age > b.policy.Statistics.FreshFor {
		f.Stale, f.Reason = true, reason
	}
	if !s.ExchangeTime.IsZero() {
		f.Lag, f.HasLag = clock.Wall(s.ConfirmedAt).Sub(s.ExchangeTime), true
	}
	v.metrics.answer(QuestionStatistics, &f)
	return figures{s: s, freshness: f}
}
