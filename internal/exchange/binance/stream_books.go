package binance

import (
	"bytes"
	"errors"
	"fmt"

	"exchange-gateway/internal/market"
)

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

// tell tells about a subscription.
func (s *books) tell(k market.StreamEventKind, b *streamBook, c market.StreamChannel, r market.StreamRemedy, e *market.Error) {
	event := market.StreamEvent{Kind: k, Symbol: b.symbol, Channel: c, Remedy: r}
	if e != nil {
		event.Err = e // a nil *Error would not be a nil error
	}
	s.emit(event)
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
