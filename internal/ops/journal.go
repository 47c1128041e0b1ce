package ops

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// How much of what happened is kept for readers. At the bound the oldest is dropped, and HistorySince says so: 5,000 events
// are three circuits that flap for a day at their longest open time.
const (
	HistoryFor = 24 * time.Hour
	MaxEvents  = 5000
)

// JournalConfig is what a Journal is made of. Its zero value is usable: events are then kept in memory alone.
type JournalConfig struct {
	Keeper     Keeper                // where events survive a restart; nil: nowhere
	Logger     *slog.Logger          // nil discards
	Registerer prometheus.Registerer // nil registers nothing
}

// Journal is what happened in the last 24 hours, in order. It hears every event from the Guard, tells watchers at once, and
// writes it down through the Keeper in its own time. Safe for concurrent use.
type Journal struct {
	keeper  Keeper
	log     *slog.Logger
	metrics *journalMetrics

	mu      sync.Mutex
	entries []*entry          // oldest first
	first   uint64            // number of entries[0]; numbers count what was ever kept here, and are nobody else's business
	numbers map[string]uint64 // by id
	since   time.Time         // from here on everything is known, as far as the bounds above allow
	hearers []func(ev *market.Event, e *entry)

	queue writeQueue
}

// NewJournal makes a journal that knows nothing yet. It does no I/O.
func NewJournal(c JournalConfig) *Journal {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	j := &Journal{
		keeper: c.Keeper, log: c.Logger, metrics: newJournalMetrics(c.Registerer),
		numbers: make(map[string]uint64), since: clock.WallNow(),
	}
	j.queue.wake = make(chan struct{}, 1)
	return j
}

// Listen takes an event over. It is the Guard's listener: called for one event at a time, in order, and it never waits.
func (j *Journal) Listen(ev market.Event) {
	e, err := newEntry(&ev)
	if err != nil {
		// Every field of an event can be encoded; what cannot is a mistake of ours that must not end the guard's delivery.
		j.log.LogAttrs(context.Background(), slog.LevelError, "event was not encoded", slog.String("id", ev.ID()), slog.Any("err", err))
		return
	}
	j.mu.Lock()
	if !j.keep(e) {
		j.mu.Unlock()
		return
	}
	j.metrics.encoded.Inc()
	for _, hear := range j.hearers {
		hear(&ev, e)
	}
	j.mu.Unlock()
	// The Desk has written an action down before it had any effect.
	if j.keeper != nil && ev.Type != market.EventAction {
		j.enqueue(ev)
	}
}

// keep adds an entry at the end, false if it is there already. The caller holds the lock.
func (j *Journal) keep(e *entry) bool {
	if _, known := j.numbers[e.id]; known {
		return false
	}
	j.numbers[e.id] = j.first + uint64(len(j.entries))
	j.entries = append(j.entries, e)
	j.trim(clock.WallNow())
	return true
}

// trim forgets what is beyond the bounds. The caller holds the lock.
func (j *Journal) trim(now time.Time) {
	n, oldest := 0, now.Add(-HistoryFor)
	for n < len(j.entries) && (len(j.entries)-n > MaxEvents || j.entries[n].at.Before(oldest)) {
		if len(j.entries)-n > MaxEvents {
			j.since = later(j.since, j.entries[n].at.Add(1))
		}
		delete(j.numbers, j.entries[n].id)
		j.entries[n] = nil // the slice behind lives on until the next growth
		n++
	}
	j.entries, j.first = j.entries[n:], j.first+uint64(n)
}

// seed puts what an earlier life left behind before what happened in this one.
func (j *Journal) seed(kept Kept) {
	if n := len(kept.Events) - MaxEvents; n > 0 {
		kept.Since = later(kept.Since, kept.Events[n-1].At.Add(1))
		kept.Events = kept.Events[n:]
	}
	old := make([]*entry, 0, len(kept.Events))
	for i := range kept.Events {
		e, err := newEntry(&kept.Events[i])
		if err != nil {
			j.log.LogAttrs(context.Background(), slog.LevelWarn, "kept event was not read", slog.Any("err", err))
			continue
		}
		old = append(old, e)
		j.metrics.encoded.Inc()
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	own := j.entries
	j.entries, j.first = nil, j.first+uint64(len(own))
	clear(j.numbers)
	if !kept.Since.IsZero() && kept.Since.Before(j.since) {
		j.since = kept.Since.Round(0)
	}
	for _, e := range slices.Concat(old, own) {
		j.keep(e)
	}
}

// hear registers a function that is called with each new event, in order, under the journal's lock: it must not wait.
func (j *Journal) hear(f func(ev *market.Event, e *entry)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.hearers = append(j.hearers, f)
}

// HistorySince is from when on every event is known: 24 hours back at most.
func (j *Journal) HistorySince() time.Time {
	j.mu.Lock()
	defer j.mu.Unlock()
	return later(j.since, clock.WallNow().Add(-HistoryFor))
}

// Last is the id of the newest event, "" before the first.
func (j *Journal) Last() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.last()
}

func (j *Journal) last() string {
	if len(j.entries) == 0 {
		return ""
	}
	return j.entries[len(j.entries)-1].id
}

// After returns the JSON of each event that is newer than the one of an id, oldest first; false if no such event is kept, of
// this life or an earlier one. "" is never known. The texts are shared: nobody changes them.
func (j *Journal) After(id string) (texts [][]byte, known bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.trim(clock.WallNow())
	newer, known := j.after(id)
	for _, e := range newer {
		texts = append(texts, e.text)
	}
	return texts, known
}

// after is After with the lock held. What it returns is shared.
func (j *Journal) after(id string) ([]*entry, bool) {
	number, known := j.numbers[id]
	if !known {
		return nil, false
	}
	return j.from(number + 1), true
}

// from returns the entries from a number on. The caller holds the lock; what it gets is its own.
func (j *Journal) from(number uint64) []*entry { return j.between(number, j.next()) }

// between returns the entries from a number on and before another, those that are still kept.
func (j *Journal) between(number, before uint64) []*entry {
	number, before = max(number, j.first), max(before, j.first)
	return slices.Clone(j.entries[min(number, before)-j.first : before-j.first])
}

// next is the number of the entry that comes next.
func (j *Journal) next() uint64 { return j.first + uint64(len(j.entries)) }

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
