package resilience

import (
	"context"
	"log/slog"
	"time"

	"exchange-gateway/internal/market"
)

// GateKeeper keeps gates across restarts. Both methods keep to their context; a later Until of a gate is never given up
// for an earlier one, whatever order the saves arrive in.
type GateKeeper interface {
	// Load returns what is kept. It is asked once, before the first request.
	Load(ctx context.Context) ([]market.GateRecord, error)
	// Save writes one gate down, so that it survives the process.
	Save(ctx context.Context, r market.GateRecord) error
}

// Bounds of the keeper.
const (
	// keeperWait is how long a request waits for the keeper: a store that hangs must not hang the gateway.
	keeperWait = 250 * time.Millisecond
	// keeperTimeout is how long the keeper itself may take, nobody waiting any more.
	keeperTimeout = 2 * time.Second
	// maxSaves is how many saves may be under way. Past it a gate is not written down, which is counted; it is closed
	// all the same.
	maxSaves = 16
)

// saver writes gates down.
type saver struct {
	keeper  GateKeeper // nil keeps nothing
	spawn   func(func()) bool
	slots   chan struct{}
	log     *slog.Logger
	metrics *metrics
}

// save begins to write a gate down and returns what is closed when that ended. The caller holds the lock of the gates.
func (s *saver) save(owner *gates, scope market.Scope, g *gate) <-chan struct{} {
	if s.keeper == nil {
		return nil
	}
	clock := owner.env.clock
	r := market.GateRecord{
		Exchange: owner.id, Scope: scope, Kind: g.kind, Step: g.step,
		Until: clock.wall(g.reach), UpdatedAt: clock.wall(g.closedAt),
	}
	select {
	case s.slots <- struct{}{}:
	default:
		// Counted only: the lock of the gates is no place to wait for a log.
		g.reach = 0
		s.metrics.unsaved.WithLabelValues(string(owner.id)).Inc()
		return nil
	}
	written := make(chan struct{})
	started := s.spawn(func() {
		defer close(written)
		defer func() { <-s.slots }()
		ctx, cancel := context.WithTimeout(context.Background(), keeperTimeout)
		defer cancel()
		if err := s.keeper.Save(ctx, r); err != nil {
			s.failed(r, err)
			owner.mu.Lock()
			g.reach = 0 // so that the next refusal tries again
			owner.mu.Unlock()
		}
	})
	if !started {
		<-s.slots
		g.reach = 0
		return nil
	}
	return written
}

func (s *saver) failed(r market.GateRecord, err error) {
	s.metrics.unsaved.WithLabelValues(string(r.Exchange)).Inc()
	s.log.Warn("gate not written down", slog.String("exchange", string(r.Exchange)),
		slog.String("scope", string(r.Scope.Kind)), slog.Time("until", r.Until), slog.Any("err", err))
}

// await waits until a gate is written down, the caller leaves, or keeperWait is over.
func await(ctx context.Context, written <-chan struct{}) {
	if written == nil {
		return
	}
	timer := time.NewTimer(keeperWait)
	defer timer.Stop()
	select {
	case <-written:
	case <-timer.C:
	case <-ctx.Done():
	}
}
