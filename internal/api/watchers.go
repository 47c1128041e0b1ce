package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"exchange-gateway/internal/api/stream"
	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/ops"
)

// watchers are the clients of the events of circuits. How many there may be is the board's to say.
type watchers struct {
	patience time.Duration // how long a write may wait for a client that does not read

	mu      sync.Mutex
	n       int
	guests  int // of them, those of the public listener
	closing bool
	running sync.WaitGroup
	base    context.Context // ends when close runs out of patience
	stop    context.CancelFunc
}

func newWatchers() *watchers {
	w := &watchers{patience: stream.DefaultPatience}
	w.base, w.stop = context.WithCancel(context.Background())
	return w
}

// maxGuests is how many may watch on the public listener, so that they cannot shut the dashboard out.
const maxGuests = ops.MaxWatchers / 2

func (w *watchers) enter(public bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.closing:
		return stream.ErrStopping
	case public && w.guests >= maxGuests:
		return tooManyWatch(maxGuests)
	case public:
		w.guests++
	}
	w.n++
	w.running.Add(1)
	return nil
}

func (w *watchers) leave(public bool) {
	w.mu.Lock()
	w.n--
	if public {
		w.guests--
	}
	w.mu.Unlock()
	w.running.Done()
}

func tooManyWatch(most int) error {
	return &requestError{code: CodeOverloaded, detail: "Too many clients follow the events already: " + strconv.Itoa(most) + "."}
}

func (w *watchers) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.n
}

// announce refuses those to come, and lets the board say its last word to those that are there.
func (w *watchers) announce(b Board) {
	w.mu.Lock()
	w.closing = true
	w.mu.Unlock()
	b.Close("the gateway is stopping")
}

func (w *watchers) stopping() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.closing
}

// close waits until all of them have gone, and at the end of ctx cuts off those that are left.
func (w *watchers) close(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		w.running.Wait()
		close(done)
	}()
	defer w.stop()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	w.stop()
	<-done // every wait of a watcher ends with w.base
	return fmt.Errorf("close events of circuits: %w", ctx.Err())
}

// errKeyOver ends a watch whose key is no longer valid.
var errKeyOver = errors.New("the key is no longer valid")

// keyOverEvent is the last word to its client, which then should not come back with the same key.
const keyOverEvent = "event: close\ndata: {\"reason\":\"the key is no longer valid\"}\n\n"

// lastWord is how long the last word to a client may take.
const lastWord = time.Second

// serve sends until the client leaves, does not read, its key is over, or the board has said its last word, and tells which.
// life has a function called when the key is over, until it is told to stop.
func (w *watchers) serve(c *call, r *http.Request, from Watcher, life func(end func()) (stop func())) watchEnd {
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	out := http.NewResponseController(c)
	ended := make(chan struct{})
	stop := context.AfterFunc(w.base, func() {
		defer close(ended)
		cancel(nil)
		_ = out.SetWriteDeadline(clock.Deadline(0))
	})
	defer func() {
		if !stop() {
			<-ended // the response is not touched afterwards
		}
	}()
	defer life(func() {
		cancel(errKeyOver)
		_ = out.SetWriteDeadline(clock.Deadline(lastWord)) // also of a write that waits for a client that does not read
	})()
	_ = out.SetReadDeadline(time.Time{}) // that of a request; its end would be taken for a client that left
	h := c.Header()
	h["Content-Type"] = eventsType
	h["Cache-Control"] = noStore
	h["X-Content-Type-Options"] = noSniff
	h["X-Accel-Buffering"] = noBuffering
	c.tellQuota(clock.Now())
	for {
		frame, err := from.Next(ctx)
		if err == nil {
			err = w.write(ctx, c, out, frame)
		}
		if err == nil {
			continue
		}
		if errors.Is(context.Cause(ctx), errKeyOver) {
			_ = out.SetWriteDeadline(clock.Deadline(lastWord))
			if _, err := io.WriteString(c, keyOverEvent); err == nil {
				_ = out.Flush() // the last word either way
			}
			return watchEndKey
		}
		return w.endOf(err)
	}
}

var (
	eventsType  = []string{"text/event-stream"}
	noBuffering = []string{"no"} // nginx would hold events back
)

// maxPiece is how much is written within one bound of patience. The first frame has a day of events and up to 2 MB, for
// which a phone on a bad line takes longer: it is cut off only when it takes nothing.
const maxPiece = 64 << 10

func (w *watchers) write(ctx context.Context, c *call, out *http.ResponseController, frame []byte) error {
	for piece := range slices.Chunk(frame, maxPiece) {
		if err := out.SetWriteDeadline(clock.Deadline(w.patience)); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil { // it ended before the bound was set, and could not end the write
			return err
		}
		if _, err := c.Write(piece); err != nil {
			return err
		}
	}
	return out.Flush()
}

// watchEnd is how a watch ended: a metric label.
type watchEnd string

// The closed set of ends.
const (
	watchEndClient   watchEnd = "client"
	watchEndSlow     watchEnd = "slow"
	watchEndStopping watchEnd = "stopping"
	watchEndKey      watchEnd = "key"
)

func watchEnds() []watchEnd {
	return []watchEnd{watchEndClient, watchEndSlow, watchEndStopping, watchEndKey}
}

// endOf tells apart clients that were told to go, that left, and that did not read: these the board gives up, or a write to
// them takes too long.
func (w *watchers) endOf(err error) watchEnd {
	switch {
	case w.stopping():
		return watchEndStopping
	case errors.Is(err, ops.ErrSlow), errors.Is(err, os.ErrDeadlineExceeded):
		return watchEndSlow
	}
	return watchEndClient
}
