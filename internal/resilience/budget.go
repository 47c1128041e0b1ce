package resilience

import (
	"fmt"
	"time"

	"exchange-gateway/internal/market"
)

// Bounds of what a budget believes.
const (
	// carefulShare is the part of a reported limit that is spent before the exchange's first report: a process that
	// starts does not know what the last one, or a neighbour behind the same address, has spent.
	carefulShare = 10 // one tenth
	// maxClockOffset is how far an exchange's clock may be from ours before its stamps are disregarded.
	maxClockOffset = 10 * time.Minute
)

// budget is the gateway's share of one rate limit. It is a bucket of our own, not x/time/rate: that knows one limit at a
// time where a call draws on several or none, has no lanes, refills where exchanges reset, and gives a cancelled
// reservation back only if that happens in the same nanosecond (golang/go#56924). The ledger's lock covers it.
type budget struct {
	limit    market.Limit
	share    int
	meter    meter
	pace     int64 // between units; zero spends the whole share at once if need be
	slack    int64 // how far ahead of the pace a burst may run
	next     int64 // when the pace permits the next unit
	reported bool
	waiting  [lanes]int
	blocked  int   // up to where calls wait for it that come earlier, within one pass of the ledger
	parts    parts // of one client, of balances
}

// newBudget makes a budget. A limit without capacity or window is a mistake in the adapter and panics at start-up.
func newBudget(l market.Limit, share float64) *budget {
	if l.Capacity <= 0 || l.Window <= 0 {
		panic(fmt.Sprintf("resilience: rate limit %q: %d units in %v", l.ID, l.Capacity, l.Window))
	}
	b := &budget{meter: newMeter(l.Window, l.Aligned)}
	b.state(l, share)
	return b
}

// state takes over how much a limit allows, at the start and when the exchange states it anew. What was spent stays spent.
func (b *budget) state(l market.Limit, share float64) {
	b.limit, b.share, b.pace, b.slack = l, part(l.Capacity, share), 0, 0
	b.parts.aligned = l.Aligned && l.Burst == 0
	if l.Burst > 0 {
		burst := min(part(l.Burst, share), b.share)
		b.pace = int64(l.Window) / int64(b.share)
		b.slack = b.pace * int64(burst-1)
	}
}

// part is a share of whole units, at least one. The little that is added makes 0.7 of 10 seven, not six.
func part(units int, share float64) int { return max(int(float64(units)*share+1e-6), 1) }

// allowance is what may be spent in a window as things stand.
func (b *budget) allowance() int {
	if b.limit.Reported && !b.reported {
		return min(b.share, max(b.limit.Capacity/carefulShare, 1))
	}
	return b.share
}

// spend counts units and returns the slot that they are in.
func (b *budget) spend(now int64, units int, by party) int64 {
	if b.pace > 0 {
		b.next = max(b.next, now) + b.pace*int64(units)
	}
	slot := b.meter.add(now, units, by.lane == market.LaneAccount)
	b.parts.count(slot, by, units)
	return slot
}

func (b *budget) giveBack(slot int64, units int, by party) {
	if b.pace > 0 {
		b.next -= b.pace * int64(units)
	}
	b.meter.giveBack(slot, units, by.lane == market.LaneAccount)
	b.parts.count(slot, by, -units)
}

// report corrects the count by the exchange's own. It only goes up: an answer that overtakes another tells of less, and
// what is still in flight is in our count alone. The next window starts from zero anyway. What is missing in our count was
// spent by others behind the same address, so it is no client's.
func (b *budget) report(used int, exchangeAt time.Time, sent, now int64) {
	b.reported = true
	if b.limit.Aligned && !exchangeAt.IsZero() {
		b.align(exchangeAt.UnixNano(), sent, now)
		if exchangeAt.UnixNano()/b.meter.length < b.meter.index(now) {
			return // of a window that is over
		}
	}
	b.meter.roll(now)
	if missing := used - b.meter.used(now).all; missing > 0 {
		b.meter.add(now, missing, false)
	}
}

// align follows the exchange's clock, by which aligned windows begin. It was stamped at some time between sending and
// now, and a Date header drops up to a second; so each answer gives bounds of the offset, and the faster it came the
// narrower they are.
func (b *budget) align(exchangeAt, sent, now int64) {
	least, most := exchangeAt-now, exchangeAt+int64(time.Second)-sent
	if offset := min(max(b.meter.offset, least), most); time.Duration(offset-b.meter.offset).Abs() <= maxClockOffset {
		b.meter.offset = offset
	}
}

// spentByAccounts tells whether units more for the account lane would take over half of the share.
func (b *budget) spentByAccounts(now int64, units int) bool {
	return 2*(b.meter.used(now).account+units) > b.share
}
