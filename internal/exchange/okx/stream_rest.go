package okx

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"exchange-gateway/internal/market"
)

// Without a snapshot in the stream the book comes by REST, and the updates that came meanwhile are fitted to it: OKX
// announced that in February 2026 and has not done it so far.

const (
	// maxHeld and maxHeldLevels bound what is kept of one book: at ten updates a second some 13 s. What matters is the time
	// from the making of the REST answer to its arrival, not how long it had to wait for its turn, so past the bound the
	// oldest go: a book that needed them is asked for again.
	maxHeld       = 128
	maxHeldLevels = 8192
	// maxAsks REST books may be too old, one after the other: OKX answers from several caches at random.
	maxAsks = 5
	// aheadBy is how much later than the REST book an update may be stamped that the book already holds. Both are OKX's
	// clocks; updates are stamped when they are put together, up to 100 ms after what they tell.
	aheadBy = time.Second
)

// heldUpdate is an update with levels of its own, and when it came.
type heldUpdate struct {
	wireRow
	cameAt time.Time
}

// heldUpdates follow each other without a hole.
type heldUpdates struct {
	all    []heldUpdate
	levels int
}

func (h *heldUpdates) clear() { *h = heldUpdates{} }

func (h *heldUpdates) push(row *wireRow, at time.Time) {
	u := heldUpdate{wireRow: *row, cameAt: at}
	u.bids, u.asks = slices.Clone(row.bids), slices.Clone(row.asks)
	h.all = append(h.all, u)
	h.levels += len(u.bids) + len(u.asks)
	drop := 0
	for ; len(h.all)-drop > maxHeld || h.levels > maxHeldLevels; drop++ {
		h.levels -= len(h.all[drop].bids) + len(h.all[drop].asks)
	}
	h.all = slices.Delete(h.all, 0, drop)
}

// want asks for the book by REST.
func (p *procedure) want(s *subscription, at time.Time) {
	s.enter(stageBuffering, at)
	p.emit(market.StreamEvent{Kind: market.StreamWanted, Symbol: s.symbol})
}

// hold keeps an update until the book has come.
func (p *procedure) hold(s *subscription, row *wireRow, at time.Time) {
	if !row.hasSeq || !row.hasPrev {
		p.lose(s, p.venue.streamError(market.KindMalformed, errUnnumbered), at)
		return
	}
	if n := len(s.held.all); n > 0 {
		switch last := s.held.all[n-1].seq; {
		case row.seq == last && row.prev < last: // the last one once more
			return
		case row.prev != last: // what lies before the hole cannot be used
			s.held.clear()
		}
	}
	s.held.push(row, at)
}

// position is where an update lies, seen from a book that came by REST.
type position uint8

const (
	posBefore position = iota // the book holds it
	posNext                   // it changes the book
	posAfter                  // something between the two is missing
)

// position tells it by OKX's rule: the first update after the book has prevSeqId <= book < seqId, and what has seqId <= book
// is in the book. Two things are added for a sequence that is reset meanwhile. An update that names the book's own sequence
// as the one before it is the next, even if its own is smaller. And one that is stamped well after the book but numbered
// before it is no part of the book: that is of before the reset.
func (row *wireRow) position(book int64, bookAt time.Time) position {
	switch {
	case row.prev == book:
		return posNext
	case row.seq < book && !bookAt.IsZero() && row.at.After(bookAt.Add(aheadBy)):
		return posAfter
	case row.seq <= book:
		return posBefore
	case row.prev < book:
		return posNext
	}
	return posAfter
}

var (
	errOldBook   = errors.New("the books that came by REST were older than the updates")
	errNoNumber  = errors.New("the book that came by REST has no sequence")
	errRESTIsOld = errors.New("the book that came by REST lies before an update that is missing")
)

// loadREST takes the book that want asked for, and the updates after it.
func (p *procedure) loadREST(book *market.OrderBook, at time.Time) []market.StreamEvent {
	p.begin()
	s := p.subs[streamKey{market.StreamBook, book.Symbol}]
	if s == nil || s.stage != stageBuffering { // a snapshot of the stream was faster, or nobody wants it any more
		return nil
	}
	if !book.Sequence.Known {
		p.lose(s, p.venue.streamError(market.KindNotSupported, errNoNumber), at)
		return p.events
	}
	first := 0
	for ; first < len(s.held.all); first++ {
		where := s.held.all[first].position(book.Sequence.Value, book.ExchangeTime)
		if where == posAfter {
			p.askAgain(s, at)
			return p.events
		}
		if where == posNext {
			break
		}
	}
	p.emit(market.StreamEvent{
		Kind: market.StreamSnapshot, Symbol: s.symbol, Bids: book.Bids(), Asks: book.Asks(), Sequence: book.Sequence,
		ExchangeTime: book.ExchangeTime, ConfirmedAt: book.ConfirmedAt,
		// Deletions come for what leaves the best 400, which says nothing about the levels beyond a shallower answer.
		Limit: book.Depth, Window: book.Depth >= maxDepth,
	})
	s.enter(stageJoining, at)
	s.numbered, s.last, s.restAt = true, book.Sequence.Value, book.ExchangeTime
	for i := first; i < len(s.held.all); i++ { // each names the one before it, or hold would have dropped those
		u := &s.held.all[i]
		s.enter(stageLive, at)
		s.asks = 0
		p.apply(s, &u.wireRow, at, u.cameAt)
	}
	s.held.clear()
	return p.events
}

// askAgain asks for a newer book.
func (p *procedure) askAgain(s *subscription, at time.Time) {
	if s.asks++; s.asks >= maxAsks {
		p.lose(s, p.venue.streamError(market.KindUnavailable, errOldBook), at)
		return
	}
	p.want(s, at)
}

// join fits the first update to a book that came by REST.
func (p *procedure) join(s *subscription, row *wireRow, at time.Time) {
	if !row.hasSeq || !row.hasPrev {
		p.lose(s, p.venue.streamError(market.KindMalformed, errUnnumbered), at)
		return
	}
	switch row.position(s.last, s.restAt) {
	case posBefore:
	case posNext:
		s.enter(stageLive, at)
		s.asks = 0
		p.apply(s, row, at, time.Time{})
	case posAfter:
		err := fmt.Errorf("%w: it stands at %d, the update follows %d", errRESTIsOld, s.last, row.prev)
		if s.asks+1 < maxAsks {
			p.emit(market.StreamEvent{
				Kind: market.StreamLost, Symbol: s.symbol, Remedy: market.RemedySnapshot,
				Err: p.venue.streamError(market.KindMalformed, err),
			})
		}
		p.askAgain(s, at)
		if s.stage == stageBuffering {
			p.hold(s, row, at)
		}
	}
}
