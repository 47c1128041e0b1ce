package stream

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/feed/hub"
	"exchange-gateway/internal/market"
)

// Events serves one topic as server-sent events until the client leaves, the gateway stops, or the client does not read.
// after is the id of the last event that the client has, "" for none. An error means that nothing was sent yet; also then
// the admission's Leave is called.
func (s *Streams) Events(w http.ResponseWriter, r *http.Request, t hub.Topic, after string, a Admission) error {
	defer a.leave()
	if s.foreign(r) {
		return ErrForeignOrigin
	}
	ctx, cancel := context.WithTimeout(market.WithClient(r.Context(), a.Client), listingBound)
	l, err := s.cfg.Listing(ctx, t.Key.Exchange, t.Key.Pair)
	cancel()
	if err != nil {
		return err
	}
	if err := s.enter(&Entry{}); err != nil {
		return err
	}
	defer s.leave(false, netip.Addr{})
	client := s.cfg.Hub.NewClient()
	defer client.Close()
	client.On(a.Holder)
	if err := client.Subscribe(l, t, after); err != nil {
		return err
	}
	e := &events{streams: s, out: http.NewResponseController(w), w: w}
	m := s.metrics
	m.clients.WithLabelValues(transportEvents).Inc()
	defer m.clients.WithLabelValues(transportEvents).Dec()
	why := e.serve(r.Context(), client, &a)
	m.ended.WithLabelValues(transportEvents, why).Inc()
	switch why {
	case endSlow:
		s.farewells.log(s.log, farewell{transport: transportEvents, reason: tooSlow.reason, subscriptions: 1})
	case endKey:
		s.farewells.log(s.log, farewell{transport: transportEvents, reason: keyOver.reason, subscriptions: 1})
	}
	return nil
}

// events is one connection of server-sent events.
type events struct {
	streams *Streams
	w       http.ResponseWriter
	out     *http.ResponseController
	armed   time.Time // when the bound of a write was set
}

// retryMillis is after how long a client's EventSource comes back.
const retryMillis = "1000"

// serve sends until the end and tells why it came.
func (e *events) serve(ctx context.Context, client *hub.Client, a *Admission) (why string) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer e.cutWith(func() { cancel(nil) })()
	defer a.watch(func() {
		cancel(errKeyOver)
		_ = e.out.SetWriteDeadline(clock.Deadline(closeBound)) // also of a write that waits for a client that does not read
	})()
	_ = e.out.SetReadDeadline(time.Time{}) // that of a request; without it nothing is watched for longer than a request
	h := e.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Accel-Buffering", "no") // nginx would hold events back
	if err := e.write([]byte("retry: " + retryMillis + "\n\n")); err != nil {
		return e.endOf(err)
	}
	sent := e.streams.metrics.frames.WithLabelValues(transportEvents)
	var buf []byte
	for {
		frames, err := client.Next(ctx)
		switch {
		case errors.Is(context.Cause(ctx), errKeyOver):
			_ = e.arm(clock.Now(), closeBound) // it fails as the write does
			e.farewell(keyOver.reason)
			return endKey
		case errors.Is(err, hub.ErrClosing):
			e.farewell(goingAway.reason)
			return endStopping
		case errors.Is(err, hub.ErrSlow):
			return endSlow
		case err != nil:
			return e.endOf(err)
		}
		buf = buf[:0]
		for _, f := range frames {
			buf = event(buf, f.ID(), string(f.Type()), f.JSON())
		}
		if err := e.write(buf); err != nil {
			return e.endOf(err)
		}
		sent.Add(float64(len(frames)))
		if cap(buf) > maxBatch {
			buf = nil
		}
	}
}

// errKeyOver ends the events of a client whose key is no longer valid.
var errKeyOver = errors.New(keyOver.reason)

// farewell sends the last word, which is the last whether it arrives or not.
func (e *events) farewell(reason string) {
	_ = e.write(event(nil, "", "close", []byte(`{"type":"close","reason":"`+reason+`"}`)))
}

// event appends one event. JSON has no line breaks of its own.
func event(dst []byte, id, kind string, data []byte) []byte {
	if id != "" {
		dst = append(append(append(dst, "id: "...), id...), '\n')
	}
	dst = append(append(append(dst, "event: "...), kind...), '\n')
	return append(append(append(dst, "data: "...), data...), "\n\n"...)
}

// write sends within the bound of a write, which is that of session.arm.
func (e *events) write(b []byte) error {
	if now := clock.Now(); now.Sub(e.armed) >= e.streams.rearm() {
		if err := e.arm(now, e.streams.cfg.Patience); err != nil {
			return err
		}
	}
	if err := e.streams.base.Err(); err != nil { // it ended before the bound was set, and could not end the write
		return err
	}
	if _, err := e.w.Write(b); err != nil {
		return err
	}
	return e.out.Flush()
}

// arm bounds the writes that follow.
func (e *events) arm(now time.Time, bound time.Duration) error {
	e.armed = now
	return e.out.SetWriteDeadline(now.Add(bound))
}

// cutWith ends what the handler waits for when Close runs out of patience: the hub, by cancel, and a write. The function
// that it returns ends that; afterwards the response is not touched.
func (e *events) cutWith(cancel func()) (end func()) {
	done := make(chan struct{})
	stop := context.AfterFunc(e.streams.base, func() {
		defer close(done)
		cancel()
		_ = e.out.SetWriteDeadline(clock.Deadline(0))
	})
	return func() {
		if !stop() {
			<-done
		}
	}
}

// endOf tells apart clients that did not read, that were cut off, and that left.
func (e *events) endOf(err error) string {
	if e.streams.base.Err() != nil {
		return endStopping
	}
	if t, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err); ok && t.Timeout() {
		return endSlow
	}
	return endClient
}
