package coinbase

import (
	"errors"
	"log/slog"
	"strings"

	"exchange-gateway/internal/market"
)

// acked compares what the exchange lists with what was asked for. An ack tells the whole set, names no message, and comes
// before or after the first snapshots. Only when all our messages are answered is a book that is not listed a refused one;
// where that cannot be counted, time decides, in tick.
func (s *streamState) acked(f *frame) {
	s.acks++
	for _, product := range f.listed {
		if b := s.books[string(product)]; b != nil {
			b.ack = s.acks
		}
	}
	for _, b := range s.books {
		switch listed := b.ack == s.acks; {
		case !b.asked || b.lost:
		case !listed && b.why != nil:
			s.refuse(b, b.why)
		case !listed:
			b.missing = true
		default:
			b.missing, b.why = false, nil
			if !b.accepted {
				b.accepted = true
				s.out = append(s.out, market.StreamEvent{Kind: market.StreamAccepted, Symbol: b.symbol})
			}
		}
	}
	if s.unanswered == 0 {
		s.uneven = true
	}
	s.unanswered = max(s.unanswered-1, 0)
	if s.unanswered == 0 && !s.uneven {
		s.settle()
	}
	s.sort()
}

// settle judges the books that the newest ack does not list, all acks being there.
func (s *streamState) settle() {
	for _, b := range s.books {
		switch {
		case !b.asked || b.lost:
		case b.missing && b.loaded:
			s.lose(b, s.venue.streamError(market.KindUnavailable, errDropped))
		case b.why != nil:
			s.refuse(b, b.why)
		case b.missing:
			s.refuse(b, s.venue.streamError(market.KindUnknownSymbol, errNotListed))
		}
	}
}

// complaint reads an error, which names no message of ours: it is about the books of which nothing has come yet. None of
// them says that the exchange is in trouble.
func (s *streamState) complaint(text string) {
	said := strings.ToLower(text)
	e := s.venue.streamError(market.KindInvalid, errors.New(quote(text)))
	e.OurFault = true
	// A part of the books may have been taken in spite of the error: an ack tells, or else time.
	act := func(b *streamBook) { b.why, b.whyAt = e, s.lastFrame }
	switch {
	case strings.Contains(said, "too many"):
		e.Kind, e.OurFault = market.KindRateLimited, false
	case strings.Contains(said, "rate limit"):
		e.Kind, e.OurFault = market.KindRateLimited, false
		e.RetryAfter, e.Refusal = limitFirst, streamRefusal()
		act = func(b *streamBook) { s.lose(b, e) }
	case strings.Contains(said, "authentication"):
		// A bad token, of which we send none, or a channel that is not known: no book fares better.
		e.Kind, e.OurFault = market.KindAuth, false
		act = func(b *streamBook) { s.refuse(b, e) }
	}
	concerned := false
	for _, b := range s.books {
		if b.asked && !b.loaded && !b.accepted && !b.lost {
			concerned = true
			act(b)
		}
	}
	if !concerned && !s.complained {
		s.complained = true
		s.venue.log.Warn("the exchange sent an error that concerns no book of the stream",
			slog.String("exchange", string(s.venue.id)), slog.Any("err", e))
	}
	s.sort()
}

// streamRefusal shuts the streams for a while: connects and subscriptions, for which the exchange counts our address.
func streamRefusal() *market.Refusal {
	return &market.Refusal{
		Scope: market.Scope{Kind: market.ScopePublic, Name: familyStream}, Clamp: retryAfterClamp, First: limitFirst, Max: limitMax,
	}
}
