package main

import (
	"context"
	"fmt"
	"slices"
)

// measureLayer measures circuits, gates, budget and retry alone; nothing is asked of an exchange.
func measureLayer(ctx context.Context, r *run) error {
	b, err := r.compile(ctx, "internal/resilience")
	if err != nil {
		return err
	}
	for _, m := range []struct {
		row, benchmark, peer string
		ours, theirs         int // iterations
		limit                float64
		allocs               float64 // negative: no goal
	}{
		{"permit + settle, closed / gobreaker's rolling Execute", "Permit", "gobreaker", 200_000, 300_000, 2.2, 2},
		{"refusal when open / gobreaker", "Refusal", "gobreaker", 1_000_000, 1_000_000, 1.2, 1},
		{"status read / gobreaker's State()", "Status", "gobreaker", 1_000_000, 1_000_000, 1, 0},
		{"whole pipeline on success / failsafe-go", "Pipeline", "failsafe", 30_000, 20_000, 1, -1},
		{"fast-fail / failsafe-go", "FastFail", "failsafe", 300_000, 30_000, 0.1, -1},
	} {
		p, f, err := b.duel(ctx, m.benchmark, m.peer, m.ours, m.theirs)
		if err != nil {
			return err
		}
		r.ratio(m.row, p, cpuNanos, m.limit)
		if m.allocs >= 0 {
			r.most("  its allocations", f[unitAllocs], allocs, m.allocs)
		}
	}
	f, err := b.run(ctx, "Circuits", 1)
	if err != nil {
		return err
	}
	r.most("10,000 circuits: memory of one", f["B/circuit"], inBytes, 1024)
	r.exactly("10,000 circuits: goroutines", f["goroutines"], 0)
	return nil
}

// measureBooks measures a book of 100 levels a side from the exchange's bytes to ours.
func measureBooks(ctx context.Context, r *run) error {
	for _, venue := range []string{"binance", "okx", "coinbase"} {
		b, err := r.compile(ctx, "internal/exchange/"+venue)
		if err != nil {
			return err
		}
		p, f, err := b.duel(ctx, "Book", "standard", 2000, 200)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("decode + validate + encode + publish 100 levels, %s", venue)
		r.most(name+": least", slices.Min(p.ours), cpuMicros, 60_000)
		r.most("  its allocations", f[unitAllocs], allocs, 10)
		r.faster("  / encoding/json with shopspring both ways", p, cpuMicros, 5)
	}
	return nil
}
