package coinbase

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"exchange-gateway/internal/market"
)

const (
	// answerWait is how long after our last message the newest ack counts as the answer to all of them.
	answerWait = 3 * time.Second
	// snapshotWait is how long after a subscription, or after the last snapshot of another book, a snapshot is waited for:
	// those of 30 books may have 100 MB together.
	snapshotWait = 10 * time.Second
	// pauseMost is how long no frame may come while a connection flows: heartbeats come each second. What is waited for may
	// be on its way behind a longer pause, so that its wait begins anew after it.
	pauseMost = 3 * time.Second
	// leftoverWait is how long after its end a subscription may still bring changes that were on their way.
	leftoverWait = 5 * time.Second
	// maxEnded bounds the ended subscriptions that are remembered for leftoverWait. Past it they are forgotten at once, and a
	// late change costs one more resubscription.
	maxEnded = 4 * booksPerStream
	// maxRepeats is how many frames in a row may be repeats. Heartbeats come each second and twice at most
	// (hummingbot/hummingbot#6458): more are a count that began anew, after which no gap could be seen.
	maxRepeats = 64
)

var (
	errGap         = errors.New("frames of the connection are missing")
	errRestarted   = errors.New("the sequence of the connection began anew")
	errNoSnapshot  = errors.New("no snapshot came")
	errNoBase      = errors.New("changes of a book of which no snapshot came")
	errDropped     = errors.New("the exchange no longer lists the subscription")
	errNotListed   = errors.New("the exchange did not take the subscription")
	errDistrusted  = errors.New("found wrong")
	errNoSuchFrame = errors.New("a frame cannot be read")
)

// streamBook is a subscription of one book.
type streamBook struct {
	symbol   string
	asked    bool          // else it ended, and its leftovers are let pass
	since    time.Time     // it was asked for, or ended
	ended    time.Time     // the subscription before this one ended, zero without one
	loaded   bool          // its snapshot came, and every change since
	lost     bool          // and nobody has started it anew
	accepted bool          // an ack listed it
	missing  bool          // the newest ack did not, although it was asked for
	why      *market.Error // an error that may have been about it
	whyAt    time.Time
	ack      int // the last that listed it
}

// streamState is the exchange's procedure for the books of one connection. It holds no book.
//
// One sequence counts all frames of the connection, acks and heartbeats included, so a frame that is missing leaves every
// book in doubt, and only a new connection helps. What is wrong with one book is mended by ending and starting its
// subscription.
type streamState struct {
	venue *Venue
	frame frame
	out   []market.StreamEvent
	books map[string]*streamBook

	lastFrame time.Time
	flows     time.Time // since when frames come without a pause

	started  bool
	expected int64 // sequence of the next frame
	repeats  int   // frames in a row that came before
	over     bool  // nothing of this connection is believed any more

	acks         int
	unanswered   int       // messages of ours without an ack
	uneven       bool      // more acks came than messages were sent, so that counting them tells nothing
	lastSent     time.Time // message of ours
	lastSnapshot time.Time
	complained   bool // an error that concerned no book was logged
}

func newStreamState(v *Venue) *streamState {
	return &streamState{venue: v, books: make(map[string]*streamBook)}
}

// ask notes new subscriptions and returns their symbols. ok is false if they do not fit: nothing is changed then.
func (s *streamState) ask(subs []market.StreamSub, now time.Time) (symbols []string, ok bool) {
	asked := 0
	for _, b := range s.books {
		if b.asked {
			asked++
		}
	}
	for _, sub := range subs {
		symbol := sub.Listing.StreamSymbol()
		if b := s.books[symbol]; (b == nil || !b.asked) && !slices.Contains(symbols, symbol) {
			symbols = append(symbols, symbol)
		}
	}
	if asked+len(symbols) > booksPerStream {
		return nil, false
	}
	for _, symbol := range symbols {
		b := &streamBook{symbol: symbol, asked: true, since: now}
		if old := s.books[symbol]; old != nil {
			b.ended = old.since
		}
		s.books[symbol] = b
	}
	return symbols, true
}

// forget takes back what could not be sent.
func (s *streamState) forget(symbols []string) {
	for _, symbol := range symbols {
		delete(s.books, symbol)
	}
}

// leave notes the end of subscriptions and returns their symbols.
func (s *streamState) leave(subs []market.StreamSub, now time.Time) (symbols []string) {
	for _, sub := range subs {
		symbol := sub.Listing.StreamSymbol()
		if sub.Channel != market.StreamBook || slices.Contains(symbols, symbol) {
			continue
		}
		symbols = append(symbols, symbol)
		s.books[symbol] = &streamBook{symbol: symbol, since: now}
	}
	if len(s.books) > maxEnded {
		s.sweep(now.Add(leftoverWait))
	}
	return symbols
}

// sweep forgets subscriptions that ended long enough ago.
func (s *streamState) sweep(now time.Time) {
	for symbol, b := range s.books {
		if !b.asked && now.Sub(b.since) >= leftoverWait {
			delete(s.books, symbol)
		}
	}
}

// sending counts a message of ours, each of which is answered by an ack.
func (s *streamState) sending(now time.Time) {
	s.unanswered++
	s.lastSent = now
}

func (s *streamState) notSent() { s.unanswered = max(s.unanswered-1, 0) }

// decode tells what a message says.
func (s *streamState) decode(raw []byte, at time.Time) []market.StreamEvent {
	s.out = s.out[:0]
	if s.over {
		return nil
	}
	s.flow(at)
	f := &s.frame
	if err := f.read(raw); err != nil {
		s.end(market.KindMalformed, fmt.Errorf("%w: %w", errNoSuchFrame, err))
		return s.out
	}
	if f.numbered && !s.inOrder(f.sequence) {
		return s.out
	}
	switch {
	case string(f.kind) == "error":
		s.complaint(string(f.message))
	case string(f.channel) == channelData && !f.numbered:
		s.end(market.KindMalformed, errNoSequence)
	case string(f.channel) == channelData:
		s.data(f, at)
	case string(f.channel) == channelAcks && f.ack:
		s.acked(f)
	}
	return s.out
}

// flow notes that a frame came.
func (s *streamState) flow(at time.Time) {
	if at.Sub(s.lastFrame) >= pauseMost {
		s.flows = at
	}
	s.lastFrame = at
}

// late tells whether something should have come by now that was due since some time, and snapshots in front of it: no
// connection is waited for that is stalled itself, which is another's matter.
func (s *streamState) late(now, since time.Time, wait time.Duration) bool {
	if now.Sub(s.lastFrame) >= pauseMost {
		return false
	}
	for _, t := range []time.Time{since, s.lastSnapshot, s.flows} {
		if now.Sub(t) < wait {
			return false
		}
	}
	return true
}

// inOrder tells whether a frame is the next one. The first may have any number.
func (s *streamState) inOrder(sequence int64) bool {
	if !s.started {
		s.started, s.expected = true, sequence
	}
	switch {
	case sequence == s.expected:
		s.expected++
		s.repeats = 0
		return true
	case sequence > s.expected:
		s.end(market.KindSuspect, fmt.Errorf("%w: %d came after %d", errGap, sequence, s.expected-1))
	default:
		if s.repeats++; s.repeats > maxRepeats {
			s.end(market.KindSuspect, errRestarted)
		}
	}
	return false
}

// data tells of snapshots and changes, in the order of the message.
func (s *streamState) data(f *frame, at time.Time) {
	for i := range f.events {
		e := &f.events[i]
		if len(e.product) == 0 {
			s.end(market.KindMalformed, errNoProduct)
			return
		}
		b := s.books[string(e.product)]
		switch {
		case b == nil || !b.asked: // of a subscription that ended
		case e.wrong != nil:
			s.lose(b, s.venue.streamError(market.KindMalformed, e.wrong))
		case e.snapshot:
			b.loaded, b.lost, b.missing, b.why = true, false, false, nil
			s.lastSnapshot = at
			s.tell(market.StreamSnapshot, b, f, e)
		case b.loaded:
			b.missing = false
			s.change(b, f, e)
		case !b.ended.IsZero() && at.Sub(b.ended) < leftoverWait: // of the subscription before
		default:
			s.lose(b, s.venue.streamError(market.KindSuspect, errNoBase))
		}
	}
}

func (s *streamState) tell(k market.StreamEventKind, b *streamBook, f *frame, e *frameEvent) {
	s.out = append(s.out, market.StreamEvent{
		Kind: k, Symbol: b.symbol, ExchangeTime: f.at,
		Bids: f.bids[e.bids.from:e.bids.to:e.bids.to], Asks: f.asks[e.asks.from:e.asks.to:e.asks.to],
	})
}

// change tells of changes. Several of one book in one message are one: only after the whole of it is the book whole.
func (s *streamState) change(b *streamBook, f *frame, e *frameEvent) {
	for i := len(s.out) - 1; i >= 0; i-- {
		before := &s.out[i]
		if before.Symbol != b.symbol {
			continue
		}
		if before.Kind != market.StreamUpdate {
			break
		}
		before.Bids = append(before.Bids, f.bids[e.bids.from:e.bids.to]...)
		before.Asks = append(before.Asks, f.asks[e.asks.from:e.asks.to]...)
		return
	}
	s.tell(market.StreamUpdate, b, f, e)
}

// lose gives up one book, once, until a snapshot or another subscription begins it anew.
func (s *streamState) lose(b *streamBook, e *market.Error) {
	if b.lost {
		return
	}
	b.loaded, b.lost, b.missing, b.why = false, true, false, nil
	s.out = append(s.out, market.StreamEvent{Kind: market.StreamLost, Symbol: b.symbol, Remedy: market.RemedyResubscribe, Err: e})
}

// refuse forgets a book that the exchange does not stream.
func (s *streamState) refuse(b *streamBook, e *market.Error) {
	delete(s.books, b.symbol)
	s.out = append(s.out, market.StreamEvent{Kind: market.StreamRefused, Symbol: b.symbol, Err: e})
}

// end gives up every book of the connection.
func (s *streamState) end(k market.Kind, err error) {
	s.over = true
	s.out = append(s.out, market.StreamEvent{Kind: market.StreamLost, Remedy: market.RemedyReconnect, Err: s.venue.streamError(k, err)})
}

func (s *streamState) distrust(symbol string, why error) []market.StreamEvent {
	s.out = s.out[:0]
	if b := s.books[symbol]; b != nil && b.asked && !s.over {
		err := errDistrusted
		if why != nil {
			err = fmt.Errorf("%w: %w", errDistrusted, why)
		}
		s.lose(b, s.venue.streamError(market.KindSuspect, err))
	}
	return s.out
}

// tick notices acks and snapshots that did not come.
func (s *streamState) tick(now time.Time) []market.StreamEvent {
	s.out = s.out[:0]
	if s.over {
		return nil
	}
	if !s.lastSent.IsZero() && s.late(now, s.lastSent, answerWait) {
		s.unanswered = 0
		s.settle()
	}
	for _, b := range s.books {
		if b.why != nil && b.asked && !b.loaded && now.Sub(b.whyAt) >= answerWait+pauseMost {
			s.lose(b, b.why) // no ack can come on a connection that stands still: it is asked for again
		}
		if b.asked && !b.loaded && s.late(now, b.since, snapshotWait) {
			s.lose(b, s.venue.streamError(market.KindTimeout, errNoSnapshot))
		}
	}
	s.sweep(now)
	s.sort()
	return s.out
}

// sort makes events that were found by walking a map come in one order.
func (s *streamState) sort() {
	slices.SortStableFunc(s.out, func(a, b market.StreamEvent) int { return strings.Compare(a.Symbol, b.Symbol) })
}
