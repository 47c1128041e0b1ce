package main

import (
	"context"
	"fmt"
	"slices"
)

// measureDiffs measures changes of streamed books without sockets: one side of a local book, and the whole way of a change.
func measureDiffs(ctx context.Context, r *run) error {
	b, err := r.compile(ctx, "internal/feed/localbook")
	if err != nil {
		return err
	}
	for _, m := range []struct {
		name, levels string
		limit        float64
	}{
		{"1,000", "1000", 10_000},
		{"5,000", "5000", 20_000},
	} {
		least, err := b.least(ctx, "Apply/spread/"+m.levels, 4000)
		if err != nil {
			return err
		}
		r.most("100 changed levels of a side of "+m.name+": least", least, cpuMicros, m.limit)
	}
	if b, err = r.compile(ctx, "test/bench/relay"); err != nil {
		return err
	}
	for _, venue := range []string{"binance", "okx", "coinbase"} {
		p, f, err := b.duel(ctx, "Change/"+venue, "standard", 3000, 1500)
		if err != nil {
			return err
		}
		r.most(fmt.Sprintf("20 changed levels from socket to encoded update, %s: least", venue), slices.Min(p.ours), cpuMicros, 30_000)
		r.most("  its allocations", f[unitAllocs], allocs, 15)
		r.shown("  / encoding/json, decoding alone", p, cpuMicros)
	}
	return nil
}
