package hub

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// Why a client was not subscribed. Errors of the feed are passed on as they are.
var (
	ErrSubscribed = errors.New("already subscribed")
	ErrTooMany    = errors.New("too many subscriptions")
)

// Client is one downstream connection. Next and Take belong to one goroutine at a time; the other methods may be called at any
// time.
type Client struct {
	hub   *Hub
	wake  chan struct{} // one signal is kept: there may be something to take; nil with ready
	ready func()        // called instead, under the lock

	mu      sync.Mutex
	account string // on whose account the next subscriptions are
	subs    []*sub
	queue   []*Frame  // in order; nil until something was queued
	bytes   int       // of queue
	due     []*sub    // behind, with something to tell
	waiting time.Time // since when queue or due are not empty; zero when they are
	closing error     // no more is queued; Next ends when what is queued was taken
	end     error     // nothing is queued and Next ends

	// What follows belongs to Next and Take.
	taken []*Frame    // what was returned last
	idle  *time.Timer // signals at rings
	rings time.Time
	took  time.Time // when Take last returned something; since when there was nothing
}

// NewClient makes a client without subscriptions, whose frames Next waits for. The caller closes it.
func (h *Hub) NewClient() *Client { return h.add(&Client{hub: h, wake: make(chan struct{}, 1)}) }

// NewReadyClient makes a client without subscriptions that nothing waits for: ready is called when Take may have something. It
// must neither wait nor call the client. The caller takes once without being told, which starts the time to the first heartbeat,
// and closes the client.
func (h *Hub) NewReadyClient(ready func()) *Client {
	return h.add(&Client{hub: h, ready: ready, took: clock.Now()})
}

func (h *Hub) add(c *Client) *Client {
	h.mu.Lock()
	h.clients[c] = struct{}{}
	c.closing = h.closing
	h.mu.Unlock()
	h.metrics.clients.Inc()
	return c
}

// On puts what is subscribed from here on on the account of who is called so, see feed.Feed.WatchFor. The empty name, as at
// first, is nobody's.
func (c *Client) On(account string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.account = account
}

// Subscribe subscribes to a topic of the book of l. The first frame is a status, the second a snapshot if a book is held.
// A client that names the version that it holds in after (Frame.ID, as in Last-Event-ID) gets no snapshot of that version.
// Errors: ErrTopic, ErrSubscribed, ErrTooMany, ErrClosed, ErrClosing, ErrSlow, and those of the feed.
func (c *Client) Subscribe(l market.Listing, t Topic, after string) error {
	if err := t.check(l); err != nil {
		return err
	}
	u := &sub{client: c, topic: t}
	account, err := c.reserve(u)
	if err != nil {
		return err
	}
	release, err := c.hub.source.WatchFor(account, l, t.upstream())
	if err != nil {
		c.drop(u)
		return err
	}
	u.release = release
	c.hub.join(u, l, after)
	if err := c.settle(u); err != nil {
		c.hub.leave(u)
		release()
		return err
	}
	return nil
}

// reserve makes room for a subscription, and tells on whose account it is.
func (c *Client) reserve(u *sub) (account string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.end != nil:
		return "", c.end
	case c.closing != nil:
		return "", c.closing
	case slices.ContainsFunc(c.subs, func(o *sub) bool { return o.topic == u.topic }):
		return "", ErrSubscribed
	case len(c.subs) >= c.hub.cfg.MaxTopics:
		return "", fmt.Errorf("%w: at most %d on one connection", ErrTooMany, c.hub.cfg.MaxTopics)
	}
	c.subs = append(c.subs, u)
	return c.account, nil
}

// begin notes the version at which a subscription begins: seq is the first that the client gets, unless it has it already.
func (c *Client) begin(u *sub, seq uint64, has bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	u.last = seq
	if !has {
		u.last--
	}
}

// settle ends a Subscribe, unless the client was closed meanwhile.
func (c *Client) settle(u *sub) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if errors.Is(c.end, ErrClosed) {
		return c.end
	}
	u.joined = true
	return nil
}

// drop takes a subscription away, with all that waits of it.
func (c *Client) drop(u *sub) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.subs = slices.DeleteFunc(c.subs, func(o *sub) bool { return o == u })
	c.due = slices.DeleteFunc(c.due, func(o *sub) bool { return o == u })
	u.due = false
	if u.stream != nil {
		c.purge(u.stream)
	}
}

// Unsubscribe ends a subscription and reports whether there was one. What waited of it is dropped; its last frame is a
// status "unsubscribed".
func (c *Client) Unsubscribe(t Topic) bool {
	u := c.find(t)
	if u == nil {
		return false
	}
	now := clock.Now()
	u.book.mu.Lock()
	f := u.stream.encodeStatus("unsubscribed", now)
	f.stream = nil // it outlives the subscription, and whatever becomes of a next one to the same topic
	u.book.mu.Unlock()
	c.hub.leave(u) // first, so that nothing is queued behind what is dropped
	c.drop(u)
	u.release()
	c.insist(f, now)
	return true
}

// find takes the subscription to t for the caller alone to end.
func (c *Client) find(t Topic) *sub {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, u := range c.subs {
		if u.topic == t && u.joined {
			u.joined = false
			return u
		}
	}
	return nil
}

// Tell queues a message of the caller's own behind what waits, such as the answer to a command. text is JSON.
func (c *Client) Tell(text []byte) {
	f := seal(text)
	c.insist(&f, clock.Now())
}

// Close ends all subscriptions. Next then returns ErrClosed.
func (c *Client) Close() {
	c.mu.Lock()
	if errors.Is(c.end, ErrClosed) {
		c.mu.Unlock()
		return
	}
	c.finish(ErrClosed)
	var joined []*sub
	for _, u := range c.subs {
		if u.joined {
			u.joined = false
			joined = append(joined, u)
		}
	}
	c.subs = nil
	c.mu.Unlock()
	for _, u := range joined {
		c.hub.leave(u)
		u.release()
	}
	h := c.hub
	h.mu.Lock()
	delete(h.clients, c)
	h.mu.Unlock()
	h.metrics.clients.Dec()
}
