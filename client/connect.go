package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"
)

const (
	// maxMessage bounds one message: a snapshot of 400 levels a side is under 64 KiB.
	maxMessage = 4 << 20
	// writeBound is how long a message to the gateway may take to be written.
	writeBound = 5 * time.Second
	// Pauses before the next connect: reconnectBase doubled for each failure in a row, at most reconnectMost, and of that a
	// part between a half and all, so that the clients of a gateway that restarts do not come all at once.
	reconnectBase, reconnectMost = 500 * time.Millisecond, 15 * time.Second
	// longestWait bounds how long a gateway that refuses a connection can send a client away.
	longestWait = 5 * time.Minute
	// againSoonest is how soon a pair that the gateway refused, or let go, is asked for again.
	againSoonest = time.Second
)

var errSilent = errors.New("the gateway said nothing")

// run connects until the watch ends.
func (w *Watch) run(ctx context.Context) {
	defer close(w.done)
	defer w.cancel()
	for failures := 1; ; failures++ {
		synced, err := w.session(ctx)
		switch {
		case ctx.Err() != nil:
			w.finish(ErrClosed)
			return
		case final(err):
			w.finish(err)
			return
		case synced && !atFault(err):
			failures = 1
		}
		pause := max(jittered(reconnectBase, failures, reconnectMost), wanted(err))
		w.lost(err, pause)
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

// final tells whether asking again cannot help: the gateway refused the request itself.
func final(err error) bool {
	var e *Error
	if !errors.As(err, &e) || e.Retryable {
		return false
	}
	switch e.Status {
	case 0: // an error frame
		return e.Code != ""
	case http.StatusUnauthorized, http.StatusForbidden:
		return true
	}
	// Without a code it is another server's word, perhaps that of a proxy whose gateway is being replaced.
	return e.Code != "" && e.Status >= 400 && e.Status < 500
}

// atFault tells whether a connection ended for what it brought. Such a one is not taken for a sign of health.
func atFault(err error) bool {
	return errors.Is(err, errGap) || errors.Is(err, errBadMessage) || errors.Is(err, errSilent)
}

// wanted is how long the gateway asked to stay away.
func wanted(err error) time.Duration {
	var e *Error
	if errors.As(err, &e) {
		return min(e.RetryAfter, longestWait)
	}
	if websocket.CloseStatus(err) == websocket.StatusGoingAway {
		return time.Second // it is stopping, and its successor needs a moment
	}
	return 0
}

// session is one connection, to its end. synced tells whether a version came.
func (w *Watch) session(ctx context.Context) (synced bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	conn, err := w.dial(ctx)
	if err != nil {
		return false, err
	}
	defer conn.CloseNow() // it has ended
	if err := write(ctx, conn, w.sub.request("subscribe", w.sub.Symbols)); err != nil {
		return false, &NetworkError{Op: "stream", Err: err}
	}
	w.connected()
	var keeper sync.WaitGroup
	keeper.Go(func() { w.keep(ctx, conn, cancel) })
	defer keeper.Wait()
	defer cancel(nil)
	for {
		kind, text, err := conn.Read(ctx)
		if err != nil {
			if why := context.Cause(ctx); why != nil {
				err = why
			}
			return synced, &NetworkError{Op: "stream", Err: err}
		}
		if kind != websocket.MessageText {
			return synced, fmt.Errorf("%w: it is not text", errBadMessage)
		}
		version, err := w.take(text)
		if err != nil {
			return synced, err
		}
		synced = synced || version
	}
}

func (w *Watch) dial(ctx context.Context) (*websocket.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, w.client.timeout)
	defer cancel()
	header := http.Header{}
	w.client.sign(header)
	conn, res, err := websocket.Dial(ctx, w.client.base+"/v1/stream", &websocket.DialOptions{
		HTTPClient: w.client.streams, HTTPHeader: header, CompressionMode: websocket.CompressionDisabled,
	})
	switch {
	case err == nil:
		conn.SetReadLimit(maxMessage)
		return conn, nil
	case res != nil && res.StatusCode != http.StatusSwitchingProtocols:
		body, _ := io.ReadAll(io.LimitReader(res.Body, maxRefusal)) // of which the library keeps 1 KiB; without it the status has to do
		return nil, refusal(res, body)
	case context.Cause(ctx) != nil:
		return nil, &NetworkError{Op: "stream", Err: context.Cause(ctx)}
	}
	return nil, &NetworkError{Op: "stream", Err: unwrapURL(err)}
}

func write(ctx context.Context, conn *websocket.Conn, text []byte) error {
	ctx, cancel := context.WithTimeout(ctx, writeBound)
	defer cancel()
	return conn.Write(ctx, websocket.MessageText, text)
}

// keep asks a gateway that says nothing for a sign of life, ends the connection if none comes, and subscribes again to pairs
// that the gateway refused for a time.
func (w *Watch) keep(ctx context.Context, conn *websocket.Conn, end context.CancelCauseFunc) {
	silence := w.client.silence
	tick := time.NewTicker(max(min(silence/9, time.Second), time.Millisecond))
	defer tick.Stop()
	var asked time.Time
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		now := time.Now()
		quiet, due := w.look(now)
		var err error
		switch {
		case quiet >= silence:
			end(fmt.Errorf("%w for %v", errSilent, silence))
			return
		case quiet >= silence/3 && now.Sub(asked) >= silence/3:
			asked = now
			err = write(ctx, conn, []byte(`{"op":"ping"}`))
		}
		if err == nil && len(due) > 0 {
			// One that the gateway let go is not subscribed any more; one that it refused never was.
			err = write(ctx, conn, w.sub.request("subscribe", due))
		}
		if err != nil {
			end(err)
			return
		}
	}
}

// look tells for how long nothing was heard, and which pairs to subscribe to again now.
func (w *Watch) look(now time.Time) (quiet time.Duration, due []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, symbol := range w.sub.Symbols {
		if t := w.topics[symbol]; !t.again.IsZero() && !now.Before(t.again) {
			t.again = time.Time{}
			due = append(due, symbol)
		}
	}
	return now.Sub(w.heard), due
}

func (w *Watch) connected() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.heard = time.Now()
	w.news(&Connection{Connected: true, At: w.heard})
}

// lost makes everything stale at once, and tells so.
func (w *Watch) lost(err error, pause time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	w.news(&Connection{Err: err, RetryIn: pause, At: now})
	w.lose(reasonOf(err), now)
}

func reasonOf(err error) string {
	if errors.Is(err, errSilent) {
		return ReasonSilent
	}
	return ReasonDisconnected // a gap has been told of its own pair; the others lost the connection
}

// finish ends the watch.
func (w *Watch) finish(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.end = err
	w.lose(ReasonClosed, time.Now())
	w.signal()
}

// take applies one message. version tells whether it brought one.
func (w *Watch) take(text []byte) (version bool, err error) {
	m, err := decode(text)
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	w.heard = now
	switch {
	case err != nil:
		w.lose(ReasonBadMessage, now) // nobody knows whose it was
		return false, err
	case m.Type == typeError:
		return false, w.refused(m, now)
	case m.Exchange != w.sub.Exchange || m.Channel != w.sub.Channel:
		return false, nil
	}
	t := w.topics[m.Symbol]
	if t == nil {
		return false, nil
	}
	err = t.take(m, now)
	w.tell(t)
	return err == nil && (m.Type == typeSnapshot || m.Type == typeUpdate), err
}

// refused notes that a pair is not streamed, now or at all. What concerns no pair concerns the whole subscription.
func (w *Watch) refused(m *message, now time.Time) error {
	e := m.err()
	t := w.topics[m.Symbol]
	switch {
	case m.Symbol == "":
		return e
	case t == nil:
		return nil
	}
	wait := e.RetryAfter
	if e.Retryable {
		wait = min(max(wait, againSoonest), longestWait)
		t.again = now.Add(wait)
	}
	t.failed = &StreamError{Symbol: t.symbol, Err: e, RetryIn: wait}
	w.tell(t)
	return nil
}
