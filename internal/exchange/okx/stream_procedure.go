package okx

import (
	"errors"
	"maps"
	"strconv"
	"time"

	"exchange-gateway/internal/market"
)

// stage is how far a subscription has come.
type stage uint8

const (
	stageAsked     stage = iota // sent. What comes before the answer may be of an earlier subscription: only a snapshot counts
	stageAccepted               // confirmed, but nothing has come
	stageBuffering              // no snapshot came: updates are kept until the book comes by REST
	stageJoining                // the book came by REST, and no update after it yet
	stageLive                   // the book follows
	stageBroken                 // told lost; nothing counts until a snapshot
)

// subscription is one of them, with the state of its book.
type subscription struct {
	streamKey
	stage stage
	since time.Time // of stage
	id    string    // of the request that asked for it
	// confirmed tells that OKX has answered it.
	confirmed bool
	// doubt is an error that OKX answered without saying which of several subscriptions it meant.
	doubt *market.Error

	numbered bool // the book's messages carry sequences
	last     int64
	held     heldUpdates // in stageBuffering
	restAt   time.Time   // in stageJoining: OKX's stamp of the book that came by REST
	asks     int         // books asked for by REST without success
}

func (s *subscription) enter(to stage, at time.Time) { s.stage, s.since = to, at }

const (
	// answerWait is how long a request may be without an answer. OKX answers within a round trip.
	answerWait = 10 * time.Second
	// snapshotWait is how long after the confirmation a snapshot may be missing: it follows at once, and OKX announced
	// once (February 2026) to send none any more.
	snapshotWait = 2 * time.Second
)

// procedure is the state of all books of one connection. It has no clock and no goroutine, holds no book, and is not safe
// for concurrent use.
type procedure struct {
	venue    *Venue
	subs     map[streamKey]*subscription // at most streamBooks of each channel
	requests uint64
	losses   map[streamKey]losses

	events      []market.StreamEvent // of the present call, used again for the next
	msg         wireMessage
	confirmed   bool // a subscription of this connection was
	tooFrequent bool // OKX said that we ask too often
}

func newProcedure(v *Venue) procedure {
	return procedure{venue: v, subs: make(map[streamKey]*subscription), losses: make(map[streamKey]losses)}
}

// nextID names a request, unlike every other of the connection: letters and digits, as OKX demands, at most 32.
func (p *procedure) nextID() string {
	p.requests++
	return "r" + strconv.FormatUint(p.requests, 10)
}

// subscribe notes what is asked for, before it is sent: data may come before the answer. False if it is too much.
func (p *procedure) subscribe(subs []market.StreamSub, at time.Time) (id string, ok bool) {
	counts := make(map[market.StreamChannel]int)
	for key := range p.subs {
		counts[key.channel]++
	}
	for _, s := range subs {
		if _, again := p.subs[keyOf(s)]; !again {
			counts[s.Channel]++
		}
	}
	for n := range maps.Values(counts) {
		if n > streamBooks {
			return "", false
		}
	}
	id = p.nextID()
	for _, s := range subs {
		p.subs[keyOf(s)] = &subscription{streamKey: keyOf(s), since: at, id: id}
	}
	return id, true
}

// unsubscribe forgets books; what still comes of them is nobody's.
func (p *procedure) unsubscribe(subs []market.StreamSub) (id string) {
	for _, s := range subs {
		delete(p.subs, keyOf(s))
	}
	return p.nextID()
}

// withdraw forgets what a request asked for that was not sent.
func (p *procedure) withdraw(id string) {
	maps.DeleteFunc(p.subs, func(_ streamKey, s *subscription) bool { return s.id == id })
}

func keyOf(s market.StreamSub) streamKey {
	return streamKey{channel: s.Channel, symbol: s.Listing.StreamSymbol()}
}

// find is the subscription that a message is about, nil if there is none.
func (p *procedure) find(channel, symbol []byte) *subscription {
	switch string(channel) {
	case channelBook:
		return p.subs[streamKey{market.StreamBook, string(symbol)}]
	case channelBest:
		return p.subs[streamKey{market.StreamBest, string(symbol)}]
	}
	return nil
}

// begin makes room for the events of a call.
func (p *procedure) begin() { p.events = p.events[:0] }

func (p *procedure) emit(e market.StreamEvent) { p.events = append(p.events, e) }

var errNoAddress = errors.New("data that does not say what it is of")

// decode tells what a message says.
func (p *procedure) decode(raw []byte, at time.Time) []market.StreamEvent {
	p.begin()
	if string(raw) == "pong" { // the answer to our ping is no JSON
		return nil
	}
	m := &p.msg
	err := m.read(raw)
	switch {
	case m.isEvent:
		p.answer(raw, at) // one that cannot be read is missed: the wait for it then ends in time
	case err == nil && !m.hasData: // nothing that OKX documents
	case !m.hasArg:
		if err == nil {
			err = errNoAddress
		}
		p.loseAll(err, at)
	default:
		if s := p.find(m.channel, m.symbol); s != nil {
			p.data(s, err, at)
		}
	}
	return p.events
}

// data follows the rows of a message about s; err says why they could not be read.
func (p *procedure) data(s *subscription, err error, at time.Time) {
	if err == nil && len(p.msg.rows) == 0 {
		err = errNoBook
	}
	for i := range p.msg.rows {
		if err == nil {
			err = p.msg.rows[i].usable()
		}
	}
	switch {
	case err != nil:
		kind := market.KindMalformed
		if errors.Is(err, errLevel) {
			kind = market.KindSuspect
		}
		p.lose(s, p.venue.streamError(kind, err), at)
		return
	case s.channel == market.StreamBest:
		p.best(s, at)
		return
	}
	for i := range p.msg.rows {
		row := &p.msg.rows[i]
		switch string(p.msg.action) {
		case "snapshot":
			p.snapshot(s, row, at)
		case "update":
			p.update(s, row, at)
		default:
			p.lose(s, p.venue.streamError(market.KindMalformed, errAction), at)
		}
	}
}

var errAction = errors.New("neither a snapshot nor an update")

// best passes on the best bid and ask. Each message is whole, so that none depends on another.
func (p *procedure) best(s *subscription, at time.Time) {
	s.enter(stageLive, at)
	p.kept(s, at)
	for i := range p.msg.rows {
		row := &p.msg.rows[i]
		p.emit(market.StreamEvent{
			Kind: market.StreamTop, Symbol: s.symbol, Channel: s.channel, Sequence: row.sequence(), ExchangeTime: row.at,
			Bids: row.bids[:min(1, len(row.bids))], Asks: row.asks[:min(1, len(row.asks))],
		})
	}
}

// tick notices what did not come. A book that falls silent while it is followed is not seen here: only its keeper knows
// what other frames vouch for.
func (p *procedure) tick(now time.Time) []market.StreamEvent {
	p.begin()
	for _, s := range p.subs {
		switch age := now.Sub(s.since); {
		case s.stage == stageAsked && age >= answerWait:
			p.unanswered(s, now)
		case s.stage == stageAccepted && s.channel == market.StreamBook && age >= snapshotWait:
			p.want(s, now)
		}
	}
	p.forgetLosses(now)
	return p.events
}
