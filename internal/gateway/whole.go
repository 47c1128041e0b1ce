package gateway

import (
	"context"
	"errors"
	"sync/atomic"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// wholeList is an exchange's list of pairs in the exchange's own form. It is the answer of the call that brings the list in use,
// so whoever asks for either asks the exchange once for both. It has at most as many bytes as the adapter reads, and is held
// as it came only while somebody asks for it: the store has it compressed.
type wholeList struct {
	native
	query  market.NativeQuery // its Endpoint is "" where there is no such question
	asked  atomic.Int64       // when a caller last asked for it, in nanoseconds since 1970
	recall slot[*market.NativeAnswer]
}

func (w *wholeList) init(n market.Native) {
	w.recall.free = true
	if n == nil {
		return
	}
	for _, e := range n.NativeEndpoints() {
		if e.Listings {
			w.query.Endpoint = e.Name
		}
	}
}

// answers tells whether the list answers a question.
func (w *wholeList) answers(q market.NativeQuery) bool { return w.query.Endpoint != "" && q == w.query }

// lacking takes up a list that is not believed where none is held: the exchange did say it.
func (w *wholeList) lacking(a *market.NativeAnswer) {
	if a != nil {
		w.answer.CompareAndSwap(nil, a)
	}
}

// keepWhole keeps the list that came with the one in use.
func (b *Books) keepWhole(v *venue, a *market.NativeAnswer) {
	if a == nil {
		return
	}
	store, asked := b.cfg.Whole, v.whole.asked.Load()
	if store != nil {
		store.KeepWhole(v.ID, a)
	}
	if store == nil || asked != 0 && clock.Nanoseconds(clock.Now())-asked < int64(activeFor) {
		v.whole.answer.Store(a)
	} else {
		v.whole.answer.Store(nil)
	}
}

// recallWhole takes up the list that this or an earlier process kept, or with shared another one, where none is held. Whoever
// asks meanwhile shares it; one who leaves ends nothing.
func (p *passing) recallWhole(ctx context.Context, shared bool) {
	w, store := &p.v.whole, p.b.cfg.Whole
	if store == nil || w.answer.Load() != nil {
		return
	}
	width := 0
	if shared {
		width = 1 // it answers whoever looks here alone, and not the other way round
	}
	exchange := p.v.ID
	f, _, _, err := w.recall.enter(ctx, p.v.crew, width, 0, func(ctx context.Context) (*market.NativeAnswer, error) {
		a, ok := store.RecallWhole(ctx, exchange, shared)
		if ok {
			w.answer.CompareAndSwap(nil, a)
		}
		return a, nil
	})
	if err != nil { // too much under way: the exchange is asked, or the caller gets its error
		return
	}
	f.await(ctx, 0) // the store's own bounds end it
	w.recall.leave(f, true)
}

var errNoWhole = errors.New("the exchange's list came without its own form")

// askWhole asks for the list of pairs. Without an answer the reason is in failed, as ask leaves it.
func (p *passing) askWhole(ctx context.Context) (*NativeAnswer, error) {
	if p.failed = p.refused; p.failed != nil {
		p.v.metrics.saved(QuestionNative)
		return nil, nil
	}
	err := p.b.askList(ctx, p.v, p.patience())
	if ctx.Err() != nil {
		return nil, p.v.left(ctx, market.OpNative)
	}
	if err != nil {
		p.failed = asNative(err)
		return nil, nil
	}
	p.recallWhole(ctx, false) // it came for somebody else, a moment ago
	a, now := p.kept.answer.Load(), clock.Now()
	if a == nil {
		p.failed = p.wrong(market.KindMalformed, errNoWhole)
		return nil, nil
	}
	if _, known := a.Age(now); !known {
		p.failed = p.wrong(market.KindMalformed, errAge)
		return nil, nil
	}
	return p.answer(a, SourceREST, market.KindNone, now), nil
}

// asNative is an error of a call as one of the question that was asked. Errors of calls are shared, so it is another one.
func asNative(err error) error {
	e, ok := errors.AsType[*market.Error](err)
	if !ok {
		return err
	}
	own := *e
	own.Op = market.OpNative
	return &own
}
