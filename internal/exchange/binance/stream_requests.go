package binance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"exchange-gateway/internal/market"
)

// request is a message of ours that the exchange has not answered.
type request struct {
	subs  []market.StreamSub // to start; nil if it ends subscriptions
	names int
	since time.Time // of the first Tick after it was sent
}

// requests are the messages of one connection that were not answered, by their ids.
type requests struct {
	last    int64
	pending map[int64]*request
	batch   int // names in one message: fewer once a whole message was refused, so that the name it was for is found
}

func newRequests() requests {
	return requests{pending: make(map[int64]*request), batch: streamBatch}
}

// answerWithin is how long an answer is waited for. One that never comes is a message that failed without a word.
const answerWithin = 10 * time.Second

// Subscribe sends what starts subscriptions. Answers are seen by Decode.
func (c *streamConn) Subscribe(ctx context.Context, subs []market.StreamSub) error {
	if err := c.admit(subs); err != nil {
		return err
	}
	return c.inBatches(subs, func(part []market.StreamSub) error { return c.request(ctx, "SUBSCRIBE", part, part) })
}

// Unsubscribe ends subscriptions. Events that still come are nobody's.
func (c *streamConn) Unsubscribe(ctx context.Context, subs []market.StreamSub) error {
	c.mu.Lock()
	for _, s := range subs {
		c.books.remove(s)
	}
	c.mu.Unlock()
	return c.inBatches(subs, func(part []market.StreamSub) error { return c.request(ctx, "UNSUBSCRIBE", part, nil) })
}

var errFull = errors.New("the connection has as many streams as it may")

// admit adds the books before anything is sent: events can come before the answer.
func (c *streamConn) admit(subs []market.StreamSub) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.books.streams+len(subs) > maxStreams {
		return c.books.fail(market.KindOverloaded, errFull)
	}
	for _, s := range subs {
		c.books.add(s)
	}
	return nil
}

func (c *streamConn) inBatches(subs []market.StreamSub, send func([]market.StreamSub) error) error {
	for len(subs) > 0 {
		c.mu.Lock()
		n := min(len(subs), c.requests.batch)
		c.mu.Unlock()
		if err := send(subs[:n]); err != nil {
			return err
		}
		subs = subs[n:]
	}
	return nil
}

// request sends one message about subs; those of them that it starts are pending until it is answered.
func (c *streamConn) request(ctx context.Context, method string, subs, starts []market.StreamSub) error {
	params := make([]string, len(subs))
	for i, s := range subs {
		params[i] = streamOf(s)
	}
	c.mu.Lock()
	c.requests.last++
	id := c.requests.last
	c.requests.pending[id] = &request{subs: append([]market.StreamSub(nil), starts...), names: len(subs)}
	c.mu.Unlock()
	text, err := json.Marshal(struct {
		Method string   `json:"method"`
		Params []string `json:"params"`
		ID     int64    `json:"id"`
	}{method, params, id})
	if err == nil {
		err = c.Send(ctx, text)
	}
	if err != nil {
		c.mu.Lock()
		delete(c.requests.pending, id)
		c.mu.Unlock()
	}
	return err
}

// streamOf is the name of a subscription's stream.
func streamOf(s market.StreamSub) string {
	name := streamName(s.Listing.StreamSymbol())
	if s.Channel == market.StreamBest {
		return name + suffixTop
	}
	return name + suffixDepth
}

// answered takes the answer to a request. An answer without a readable id is nobody's: its request will be missed.
//
// That a request is accepted does not tell that a symbol exists: a name of an unknown one is accepted and stays silent.
func (c *streamConn) answered(at time.Time) {
	m := &c.message
	r := c.requests.pending[m.id]
	if !m.saw(keyID) || r == nil {
		return
	}
	delete(c.requests.pending, m.id)
	switch {
	case !m.saw(keyCode):
		for b := range c.starting(r) {
			b.acceptedAt = at
			c.books.emit(market.StreamEvent{Kind: market.StreamAccepted, Symbol: b.symbol})
		}
	case m.code == codeInvalid && r.names > 1:
		c.requests.batch = max(1, min(c.requests.batch, r.names/2))
		c.resubscribe(r, c.refusal(m.code))
	default:
		e := c.refusal(m.code)
		for b := range c.starting(r) {
			c.books.emit(market.StreamEvent{Kind: market.StreamRefused, Symbol: b.symbol, Err: e})
		}
	}
}

// starting are the books whose changes a request subscribes, as far as they are still wanted. A refused channel of best bid and
// ask is no refusal of a book.
func (c *streamConn) starting(r *request) func(yield func(*streamBook) bool) {
	return func(yield func(*streamBook) bool) {
		for _, s := range r.subs {
			b := c.books.bySymbol[s.Listing.StreamSymbol()]
			if s.Channel == market.StreamBook && b != nil && b.depth && !yield(b) {
				return
			}
		}
	}
}

// resubscribe asks for the subscriptions of a request to be made anew.
func (c *streamConn) resubscribe(r *request, e *market.Error) {
	for b := range c.starting(r) {
		c.books.emit(market.StreamEvent{Kind: market.StreamLost, Symbol: b.symbol, Remedy: market.RemedyResubscribe, Err: e})
	}
}

var errUnanswered = errors.New("a subscription was not answered")

// unanswered gives up requests that were not answered. A book whose events come was subscribed all the same.
func (c *streamConn) unanswered(now time.Time) {
	for id, r := range c.requests.pending {
		switch {
		case r.since.IsZero():
			r.since = now
		case now.Sub(r.since) >= answerWithin:
			delete(c.requests.pending, id)
			for b := range c.starting(r) {
				if b.state == bookNone {
					e := c.books.fail(market.KindTimeout, errUnanswered)
					c.books.emit(market.StreamEvent{Kind: market.StreamLost, Symbol: b.symbol, Remedy: market.RemedyResubscribe, Err: e})
				}
			}
		}
	}
}

// Codes of refused requests. The others, 0, 1 and 3, are about messages that are not sent here.
const (
	codeInvalid = 2 // "Invalid request: invalid stream"
	codeTooMany = 4 // "Too many subscriptions"
)

// refusal is what a code under an answer means. The exchange's text is not shown: it quotes what was sent.
func (c *streamConn) refusal(n int64) *market.Error {
	e := c.books.fail(market.KindInvalid, fmt.Errorf("the subscription was refused"))
	switch n {
	case codeInvalid:
		e.Err = errors.New("it does not accept the name of the stream")
	case codeTooMany:
		e.Kind, e.Err = market.KindRateLimited, errors.New("the connection has too many subscriptions")
	}
	e.OurFault, e.Code = e.Kind == market.KindInvalid, strconv.FormatInt(n, 10)
	return e
}
