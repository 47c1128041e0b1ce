package feed

import (
	"sync/atomic"
	"time"

	"exchange-gateway/internal/market"
)

// book is one streamed book of an exchange, whatever names it is asked for by and whatever connections come and go.
type book struct {
	shard   *shard
	symbol  string // under which the exchange streams it
	listing market.Listing
	used    atomic.Int64 // when it was last used, by the venue's coarse clock
	watched atomic.Int32 // by how many

	// All below is guarded by the shard's lock.
	labels []*label
	gone   bool // released: nobody can find it any more
	best   int  // how many watch the channel of its best bid and ask

	shown  *seat // what is shown of it, nil before the first snapshot
	state  State
	reason market.Kind
	since  time.Time // of the state

	// frozen tells that the exchange was found to know more than its stream said, and that the stream has not spoken since:
	// a snapshot by REST then tells how the book stood once, and not that its changes will come.
	frozen bool
	lapsed market.Kind // why it turned stale, as the log counts it; KindNone otherwise, and once it is live again

	// What is told of it alone, see BookStatus.
	began     time.Time
	resyncs   int
	resyncAt  time.Time
	resyncWhy market.Kind

	refusedUntil time.Time // the exchange will not stream it; asked again then
	losses       int       // in a row, on a connection that was given up for losses; the next seat takes them over
	told         Best      // the best bid and ask that the listener knows
	keptAt       time.Time
	keptVersion  uint64
}

// healthyAfter is how long a book or connection has to last until what went wrong before is forgotten.
const healthyAfter = time.Minute

// freshness is the state at this moment: a live book whose time ran out is stale before anybody has noted it.
func (b *book) freshness(now time.Time) Freshness {
	if b.state == StateLive {
		if over := b.shown.overAt(); now.Sub(over) > 0 {
			return Freshness{State: StateStale, Reason: market.KindTimeout, Since: over}
		}
		if l := b.shown.link; l.silent(now) {
			return Freshness{State: StateStale, Reason: market.KindTimeout, Since: l.silentSince()}
		}
	}
	return Freshness{State: b.state, Reason: b.reason, Since: b.since}
}

// resync counts that what is shown was lost.
func (b *book) resync(now time.Time, why market.Kind) {
	b.resyncs++
	b.resyncAt, b.resyncWhy = now, why
}
