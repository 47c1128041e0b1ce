package binance

import (
	"fmt"
	"time"

	"exchange-gateway/internal/market"
)

// bookState is where the procedure of a book stands.
type bookState uint8

// The states.
const (
	bookNone      bookState = iota // nothing came yet
	bookBuffering                  // events are kept until a snapshot comes
	bookSynced                     // events are passed on
)

// streamBook is the state of the procedure for one symbol: NONE, BUFFERING, SYNCED. The levels of the book are kept
// elsewhere.
type streamBook struct {
	symbol     string
	depth, top bool // which channels are subscribed
	topHeard   bool // the channel of best bid and ask sent something
	state      bookState
	id         int64     // the last id that was passed on, once synced
	wanted     bool      // a snapshot was asked for and has not come
	acceptedAt time.Time // when the subscription was acknowledged
	// refreshing tells that events are kept although the book is synced: the next snapshot replaces it without a hole.
	refreshing bool
	kept       buffer
}

// diff takes an event of a book: its ids are a range, and ranges that follow one another are the book's changes.
func (s *books) diff(b *streamBook, m *message) {
	if b.state != bookSynced {
		b.state = bookBuffering
		s.keep(b, m)
		if !b.wanted {
			s.want(b)
		}
		return
	}
	switch {
	case m.last <= b.id: // old, or a second time
	case m.first > b.id+1:
		s.lose(b, s.fail(market.KindUnavailable, fmt.Errorf("changes %d to %d did not come", b.id+1, m.first-1)))
		s.keep(b, m)
	default: // one that starts earlier overlaps what came before: sizes are absolute, so it is applied whole
		if b.refreshing && !s.keep(b, m) {
			b.refreshing = false // the snapshot does not come: the book goes on as it is
			s.drop(b)
		}
		b.id = m.last
		s.emit(market.StreamEvent{
			Kind: market.StreamUpdate, Symbol: b.symbol, Bids: m.bids, Asks: m.asks,
			Sequence: market.SequenceOf(m.last), ExchangeTime: stamp(m.at),
		})
	}
}

// best tells the best bid and ask. Their id is of the same kind as those of the book's changes.
func (s *books) best(b *streamBook, m *message) {
	b.topHeard = true
	e := market.StreamEvent{
		Kind: market.StreamTop, Symbol: b.symbol, Sequence: market.SequenceOf(m.last), ExchangeTime: stamp(m.at),
	}
	if quoted(m.bid[0]) {
		e.Bids = m.bid[:]
	}
	if quoted(m.ask[0]) {
		e.Asks = m.ask[:]
	}
	s.emit(e)
}

// quoted is false for a side that has no orders, which is written as zeros.
func quoted(l market.Level) bool { return !l.Price.IsZero() && !l.Size.IsZero() }

// load takes a snapshot: it and the events kept since before it make the book. One that is older than the first of them
// leaves a hole; another is asked for, and what is kept stays.
func (s *books) load(b *streamBook, book *market.OrderBook) {
	id := book.Sequence.Value
	behind := b.state == bookSynced && id < b.id // what came between was passed on and is gone, unless it is being kept
	switch {
	case !book.Sequence.Known,
		behind && (!b.refreshing || b.kept.empty()),
		!b.kept.empty() && id+1 < b.kept.first():
		b.refreshing = b.state == bookSynced
		s.want(b)
		return
	}
	s.emit(market.StreamEvent{
		Kind: market.StreamSnapshot, Symbol: b.symbol, Bids: book.Bids(), Asks: book.Asks(), Sequence: book.Sequence,
		ExchangeTime: book.ExchangeTime, ConfirmedAt: book.ConfirmedAt, Limit: book.Depth,
	})
	for d := range b.kept.all() {
		if d.last <= id {
			continue
		}
		id = d.last
		s.emit(market.StreamEvent{
			Kind: market.StreamUpdate, Symbol: b.symbol, Bids: d.bids, Asks: d.asks,
			Sequence: market.SequenceOf(d.last), ExchangeTime: d.at,
		})
	}
	b.state, b.id, b.wanted, b.refreshing = bookSynced, id, false, false
	s.drop(b)
}

// want asks for a snapshot.
func (s *books) want(b *streamBook) {
	b.wanted = true
	s.emit(market.StreamEvent{Kind: market.StreamWanted, Symbol: b.symbol})
}

// lose starts a book anew.
func (s *books) lose(b *streamBook, e *market.Error) {
	s.tell(market.StreamLost, b, market.StreamBook, market.RemedySnapshot, e)
	s.restart(b)
}

// loseEvent is the loss of one event. The next best bid and ask replace those that were lost; a book has to start anew.
func (s *books) loseEvent(b *streamBook, c channel, e *market.Error) {
	switch c {
	case channelDepth:
		s.lose(b, e)
	case channelTop:
		s.tell(market.StreamLost, b, market.StreamBest, market.RemedySnapshot, e)
	case channelNone:
	}
}

// loseAll starts every book anew.
func (s *books) loseAll(e *market.Error) {
	s.emit(market.StreamEvent{Kind: market.StreamLost, Remedy: market.RemedySnapshot, Err: e})
	for _, b := range s.bySymbol {
		if b.depth {
			s.restart(b)
		}
	}
}

func (s *books) restart(b *streamBook) {
	s.drop(b)
	b.state, b.refreshing = bookBuffering, false
	s.want(b)
}

// quietAfter is how long after its subscription was acknowledged a book without events is asked for: the first event of a
// quiet pair can be far off, and the snapshot is as safe then, as it is compared with that event in any case.
const quietAfter = 2 * time.Second

func (s *books) quiet(now time.Time) {
	for _, b := range s.bySymbol {
		if b.depth && b.state == bookNone && !b.wanted && !b.acceptedAt.IsZero() && now.Sub(b.acceptedAt) >= quietAfter {
			s.want(b)
		}
	}
}
