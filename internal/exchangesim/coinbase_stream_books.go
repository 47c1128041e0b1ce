package exchangesim

import "time"

// atSnapshotLevels is the size from which a message with snapshots is full: a whole book of a large product has one of its own.
const atSnapshotLevels = 2000

// atBookEvent is one event of l2_data with the moment that its book is of.
type atBookEvent struct {
	Type      string        `json:"type"`
	ProductID string        `json:"product_id"`
	Updates   []atBookEntry `json:"updates"`
	at        time.Time
}

type atBookEntry struct {
	Side        string `json:"side"` // bid or offer
	EventTime   string `json:"event_time"`
	PriceLevel  string `json:"price_level"`
	NewQuantity string `json:"new_quantity"`
}

// level2 sends the whole book, then what changed in it. In one message of four, other products whose books changed at the same moment
// have events too.
func (x *atStream) level2(p *pair) func(from, to int64) bool {
	return func(from, to int64) bool {
		if p.tape != nil && x.replay(p, from, to) {
			return true
		}
		e, ok := x.bookEvent(p, from, to)
		if !ok {
			return false
		}
		x.gathered = append(x.gathered, e)
		if x.gather {
			return true
		}
		if mix(p.salt^0x12, uint64(to))%4 == 0 {
			x.gather = true
			for _, f := range x.s.feeds {
				if f.name == "level2:"+f.pair.Symbol && f.pair != p && f.last != noStep {
					f.advance(p.timeOf(to)) // not now: the message has one moment, and all its books are of it
				}
			}
			x.gather = false
		}
		x.flush()
		return true
	}
}

// bookEvent is the snapshot of a step, or the change between two; ok is false if there is none.
func (x *atStream) bookEvent(p *pair, from, to int64) (e atBookEvent, ok bool) {
	e = atBookEvent{Type: "update", ProductID: p.Symbol, at: p.momentOf(to)}
	stamp := e.at.Format(atTimeLayout)
	var c change
	if from == noStep {
		b := p.shared(to, p.Levels)
		c = change{b.bids, b.asks}
		e.Type = "snapshot"
		if mix(p.salt, uint64(to))%2 == 0 {
			stamp = "1970-01-01T00:00:00Z" // seen in snapshots
		}
	} else if c = x.s.change(p, from, to, p.Levels); len(c.bids)+len(c.asks) == 0 {
		return e, false
	}
	e.Updates = make([]atBookEntry, 0, len(c.bids)+len(c.asks))
	add := func(side string, levels []level) {
		for _, l := range levels {
			e.Updates = append(e.Updates, atBookEntry{side, stamp, p.tick.plain(l.price), p.newQuantity(l)})
		}
	}
	add("bid", c.bids)
	add("offer", c.asks)
	shuffle(e.Updates, mix(p.salt, uint64(to)))
	return e, true
}

// newQuantity spells zero in both ways that are seen.
func (p *pair) newQuantity(l level) string {
	if l.size == 0 && l.price%2 == 0 {
		return p.lot.amount(0).fixed(8)
	}
	return p.lot.plain(l.size)
}

// shuffle puts entries into an order that the seed decides: the venue sorts none.
func shuffle(entries []atBookEntry, seed uint64) {
	for i := len(entries) - 1; i > 0; i-- {
		j := int(mix(seed, uint64(i)) % uint64(i+1))
		entries[i], entries[j] = entries[j], entries[i]
	}
}

func (x *atStream) levelsGathered() (n int) {
	for _, e := range x.gathered {
		n += len(e.Updates)
	}
	return n
}

// flush sends the gathered events as one message. Its stamp is the newest moment among them: at that moment every book of the message
// is what it says, since a pair whose step began earlier has none in between.
func (x *atStream) flush() {
	if len(x.gathered) == 0 {
		return
	}
	var at time.Time
	events := make([]any, len(x.gathered))
	for i, e := range x.gathered {
		events[i] = e
		if e.at.After(at) {
			at = e.at
		}
	}
	symbol := x.gathered[0].ProductID
	x.gathered = nil
	x.send(symbol, "l2_data", at.Format(atTimeLayout), events...)
}
