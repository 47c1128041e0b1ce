package gateway

import (
	"context"
	"fmt"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// MaxTickers is how many pairs one question for tickers may name.
const MaxTickers = 50

// Ticker answers with the top of one book and the figures of its last 24 hours, each with a freshness of its own. It fails
// only as OrderBook fails: missing figures are absent.
func (b *Books) Ticker(ctx context.Context, q BookQuery) (*Ticker, error) {
	v, err := b.venue(q.Exchange, clock.Now())
	if err != nil {
		return nil, err
	}
	if err := b.withhold(q.Exchange, q.Pair); err != nil {
		v.tally.refuse(v.metrics, QuestionBook, err, clock.Now())
		return nil, err
	}
	// Both questions are put side by side, except where the pair is not known yet.
	e := v.entry(q.Pair)
	var i inquiry
	if e != nil {
		i = b.inquire(ctx, v, e)
	}
	book, err := b.OrderBook(ctx, q)
	if err != nil {
		i.abandon()
		return nil, err
	}
	t := newTicker(book)
	if e == nil {
		if e = v.entry(q.Pair); e == nil {
			t.StatsUnanswered = book.Freshness.Reason // the list is missing, and that is why
			return t, nil
		}
		i = b.inquire(ctx, v, e)
	}
	most := b.bound(q.MaxAge)
	t.show(i.answer(ctx, b.spare(&t.Book, most)))
	if err := b.renew(&t.Book, most, clock.Now()); err != nil {
		return nil, err
	}
	if q.RequireLive && t.Freshness.Stale {
		return nil, b.noLongerLive(v, &t.Book)
	}
	if err := b.withhold(q.Exchange, q.Pair); err != nil { // while the figures were waited for
		return nil, err
	}
	return t, nil
}

func (t *Ticker) show(f figures) {
	t.Statistics, t.StatsFreshness, t.StatsUnanswered = f.s, f.freshness, f.unanswered
}

// entry is nil for a pair that no list names.
func (v *venue) entry(p market.Pair) *entry {
	if t := v.table.Load(); t != nil {
		return t.entries[p]
	}
	return nil
}

// Tickers answers from what is held and asks no exchange: each pair has its ticker or its error. Every book is labelled as
// it is; how old it may be is bounded as for a caller who gives no bound. More than MaxTickers pairs are KindInvalid.
func (b *Books) Tickers(ctx context.Context, exchange market.ExchangeID, pairs []market.Pair) ([]TickerResult, error) {
	now := clock.Now()
	v, err := b.venue(exchange, now)
	if err != nil {
		return nil, err
	}
	if len(pairs) == 0 || len(pairs) > MaxTickers {
		return nil, &market.Error{
			Exchange: exchange, Op: market.OpOrderBook, Kind: market.KindInvalid,
			Err: fmt.Errorf("%d symbols: 1 to %d may be named", len(pairs), MaxTickers),
		}
	}
	out := make([]TickerResult, len(pairs))
	for i, p := range pairs {
		if ctx.Err() != nil {
			return nil, v.left(ctx, market.OpOrderBook)
		}
		if out[i] = b.held(v, p, now); out[i].Err != nil {
			out[i].Err = v.ease(out[i].Err, now)
			v.tally.refuse(v.metrics, QuestionBook, out[i].Err, now)
		}
	}
	return out, nil
}

// held is one pair's ticker from memory.
func (b *Books) held(v *venue, p market.Pair, now time.Time) TickerResult {
	if err := b.withhold(v.ID, p); err != nil {
		return TickerResult{Pair: p, Err: err}
	}
	r := reading{
		b: b, v: v, e: v.entry(p), pair: p, depth: 1, start: now,
		most: min(b.cfg.DefaultMaxAge, b.policy.Book.StaleFor),
	}
	var refused error
	switch {
	case r.e != nil:
		touch(&r.e.asked, now)
		refused = v.peekBook(r.e)
	case v.table.Load() != nil:
		return TickerResult{Pair: p, Err: v.unlisted(p)}
	default:
		v.nameless.touch(p, now)
		refused = v.peek(market.OpOrderBook)
	}
	if r.e != nil {
		if book := r.local(now); book != nil {
			r.used(book, nil)
			t := newTicker(book)
			t.show(b.figures(v, r.e, SourceMemory, v.unheard(r.e), now))
			return TickerResult{Pair: p, Ticker: t}
		}
	}
	c, ok := b.cfg.Books.Book(v.ID, p)
	switch {
	case !ok:
		return TickerResult{Pair: p, Err: &Error{
			Code: CodeBookNotHeld, Exchange: v.ID, Err: refused, RetryAfter: retryAfter(refused),
			Detail: "no order book of " + p.String() + " is held: ask for its ticker or its order book first",
		}}
	case !r.usable(c, now):
		r.failed = refused
		return TickerResult{Pair: p, Err: r.tooStale(c, now)}
	}
	reason := market.KindOf(refused)
	if reason == market.KindNone && r.e != nil {
		reason = market.KindOf(r.e.book.failure())
	}
	v.metrics.saved(QuestionBook)
	r.used(nil, nil)
	t := newTicker(r.answer(c, copySource(c), reason, now))
	if r.e != nil {
		t.show(b.figures(v, r.e, SourceMemory, v.unheard(r.e), now))
	}
	return TickerResult{Pair: p, Ticker: t}
}

func newTicker(b *Book) *Ticker {
	t := &Ticker{Book: *b}
	if bid, ask, hasBid, hasAsk := b.Top(); hasBid && hasAsk {
		t.Mid = market.Some(market.Mid(bid.Price, ask.Price))
		t.Spread = market.Some(market.Spread(bid.Price, ask.Price))
	}
	return t
}
