package resilience

import (
	"time"

	"exchange-gateway/internal/market"
)

// An exchange that counts by its own minute (Binance: 6,000 units) gives all of it back at once, and until then whoever came
// first has it: turns in a queue help nobody where nothing is left to queue for. So of such a window
//
//   - the last tenth, and at least the price of one balance, is for balances alone;
//   - of the quarter at the end, that tenth included, a client may have more only while all that it has had in this window is
//     no more than what it leaves there: who has asked for much stops at three quarters, and one who comes late finds something
//     however many came before, each of whom took at most half of what there was;
//   - what the gateway fetches ahead by itself (books to set streams up again) stops in the middle of what is left between
//     the two: it goes on where a client stopped, and leaves as much to those who come late. Its lists and clocks, which are
//     few and on which everybody waits, go up to the tenth;
//   - a client that has used over half of the window and, with its balances, as much as the tenth, stops at three quarters
//     with them as well.
//
// Before the exchange's first report all of that are parts of the little that is spent until then. Limits whose windows slide
// or that are paced let something pass every moment, which turns share out.
const (
	accountPart = 10 // one tenth
	commonParts = 3  // of four, for whoever comes first
)

// maxCounted bounds the clients that are counted in one window, far above the names of any keys file. Past it the further
// ones are counted as one.
const maxCounted = 1024

// theRest is the name under which those are counted; no client is called so.
const theRest = "*"

// use is what a client has spent in a window.
type use struct{ all, account int }

// parts counts the clients of one aligned window. The map is cleared with the window and keeps its memory.
type parts struct {
	aligned bool  // of any other limit nothing is counted
	slot    int64 // the window that is counted
	by      map[string]use
	balance int // the dearest balance so far
}

func (p *parts) of(client string) use {
	if u, ok := p.by[client]; ok || len(p.by) < maxCounted {
		return u
	}
	return p.by[theRest]
}

// count adds what a client spends, or gives back. What the gateway does of itself is not counted.
func (p *parts) count(slot int64, by party, units int) {
	if !p.aligned || by.client == "" {
		return
	}
	p.turn(slot)
	if slot != p.slot {
		return // given back to a window that is over
	}
	name := by.client
	u, ok := p.by[name]
	if !ok && len(p.by) >= maxCounted {
		name = theRest
		u = p.by[name]
	}
	u.all = max(u.all+units, 0)
	if by.lane == market.LaneAccount {
		u.account = max(u.account+units, 0)
	}
	if p.by == nil {
		p.by = make(map[string]use)
	}
	p.by[name] = u
}

// turn forgets a window that is over. Time never goes back.
func (p *parts) turn(slot int64) {
	if slot > p.slot {
		clear(p.by)
		p.slot = slot
	}
}

// kept is the part of an allowance that is for balances alone. A share so small that a balance is half of it keeps no more.
func (p *parts) kept(allowance int) int {
	return min(max(allowance/accountPart, p.balance), allowance/2)
}

// ceiling is up to where a window may be full, with the units that a call asks for, for that call to be made.
func (b *budget) ceiling(now int64, units int, by party) int {
	all := b.allowance()
	if !b.parts.aligned {
		return all
	}
	kept := b.parts.kept(all)
	if by.lane == market.LaneAccount {
		if u := b.usedBy(now, by.client); 2*u.all > all && u.account+units > kept {
			return b.common(all, kept)
		}
		return all
	}
	used := b.meter.used(now)
	own := min(used.account, kept) // balances draw on their own part first
	common, others := b.common(all, kept)+own, all-kept+own
	switch {
	case by.client != "":
		left := others - used.all - units
		for _, name := range by.sharers.Names() {
			if b.usedBy(now, name).leaves(left, units) {
				return others
			}
		}
		if !b.usedBy(now, by.client).leaves(left, units) {
			return common
		}
	case by.lane == market.LanePrefetch:
		return (common + others) / 2
	}
	return others
}

// common is up to where a window is for whoever comes first.
func (b *budget) common(all, kept int) int { return min((all*commonParts+3)/4, all-kept) }

// leaves tells whether a client that is given units more has no more than is left then, its balances not counted.
func (u use) leaves(left, units int) bool { return u.all-u.account+units <= left }

// usedBy is what a client has used of the window as of now.
func (b *budget) usedBy(now int64, client string) use {
	if client == "" {
		return use{}
	}
	b.parts.turn(max(b.meter.index(now), b.meter.head))
	return b.parts.of(client)
}

// reserved tells whether a call waits for nothing but that the rest of the window is kept for other clients.
func (b *budget) reserved(now int64, units int, by party) bool {
	if !b.parts.aligned || by.client == "" || by.lane == market.LaneAccount {
		return false
	}
	kept := b.parts.kept(b.allowance())
	others := b.allowance() - kept + min(b.meter.used(now).account, kept)
	return b.meter.room(now, units, others) <= 0 && b.room(now, units, by) > 0
}

// room tells how long to wait until units may be spent.
func (b *budget) room(now int64, units int, by party) time.Duration {
	if !b.parts.aligned {
		return max(b.meter.room(now, units, b.allowance()), b.paced(now))
	}
	all := b.allowance()
	if b.meter.used(now).all+units <= b.common(all, b.parts.kept(all)) {
		return 0 // whoever asks
	}
	return b.meter.room(now, units, b.ceiling(now, units, by))
}

// paced tells how long the pace lets nothing pass.
func (b *budget) paced(now int64) time.Duration {
	if b.pace == 0 {
		return 0
	}
	return time.Duration(b.next - b.slack - now)
}
