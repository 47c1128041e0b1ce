package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"
)

// collected lets the Go runtime of a gateway collect early: what is resident then is what lives, and not what may wait to be
// collected, which at the gateway's own setting is up to 192 MiB whatever it serves.
var collected = []string{"GOGC=20"}

// measureIdle counts the memory of subscribers of a book that does not change, and serves 5,000 of them.
func measureIdle(ctx context.Context, th *theatre, r *run) error {
	most, watchers := r.part(5000), r.part(watchers)
	if err := th.crowd.join(ctx, 1, "BTC/USDT"); err != nil { // what is made once is not a subscriber's
		return err
	}
	before, err := th.gateway.rss()
	if err != nil {
		return err
	}
	if err := th.crowd.join(ctx, watchers, "BTC/USDT"); err != nil {
		return err
	}
	after, err := th.gateway.rss()
	if err != nil {
		return err
	}
	r.most("memory of an idle subscriber, of "+grouped(watchers), (after-before)/float64(watchers), kibibytes, 14<<10)
	if err := th.crowd.join(ctx, most-watchers-1, "BTC/USDT"); err != nil {
		return err
	}
	if after, err = th.gateway.rss(); err != nil {
		return err
	}
	r.most("  of "+grouped(most), (after-before)/float64(most-1), kibibytes, 14<<10)
	if _, err := th.crowd.tally(ctx); err != nil {
		return err
	}
	if err := th.play(ctx, []string{"BTCUSDT"}, 10, 1, time.Second, 2*time.Second); err != nil {
		return err
	}
	if err := settle(ctx); err != nil {
		return err
	}
	got, err := th.crowd.tally(ctx)
	if err != nil {
		return err
	}
	r.exactly(grouped(most)+" subscribers: reached", float64(got.Reached), float64(most))
	r.exactly("  closed", float64(got.Closed), 0)
	return nil
}

const (
	streamed = 300 // pairs
	changes  = 250 // of each: a journal holds 200, or 256 KiB
	liveIn   = time.Minute
)

// measurePairs streams 300 pairs of 1,000 levels a side until their journals are full, as fast as the gateway takes it.
func measurePairs(ctx context.Context, r *run) error {
	program, err := build(ctx, r.dir)
	if err != nil {
		return err
	}
	state, err := os.MkdirTemp(r.dir, "state-")
	if err != nil {
		return err
	}
	var names, warm []string
	streamed := r.part(streamed)
	for i := range streamed {
		names, warm = append(names, coin(i)+"-USD"), append(warm, coin(i)+"/USD")
	}
	exchange, err := startProducts(ctx, names)
	if err != nil {
		return err
	}
	defer exchange.stop()
	const at = "exchanges.coinbase."
	g, err := startGateway(ctx, program, state, "http://"+exchange.addr, "--set", "exchanges.binance.enabled=false",
		"--set", at+"enabled=true", "--set", at+"hosts=http://"+exchange.addr, "--set", at+"stream_hosts=ws://"+exchange.addr,
		"--set", at+"warm="+strings.Join(warm, ","))
	if err != nil {
		return err
	}
	defer g.stop()
	return playPairs(ctx, g, exchange, r)
}

func playPairs(ctx context.Context, g *gateway, exchange *products, r *run) error {
	streamed, changes := float64(len(exchange.names)), r.part(changes)
	began := time.Now()
	if err := g.reaches(ctx, `gateway_feed_books{exchange="coinbase",state="live"}`, streamed); err != nil {
		return err
	}
	took := time.Since(began)
	for version := range int64(changes) {
		exchange.change(10, version+1) // a gateway that is behind holds the exchange up
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	if err := g.reaches(ctx, `gateway_feed_messages_total{exchange="coinbase"}`, streamed*float64(changes+1)); err != nil {
		return err
	}
	live, err := g.metric(ctx, `gateway_feed_books{exchange="coinbase",state="live"}`)
	if err != nil {
		return err
	}
	rss, err := g.rss()
	if err != nil {
		return err
	}
	heap, err := g.metric(ctx, "go_memstats_heap_alloc_bytes")
	if err != nil {
		return err
	}
	r.exactly(fmt.Sprintf("%.0f streaming pairs of 1,000 levels: live", streamed), live, streamed)
	r.seen("  from the start until all were", float64(took), millis)
	r.most("  memory, journals full", rss, mebibytes, 300<<20)
	r.seen("  of it heap, with what waits to be collected", heap, mebibytes)
	return nil
}

// reaches waits until a metric is at least so much.
func (g *gateway) reaches(ctx context.Context, series string, least float64) error {
	ctx, cancel := context.WithTimeout(ctx, liveIn)
	defer cancel()
	for {
		n, err := g.metric(ctx, series)
		if err != nil {
			return err
		}
		if n >= least {
			return nil
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			err = ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("%s is %.0f, not %.0f: %w", series, n, least, err)
		}
	}
}
