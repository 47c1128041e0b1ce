package client

import "time"

// Offline is a watch without a gateway: messages are given to it by hand.
func Offline(s Subscription) (*Watch, error) {
	s, err := s.clean()
	if err != nil {
		return nil, err
	}
	w := &Watch{sub: s, wake: make(chan struct{}, 1), topics: map[string]*topic{}}
	for _, symbol := range s.Symbols {
		w.topics[symbol] = newTopic(symbol, s.Channel)
	}
	return w, nil
}

// Take gives it a message.
func (w *Watch) Take(text []byte) error {
	_, err := w.take(text)
	return err
}

// Lose is the end of its connection.
func (w *Watch) Lose(err error) { w.lost(err, time.Second) }

// Pop is what Next would return, nil if it would wait.
func (w *Watch) Pop() (Event, error) { return w.pop() }

// Queued is how many pairs wait for the consumer.
func (w *Watch) Queued() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.queue)
}

// The faults of a message.
var (
	ErrGap        = errGap
	ErrBadMessage = errBadMessage
)
