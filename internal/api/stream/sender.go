package stream

import (
	"sync"
	"sync/atomic"
)

// sender passes on what the hub has for a client, on a goroutine that runs only while there is something: one that waited would
// be a third of what an idle client costs.
type sender struct {
	state   atomic.Int32
	running sync.WaitGroup
}

// States of a sender. It begins as one that runs, and one that ended the session stays so: nothing is sent any more.
const (
	senderRuns  = iota // what is there now will be taken
	senderAgain        // something may have come since that was looked at
	senderIdle
)

// ready is called when the hub may have something. It never waits.
func (c *session) ready() {
	for {
		switch s := &c.sender.state; s.Load() {
		case senderIdle:
			if s.CompareAndSwap(senderIdle, senderRuns) {
				c.sender.running.Go(c.send)
				return
			}
		case senderRuns:
			if s.CompareAndSwap(senderRuns, senderAgain) {
				return
			}
		default:
			return
		}
	}
}

// send sends until there is nothing more or the session ends.
func (c *session) send() {
	if e := c.contained(c.sendAll); e.code != 0 {
		c.end(e)
	}
}

// sendAll passes on what the hub has for this client, everything that is queued in one write.
func (c *session) sendAll() ending {
	for {
		frames, err := c.client.Take()
		if err != nil {
			return endingOf(err)
		}
		if len(frames) > 0 {
			if e := c.write(frames); e.code != 0 {
				return e
			}
			c.sent.Add(float64(len(frames)))
			continue
		}
		if c.sender.state.CompareAndSwap(senderRuns, senderIdle) {
			return ending{}
		}
		c.sender.state.Store(senderRuns)
	}
}
