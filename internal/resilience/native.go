package resilience

import (
	"context"

	"exchange-gateway/internal/market"
)

var _ market.Native = (*guardedNative)(nil)

// guardedNative is the port for questions in an exchange's own form, behind the guard.
type guardedNative struct {
	x      *exchange
	native market.Native
}

// Native returns the guarded port of an exchange for questions in its own form. Errors are those of MarketData; the rate
// limits come with that too, which has to be guarded before the first question. Its endpoints are public, so its probes
// outlive their callers.
func (g *Guard) Native(id market.ExchangeID, n market.Native) market.Native {
	return &guardedNative{x: g.exchange(id), native: n}
}

// NativeEndpoints implements market.Native.
func (n *guardedNative) NativeEndpoints() []market.NativeEndpoint { return n.native.NativeEndpoints() }

// NativePlan implements market.Native.
func (n *guardedNative) NativePlan(q market.NativeQuery) (market.Call, error) {
	return n.native.NativePlan(q)
}

// Native implements market.Native. A question that the adapter has no plan for is refused with the adapter's words, and
// neither the circuit nor a budget hears of it.
func (n *guardedNative) Native(ctx context.Context, q market.NativeQuery) (*market.NativeAnswer, error) {
	plan, err := n.native.NativePlan(q)
	if err != nil {
		return nil, err
	}
	return ask(ctx, n.x, plan, true, func(ctx context.Context) (*market.NativeAnswer, error) {
		return n.native.Native(ctx, q)
	})
}
