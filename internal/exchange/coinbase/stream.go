package coinbase

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/market"
)

// Streams come from Advanced Trade, keyless: Exchange's public depth has neither a sequence nor a checksum, so that a lost
// frame could not be noticed.
const (
	streamHost = "wss://advanced-trade-ws.coinbase.com"

	// booksPerStream: the 31st product of level2 on a connection is refused ("too many L2 streams", measured 2026-09).
	booksPerStream = 30
	// streamVouch is how long other frames of a connection, heartbeats above all, vouch for a book that does not change.
	streamVouch = 60 * time.Second
	// streamSilence: heartbeats come each second, and 5 to 15 s without anything are a dead connection.
	streamSilence = 15 * time.Second
	// streamMessage bounds a message. Snapshots have several MB; clients that read at most 8 or 10 MiB were cut off or
	// froze (ccxt/ccxt#23597, hummingbot/hummingbot#7220).
	streamMessage = 32 << 20
	// streamPace keeps one connection below the 8 messages a second that our address may send.
	streamPace = 150 * time.Millisecond
)

// streamRules: every change comes with a sequence that belongs to the connection and not to a book, so a REST answer is
// compared by its best bid and ask. There is no faster channel of those two: ticker comes with trades alone. No lifetime
// of a connection is documented.
func streamRules() market.StreamRules {
	return market.StreamRules{
		Books: booksPerStream, Batch: booksPerStream, VouchFor: streamVouch, Recheck: true,
		Silence: market.SilenceRules{
			ProbeAfter: 5 * time.Second, ProbeSooner: 2 * time.Second, AnswerIn: 3 * time.Second, Most: 10 * time.Second, Heartbeats: true,
		},
	}
}

var _ market.Streamer = (*Venue)(nil)

// StreamRules implements market.Streamer.
func (v *Venue) StreamRules() market.StreamRules { return streamRules() }

// StreamPlan states what an act touches, whatever the number of books: all of a connection fit one message. A connection
// begins with two, level2 and heartbeats. Each draws its cost at the door when it is sent.
func (v *Venue) StreamPlan(act market.StreamAct, _ int) market.Call {
	if act == market.StreamConnect {
		return v.streamCall(market.Charge{Limit: limitStreamConnects, Weight: 1}, market.Charge{Limit: limitStreamMessages, Weight: 2})
	}
	return v.streamCall(market.Charge{Limit: limitStreamMessages, Weight: 1})
}

// streamCall is a request or message of a stream. A limit on streams shuts streams alone: REST is another host with limits
// of its own.
func (v *Venue) streamCall(charges ...market.Charge) market.Call {
	return market.Call{
		Exchange: v.id, Op: market.OpStream, Class: market.OpStream.Class(),
		Scopes:  append(v.everywhere(), market.Scope{Kind: market.ScopePublic, Name: familyStream}),
		Charges: charges,
	}
}

// Dial implements market.Streamer. The first Subscribe is due within 5 s, or the exchange hangs up.
func (v *Venue) Dial(ctx context.Context) (market.StreamConn, error) {
	q := question{op: market.OpStream, family: familyStream}
	socket, err := v.client.Open(ctx, exchange.Dial{
		Call: v.streamCall(market.Charge{Limit: limitStreamConnects, Weight: 1}), Hosts: v.streams, Path: "/",
		MaxMessage: streamMessage, Silence: streamSilence, Pace: streamPace,
	}, func(r *exchange.Response) *market.Error { return q.reject(r, errStatus) })
	if err != nil {
		return nil, err
	}
	return newStreamConn(v, socket), nil
}

func newStreamConn(v *Venue, s socket) *streamConn {
	return &streamConn{venue: v, socket: s, state: newStreamState(v)}
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

var _ market.StreamConn = (*streamConn)(nil)

// streamConn is one connection. The lock keeps Subscribe and Unsubscribe, which come from anywhere, apart from the reader;
// nothing is sent under it.
type streamConn struct {
	socket
	venue *Venue

	mu      sync.Mutex
	state   *streamState
	beating bool // heartbeats are asked for
}

// Decode implements market.StreamConn.
func (c *streamConn) Decode(raw []byte, at time.Time) []market.StreamEvent {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.decode(raw, at)
}

// Load implements market.StreamConn. Snapshots come by the stream: none is ever wanted, and a REST book, which has no
// sequence, could not be put in its place between the changes.
func (c *streamConn) Load(*market.OrderBook) []market.StreamEvent { return nil }

// Distrust implements market.StreamConn.
func (c *streamConn) Distrust(symbol string, why error) []market.StreamEvent {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.distrust(symbol, why)
}

// Tick implements market.StreamConn.
func (c *streamConn) Tick(now time.Time) []market.StreamEvent {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.tick(now)
}

// streamRequest is a message of ours: one channel, many products.
type streamRequest struct {
	Type     string   `json:"type"`
	Channel  string   `json:"channel"`
	Products []string `json:"product_ids,omitempty"`
}

// Channels by the names under which they are asked for. The data of level2 comes as l2_data.
const (
	channelLevel2     = "level2"
	channelHeartbeats = "heartbeats"
)

var (
	errOnlyBooks   = errors.New("the exchange has no channel of the best bid and ask alone")
	errTooManySubs = errors.New("more books than fit a connection")
)

// Subscribe implements market.StreamConn. Books that are subscribed already are left alone: to ask again is accepted by
// the exchange and brings no snapshot. Books that are to leave at the bound have to be unsubscribed first.
func (c *streamConn) Subscribe(ctx context.Context, subs []market.StreamSub) error {
	for _, s := range subs {
		if s.Channel != market.StreamBook {
			return c.venue.streamError(market.KindNotSupported, errOnlyBooks)
		}
	}
	c.mu.Lock()
	fresh, ok := c.state.ask(subs, clock.Now())
	beat := ok && !c.beating
	c.beating = c.beating || beat
	c.mu.Unlock()
	if !ok {
		return c.venue.streamError(market.KindInternal, errTooManySubs)
	}
	if len(fresh) > 0 {
		if err := c.send(ctx, streamRequest{Type: "subscribe", Channel: channelLevel2, Products: fresh}); err != nil {
			c.undo(fresh, beat)
			return err
		}
	}
	if !beat {
		return nil
	}
	err := c.send(ctx, streamRequest{Type: "subscribe", Channel: channelHeartbeats})
	if err != nil {
		c.undo(nil, beat)
	}
	return err
}

// undo forgets what could not be sent.
func (c *streamConn) undo(symbols []string, beat bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state.forget(symbols)
	if beat {
		c.beating = false
	}
}

// Unsubscribe implements market.StreamConn. It is sent for books that are not known here as well: the exchange may still
// stream one that was given up.
func (c *streamConn) Unsubscribe(ctx context.Context, subs []market.StreamSub) error {
	c.mu.Lock()
	symbols := c.state.leave(subs, clock.Now())
	c.mu.Unlock()
	if len(symbols) == 0 {
		return nil
	}
	return c.send(ctx, streamRequest{Type: "unsubscribe", Channel: channelLevel2, Products: symbols})
}

// send sends one message. Each passes the door: the limit is one for all connections of our address.
func (c *streamConn) send(ctx context.Context, r streamRequest) error {
	text, err := json.Marshal(r)
	if err != nil {
		return c.venue.streamError(market.KindInternal, err)
	}
	if err := c.venue.door.Admit(ctx, c.venue.StreamPlan(market.StreamSubscribe, len(r.Products))); err != nil {
		return err
	}
	c.mu.Lock()
	c.state.sending(clock.Now()) // before it is sent: the answer may be read before Send returns
	c.mu.Unlock()
	if err = c.socket.Send(ctx, text); err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.state.notSent()
	}
	return err
}

func (v *Venue) streamError(k market.Kind, err error) *market.Error {
	return &market.Error{Exchange: v.id, Op: market.OpStream, Kind: k, Err: err}
}
