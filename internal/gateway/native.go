package gateway

import (
	"context"
	"errors"
	"time"

	"exchange-gateway/internal/market"
)

// NativeQuestion is a public question in an exchange's own form.
type NativeQuestion struct {
	Exchange market.ExchangeID
	market.NativeQuery
	// Pairs are those that the question is about, so that an operator who withholds one is heeded. Without any it is about all
	// that the exchange has.
	Pairs []market.Pair
	// MaxAge is the oldest copy of a price that the caller takes if the exchange does not answer. Unset: none.
	MaxAge Age
}

// NativeAnswer is an answer in the exchange's own form. Its body may be shared: it is not to be changed.
type NativeAnswer struct {
	*market.NativeAnswer
	Freshness Freshness
}

var errNotNative = errors.New("this exchange is not asked in its own form")

// Native answers a question in an exchange's own form, by the row of the policy that its endpoint has. Errors are an *Error
// or a *market.Error; KindNotSupported for an exchange or an endpoint that is not asked in this way.
func (b *Books) Native(ctx context.Context, q NativeQuestion) (*NativeAnswer, error) {
	now := time.Now()
	v, err := b.venue(q.Exchange, now)
	if err != nil {
		return nil, err
	}
	if v.Native == nil {
		return nil, &market.Error{Exchange: v.ID, Op: market.OpNative, Kind: market.KindNotSupported, Err: errNotNative}
	}
	got, err := v.askNative(ctx, q.NativeQuery)
	if err != nil {
		return nil, v.ease(err, now)
	}
	return &NativeAnswer{NativeAnswer: got, Freshness: Freshness{
		Source: SourceREST, Age: max(time.Since(got.ConfirmedAt), 0), ConfirmedAt: got.ConfirmedAt,
		Circuit: v.circuit(market.CircuitID{Exchange: v.ID, Class: market.OpNative.Class()}),
	}}, nil
}

// askNative puts a question to the exchange that nobody shares. The call ends when its caller leaves.
func (v *venue) askNative(ctx context.Context, q market.NativeQuery) (*market.NativeAnswer, error) {
	var alone slot[*market.NativeAnswer]
	f, _, _, err := alone.enter(ctx, v.crew, 0, 0, func(ctx context.Context) (*market.NativeAnswer, error) {
		return v.Native.Native(ctx, q)
	})
	if err != nil {
		return nil, err
	}
	if f.await(ctx, 0) == gone {
		alone.leave(f, false)
		return nil, v.left(ctx, market.OpNative)
	}
	return f.value, v.told(market.OpNative, f.err)
}
