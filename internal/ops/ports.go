package ops

import (
	"context"
	"time"

	"exchange-gateway/internal/market"
)

// Guard is what the desk reads of circuits and does to them. Reading changes nothing and does no I/O.
type Guard interface {
	Boot() string
	Circuits() []market.CircuitStatus
	Gates() []market.GateStatus
	Budgets() []market.BudgetStatus
	// Samples are the last five minutes of an exchange, oldest first; the newest is still being filled.
	Samples(id market.ExchangeID) []market.Sample
	// Failures are the last attempts that went wrong, newest first, at most 20.
	Failures(id market.ExchangeID) []market.Failure
	// LastSuccess is when an attempt last ended well, zero if none has.
	LastSuccess(id market.ExchangeID) time.Time
	// Tell numbers an event of somebody else's, keeps and delivers it like the guard's own, and returns it with its number.
	Tell(ev market.Event) market.Event
	// Heard waits until every event that was told before was delivered, or ctx ends. Delivering waits for nothing.
	Heard(ctx context.Context) error

	Isolate(id market.ExchangeID, class market.Class, until time.Time) error
	Release(id market.ExchangeID, class market.Class) error
	// Probe ends the open times of a class now, so that the next call is the probe.
	Probe(id market.ExchangeID, class market.Class) error
}

// Keeper writes down what has to survive a restart: overrides, and the journal of 24 hours.
type Keeper interface {
	// Save puts overrides in the place of those that are about the same, or ends them (Until is not after now). It returns
	// where all of them are written down, in words: redis, state_dir. They are written down together.
	Save(ctx context.Context, all ...market.Override) (where []string, err error)
	// Places names where it is meant to write, in the same words; nil for nowhere. It never changes.
	Places() []string
	// Append writes one event down and returns when that is done, within 250 ms.
	Append(ctx context.Context, ev market.Event) (where []string, err error)
	// Load returns the overrides that are in force and the events of the last 24 hours, oldest first, and since when those
	// are complete: zero if nothing was kept before. It takes at most a second.
	Load(ctx context.Context) (Kept, error)
	// InForce returns the overrides that are in force: Save has what it was given in it before it returns, so who adopts
	// what other processes changed reads it here, under the lock that it also holds for Save. It does no I/O.
	InForce() []market.Override
}

// Kept is what an earlier life left behind.
type Kept struct {
	Overrides []market.Override // in force, and those that ended by themselves since, of which no event tells
	Events    []market.Event
	Since     time.Time
}

// Copies are the books that are held anywhere.
type Copies interface {
	// Purge drops every copy of a book: in memory, what waits to be written, and in the shared store. It returns where there
	// were some: memory, redis. Answers that were asked for before are not kept when they come.
	Purge(ctx context.Context, exchange market.ExchangeID, pair market.Pair) (where []string, err error)
}

// Feed is what the desk reads of streams and does to them. Nothing of it does I/O or waits.
type Feed interface {
	// Books lists what is streamed of an exchange; the fields about streams are filled in, and those of the book itself.
	Books(id market.ExchangeID) []Book
	// Status is how its streams stand, nil if it has none.
	Status(id market.ExchangeID) *Streams
	// Cut closes every connection of an exchange at once; its books are stale with the reason `isolated`, and nothing is
	// connected until Wake.
	Cut(id market.ExchangeID)
	// Wake ends Cut, and every pause before the next connect.
	Wake(id market.ExchangeID)
	// Resync gives a streamed book up and starts it from a new snapshot; false if it is not streamed.
	Resync(id market.ExchangeID, pair market.Pair) bool
	// Withhold tells subscribers that a pair (zero: the whole exchange) is withheld, or no longer.
	Withhold(id market.ExchangeID, pair market.Pair, on bool)
}

// Answers is what the desk reads of the policy.
type Answers interface {
	// ServedBooks lists the books that were answered in the last 10 min, at most 200.
	ServedBooks() []market.ServedBook
	// Served counts the answers of the last five minutes.
	Served(id market.ExchangeID) Served
	// Lately is what clients got and would get of an exchange. streamed are its streamed books, as Feed lists them.
	Lately(id market.ExchangeID, streamed []Book) Lately
	// Maintenance lists the windows of an exchange that are open or begin within 24 hours, by their beginning.
	Maintenance(id market.ExchangeID) []market.Maintenance
	// Listed tells whether the exchange's list of pairs, as far as one is held, has a pair; known is false without a list. It
	// does no I/O.
	Listed(id market.ExchangeID, pair market.Pair) (listed, known bool)
	// Ask makes one cheap call of a class through everything that protects the exchange, and returns what it said. A class
	// that has nothing to ask (no account, no streamed book) is market.ErrNotSupported.
	Ask(ctx context.Context, id market.ExchangeID, class market.Class) error
}

// Lately is what clients got of an exchange in the last two minutes, and what those would get now who asked in the last ten:
// from what is known, without asking.
type Lately struct {
	// Answers, without those that say nothing about the exchange: a client's own mistakes, and refusals of require=live.
	Live, Stale, Errors int
	// Wanted are stale answers and errors because an operator wanted it so. They are not in the others.
	Wanted int
	// Pairs that were asked for, by what a client without a bound of its own would get now.
	Pairs PairOutlook
	// AskedAt is when a client last asked, zero if none did.
	AskedAt time.Time
	// Balances tells that a client asked for one in the last ten minutes.
	Balances bool
}

// PairOutlook counts pairs by what a question about them would get.
type PairOutlook struct {
	Live, Stale, None int
	Wanted            int // stale or none because an operator wanted it so
}

// Clients tells what the clients of the gateway do. It does no I/O.
type Clients interface {
	// Top lists the n clients that did most in the last minute, those that cost exchanges most first. Who did nothing is not
	// in it.
	Top(n int) []ClientUse
}

// Reloader applies the configuration file anew, or changes nothing and says why.
type Reloader interface {
	Reload(ctx context.Context) (changed, needRestart []string, err error)
}
