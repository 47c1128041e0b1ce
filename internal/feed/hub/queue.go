package hub

import (
	"slices"
	"time"
)

// offer queues a frame of u's topic and reports whether it did. It never waits: where there is no room the topic falls
// behind. The caller holds the lock of the book.
func (c *Client) offer(u *sub, f *Frame, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.end != nil || c.closing != nil:
		return false
	case c.stalled(now):
		c.finish(ErrSlow)
		c.hub.metrics.slow.Inc()
		return false
	case !u.behind && c.room(f):
		c.push(f, now)
		if f.data() {
			u.last = f.seq
		}
		return true
	}
	if !u.behind {
		c.conflate(u)
	}
	if !f.data() {
		u.status = f
	}
	if !u.due {
		u.due = true
		c.due = append(c.due, u)
	}
	c.stir(now)
	return false
}

// room tells whether a frame fits. A frame that is larger than the bound by itself fits into an empty queue.
func (c *Client) room(f *Frame) bool {
	return len(c.queue) < c.hub.cfg.MaxFrames && (c.bytes+len(f.bytes) <= c.hub.cfg.MaxBytes || len(c.queue) == 0)
}

func (c *Client) push(f *Frame, now time.Time) {
	c.queue = append(c.queue, f)
	c.bytes += len(f.bytes)
	c.stir(now)
}

// stir wakes Next, and starts the time within which something has to be taken.
func (c *Client) stir(now time.Time) {
	if c.waiting.IsZero() {
		c.waiting = now
	}
	c.signal()
}

// signal tells that there may be something to take. The caller holds the lock.
func (c *Client) signal() {
	if c.ready != nil {
		c.ready()
		return
	}
	select {
	case c.wake <- struct{}{}:
	default: // it was told already
	}
}

// ring signals when nothing has come for a while.
func (c *Client) ring() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.signal()
}

// stalled tells whether something has waited for too long.
func (c *Client) stalled(now time.Time) bool {
	return !c.waiting.IsZero() && now.Sub(c.waiting) > c.hub.cfg.SlowAfter
}

// conflate drops what waits of a topic for want of room.
func (c *Client) conflate(u *sub) {
	c.hub.metrics.conflations.Inc()
	c.supersede(u)
}

// withdraw drops the versions that wait of a topic which nobody is to get any more.
func (c *Client) withdraw(u *sub) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !u.behind && slices.ContainsFunc(c.queue, func(f *Frame) bool { return f.stream == u.stream && f.data() }) {
		c.supersede(u)
	}
}

// supersede drops what waits of a topic: a fresh snapshot will stand for it. Only its newest status is kept.
func (c *Client) supersede(u *sub) {
	u.behind = true
	first := true
	for _, f := range c.queue {
		switch {
		case f.stream != u.stream:
		case !f.data():
			u.status = f
		case first:
			first = false
			u.last = f.seq - 1 // it never got this one and what follows
		}
	}
	c.purge(u.stream)
}

// purge drops what waits of a topic. Nothing was taken by that, so the time within which something has to be goes on.
func (c *Client) purge(s *stream) {
	c.queue = slices.DeleteFunc(c.queue, func(f *Frame) bool {
		if f.stream != s {
			return false
		}
		c.bytes -= len(f.bytes)
		return true
	})
}

// insist queues a frame beyond the bounds of a topic's: what the client itself asked for. A client that asks for more
// than it reads is given up.
func (c *Client) insist(f *Frame, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.end != nil || c.closing != nil:
	case c.stalled(now), len(c.queue) >= c.hub.cfg.MaxFrames+c.hub.cfg.MaxTopics:
		c.finish(ErrSlow)
		c.hub.metrics.slow.Inc()
	default:
		c.push(f, now)
	}
}

// shut lets the client take what is queued, and then tells it why there is no more.
func (c *Client) shut(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing == nil {
		c.closing = why
	}
	c.signal()
}

// finish lets go of what is queued. The caller holds the lock.
func (c *Client) finish(why error) {
	c.end = why
	c.queue, c.bytes, c.due, c.waiting = nil, 0, nil, time.Time{}
	c.signal()
}
