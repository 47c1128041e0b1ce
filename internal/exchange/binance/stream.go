package binance

import (
	"context"
	"sync"
	"time"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/market"
)

// streamHosts send market data. The second has nothing else: no events of accounts.
var streamHosts = []string{"wss://stream.binance.com:9443", "wss://data-stream.binance.vision"}

// limitConnects is the number of attempts to connect a stream. It is per IP address.
const limitConnects market.LimitID = "stream_connects"

// connectBurst is how many connections may be opened at once: what 1,000 books need. Beyond that attempts are paced over the
// window, so that all connections cut at once never come near the limit.
const connectBurst = 5

// scopeStreams is the gate of the stream hosts: a refusal of our place on earth by them says nothing about the others.
var scopeStreams = market.Scope{Kind: market.ScopeEndpoint, Name: "stream_hosts"}

// Bounds of one connection. Binance allows 1,024 streams and 5 messages of ours a second, pongs included, and closes with
// 1008 beyond; who repeats it is banned.
const (
	// maxStreams leaves the exchange's bound some room.
	maxStreams = 1000
	// streamBooks is far below: the loss of a connection costs a snapshot of weight 50 for each of its books, and 200 of
	// them are two minutes of the budget already.
	streamBooks = 200
	// streamBatch is how many names one message holds: one with 437 failed without a word (altangent/ccxws#161).
	streamBatch = 200
	// streamPace is the least time between two messages. Clients were closed at little more than one a second
	// (knowm/XChange#4468), and with 200 names in each nothing is gained by more.
	streamPace = 1200 * time.Millisecond
	// streamSilence is how long nothing may come. A ping comes every 20 s by the documentation, but was seen to come every
	// 3 minutes only (ccxt/go-binance#693).
	streamSilence = 4 * time.Minute
	// maxStreamMessage bounds a message: a change of 5,000 levels takes 170 KB.
	maxStreamMessage = 1 << 20

	// The exchange ends a connection after 24 hours.
	rotateAfter, rotateBefore = 20 * time.Hour, 23 * time.Hour
	// vouchFor is how long a book without changes is believed on the word of the connection's other frames.
	vouchFor = time.Minute
	// snapshotDepth costs a weight of 50; 5,000 levels would cost 250.
	snapshotDepth = 1000
)

// silenceRules find a dead connection long before the exchange's own bound, of a minute by its documents, would: it pings too
// seldom for its silence to mean anything. It answers pings; each counts as a message of ours.
var silenceRules = market.SilenceRules{
	ProbeAfter: 5 * time.Second, ProbeSooner: 2 * time.Second, AnswerIn: 3 * time.Second, Most: 10 * time.Second,
}

var _ market.Streamer = (*Venue)(nil)

// StreamRules are the bounds and habits of the streams.
func (v *Venue) StreamRules() market.StreamRules {
	return market.StreamRules{
		Books: streamBooks, Batch: streamBatch, VouchFor: vouchFor, Recheck: true, Top: true,
		RotateAfter: rotateAfter, RotateBefore: rotateBefore, SnapshotDepth: snapshotDepth, Silence: silenceRules,
	}
}

// StreamPlan states what an act on a stream touches. Messages to subscribe count for their connection alone, which paces
// them itself.
func (v *Venue) StreamPlan(act market.StreamAct, _ int) market.Call {
	c := market.Call{
		Exchange: v.id, Op: market.OpStream, Class: market.OpStream.Class(),
		Scopes: []market.Scope{scopeExchange, scopeIP, scopeStreams},
	}
	if act == market.StreamConnect {
		c.Charges = []market.Charge{{Limit: limitConnects, Weight: 1}}
	}
	return c
}

// Dial opens a connection without subscriptions. A refused handshake closes the gates that the same answer to a request
// would close.
func (v *Venue) Dial(ctx context.Context) (market.StreamConn, error) {
	call := v.StreamPlan(market.StreamConnect, 0)
	socket, err := v.client.Open(ctx, exchange.Dial{
		Call: call, Hosts: v.streams, Path: "/stream", MaxMessage: maxStreamMessage, Silence: streamSilence, Pace: streamPace,
	}, func(res *exchange.Response) *market.Error { return v.refused(res, gates{restricted: scopeStreams}) })
	if err != nil {
		return nil, err
	}
	return newStreamConn(v.id, socket, &v.batch), nil
}

// socket is an open connection.
type socket interface {
	Read(ctx context.Context) ([]byte, error)
	LastFrame() time.Time
	LastByte() time.Time
	Ping() (answers bool)
	Send(ctx context.Context, text []byte) error
	Close()
}

// streamConn is one connection and the procedure for the books on it.
type streamConn struct {
	socket

	batch *batch

	mu       sync.Mutex // guards what follows
	books    books
	requests requests
	message  message
}

var _ market.StreamConn = (*streamConn)(nil)

func newStreamConn(id market.ExchangeID, s socket, size *batch) *streamConn {
	c := &streamConn{socket: s, batch: size, books: newBooks(id), requests: requests{pending: make(map[int64]*request)}}
	c.message.init()
	return c
}

// Decode tells what a message says.
func (c *streamConn) Decode(raw []byte, at time.Time) []market.StreamEvent {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.books.begin()
	if err := c.message.read(raw); err != nil {
		c.unreadable(raw, err)
		return c.books.events
	}
	c.take(at)
	return c.books.events
}

// take acts on a message that was read.
func (c *streamConn) take(at time.Time) {
	m := &c.message
	if !m.wrapped && (m.saw(keyResult) || m.saw(keyCode)) {
		c.answered(at)
		return
	}
	if string(m.event) == "serverShutdown" {
		c.books.emit(market.StreamEvent{Kind: market.StreamRetiring})
		return
	}
	b, channel := c.subject()
	if b == nil {
		return // an event of another kind, or of a book that was given up in the meantime
	}
	switch channel {
	case channelDepth:
		if err := m.checkDiff(b.symbol); err != nil {
			c.books.loseEvent(b, channel, c.books.unreadable(err))
			return
		}
		c.books.diff(b, m)
	case channelTop:
		if err := m.checkTop(b.symbol); err != nil {
			c.books.loseEvent(b, channel, c.books.unreadable(err))
			return
		}
		c.books.best(b, m)
	case channelNone:
	}
}

// subject is the book that a message is about, nil if none of ours. In a combined message the name of its stream says so,
// in one without it the event itself.
func (c *streamConn) subject() (*streamBook, channel) {
	m := &c.message
	if m.wrapped {
		return c.books.ofStream(m.stream)
	}
	b := c.books.bySymbol[string(m.symbol)]
	if b == nil {
		return nil, channelNone
	}
	channel := m.shape()
	if !b.on(channel) {
		return nil, channelNone
	}
	return b, channel
}

// unreadable is a message that is no JSON, or whose fields are not what they are known to be. It cost the book that it
// was about an event, and every book of the connection one where that cannot be told.
func (c *streamConn) unreadable(raw []byte, err error) {
	e := c.books.unreadable(err)
	switch lost, name := triage(raw); lost {
	case lossNone:
	case lossStream:
		if b, channel := c.books.ofStream(name); b != nil {
			c.books.loseEvent(b, channel, e)
		}
	case lossSymbol: // a change or a price: nothing tells which
		if b := c.books.bySymbol[string(name)]; b != nil && b.depth {
			c.books.lose(b, e)
		}
	case lossAny:
		c.books.loseAll(e)
	}
}

// Load hands over a snapshot by REST.
func (c *streamConn) Load(book *market.OrderBook) []market.StreamEvent {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.books.begin()
	if b := c.books.bySymbol[book.Symbol]; b != nil && b.depth {
		c.books.load(b, book)
	}
	return c.books.events
}

// Distrust starts a book anew that was found wrong.
func (c *streamConn) Distrust(symbol string, why error) []market.StreamEvent {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.books.begin()
	if b := c.books.bySymbol[symbol]; b != nil && b.depth {
		c.books.lose(b, c.books.suspect(why))
	}
	return c.books.events
}

// Tick notices subscriptions that were not answered, and quiet books that can be asked for.
func (c *streamConn) Tick(now time.Time) []market.StreamEvent {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.books.begin()
	c.unanswered(now)
	c.books.quiet(now)
	return c.books.events
}
