package main

import (
	"context"
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

// measureFanOut sends 20 messages of 2 KB a second to 1,000 subscribers: one at a time, in turns with the usual way to do it;
// eight at once; and with one among the subscribers who does not read.
func measureFanOut(ctx context.Context, th *theatre, t *table) error {
	if err := th.crowd.join(ctx, watchers, "BTC/USDT"); err != nil {
		return err
	}
	usual, err := startUsual(ctx)
	defer usual.stop()
	if err != nil {
		return err
	}
	var single, queued, stalled, peer fanned
	for range pushRounds {
		if err := th.fanOut(ctx, 1, &single); err != nil {
			return err
		}
		if err := usual.fanOut(ctx, &peer); err != nil {
			return err
		}
		if err := th.fanOut(ctx, 8, &queued); err != nil {
			return err
		}
	}
	for range pushRounds {
		// Each time another, as who does not read is closed after ten seconds.
		if err := th.crowd.stall(ctx, "BTC/USDT"); err != nil {
			return err
		}
		if err := th.fanOut(ctx, 1, &stalled); err != nil {
			return err
		}
	}
	p99 := float64(50 * time.Millisecond)
	t.most("1,000 subscribers x 20 messages/s of 2 KB, a delivery: least", slices.Min(single.cpu), cpuMicros, 15_000)
	t.shown("  / coder/websocket with a goroutine and a write each", paired{single.cpu, peer.cpu}, cpuMicros)
	t.most("  p99: least", slices.Min(single.p99), millis, p99)
	t.most("  eight messages at once, a delivery: least", slices.Min(queued.cpu), cpuMicros, 4000)
	t.most("  with one who does not read, a delivery: least", slices.Min(stalled.cpu), cpuMicros, 15_000)
	t.most("    p99: least", slices.Min(stalled.p99), millis, p99)
	return nil
}

// fanned is, of each round, the server's time for one delivery, and within what time 99 of a hundred came.
type fanned struct{ cpu, p99 []float64 }

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
	if got.Frames < watchers*pushed || got.Reached != watchers || got.Resets > 0 || got.Closed > 0 {
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

func startUsual(ctx context.Context) (u *usual, err error) {
	u = &usual{}
	if u.server, err = startPeer(ctx, "push", "all"); err != nil {
		return u, err
	}
	if u.crowd, err = startCrowd(ctx, u.server.addr, ""); err != nil {
		return u, err
	}
	return u, u.crowd.join(ctx, watchers, "BTC/USDT")
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
