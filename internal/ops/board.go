package ops

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// How often the overview is built: at most every 100 ms, however many ask; and every second while somebody watches.
const (
	buildEvery = 100 * time.Millisecond
	stateEvery = time.Second
)

// BoardConfig is what a Board is made of. Everything is needed, except what says otherwise.
type BoardConfig struct {
	Instance  string
	Version   string
	StartedAt time.Time
	Exchanges []market.ExchangeID // in their configured order
	Guard     Guard
	Answers   Answers
	Feed      Feed    // nil: nothing is streamed
	Clients   Clients // nil: none are shown
	Overrides *Overrides
	Journal   *Journal
	// Degraded names the parts of the gateway itself that do not work as configured. nil: there are none.
	Degraded func() []string
	// Thresholds are the settings in force of a class of circuits.
	Thresholds func(market.ExchangeID, market.Class) Thresholds
	// FreshFor and StaleMax are up to which age a book is live, and beyond which it is not served.
	FreshFor, StaleMax time.Duration
	Logger             *slog.Logger          // nil discards
	Registerer         prometheus.Registerer // nil registers nothing
}

// Board shows how everything stands to everybody who asks or watches: built and encoded once for all of them. Looking
// changes nothing. Safe for concurrent use.
type Board struct {
	cfg     BoardConfig
	log     *slog.Logger
	metrics *boardMetrics
	history history

	building sync.Mutex
	current  atomic.Pointer[moment]

	watchers watchers
	wake     chan struct{} // tells Run that an event happened, or that somebody began to watch
}

// NewBoard makes a board that hears of the journal's events from now on. It does no I/O and starts nothing.
func NewBoard(c BoardConfig) *Board {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	b := &Board{cfg: c, log: c.Logger, wake: make(chan struct{}, 1)}
	b.metrics = newBoardMetrics(c.Registerer, c.Journal.metrics.vec)
	b.history.boot = c.Guard.Boot()
	b.watchers.all = make(map[*Watcher]struct{})
	c.Journal.hear(b.heard)
	wake := func() { signal(b.wake) }
	c.Overrides.shows.Store(&wake)
	if c.Registerer != nil {
		c.Registerer.MustRegister(newAnsweringMetric(b))
	}
	return b
}

// heard passes an event on to all who watch. It is called under the journal's lock and does not wait.
func (b *Board) heard(ev *market.Event, e *entry) {
	b.history.note(ev)
	b.metrics.slow.Add(float64(b.watchers.event(e)))
	signal(b.wake)
}

// moment is how everything stood at one time. It is encoded when somebody first asks.
type moment struct {
	at       time.Time
	done     uint64 // orders that had been carried out
	next     uint64 // number of the journal's entry after the newest one that overview shows
	overview *Overview

	log      *slog.Logger
	metrics  *boardMetrics
	state    sync.Once
	text     []byte // the overview's JSON: part of frame
	frame    []byte
	snapshot sync.Once
	whole    []byte
}

// Overview is how everything stands, at most 100 ms old and never from before an order that was answered. It is shared: nobody
// changes it.
func (b *Board) Overview() *Overview { return b.look().overview }

// Snapshot is the JSON of Overview. It is shared: nobody changes it.
func (b *Board) Snapshot() []byte {
	text, _ := b.look().encode()
	return text
}

// look returns the newest moment, built if that is older than 100 ms or an order was carried out since.
func (b *Board) look() *moment {
	if m := b.current.Load(); b.young(m) {
		return m
	}
	b.building.Lock()
	defer b.building.Unlock()
	if m := b.current.Load(); b.young(m) {
		return m // somebody else has just built it
	}
	return b.build()
}

func (b *Board) young(m *moment) bool {
	return m != nil && clock.Since(m.at) < buildEvery && m.done == b.cfg.Overrides.done.Load()
}

// build makes a new moment. The caller holds building.
func (b *Board) build() *moment {
	m := &moment{at: clock.Now(), done: b.cfg.Overrides.done.Load(), log: b.log, metrics: b.metrics}
	j := b.cfg.Journal
	// The newest event is read first: what is shown beside it may know more, never less.
	j.mu.Lock()
	j.trim(clock.Wall(m.at))
	last := j.last()
	m.next = j.next()
	j.mu.Unlock()
	m.overview = b.overview(clock.Wall(m.at), last)
	b.metrics.builds.Inc()
	b.current.Store(m)
	return m
}

// encode returns the JSON of the overview, and the frame that it is sent in.
func (m *moment) encode() (text, frame []byte) {
	m.state.Do(func() {
		doc, err := json.Marshal(m.overview)
		if err != nil {
			// All is text and numbers, and the shares are of counts above zero: this is a mistake of ours.
			m.log.LogAttrs(context.Background(), slog.LevelError, "overview was not encoded", slog.Any("err", err))
			doc = []byte(`{"level":"notice","headline":"The overview could not be encoded: see the log."}`)
		}
		m.metrics.state.Inc()
		m.frame = slices.Concat([]byte(frameState), doc, []byte(frameEnd))
		m.text = m.frame[len(frameState) : len(frameState)+len(doc)]
	})
	return m.text, m.frame
}

// snapshotFrame is the first frame of who watches from the beginning: the overview with every event that it knows of.
func (b *Board) snapshotFrame(m *moment) []byte {
	m.snapshot.Do(func() {
		text, _ := m.encode()
		j := b.cfg.Journal
		j.mu.Lock()
		entries := j.between(0, m.next) // what came later is sent as events
		j.mu.Unlock()
		b.metrics.snapshot.Inc()
		m.whole = joinSnapshot(text, entries)
	})
	return m.whole
}

func joinSnapshot(text []byte, entries []*entry) []byte {
	id := ""
	if len(entries) > 0 {
		id = "id: " + entries[len(entries)-1].id + "\n"
	}
	size := len(id) + len(frameSnapshot) + len(text) + len(frameEnd) + 16
	for _, e := range entries {
		size += len(e.text) + 1
	}
	frame := make([]byte, 0, size)
	frame = append(frame, id...)
	frame = append(frame, frameSnapshot...)
	frame = append(frame, text[:len(text)-1]...) // its closing brace comes last
	frame = append(frame, `,"events":[`...)
	for i, e := range entries {
		if i > 0 {
			frame = append(frame, ',')
		}
		frame = append(frame, e.text...)
	}
	frame = append(frame, "]}"...)
	return append(frame, frameEnd...)
}

// Run sends states to those who watch until ctx ends: every second, and at once after an event. While somebody attends it has
// open circuits probed; while nobody watches it sleeps.
func (b *Board) Run(ctx context.Context) error {
	p := prober{answers: b.cfg.Answers, log: b.log, asked: make(map[circuitClass]question)}
	defer p.running.Wait()
	timer := time.NewTimer(stateEvery)
	defer timer.Stop()
	var sent *moment
	var woken time.Time // by the first event since sent; zero without one
	for {
		select {
		case <-timer.C:
		case <-b.wake:
			if woken.IsZero() {
				woken = clock.Now()
			}
		case <-ctx.Done():
			return nil
		}
		if b.watchers.none() {
			timer.Stop()
			woken = time.Time{}
			continue
		}
		m := b.look()
		if b.watchers.attended() {
			p.probe(ctx, m)
		}
		if m == sent || m.at.Before(woken) {
			timer.Reset(max(buildEvery-clock.Since(m.at), 0)) // until another one may be built
			continue
		}
		m.encode() // here, and not while an event waits for a watcher's lock
		b.watchers.state(m)
		sent, woken = m, time.Time{}
		timer.Reset(stateEvery)
	}
}
