package gateway

import (
	"context"

	"exchange-gateway/internal/market"
)

// Venue is what Books is given of one exchange: its guarded public port, what its calls touch, and its health. There is
// no way from here to an account.
type Venue struct {
	ID market.ExchangeID
	// Data ends every call by itself, within the deadline of its class.
	Data market.MarketData
	// Plan states what a call touches, so that a refusal is known without making it.
	Plan   func(op market.Op, l market.Listing, depth int) market.Call
	Health Health
	// Native passes on questions in the exchange's own form and ends every call by itself, like Data; nil if the exchange is
	// not asked in that way.
	Native market.Native
}

// Health tells what stands between the gateway and an exchange. Neither method does I/O, waits, or changes what it reads.
type Health interface {
	// Circuit reads one circuit.
	Circuit(id market.CircuitID) market.CircuitStatus
	// Peek returns the *market.Error that the call would be refused with now, nil if it would be tried. It is nil when the
	// circuit's next probe is due: the call is then the probe.
	Peek(c market.Call) error
}

// Inventory lists everything that can refuse a call or spoil its answer, for those who ask why. It does no I/O.
type Inventory interface {
	Circuits() []market.CircuitStatus
	Gates() []market.GateStatus
	Budgets() []market.BudgetStatus
	// Unrecognized is the last attempt that something else than the exchange answered, nil once one like it went well.
	Unrecognized(id market.ExchangeID) *market.Failure
}

// Store keeps the last-known books. It never moves a clock.
type Store interface {
	// Book reads the copy in this process, however old, without I/O. One with an Anchor came from a shared store.
	Book(exchange market.ExchangeID, pair market.Pair) (*market.OrderBook, bool)
	// Recall returns the newer of the copy in this process and the shared one. It takes at most 50 ms, asks the shared store
	// at most once a second per book, and coalesces.
	Recall(ctx context.Context, exchange market.ExchangeID, pair market.Pair) (*market.OrderBook, bool)
	// Keep offers an answer of the exchange and returns the book that answers the call which fetched it, nil if none can.
	Keep(b *market.OrderBook) (*market.OrderBook, market.Verdict)
	// Purge drops every copy and keeps none that the exchange vouched for before; it returns where there was one. It takes at
	// most 250 ms, and its error says what may be left.
	Purge(ctx context.Context, exchange market.ExchangeID, pair market.Pair) (where []string, err error)
}

// WholeStore keeps the last-known list of pairs of each exchange in the exchange's own form, compressed: it is megabytes, and
// asked for when a bot starts.
type WholeStore interface {
	// KeepWhole offers an answer. It waits for nothing.
	KeepWhole(exchange market.ExchangeID, a *market.NativeAnswer)
	// RecallWhole is the newest copy: of those in this process and in its state directory, and with shared of the shared store,
	// too, which takes seconds at most.
	RecallWhole(ctx context.Context, exchange market.ExchangeID, shared bool) (*market.NativeAnswer, bool)
}

// ListStore keeps the last-known lists of pairs.
type ListStore interface {
	// RecallListings returns the newer of the lists in this process and in the shared store, with the bounds of Recall.
	RecallListings(ctx context.Context, exchange market.ExchangeID) (*market.Listings, bool)
	// KeepListings offers a list that is believed and returns the one that stands then.
	KeepListings(l *market.Listings) (*market.Listings, bool)
}
