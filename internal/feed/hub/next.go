package hub

import (
	"context"
	"time"

	"exchange-gateway/internal/clock"
)

// maxKept is the largest queue, in frames, whose memory is kept for the next round: a client that is idle again after a
// burst costs what it did before.
const maxKept = 64

// Next waits for frames and takes all that are queued, in order; the slice is valid until the next call. When nothing comes
// for Config.Heartbeat it returns a heartbeat. After an error there are no more frames: ErrSlow, ErrClosing, ErrClosed, or
// the context's own. A context that cannot end costs least: then nothing but the queue is waited for.
func (c *Client) Next(ctx context.Context) ([]*Frame, error) {
	clear(c.taken) // an idle client keeps no frame alive
	began, done := clock.Now(), ctx.Done()
	for now := began; ; now = clock.Now() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		frames, err := c.take(now)
		if err != nil && c.idle != nil {
			c.idle.Stop()
		}
		if err != nil || len(frames) > 0 {
			return frames, err
		}
		if c.silent(began, now) {
			c.taken = append(c.taken[:0], heartbeat(now))
			return c.taken, nil
		}
		if done == nil {
			<-c.wake
			continue
		}
		select {
		case <-c.wake:
		case <-done:
			return nil, ctx.Err()
		}
	}
}

// Take is Next for a client made by NewReadyClient: it takes what there is, which may be nothing, and never waits.
func (c *Client) Take() ([]*Frame, error) {
	clear(c.taken)
	now := clock.Now()
	frames, err := c.take(now)
	switch {
	case err != nil:
		if c.idle != nil {
			c.idle.Stop()
		}
		return nil, err
	case len(frames) > 0:
		c.took = now
	case c.silent(c.took, now):
		c.taken = append(c.taken[:0], heartbeat(now))
		frames, c.took = c.taken, now
	}
	return frames, nil
}

// silent tells whether nothing has come for Config.Heartbeat since began, and has Next woken when that will be so. The timer
// is set once for many calls, as setting it for each would cost more than taking a frame: where it rings too early for the
// call that waits, it is set to what is left.
func (c *Client) silent(began, now time.Time) bool {
	left := c.hub.cfg.Heartbeat - now.Sub(began)
	switch {
	case left <= 0:
		return true
	case c.idle == nil:
		c.idle = time.AfterFunc(left, c.ring)
	case now.Before(c.rings):
		return false
	default:
		c.idle.Reset(left)
	}
	c.rings = now.Add(left)
	return false
}

// take returns what waits.
func (c *Client) take(now time.Time) ([]*Frame, error) {
	due, err := c.swap(now)
	if err != nil {
		return nil, err
	}
	size := 0
	for _, f := range c.taken {
		size += len(f.bytes)
	}
	for i, u := range due {
		if i > 0 && size >= c.hub.cfg.MaxBytes {
			c.putOff(due[i:], now) // one turn takes about as much as may wait, and always brings somebody forward
			break
		}
		size += c.catchUp(u, now)
	}
	return c.taken, nil
}

// swap takes the queue, whose place the slice of the last round takes, and those who are behind.
func (c *Client) swap(now time.Time) ([]*sub, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.end == nil && c.stalled(now) {
		c.finish(ErrSlow)
		c.hub.metrics.slow.Inc()
	}
	if c.end != nil {
		return nil, c.end
	}
	if len(c.queue) == 0 && len(c.due) == 0 {
		c.taken = c.taken[:0]
		return nil, c.closing
	}
	free := c.taken[:0]
	if cap(free) > maxKept {
		free = nil
	}
	c.taken, c.queue, c.bytes = c.queue, free, 0
	due := c.due
	c.due, c.waiting = nil, time.Time{}
	return due, nil
}

// putOff leaves subscriptions for the next round.
func (c *Client) putOff(due []*sub, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.end == nil {
		c.due = append(c.due, due...)
		c.stir(now)
	}
}

// catchUp takes what stands for the versions that a subscription missed, and its newest status before it. From here on its
// frames are queued again. It returns the bytes taken.
func (c *Client) catchUp(u *sub, now time.Time) (size int) {
	b := u.book
	b.mu.Lock()
	defer b.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !u.due || c.end != nil {
		return 0 // it was ended meanwhile
	}
	u.due = false
	s := u.stream
	if u.status != nil {
		c.taken = append(c.taken, u.status)
		size += len(u.status.bytes)
		u.status = nil
	}
	if !s.held() {
		return size // it stays behind until a book is there again
	}
	f := s.wholeAfter(s.seq-u.last-1, now)
	c.taken = append(c.taken, f)
	u.behind, u.last = false, s.seq
	c.hub.metrics.deliveries.Inc()
	return size + len(f.bytes)
}
