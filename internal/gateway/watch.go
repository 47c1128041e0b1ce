package gateway

import (
	"context"
	"time"

	"exchange-gateway/internal/market"
)

// watchEvery is how often maintenance windows are looked at: they begin and end by the clock. Without one it costs nothing.
const watchEvery = time.Second

// watcher tells of the maintenance windows of one exchange, each beginning and end once. It belongs to Run.
type watcher struct {
	b    *Books
	v    *venue
	told map[windowKey]window // those that were told of; as many as there are windows
}

// window is one as it was last seen, and whether it was told of as open.
type window struct {
	market.Maintenance
	began bool
}

// windowKey tells windows apart. The end and the words of one that an exchange announces may change, so its beginning names it.
type windowKey struct {
	announced   bool
	from, until int64
	note        string
}

func keyOfWindow(w *market.Maintenance) windowKey {
	if w.Announced {
		return windowKey{announced: true, from: w.From.UnixNano()}
	}
	return windowKey{from: w.From.UnixNano(), until: w.Until.UnixNano(), note: w.Note}
}

// look tells what changed since the last look.
func (w *watcher) look(now time.Time) {
	windows := w.v.maintenance(now)
	seen := make(map[windowKey]bool, len(windows))
	open := false
	for _, m := range windows {
		k, active := keyOfWindow(&m), m.Active(now)
		seen[k] = true
		open = open || active
		before, known := w.told[k]
		w.told[k] = window{m, active}
		if !known || active && !before.began {
			w.tell(m, active)
		}
	}
	for k, last := range w.told {
		if seen[k] {
			continue
		}
		delete(w.told, k)
		if last.Until.IsZero() || last.Until.After(now) {
			last.Until = now // it ended before its time, or nobody knew when it would
		}
		if last.began {
			w.tell(last.Maintenance, false)
		}
	}
	until, _ := w.v.closedUntil(now)
	w.v.metrics.closed(open, until)
}

func (w *watcher) tell(m market.Maintenance, began bool) {
	if tell := w.b.cfg.OnMaintenance; tell != nil {
		tell(m, began)
	}
}

// hear has the exchange's own announcement read anew if it is old and the exchange is in use. It waits for nothing.
func (b *Books) hear(ctx context.Context, v *venue, now time.Time) {
	if a := v.announced.Load(); a != nil && now.Sub(a.CheckedAt) < announcedFor {
		return
	}
	if !b.inUse(v, now) || v.peek(market.OpStatus) != nil {
		return
	}
	f, _, _, err := v.status.enter(market.WithLane(ctx, market.LanePrefetch), v.crew, 0, announcedFor, v.readStatus)
	if err == nil && f != nil {
		v.status.leave(f, true)
	}
}
