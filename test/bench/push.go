package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"
)

// staged makes a theatre for one part of the rows.
func staged(env []string, measure func(context.Context, *theatre, *run) error) func(context.Context, *run) error {
	return func(ctx context.Context, r *run) error {
		program, err := build(ctx, r.dir)
		if err != nil {
			return err
		}
		state, err := os.MkdirTemp(r.dir, "state-")
		if err != nil {
			return err
		}
		th, err := newTheatre(ctx, env, program, state)
		defer th.stop()
		if err != nil {
			return err
		}
		return measure(ctx, th, r)
	}
}

// theatre is a streaming exchange, a gateway, and its subscribers.
type theatre struct {
	exchange *upstream
	gateway  *gateway
	crowd    *subscribers
}

func newTheatre(ctx context.Context, env []string, program, state string, args ...string) (th *theatre, err error) {
	th = &theatre{}
	if th.exchange, err = startStreaming(ctx); err != nil {
		return th, err
	}
	args = append([]string{"--set", "exchanges.binance.stream_hosts=ws" + th.exchange.url[len("http"):]}, args...)
	if th.gateway, err = startGatewayIn(ctx, env, program, state, th.exchange.url, args...); err != nil {
		return th, err
	}
	th.crowd, err = startCrowd(ctx, th.gateway.addr, th.gateway.authorization())
	return th, err
}

func (th *theatre) stop() {
	if th.crowd != nil {
		th.crowd.stop()
	}
	if th.gateway != nil {
		th.gateway.stop()
	}
	if th.exchange != nil {
		th.exchange.stop()
	}
}

// play lets the exchange change a book at each beat, for a while. n is how many levels a side a change has, run how many
// changes come at once.
func (th *theatre) play(ctx context.Context, books []string, n, run int, beat, during time.Duration) error {
	begin := time.Now()
	for i := 0; ctx.Err() == nil; i++ {
		due := begin.Add(time.Duration(i) * beat)
		if due.Sub(begin) >= during {
			return nil
		}
		sleepUntil(due)
		th.exchange.streams.change(books[i%len(books)], n, run)
	}
	return ctx.Err()
}

// sleepUntil is as precise as the kernel: a timer of the runtime's may come a millisecond late, which is two messages.
func sleepUntil(t time.Time) {
	for {
		d := time.Until(t)
		if d <= 0 {
			return
		}
		rest := syscall.NsecToTimespec(int64(d))
		_ = syscall.Nanosleep(&rest, nil) // interrupted, it is asked again
	}
}

// settle lets what was sent arrive.
func settle(ctx context.Context) error {
	select {
	case <-time.After(300 * time.Millisecond):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func symbolsOf(bases []string) (pairs, symbols []string) {
	for _, b := range bases {
		pairs, symbols = append(pairs, b+"/USDT"), append(symbols, b+"USDT")
	}
	return pairs, symbols
}

// measureDelay sends 2,000 messages a second over 20 books to one subscriber of all of them.
func measureDelay(ctx context.Context, th *theatre, r *run) error {
	const (
		perSecond = 2000
		during    = 2 * time.Second
	)
	var bases []string
	for i := range 20 {
		bases = append(bases, coin(i))
	}
	pairs, symbols := symbolsOf(bases)
	if err := th.crowd.join(ctx, 1, pairs...); err != nil {
		return err
	}
	var p50, p99, cpu []float64
	for range r.pushRounds {
		if _, err := th.crowd.tally(ctx); err != nil {
			return err
		}
		before, err := th.gateway.cpu()
		if err != nil {
			return err
		}
		if err := th.play(ctx, symbols, 10, 1, time.Second/perSecond, during); err != nil {
			return err
		}
		if err := settle(ctx); err != nil {
			return err
		}
		after, err := th.gateway.cpu()
		if err != nil {
			return err
		}
		got, err := th.crowd.tally(ctx)
		if err != nil {
			return err
		}
		if want := int(perSecond * during / time.Second); got.Frames != want || got.Resets > 0 {
			return fmt.Errorf("of %d messages %d came, with %d snapshots", want, got.Frames, got.Resets)
		}
		p50, p99 = append(p50, float64(got.P50)), append(p99, float64(got.P99))
		cpu = append(cpu, float64(after-before)/float64(got.Frames))
	}
	r.most("2,000 messages/s, exchange to subscriber, p50: least", slices.Min(p50), micros, float64(300*time.Microsecond))
	r.most("  p99: least", slices.Min(p99), millis, float64(5*time.Millisecond))
	r.seen("  the gateway's time for a message, both sockets", median(cpu), cpuMicros)
	return nil
}
