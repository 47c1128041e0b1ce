package fleet

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"exchange-gateway/internal/market"
)

const (
	// historySpan is how far back events are of use: the dashboard shows a day.
	historySpan = 24 * time.Hour
	// maxEvents bounds what one instance keeps. An hour of 60 circuits that flap at their fastest, once in 5 s with two
	// changes each, is 86,400 events, of which nobody reads the first.
	maxEvents = 20_000
	// maxLine bounds one event: 200 characters of reason, each escaped in six bytes, and everything else.
	maxLine = 4 << 10
	// historyTTL is how long a history of which nothing is heard is kept. Run says every hour that it is in use.
	historyTTL = 25 * time.Hour
)

// line is one event as it is written down.
type line struct {
	text    []byte
	at      time.Time
	durable bool // it has to survive a power cut
}

// batch is what is written down at once. A gap is a moment up to which events are missing, zero if none are.
type batch struct {
	lines []line
	gap   time.Time
}

func (b *batch) durable() bool {
	return slices.ContainsFunc(b.lines, func(l line) bool { return l.durable })
}

// markerPrefix begins the lines that say since when a history is complete. No event begins like that.
const markerPrefix = `{"since":`

type marker struct {
	Since time.Time `json:"since"`
}

// markerLine says that from now on, or from a moment on, nothing is missing.
func markerLine(since time.Time) ([]byte, error) { return json.Marshal(marker{since.UTC()}) }

// past is what one place tells of the last day.
type past struct {
	events  map[string]market.Event // by id
	since   time.Time               // from then on nothing is missing; zero: there is no history
	rubbish int                     // lines that are none, such as one that a kill tore
	unknown int                     // events of a newer gateway's, which stay where they are

	first time.Time // of the first event that was read, as they were written
}

// read takes the lines of a history, which are in the order in which they were written. It begins with the newest, and
// leaves off at maxEvents, or when ctx ends: the past is not worth a start that waits for it.
func (p *past) read(ctx context.Context, lines [][]byte) {
	for _, text := range slices.Backward(lines) {
		if ctx.Err() != nil || len(p.events) >= maxEvents {
			break
		}
		p.line(text)
	}
	if p.since.IsZero() {
		p.since = p.first // what is before it, its marker included, has been given up or left out
	}
}

// line takes one line, which is older than those before.
func (p *past) line(text []byte) {
	text = bytes.TrimSpace(text)
	switch {
	case len(text) == 0: // the end of a torn line
	case bytes.HasPrefix(text, []byte(markerPrefix)):
		var m marker
		if json.Unmarshal(text, &m) != nil || !written(m.Since) {
			p.rubbish++
		} else if p.since.IsZero() {
			p.since = m.Since
		}
	default:
		p.event(text)
	}
}

func (p *past) event(text []byte) {
	var e market.Event
	if len(text) > maxLine {
		p.rubbish++
		return
	}
	if err := json.Unmarshal(text, &e); err != nil || !written(e.At) {
		var id struct {
			ID string `json:"id"`
		}
		if json.Unmarshal(text, &id) == nil && id.ID != "" {
			p.unknown++
		} else {
			p.rubbish++
		}
		return
	}
	p.first = e.At
	if p.events == nil {
		p.events = map[string]market.Event{}
	}
	p.events[e.ID()] = e
}

// joinPasts makes one history of several, oldest first. Each is complete since its own beginning, so all are since the
// earliest.
func joinPasts(pasts []past, now time.Time) (events []market.Event, since time.Time) {
	all := map[string]market.Event{}
	for _, p := range pasts {
		for id, e := range p.events {
			all[id] = e
		}
		if !p.since.IsZero() && (since.IsZero() || p.since.Before(since)) {
			since = p.since
		}
	}
	from := now.Add(-historySpan)
	for _, e := range all {
		if e.At.After(from) {
			events = append(events, e)
		}
	}
	slices.SortFunc(events, func(a, b market.Event) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Boot, b.Boot), cmp.Compare(a.Seq, b.Seq))
	})
	if n := len(events) - maxEvents; n > 0 {
		events = slices.Clone(events[n:])
		since = events[0].At
	}
	switch {
	case since.IsZero():
	case since.Before(from):
		since = from
	case since.After(now):
		since = now
	}
	return events, since
}
