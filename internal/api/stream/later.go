package stream

import (
	"context"
	"sync"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// turns are the messages of one client that are followed away from the goroutine that reads: an exchange's list of pairs may
// have to be waited for, and meanwhile pings are answered. What concerns one exchange is done in the client's order, by a
// goroutine that runs only while there is something to do; an exchange that hangs does not keep the others waiting.
type turns struct {
	mu      sync.Mutex
	waiting map[market.ExchangeID][]turn // an exchange is in it while its goroutine runs; nil where none does
	count   int                          // of all that wait
	running sync.WaitGroup
}

// turn is one message and until when it may wait for the list, its turn included.
type turn struct {
	request
	until time.Time
}

// later has a message followed in its turn. Beyond maxWaiting the client is closed. It belongs to the goroutine that receives.
func (c *session) later(q *request) ending {
	t, exchange := &c.turns, q.Exchange
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.count >= maxWaiting {
		return tooMany
	}
	t.count++
	if t.waiting == nil {
		t.waiting = make(map[market.ExchangeID][]turn, 1)
	}
	queue, runs := t.waiting[exchange]
	t.waiting[exchange] = append(queue, turn{*q, clock.Now().Add(listingBound)})
	if !runs {
		t.running.Go(func() {
			if e := c.contained(func() ending { return c.work(exchange) }); e.code != 0 {
				c.end(e)
			}
		})
	}
	return ending{}
}

// work follows the messages about one exchange until none is left or the session ends.
func (c *session) work(exchange market.ExchangeID) ending {
	for c.ctx.Err() == nil {
		q, ok := c.turns.next(exchange)
		if !ok {
			break
		}
		if q.Op == opUnsubscribe {
			c.unsubscribe(&q.request)
		} else {
			c.subscribe(&q)
		}
	}
	return ending{}
}

// next takes the first message about an exchange, and the exchange away where there is none.
func (t *turns) next(exchange market.ExchangeID) (q turn, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	queue := t.waiting[exchange]
	if len(queue) == 0 {
		delete(t.waiting, exchange)
		if len(t.waiting) == 0 {
			t.waiting = nil // an idle client costs nothing
		}
		return turn{}, false
	}
	q, queue[0] = queue[0], turn{}
	t.waiting[exchange] = queue[1:]
	t.count--
	return q, true
}

func (c *session) unsubscribe(q *request) {
	for _, p := range q.Pairs {
		t := q.topic(p)
		if !c.client.Unsubscribe(t) {
			c.refuse(q.ID, t, bad("symbols", p.String()+" is not subscribed to with this channel and depth"))
			continue
		}
		c.subscribed.Add(-1)
	}
}

// subscribe finds the pairs in the exchange's list and subscribes to their topics. All pairs of a message together wait
// for the list no longer than one would.
func (c *session) subscribe(q *turn) {
	ctx, cancel := context.WithDeadline(market.WithClient(c.ctx, c.entry.Client), q.until)
	defer cancel()
	for _, p := range q.Pairs {
		t := q.topic(p)
		l, err := c.streams.cfg.Listing(ctx, t.Key.Exchange, t.Key.Pair)
		if err == nil {
			err = c.client.Subscribe(l, t, "")
		}
		switch {
		case err == nil:
			c.subscribed.Add(1)
		case c.ctx.Err() != nil:
			return // there is nobody to tell
		default:
			c.refuse(q.ID, t, err)
		}
	}
}
