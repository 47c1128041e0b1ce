package gateway

import (
	"context"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// watchEvery is how often maintenance windows are looked at: they begin and end by the clock. Without one it costs nothing.
const watchEvery = time.Second

// watcher tells of the maintenance windows of one exchange, each beginning and end once. It belongs to Run.
type watcher struct {
	b    *Books
	v    *venue
	told map[windowKey]window // those that were told of; as many as there are windows
	used time.Time            // since when the exchange is in use, zero while it is not
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
	windows, wall := w.v.maintenance(now), clock.Wall(now)
	seen := make(map[windowKey]bool, len(windows))
	open := false
	for _, m := range windows {
		k, active := keyOfWindow(&m), m.Active(wall)
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
		if last.Until.IsZero() || last.Until.After(wall) {
			last.Until = wall // it ended before its time, or nobody knew when it would
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

// atEase tells whether a call that nobody waits for may be made: nothing refuses it, and it would not be a probe.
func (v *venue) atEase(op market.Op) bool {
	return v.circuit(market.CircuitID{Exchange: v.ID, Class: op.Class()}) == market.CircuitClosed && v.peek(op) == nil
}

// settled is how long an exchange has to be in use before its announcement is read without anybody asking: what callers came
// for goes first, and who asks for it by the status is answered at once.
const settled = 2 * announcedFor

// hear has the exchange's own announcement read anew if it is old and the exchange has been in use for a while. It waits for
// nothing. What is not in use, and what has just begun to be, is left alone, and so is an exchange whose circuit of such calls
// is not closed: probes are for those who need an answer, and an announcement that can be read would close the circuit of calls
// that fail.
func (w *watcher) hear(ctx context.Context, now time.Time) {
	if !w.b.inUse(w.v, now) {
		w.used = time.Time{}
		return
	}
	if w.used.IsZero() {
		w.used = now
	}
	if a := w.v.announced.Load(); now.Sub(w.used) < settled || a != nil && now.Sub(a.CheckedAt) < announcedFor {
		return
	}
	if !w.v.atEase(market.OpStatus) {
		return
	}
	f, _, _, err := w.v.status.enter(market.WithLane(ctx, market.LanePrefetch), w.v.crew, 0, announcedFor, w.v.readStatus)
	if err == nil && f != nil {
		w.v.status.leave(f, true)
	}
}
