package okx

import (
	"errors"
	"fmt"
	"time"

	"exchange-gateway/internal/market"
)

// snapshot takes a whole book, asked for or not, at any time.
func (p *procedure) snapshot(s *subscription, row *wireRow, at time.Time) {
	s.enter(stageLive, at)
	s.held.clear()
	s.asks = 0
	s.numbered, s.last = row.hasSeq, row.seq
	p.kept(s, at)
	p.emit(market.StreamEvent{
		Kind: market.StreamSnapshot, Symbol: s.symbol, Bids: row.bids, Asks: row.asks, Sequence: row.sequence(),
		ExchangeTime: row.at, Limit: maxDepth, Window: true,
	})
}

var (
	errUnnumbered = errors.New("a message with a sequence follows one without, or the other way round")
	errGap        = errors.New("messages are missing")
)

// update decides what an update is to the book: the next, a repetition, a gap, or nothing yet.
func (p *procedure) update(s *subscription, row *wireRow, at time.Time) {
	switch s.stage {
	case stageAsked, stageBroken:
	case stageAccepted:
		p.want(s, at)
		p.hold(s, row, at)
	case stageBuffering:
		p.hold(s, row, at)
	case stageJoining:
		p.join(s, row, at)
	case stageLive:
		p.follow(s, row, at)
	}
}

// follow is the rule of OKX: an update belongs behind the one that its prevSeqId names. seqId may be larger by any step, the
// same (keep-alive) or smaller (a reset after maintenance).
func (p *procedure) follow(s *subscription, row *wireRow, at time.Time) {
	switch {
	case row.hasSeq != s.numbered || row.hasPrev != s.numbered:
		p.lose(s, p.venue.streamError(market.KindMalformed, errUnnumbered), at)
	case !s.numbered || row.prev == s.last: // without numbers all that can be told is that the connection keeps the order
		p.apply(s, row, at, time.Time{})
	case row.seq == s.last && row.prev < s.last: // the last message once more
	default:
		// To drop those that look old would be wrong: after a reset that was lost all of them look old for ever
		// (thrasher-corp/gocryptotrader#2255).
		err := fmt.Errorf("%w: an update follows %d, the book stands at %d", errGap, row.prev, s.last)
		p.lose(s, p.venue.streamError(market.KindMalformed, err), at)
	}
}

// apply passes an update on. heldAt is when it came, if that was before now.
func (p *procedure) apply(s *subscription, row *wireRow, at, heldAt time.Time) {
	s.last = row.seq
	p.kept(s, at)
	e := market.StreamEvent{
		Kind: market.StreamUpdate, Symbol: s.symbol, Bids: row.bids, Asks: row.asks, Sequence: row.sequence(),
		ExchangeTime: row.at, ConfirmedAt: heldAt,
	}
	if row.empty() && row.seq == row.prev {
		e.Kind = market.StreamVouch
	}
	p.emit(e)
}

// distrust gives up a book that its keeper found wrong.
func (p *procedure) distrust(symbol string, why error, at time.Time) []market.StreamEvent {
	p.begin()
	s := p.subs[streamKey{market.StreamBook, symbol}]
	if s == nil || s.stage != stageLive && s.stage != stageJoining { // there is no book to give up
		return nil
	}
	kind := market.KindSuspect
	if e, ok := errors.AsType[*market.Error](why); ok {
		kind = e.Kind
	}
	p.lose(s, p.venue.streamError(kind, why), at)
	return p.events
}
