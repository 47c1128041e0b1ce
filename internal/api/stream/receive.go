package stream

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"

	"exchange-gateway/internal/feed/hub"
)

// receive follows what the client sends until the connection ends.
func (c *session) receive() ending {
	var inner ending // of a control frame between the fragments of a message
	r := wsutil.Reader{
		Source: c.source, State: ws.StateServerSide, CheckUTF8: true, MaxFrameSize: maxMessage, MaxMessageSize: maxMessage,
		OnIntermediate: func(h ws.Header, body io.Reader) error {
			inner = c.control(h, body)
			if inner.code != 0 {
				return errEnded
			}
			return nil
		},
	}
	for {
		h, err := r.NextFrame()
		if err != nil {
			if inner.code != 0 {
				return inner
			}
			return broken(err)
		}
		if h.OpCode.IsControl() {
			if e := c.control(h, &r); e.code != 0 {
				return e
			}
			continue
		}
		if h.OpCode != ws.OpText {
			return ending{ws.StatusUnsupportedData, "messages are text", endMisuse}
		}
		text, err := io.ReadAll(&r) // of one message, bounded by MaxMessageSize
		if err != nil {
			if inner.code != 0 {
				return inner
			}
			return broken(err)
		}
		if !c.pace.allow(time.Now()) {
			return tooMany
		}
		if e := c.follow(text); e.code != 0 {
			return e
		}
	}
}

var errEnded = errors.New("the connection ends")

// broken is how a connection ends on which nothing more can be read.
func broken(err error) ending {
	switch {
	case errors.Is(err, wsutil.ErrFrameTooLarge), errors.Is(err, wsutil.ErrMessageTooLarge):
		return ending{ws.StatusMessageTooBig, "a message is larger than 64 KiB", endMisuse}
	case errors.Is(err, wsutil.ErrInvalidUTF8):
		return ending{ws.StatusInvalidFramePayloadData, "a text message is not UTF-8", endMisuse}
	case isProtocol(err):
		return ending{ws.StatusProtocolError, "not the WebSocket protocol", endMisuse}
	}
	return gone
}

func isProtocol(err error) bool {
	_, ok := errors.AsType[ws.ProtocolError](err)
	return ok
}

// control answers a control frame.
func (c *session) control(h ws.Header, body io.Reader) ending {
	payload, err := io.ReadAll(io.LimitReader(body, ws.MaxControlFramePayloadSize))
	if err != nil {
		return broken(err)
	}
	switch h.OpCode {
	case ws.OpPing:
		if !c.pace.allow(time.Now()) {
			return tooMany
		}
		return c.frame(ws.NewPongFrame(payload))
	case ws.OpClose:
		return ending{ws.StatusNormalClosure, "", endClient}
	}
	return ending{} // a pong
}

// follow does what one message asks.
func (c *session) follow(text []byte) ending {
	q, err := parseRequest(text, c.streams.cfg.Exchanges)
	if err != nil {
		return c.refuse(q.ID, hub.Topic{}, err)
	}
	if q.Op == opPing {
		c.client.Tell(heartbeat(time.Now()))
		return ending{}
	}
	for _, p := range q.Pairs {
		t := q.topic(p)
		if q.Op == opUnsubscribe {
			if !c.client.Unsubscribe(t) {
				if e := c.refuse(q.ID, t, bad("symbols", p.String()+" is not subscribed to with this channel and depth")); e.code != 0 {
					return e
				}
			}
			continue
		}
		if err := c.subscribe(t); err != nil {
			if e := c.refuse(q.ID, t, err); e.code != 0 {
				return e
			}
		}
	}
	return ending{}
}

func (c *session) refuse(id string, t hub.Topic, err error) ending {
	c.streams.metrics.refused.Inc()
	c.client.Tell(c.streams.refuse(id, t, err))
	return ending{}
}

// subscribe finds the pair in the exchange's list and subscribes to its topic.
func (c *session) subscribe(t hub.Topic) error {
	ctx, cancel := context.WithTimeout(c.ctx, listingBound)
	defer cancel()
	l, err := c.streams.cfg.Listing(ctx, t.Key.Exchange, t.Key.Pair)
	if err != nil {
		return err
	}
	return c.client.Subscribe(l, t, "")
}
