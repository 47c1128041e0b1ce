package gateway

import (
	"context"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// announcedFor is how long an exchange's announcement about itself is taken as its word.
const announcedFor = time.Minute

// Status tells what is known about an exchange. It fails only for one that is not there, and looking on is no use of the
// exchange: its own announcement is read at most once a minute, and only while the exchange is in use. Without
// an answer it is the last one, or VenueUnknown.
func (b *Books) Status(ctx context.Context, exchange market.ExchangeID) (*Status, error) {
	v := b.venues[exchange]
	if v == nil {
		return nil, unknownExchange(exchange, b.order)
	}
	s := b.Health(v.ID)
	s.Announced, s.AnnouncedError = b.announced(ctx, v)
	s.closed(v, clock.Now()) // the announcement may be new
	return s, nil
}

// Health is Status without asking anybody: it does no I/O. It is nil for an exchange that is not there.
func (b *Books) Health(exchange market.ExchangeID) *Status {
	v := b.venues[exchange]
	if v == nil {
		return nil
	}
	s := &Status{Exchange: v.ID, AskedAt: v.askedAt(), Announced: market.VenueStatus{State: market.VenueUnknown}}
	if a := v.announced.Load(); a != nil {
		s.Announced = *a
	}
	s.closed(v, clock.Now())
	if i := b.cfg.Inventory; i != nil {
		s.Circuits = only(i.Circuits(), func(c market.CircuitStatus) bool { return c.ID.Exchange == v.ID })
		s.Gates = only(i.Gates(), func(g market.GateStatus) bool { return g.Exchange == v.ID })
		s.Unrecognized = i.Unrecognized(v.ID)
		s.Budgets = only(i.Budgets(), func(l market.BudgetStatus) bool { return l.Exchange == v.ID })
	}
	if t := v.table.Load(); t != nil {
		s.Pairs, s.PairsAge = len(t.list.Rows), b.listAge(t, clock.Now())
		for pair := range t.entries {
			if _, held := b.cfg.Books.Book(v.ID, pair); held {
				s.BooksHeld++
			}
		}
	}
	return s
}

func (s *Status) closed(v *venue, now time.Time) {
	s.Maintenance = v.maintenance(now)
	s.ETA, _ = v.closedUntil(now)
}

func only[T any](all []T, keep func(T) bool) []T {
	var out []T
	for _, v := range all {
		if keep(v) {
			out = append(out, v)
		}
	}
	return out
}

// announcedFor is how old an announcement may be for a caller. While Run reads them, callers leave it to Run.
func (b *Books) announcedFor() time.Duration {
	if b.running.Load() {
		return 2 * announcedFor
	}
	return announcedFor
}

// readStatus reads the announcement.
func (v *venue) readStatus(ctx context.Context) (market.VenueStatus, error) {
	s, err := v.Data.Status(ctx)
	if err == nil {
		s.CheckedAt = clock.Now()
		v.announced.Store(&s)
	}
	return s, err
}

// announced reads the announcement anew if it is old, and waits a second for it at most.
func (b *Books) announced(ctx context.Context, v *venue) (market.VenueStatus, market.Kind) {
	last := market.VenueStatus{State: market.VenueUnknown}
	if a := v.announced.Load(); a != nil {
		if last = *a; clock.Since(last.CheckedAt) < b.announcedFor() {
			return last, market.KindNone
		}
	}
	if !b.inUse(v, clock.Now()) {
		return last, market.KindNone
	}
	if err := v.peek(market.OpStatus); err != nil {
		return last, market.KindOf(err)
	}
	f, _, _, err := v.status.enter(ctx, v.crew, 0, announcedFor, v.readStatus)
	switch {
	case err != nil:
		return last, market.KindOf(err)
	case f == nil: // read a moment ago
		return last, market.KindNone
	}
	defer v.status.leave(f, true)
	switch f.await(ctx, asideWait) {
	case landed:
		if f.err == nil {
			return f.value, market.KindNone
		}
		return last, market.KindOf(f.err)
	case late:
		return last, market.KindTimeout
	case gone:
	}
	return last, market.KindOf(ctx.Err())
}
