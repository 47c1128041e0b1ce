package notify

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"exchange-gateway/internal/market"
)

const (
	// flapWindow is how long the changes of a circuit are counted, and how often one that flaps is told of.
	flapWindow = 2 * time.Minute
	// flapChanges within flapWindow are flapping: it opened and closed twice, and now it opens again.
	flapChanges = 5
	// maxFlaps bounds the circuits that are remembered: three exchanges have some twenty. At the bound those that are quiet
	// are forgotten, and a circuit beyond it is told of at every change.
	maxFlaps = 500
)

// flap is how one circuit changed of late.
type flap struct {
	times  []time.Time // of the changes within flapWindow, at most flapChanges
	folded bool        // it flaps: its changes are counted and not told
	since  time.Time   // when the count began
	count  int         // changes since then
	last   market.Event
}

// flaps are all circuits, by name.
type flaps map[market.CircuitID]*flap

// add takes one change, and tells whether it is to be told by itself.
func (fs flaps) add(ev market.Event, now time.Time) (alone bool) {
	f := fs[ev.Circuit]
	if f == nil {
		if len(fs) >= maxFlaps {
			fs.sweep(now)
		}
		if len(fs) >= maxFlaps {
			return true
		}
		f = &flap{}
		fs[ev.Circuit] = f
	}
	f.last = ev
	if f.folded {
		f.count++
		return false
	}
	f.times = slices.DeleteFunc(f.times, func(t time.Time) bool { return ev.At.Sub(t) >= flapWindow })
	f.times = append(f.times, ev.At)
	if len(f.times) < flapChanges {
		return true
	}
	f.folded, f.since, f.count, f.times = true, f.times[0], len(f.times), nil
	return false
}

// lines tells of the circuits whose time has come: at once when one begins to flap, then every flapWindow, and no more once
// it was quiet for as long. All tells of every change that was not told.
func (fs flaps) lines(now time.Time, began map[market.CircuitID]bool, all bool) (lines []string) {
	for _, f := range fs.folded() {
		first := began[f.last.Circuit]
		switch {
		case !first && !all && now.Before(f.since.Add(flapWindow)):
			continue
		case f.count == 0:
			f.folded = false // quiet: the next change is told by itself
			continue
		}
		lines = append(lines, f.line(now))
		f.since, f.count = now, 0
	}
	return lines
}

// line is what a circuit that flaps did.
func (f *flap) line(now time.Time) string {
	name := string(f.last.Circuit.Exchange) + " " + market.ClassText(f.last.Circuit.Class)
	if f.last.Circuit.Family != "" {
		name += " (" + f.last.Circuit.Family + ")"
	}
	changes := "changes"
	if f.count == 1 {
		changes = "change"
	}
	return fmt.Sprintf("%s: %d %s in %s, now %s", name, f.count, changes, span(now.Sub(f.since)), market.CircuitText(f.last.To))
}

// span is a duration in words, at least a second.
func span(d time.Duration) string {
	switch d = max(d.Round(time.Second), time.Second); {
	case d < 2*time.Minute && d%time.Minute != 0:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	default:
		return fmt.Sprintf("%d min", int(d.Round(time.Minute).Minutes()))
	}
}

// next is when the next line is due, zero if no circuit flaps.
func (fs flaps) next() (due time.Time) {
	for _, f := range fs {
		if at := f.since.Add(flapWindow); f.folded && (due.IsZero() || at.Before(due)) {
			due = at
		}
	}
	return due
}

// folded are the circuits that flap, in the order of names.
func (fs flaps) folded() (list []*flap) {
	for _, f := range fs {
		if f.folded {
			list = append(list, f)
		}
	}
	slices.SortFunc(list, func(a, b *flap) int { return cmp.Compare(a.last.Circuit.String(), b.last.Circuit.String()) })
	return list
}

func (fs flaps) sweep(now time.Time) {
	for id, f := range fs {
		if !f.folded && now.Sub(f.last.At) >= flapWindow {
			delete(fs, id)
		}
	}
}
