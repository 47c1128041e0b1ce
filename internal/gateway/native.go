package gateway

import (
	"context"
	"errors"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// NativeQuestion is a public question in an exchange's own form.
type NativeQuestion struct {
	Exchange market.ExchangeID
	market.NativeQuery
	// Pairs are those that the question is about, so that an operator who withholds one is heeded. Without any it is about all
	// pairs of the list in use, and is withheld with any of them.
	Pairs []market.Pair
	// MaxAge is the oldest copy of a price that the caller takes if the exchange does not answer. Unset: none. Lists have the
	// bound of their row, whatever it says.
	MaxAge Age
}

// NativeAnswer is an answer in the exchange's own form. Its body may be shared: it is not to be changed.
type NativeAnswer struct {
	*market.NativeAnswer
	Freshness Freshness
}

var (
	errNotNative  = errors.New("this exchange is not asked in its own form")
	errPastNative = errors.New("the exchange answered from a cache, with something older than is accepted")
)

// Native answers a question in an exchange's own form, by the row of the policy that its endpoint has. Errors are an *Error
// or a *market.Error; KindNotSupported for an exchange or an endpoint that is not asked in this way.
func (b *Books) Native(ctx context.Context, q NativeQuestion) (*NativeAnswer, error) {
	now := clock.Now()
	v, err := b.venue(q.Exchange, now)
	if err != nil {
		return nil, err
	}
	if v.Native == nil {
		return nil, &market.Error{Exchange: v.ID, Op: market.OpNative, Kind: market.KindNotSupported, Err: errNotNative}
	}
	got, err := b.native(ctx, v, q, now)
	if err != nil {
		if err = v.ease(err, now); denied(err) {
			v.metrics.unanswer(QuestionNative, causeOf(err))
			v.tally.refuseBeside(err, now)
		}
		return nil, err
	}
	v.metrics.answer(QuestionNative, &got.Freshness)
	v.tally.beside(&got.Freshness, now)
	return got, nil
}

// native answers unless what was asked for is withheld, also since the question.
func (b *Books) native(ctx context.Context, v *venue, q NativeQuestion, now time.Time) (*NativeAnswer, error) {
	call, err := v.Native.NativePlan(q.NativeQuery)
	if err != nil {
		return nil, err
	}
	p := passing{b: b, v: v, q: q, rule: b.policy.native(q.Endpoint), start: now}
	if err := p.withheld(); err != nil {
		return nil, err
	}
	p.refused = v.Health.Peek(call)
	got, err := p.walk(ctx)
	if late := p.withheld(); late != nil {
		return nil, late
	}
	return got, err
}

// passing is one question in an exchange's own form on its way through the sources of its row.
type passing struct {
	b       *Books
	v       *venue
	q       NativeQuestion
	rule    *Rule
	kept    *native // nil where nothing is kept
	start   time.Time
	refused error // what a call would be refused with
	failed  error // why the exchange did not answer, once that is known
}

// withheld is the refusal of a question about a pair that an operator withholds. Lists of names are never withheld.
func (p *passing) withheld() error {
	if p.b.cfg.Withheld == nil || p.rule.Names {
		return nil
	}
	refuse := func(pair market.Pair) error {
		return withhold(p.b.cfg.Withheld, market.OpNative, p.v.ID, pair)
	}
	for _, pair := range p.q.Pairs {
		if err := refuse(pair); err != nil {
			return err
		}
	}
	if len(p.q.Pairs) > 0 {
		return nil
	}
	if err := refuse(market.Pair{}); err != nil {
		return err
	}
	if t := p.v.table.Load(); t != nil {
		for pair := range t.entries {
			if err := refuse(pair); err != nil {
				return err
			}
		}
	}
	return nil
}

// walk takes the steps of the row in order.
func (p *passing) walk(ctx context.Context) (*NativeAnswer, error) {
	switch {
	case p.v.whole.answers(p.q.NativeQuery):
		p.kept = &p.v.whole.native
		p.v.whole.asked.Store(clock.Nanoseconds(p.start))
		p.recallWhole(ctx, false)
	case p.rule.FreshFor > 0:
		p.kept = p.v.natives.of(p.q.NativeQuery, p.rule)
	}
	for _, step := range p.rule.Steps {
		var got *NativeAnswer
		var err error
		switch step {
		case StepFreshCopy:
			got = p.fresh(p.start)
		case StepAsk:
			if p.kept == &p.v.whole.native {
				got, err = p.askWhole(ctx)
			} else {
				got, err = p.ask(ctx)
			}
		case StepLastKnown:
			if p.kept == &p.v.whole.native {
				p.recallWhole(ctx, true)
			}
			got = p.lastKnown()
		case StepLocal, StepVenues: // of books and prices in words of ours
		}
		if got != nil || err != nil {
			return got, err
		}
	}
	return nil, p.failed
}

// fresh answers with a copy that is live as it is, and within the caller's bound.
func (p *passing) fresh(now time.Time) *NativeAnswer {
	most := p.rule.FreshFor
	if p.q.MaxAge.Set && !p.rule.Names {
		most = min(most, p.q.MaxAge.Limit)
	}
	a := p.kept.answer.Load()
	if a == nil {
		return nil
	}
	if age, known := a.Age(now); !known || age > most || most <= 0 {
		return nil
	}
	p.v.metrics.saved(QuestionNative)
	return p.answer(a, nativeSource(a), market.KindNone, now)
}

func nativeSource(a *market.NativeAnswer) Source {
	if a.Anchor.IsZero() {
		return SourceMemory
	}
	return SourceRedis
}

// usable is the copy that may be served if the exchange does not answer, nil if there is none.
func (p *passing) usable(now time.Time) *market.NativeAnswer {
	most := p.rule.StaleFor
	if !p.rule.Names {
		most = min(most, p.q.MaxAge.Limit) // 0 unless the caller gave one
	}
	if p.kept == nil || most <= 0 {
		return nil
	}
	a := p.kept.answer.Load()
	if a == nil {
		return nil
	}
	if age, known := a.Age(now); !known || age > most {
		return nil
	}
	return a
}

// lastKnown answers with the copy, labelled with why it is not live.
func (p *passing) lastKnown() *NativeAnswer {
	kind, now := market.KindOf(p.failed), clock.Now()
	a := p.usable(now)
	if a == nil || !market.ServesStale(p.failed) {
		return nil
	}
	return p.answer(a, nativeSource(a), kind, now)
}

// ask puts the question to the exchange, or joins those who already did. Without an answer the reason is in failed; the error
// is that of a caller who left. One who holds a usable copy waits for stale_wait at most.
func (p *passing) ask(ctx context.Context) (*NativeAnswer, error) {
	if p.failed = p.refused; p.failed != nil {
		p.v.metrics.saved(QuestionNative)
		return nil, nil
	}
	alone := 0 // calls of others that failed for their own part
	for {
		s, every := p.slot()
		f, joined, pause, err := s.enter(ctx, p.v.crew, 0, every, p.fetch())
		switch {
		case err != nil:
			p.failed = err
			return nil, nil
		case f == nil:
			if !rest(ctx, pause, p.patience()) {
				p.failed, err = p.v.leftOrSlow(ctx, market.OpNative)
				return nil, err
			}
			if got := p.fresh(clock.Now()); got != nil {
				return got, nil
			}
			continue
		case joined:
			p.v.metrics.shared(QuestionNative)
		}
		switch f.await(ctx, p.patience()) {
		case landed:
			if joined && alone < maxAlone && f.alone(ctx, f.err) {
				alone++
				continue
			}
			return p.landed(f), nil
		case gone:
			s.leave(f, false)
		case late:
			s.leave(f, true)
		}
		p.failed, err = p.v.leftOrSlow(ctx, market.OpNative)
		return nil, err
	}
}

// slot is where those who ask the same meet: nobody does where nothing is kept.
func (p *passing) slot() (s *slot[*market.NativeAnswer], every time.Duration) {
	if p.kept == nil {
		return &slot[*market.NativeAnswer]{}, 0
	}
	return &p.kept.asking, askEvery
}

// fetch is the call. It outlives p, so it is given none of it.
func (p *passing) fetch() ask[*market.NativeAnswer] {
	v, q, kept := p.v, p.q.NativeQuery, p.kept
	return func(ctx context.Context) (*market.NativeAnswer, error) {
		a, err := v.Native.Native(ctx, q)
		if err == nil && kept != nil {
			a = v.natives.keep(q, kept, a)
		}
		return a, err
	}
}

// patience is how much longer this caller waits for the exchange, 0 for as long as it takes.
func (p *passing) patience() time.Duration {
	if p.usable(clock.Now()) == nil {
		return 0
	}
	return max(p.b.cfg.StaleWait-clock.Since(p.start), time.Nanosecond)
}

// landed answers with what a flight brought, unless that came from a cache of the exchange and is older than this caller
// accepts. The bound counts back from the question, as for books.
func (p *passing) landed(f *flight[*market.NativeAnswer]) *NativeAnswer {
	if f.err != nil {
		p.failed = p.v.told(market.OpNative, f.err)
		return nil
	}
	now, bounded := clock.Now(), p.q.MaxAge.Set && !p.rule.Names
	age, known := f.value.Age(now)
	switch {
	case !known:
		p.failed = p.wrong(market.KindMalformed, errAge)
		return nil
	case bounded && age-now.Sub(p.start) > p.q.MaxAge.Limit+askEvery:
		p.failed = p.wrong(market.KindSuspect, errPastNative)
		return nil
	}
	return p.answer(f.value, SourceREST, market.KindNone, now)
}

func (p *passing) wrong(kind market.Kind, why error) error {
	return &market.Error{Exchange: p.v.ID, Op: market.OpNative, Kind: kind, RetryAfter: retrySlow, Err: why}
}

// answer labels an answer. It reads its clock and never moves it.
func (p *passing) answer(a *market.NativeAnswer, source Source, reason market.Kind, now time.Time) *NativeAnswer {
	age, _ := a.Age(now)
	f := Freshness{
		Source: source, Age: age, ConfirmedAt: a.ConfirmedAt,
		Circuit: p.v.circuit(market.CircuitID{Exchange: p.v.ID, Class: market.OpNative.Class()}),
	}
	if source != SourceREST && age > p.rule.FreshFor {
		f.Stale, f.Reason = true, reason
	}
	return &NativeAnswer{NativeAnswer: a, Freshness: f}
}
