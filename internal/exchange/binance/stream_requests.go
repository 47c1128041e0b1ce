package binance

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strconv"
	"sync/atomic"
	"time"

	"exchange-gateway/internal/market"
)

// request is a message of ours that the exchange has not answered.
type request struct {
	subs  []market.StreamSub // to start; nil if it ends subscriptions
	sent  bool
	since time.Time // of the first Tick after it was sent
}

// requests are the messages of one connection that were not answered, by their ids. They are few: the pace lets one out in
// 1.2 s, and after 10 s none is waited for.
type requests struct {
	last    int64
	pending map[int64]*request
}

// only is the id of the request that an error without an id is about: it can only be told where one alone is open; else 0.
func (r *requests) only() (id int64) {
	for n := range r.pending {
		if id != 0 {
			return 0
		}
		id = n
	}
	return id
}

// batch is how many names go in one message. A message is refused as a whole for one name in it, and nothing tells which: so
// messages get smaller until that name stands alone, and larger again with those that are accepted. All connections share
// it: a new one begins with the books that the last one could not subscribe.
type batch struct{ fewer atomic.Int32 } // than streamBatch

func (b *batch) size() int { return streamBatch - int(b.fewer.Load()) }

func (b *batch) refused(names int) { b.fewer.Store(int32(streamBatch - max(names/2, 1))) } // at most streamBatch

func (b *batch) accepted(names int) {
	if size := b.size(); size < streamBatch && names >= size {
		b.fewer.Store(int32(max(streamBatch-2*size, 0))) // at most streamBatch
	}
}

// maxNames bounds the bytes of the names in one message: what is longer than about 8 KB fails without a word.
const maxNames = 6 << 10

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

// inBatches sends one message after the other.
func (c *streamConn) inBatches(subs []market.StreamSub, send func([]market.StreamSub) error) error {
	for len(subs) > 0 {
		n := fitting(subs[:min(len(subs), c.batch.size())])
		if err := send(subs[:n]); err != nil {
			return err
		}
		subs = subs[n:]
	}
	return nil
}

// fitting is how many of subs go in one message.
func fitting(subs []market.StreamSub) int {
	bytes := 0
	for i, s := range subs {
		if bytes += len(streamOf(s)); bytes > maxNames && i > 0 {
			return i
		}
	}
	return len(subs)
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
	r := &request{subs: append([]market.StreamSub(nil), starts...)}
	c.requests.pending[id] = r // the answer may come before Send returns
	c.mu.Unlock()
	text, err := json.Marshal(struct {
		Method string   `json:"method"`
		Params []string `json:"params"`
		ID     int64    `json:"id"`
	}{method, params, id})
	if err == nil {
		err = c.Send(ctx, text)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.sent = err == nil; !r.sent {
		delete(c.requests.pending, id)
	}
	return err
}

// answered takes the answer to a request. An error without an id is that of the only request that is open; any other answer
// without one is nobody's: its request will be missed.
//
// That a request is accepted does not tell that a symbol exists: a name of an unknown one is accepted and stays silent.
func (c *streamConn) answered(at time.Time) {
	m := &c.message
	id := m.id
	if !m.saw(keyID) && m.saw(keyCode) {
		id = c.requests.only()
	}
	r := c.requests.pending[id]
	if r == nil {
		return
	}
	delete(c.requests.pending, id)
	kind, remedy, e := market.StreamAccepted, market.RemedySnapshot, (*market.Error)(nil)
	switch {
	case !m.saw(keyCode):
		c.batch.accepted(len(r.subs))
	case m.code == codeInvalid && len(r.subs) > 1:
		c.batch.refused(len(r.subs))
		kind, remedy, e = market.StreamLost, market.RemedyResubscribe, c.refusal(m.code)
	default:
		kind, e = market.StreamRefused, c.refusal(m.code)
	}
	for b, channel := range c.starting(r) {
		if kind == market.StreamAccepted && channel == market.StreamBook {
			b.acceptedAt = at
		}
		c.books.tell(kind, b, channel, remedy, e)
	}
}

// starting are the subscriptions that a request starts, as far as they are still wanted.
func (c *streamConn) starting(r *request) iter.Seq2[*streamBook, market.StreamChannel] {
	return func(yield func(*streamBook, market.StreamChannel) bool) {
		for _, s := range r.subs {
			b := c.books.bySymbol[s.Listing.StreamSymbol()]
			if b != nil && *b.flag(s.Channel) && !yield(b, s.Channel) {
				return
			}
		}
	}
}

var errUnanswered = errors.New("a subscription was not answered")

// unanswered gives up requests that were not answered. What sends events was subscribed all the same.
func (c *streamConn) unanswered(now time.Time) {
	for id, r := range c.requests.pending {
		switch {
		case !r.sent: // it waits for its turn
		case r.since.IsZero():
			r.since = now
		case now.Sub(r.since) >= answerWithin:
			delete(c.requests.pending, id)
			e := c.books.fail(market.KindTimeout, errUnanswered)
			for b, channel := range c.starting(r) {
				if !b.heard(channel) {
					c.books.tell(market.StreamLost, b, channel, market.RemedyResubscribe, e)
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
	e := c.books.fail(market.KindInvalid, errors.New("the subscription was refused"))
	switch n {
	case codeInvalid:
		e.Err = errors.New("it does not accept the name of the stream")
	case codeTooMany:
		e.Kind, e.Err = market.KindRateLimited, errors.New("the connection has too many subscriptions")
	}
	e.OurFault, e.Code = e.Kind == market.KindInvalid, strconv.FormatInt(n, 10)
	return e
}
