package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// watchers is how many subscribers there are.
const watchers = 1000

// How they are pushed to in one round.
const (
	pushed      = 20 // messages a second
	pushedFor   = 2 * time.Second
	pushedSides = 25 // levels a side that a message has: 2 KB as a client gets it
)

// measureFanOut sends 20 messages of 2 KB a second to 1,000 subscribers: one at a time, in turns with the usual way to do it,
// with the same while one more subscriber does not read, and with eight at once.
func measureFanOut(ctx context.Context, th *theatre, r *run) error {
	n := r.part(watchers)
	if err := th.crowd.join(ctx, n, "BTC/USDT"); err != nil {
		return err
	}
	usual, err := startUsual(ctx, n)
	defer usual.stop()
	if err != nil {
		return err
	}
	single, queued, stalled, peer := fanned{members: n}, fanned{members: n}, fanned{members: n}, fanned{members: n}
	for range r.pushRounds {
		if err := th.fanOut(ctx, 1, &single); err != nil {
			return err
		}
		if err := th.fanOutStalled(ctx, &stalled); err != nil {
			return err
		}
		if err := usual.fanOut(ctx, &peer); err != nil {
			return err
		}
		if err := th.fanOut(ctx, 8, &queued); err != nil {
			return err
		}
	}
	p99 := float64(25 * time.Millisecond)
	r.most(fmt.Sprintf("%s subscribers x 20 messages/s of 2 KB, a delivery: least", grouped(n)), slices.Min(single.cpu), cpuMicros, 15_000)
	r.shown("  / coder/websocket with a goroutine and a write each", paired{single.cpu, peer.cpu}, cpuMicros)
	r.most("  p99: least", slices.Min(single.p99), millis, p99)
	r.shown("  p99 / coder/websocket", paired{single.p99, peer.p99}, millis)
	r.most("  eight messages at once, a delivery: least", slices.Min(queued.cpu), cpuMicros, 4000)
	r.ratio("  with one who does not read / without: a delivery", paired{stalled.cpu, single.cpu}, cpuMicros, 1.15)
	r.ratio("  with one who does not read / without: p99", paired{stalled.p99, single.p99}, millis, 1.15)
	return nil
}

// fanOutStalled is fanOut while one more subscriber does not read. What the kernel takes for that one is filled before, and what
// may wait for it in the gateway, too: its topic is conflated, as of somebody who is far behind.
func (th *theatre) fanOutStalled(ctx context.Context, f *fanned) error {
	const (
		conflations = "gateway_hub_conflations_total"
		run, beat   = 8, 40 * time.Millisecond
		filling     = 50 * beat // 400 messages, of which 256 may wait
	)
	before, err := th.gateway.metric(ctx, conflations)
	if err != nil {
		return err
	}
	if err := th.crowd.stall(ctx, "BTC/USDT"); err != nil {
		return err
	}
	if err := th.play(ctx, []string{"BTCUSDT"}, pushedSides, run, beat, filling); err != nil {
		return err
	}
	if err := settle(ctx); err != nil {
		return err
	}
	if err := th.fanOut(ctx, 1, f); err != nil {
		return err
	}
	after, err := th.gateway.metric(ctx, conflations)
	if err != nil {
		return err
	}
	if after == before {
		return errNotBehind
	}
	return th.crowd.release(ctx)
}

var errNotBehind = errors.New("the subscriber that does not read has not fallen behind")

// fanned is, of each round, the server's time for one delivery, and within what time 99 of a hundred came.
type fanned struct {
	members  int // who get it
	cpu, p99 []float64
}

// fanOut is one round of messages that come run at once.
func (th *theatre) fanOut(ctx context.Context, run int, f *fanned) error {
	return f.round(ctx, th.gateway.process, th.crowd, func() error {
		return th.play(ctx, []string{"BTCUSDT"}, pushedSides, run, time.Second*time.Duration(run)/pushed, pushedFor)
	})
}

// round measures a server while it pushes.
func (f *fanned) round(ctx context.Context, server *process, crowd *subscribers, push func() error) error {
	if _, err := crowd.tally(ctx); err != nil {
		return err
	}
	before, err := server.cpu()
	if err != nil {
		return err
	}
	if err := push(); err != nil {
		return err
	}
	if err := settle(ctx); err != nil {
		return err
	}
	after, err := server.cpu()
	if err != nil {
		return err
	}
	got, err := crowd.tally(ctx)
	if err != nil {
		return err
	}
	if got.Frames < f.members*pushed || got.Reached != f.members || got.Resets > 0 || got.Closed > 0 {
		return fmt.Errorf("%d updates reached %d subscribers, with %d snapshots; %d were closed", got.Frames, got.Reached, got.Resets, got.Closed)
	}
	if size := got.Bytes / int64(got.Frames); size < 1900 || size > 2200 {
		return fmt.Errorf("a message has %d bytes, not 2 KB", size)
	}
	f.cpu, f.p99 = append(f.cpu, float64(after-before)/float64(got.Frames)), append(f.p99, float64(got.P99))
	return nil
}

// usual is a server that pushes as is usual, with as many subscribers.
type usual struct {
	server *process
	crowd  *subscribers
}

func startUsual(ctx context.Context, members int) (u *usual, err error) {
	u = &usual{}
	if u.server, err = startPeer(ctx, "push", "all"); err != nil {
		return u, err
	}
	if u.crowd, err = startCrowd(ctx, u.server.addr, ""); err != nil {
		return u, err
	}
	return u, u.crowd.join(ctx, members, "BTC/USDT")
}

func (u *usual) stop() {
	if u.crowd != nil {
		u.crowd.stop()
	}
	if u.server != nil {
		u.server.stop()
	}
}

func (u *usual) fanOut(ctx context.Context, f *fanned) error {
	return f.round(ctx, u.server, u.crowd, func() error {
		address := fmt.Sprintf("http://%s/play?n=%d&size=2050&beat=%v", u.server.addr, int(pushed*pushedFor/time.Second), time.Second/pushed)
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			return err
		}
		_, _, err = fetch(http.DefaultClient, r)
		return err
	})
}
