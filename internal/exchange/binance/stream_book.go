package binance

import (
	"bytes"
	"errors"
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

// heard tells whether a subscription has sent something.
func (b *streamBook) heard(c market.StreamChannel) bool {
	if c == market.StreamBest {
		return b.topHeard
	}
	return b.state != bookNone
}

func (b *streamBook) on(c channel) bool {
	return c == channelDepth && b.depth || c == channelTop && b.top
}

// books are the books of one connection and the events that the procedure came to.
type books struct {
	exchange market.ExchangeID
	bySymbol map[string]*streamBook
	byName   map[string]*streamBook // by the part of a stream's name before "@"
	streams  int
	kept     int // levels in all buffers
	events   []market.StreamEvent
}

func newBooks(id market.ExchangeID) books {
	return books{exchange: id, bySymbol: make(map[string]*streamBook), byName: make(map[string]*streamBook)}
}

// maxKeptEvents bounds the events whose memory is kept for the next message. One that ends a long wait makes thousands.
const maxKeptEvents = 64

// begin forgets the events told last.
func (s *books) begin() {
	if cap(s.events) > maxKeptEvents {
		s.events = nil
	}
	clear(s.events)
	s.events = s.events[:0]
}

func (s *books) emit(e market.StreamEvent) { s.events = append(s.events, e) }

// ofStream is the book and channel of a stream's name, nil if it is not subscribed.
func (s *books) ofStream(name []byte) (*streamBook, channel) {
	at := bytes.IndexByte(name, '@')
	if at < 0 {
		return nil, channelNone
	}
	b, channel := s.byName[string(name[:at])], channelOf(name[at:])
	if b == nil || !b.on(channel) {
		return nil, channelNone
	}
	return b, channel
}

// add notes a subscription.
func (s *books) add(sub market.StreamSub) {
	symbol := sub.Listing.StreamSymbol()
	b := s.bySymbol[symbol]
	if b == nil {
		b = &streamBook{symbol: symbol}
		s.bySymbol[symbol], s.byName[streamName(symbol)] = b, b
	}
	if flag := b.flag(sub.Channel); !*flag {
		*flag = true
		s.streams++
	}
}

// remove forgets a subscription, and with that of its changes the state of a book.
func (s *books) remove(sub market.StreamSub) {
	b := s.bySymbol[sub.Listing.StreamSymbol()]
	if b == nil {
		return
	}
	if flag := b.flag(sub.Channel); *flag {
		*flag = false
		s.streams--
	}
	b.topHeard = b.topHeard && b.top
	if !b.depth {
		s.drop(b)
		*b = streamBook{symbol: b.symbol, top: b.top, topHeard: b.topHeard}
	}
	if !b.depth && !b.top {
		delete(s.bySymbol, b.symbol)
		delete(s.byName, streamName(b.symbol))
	}
}

func (b *streamBook) flag(c market.StreamChannel) *bool {
	if c == market.StreamBest {
		return &b.top
	}
	return &b.depth
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

// tell tells about a subscription.
func (s *books) tell(k market.StreamEventKind, b *streamBook, c market.StreamChannel, r market.StreamRemedy, e *market.Error) {
	event := market.StreamEvent{Kind: k, Symbol: b.symbol, Channel: c, Remedy: r}
	if e != nil {
		event.Err = e // a nil *Error would not be a nil error
	}
	s.emit(event)
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

func (s *books) fail(k market.Kind, err error) *market.Error {
	return &market.Error{Exchange: s.exchange, Op: market.OpStream, Kind: k, Err: err}
}

// unreadable is an event that could not be read, or not be true.
func (s *books) unreadable(err error) *market.Error {
	kind := market.KindMalformed
	if errors.Is(err, market.ErrSuspect) {
		kind = market.KindSuspect
	}
	return s.fail(kind, fmt.Errorf("read event: %w", err))
}

// suspect is a book that was found wrong elsewhere.
func (s *books) suspect(why error) *market.Error {
	if e, ok := errors.AsType[*market.Error](why); ok {
		return e
	}
	return s.fail(market.KindSuspect, why)
}
