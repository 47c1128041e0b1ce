package notify

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"exchange-gateway/internal/clock"
)

// flushWait is what a stop waits for what has not been told yet.
const flushWait = 2 * time.Second

// Run sends messages until ctx ends, then what is left for two seconds at most, and returns nil.
func (w *Webhook) Run(ctx context.Context) error {
	late, cancel := outlive(ctx, flushWait)
	defer cancel()
	for w.wait(ctx) {
		w.send(ctx, late, false)
	}
	w.send(ctx, late, true)
	return nil
}

// outlive is a context that ends some time after another. Cancel waits for what it started.
func outlive(ctx context.Context, d time.Duration) (late context.Context, cancel func()) {
	late, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer stop()
		select {
		case <-ctx.Done():
			pause(late, clock.Now().Add(d))
		case <-late.Done():
		}
	}()
	return late, func() { stop(); <-ended }
}

// wait is true when something is to be told, and false when ctx has ended.
func (w *Webhook) wait(ctx context.Context) bool {
	for {
		due := w.flaps.next()
		if first := w.first(); !first.IsZero() && (due.IsZero() || first.Add(gather).Before(due)) {
			due = first.Add(gather)
		}
		if due.IsZero() {
			select {
			case <-w.due:
				continue
			case <-ctx.Done():
				return false
			}
		}
		due = latest(due, w.pace.at())
		if !clock.Now().Before(due) {
			return ctx.Err() == nil
		}
		timer := time.NewTimer(clock.Until(due))
		select {
		case <-timer.C:
		case <-w.due: // it may be due earlier
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return false
		}
	}
}

// pause waits until a moment, and is false if ctx ended first.
func pause(ctx context.Context, until time.Time) bool {
	timer := time.NewTimer(clock.Until(until))
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// send makes one message of what waits, and delivers it or gives it up.
func (w *Webhook) send(ctx, late context.Context, all bool) {
	list, leftOut := w.take()
	lines := w.lines(list, clock.Now(), all)
	if len(lines) == 0 && leftOut == 0 {
		return
	}
	body, err := encode(w.compose(lines, leftOut))
	if err == nil {
		err = w.deliver(ctx, late, body)
	}
	w.settle(err)
}

// deliver tries a few times. Once ctx has ended there is one try more, unless the receiver wants none.
func (w *Webhook) deliver(ctx, late context.Context, body []byte) (err error) {
	for try := range tries {
		if !pause(ctx, w.pace.at()) && clock.Now().Before(w.pace.hold) {
			return errors.Join(err, errHeld)
		}
		w.pace.made(clock.Now())
		if err = w.post(late, body); err == nil {
			return nil
		}
		hold := backoff << try
		if refused, ok := errors.AsType[*refusedError](err); ok {
			hold = max(refused.wait, hold)
			if refused.lasting() {
				return err
			}
		}
		w.pace.hold = clock.Now().Add(hold)
		if ctx.Err() != nil {
			return err
		}
	}
	return err
}

var errHeld = errors.New("the gateway is stopping, and the webhook wants no request yet")

// settle counts, and logs when failing begins and when it ends.
func (w *Webhook) settle(err error) {
	if err == nil {
		w.metrics.sent.Inc()
	} else {
		w.metrics.failed.Inc()
	}
	switch {
	case err != nil && !w.failing:
		w.log.Warn("notification not delivered", slog.Any("err", err))
	case err == nil && w.failing:
		w.log.Info("notifications are delivered again")
	}
	w.failing = err != nil
}
