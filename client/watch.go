package client

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// Watch follows the books or tickers of a subscription. It keeps them itself, from the gateway's messages, and connects again
// as often as needed: what it shows is always one version as the gateway sent it, or is labelled stale.
//
// One goroutine keeps it until Close, the end of its context, or a refusal that asking again cannot change. It never waits
// for the consumer: whoever calls Next seldom gets the latest and is told how many versions were left out.
type Watch struct {
	client *Client
	sub    Subscription
	cancel context.CancelFunc
	done   chan struct{} // the goroutine has ended
	wake   chan struct{} // holds one token if there is something for Next

	mu         sync.Mutex
	topics     map[string]*topic // by symbol; never changed
	queue      []*topic          // those that are dirty, each once
	connection *Connection       // news, nil if none
	heard      time.Time         // when the gateway last said anything
	end        error             // why it is over
}

// ErrClosed is what Next returns after Close or the end of the watch's context.
var ErrClosed = errors.New("the watch is closed")

// Watch begins to follow a subscription. It does not wait for the gateway: how the connection stands, also at first, is told
// as a *Connection. It ends with ctx; whoever calls it calls Close.
func (c *Client) Watch(ctx context.Context, s Subscription) (*Watch, error) {
	s, err := s.clean()
	if err != nil {
		return nil, err
	}
	w := &Watch{client: c, sub: s, done: make(chan struct{}), wake: make(chan struct{}, 1), topics: make(map[string]*topic, len(s.Symbols))}
	for _, symbol := range s.Symbols {
		w.topics[symbol] = newTopic(symbol, s.Channel)
	}
	ctx, w.cancel = context.WithCancel(ctx)
	go w.run(ctx)
	return w, nil
}

// Close ends the watch and waits for that. It may be called more than once.
func (w *Watch) Close() error {
	w.cancel()
	<-w.done
	return nil
}

// Next waits for what is new: how the connection stands, and of each pair in turn why it is refused, how it stands, and its
// newest version. After the end it returns what is left and then why it ended: ErrClosed after Close or the end of the watch's
// context, or an *Error that asking again does not change, such as a key that is not valid.
func (w *Watch) Next(ctx context.Context) (Event, error) {
	for {
		e, err := w.pop()
		if e != nil || err != nil {
			return e, err
		}
		select {
		case <-w.wake:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Book is the book of a pair as it is held now, for a consumer that looks at moments of its own. ok is false if none is held:
// none has come yet, or an operator withholds it.
func (w *Watch) Book(symbol string) (book *StreamBook, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.topic(symbol)
	if t == nil || !t.held || t.channel != ChannelOrderBook {
		return nil, false
	}
	return t.book(w.sub.Exchange, 0), true
}

// Ticker is Book for ChannelTicker.
func (w *Watch) Ticker(symbol string) (ticker *StreamTicker, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.topic(symbol)
	if t == nil || !t.held || t.channel != ChannelTicker {
		return nil, false
	}
	return t.ticker(w.sub.Exchange, 0), true
}

func (w *Watch) topic(symbol string) *topic {
	name, ok := canonical(symbol)
	if !ok {
		return nil
	}
	return w.topics[name]
}

// pop takes the oldest news, or the end, or neither.
func (w *Watch) pop() (Event, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := w.connection; c != nil {
		w.connection = nil
		w.signal()
		return c, nil
	}
	for len(w.queue) > 0 {
		t := w.queue[0]
		e := t.next(w.sub.Exchange)
		if !t.dirty() { // else it keeps its place: a status comes before the book that it is about
			t.queued = false
			w.queue = slices.Delete(w.queue, 0, 1)
		}
		if e != nil {
			w.signal()
			return e, nil
		}
	}
	if w.end != nil {
		w.signal()
		return nil, w.end
	}
	return nil, nil
}

// signal leaves a token for whoever waits in Next. A token too many costs one look.
func (w *Watch) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// tell puts a pair into the queue if the consumer has not seen all of it. The caller holds the lock.
func (w *Watch) tell(t *topic) {
	if !t.dirty() {
		return
	}
	if !t.queued {
		t.queued = true
		w.queue = append(w.queue, t) // as long as there are pairs, at most
	}
	w.signal()
}

// news tells how the connection stands. The caller holds the lock.
func (w *Watch) news(c *Connection) {
	w.connection = c
	w.signal()
}

// lose makes every pair stale.
func (w *Watch) lose(reason string, now time.Time) {
	for _, symbol := range w.sub.Symbols {
		t := w.topics[symbol]
		t.lose(reason, now)
		w.tell(t)
	}
}
