package exchangesim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

const (
	tapeLead      = 500 * time.Millisecond // from the first subscription to the first frame
	maxTapeLevels = 1 << 20                // a side: a recorded book is shown whole
)

// tape is the recorded book of a pair. Its steps are frames: step n is the book after n of them. It starts with the first subscription
// of the pair on any stream and runs once, for all streams and for REST alike; the book of the last frame stays.
type tape struct {
	product string    // Coinbase: the product that the frames name
	from    time.Time // of the base
	text    CaptureBase
	frames  []tapeFrame
	changes []tapeChange // what each frame does, in units of the pair
	seqs    []int64      // of each step

	mu      sync.Mutex
	started time.Time // zero: nobody has subscribed yet
	step    int64     // whose book is in sides
	sides   [2]map[int64]int64
	base    [2]map[int64]int64
}

// tapeChange is what a frame does: levels by price, 0 removes.
type tapeChange struct {
	snapshot   bool
	bids, asks map[int64]int64
}

// load turns the recorded text into units of the pair and makes its book this one.
func (t *tape) load(p *pair, c *Capture) error {
	var err error
	for i, side := range [][][2]string{c.Base.Bids, c.Base.Asks} {
		if t.base[i], err = inUnits(p, side); err != nil {
			return fmt.Errorf("capture: base: %w", err)
		}
		maps.DeleteFunc(t.base[i], func(_, size int64) bool { return size == 0 })
	}
	seq := int64(0)
	switch {
	case c.Base.Sequence != nil:
		seq = *c.Base.Sequence
	case c.Exchange == "binance":
		return fmt.Errorf("capture: a book of %s needs a sequence", c.Exchange)
	}
	t.seqs = append(t.seqs, seq)
	for i, f := range t.frames {
		change := tapeChange{snapshot: f.snapshot}
		change.bids, err = inUnits(p, f.bids)
		if err == nil {
			change.asks, err = inUnits(p, f.asks)
		}
		if err != nil { // played as it is
			change = tapeChange{}
		} else if f.hasSeq {
			seq = f.seq
		} else if c.Base.Sequence == nil {
			seq = int64(i + 1)
		}
		t.changes, t.seqs = append(t.changes, change), append(t.seqs, seq)
	}
	t.sides = [2]map[int64]int64{maps.Clone(t.base[0]), maps.Clone(t.base[1])}
	p.tape = t
	return nil
}

// inUnits reads levels as sizes in lots by price in ticks.
func inUnits(p *pair, rows [][2]string) (map[int64]int64, error) {
	out := make(map[int64]int64, len(rows))
	for _, r := range rows {
		price, err := p.tick.count(r[0])
		if err != nil {
			return nil, err
		}
		if out[price], err = p.lot.count(r[1]); err != nil {
			return nil, err
		}
		if price < 1 || out[price] < 0 {
			return nil, fmt.Errorf("no level: price %q, size %q", r[0], r[1])
		}
	}
	return out, nil
}

// start lets the tape run from now on, unless it runs already.
func (t *tape) start(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.started.IsZero() {
		t.started = now
	}
}

// timeOf is when a step begins. Before the start it is the time of the base; a step after the last one never comes.
func (t *tape) timeOf(step int64) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.started.IsZero():
		return t.from.UTC()
	case step <= 0:
		return t.started.UTC()
	case step > int64(len(t.frames)):
		return t.started.AddDate(100, 0, 0).UTC()
	}
	return t.started.Add(tapeLead + t.frames[step-1].after).UTC()
}

// stepAt is how many frames have been played at a moment.
func (t *tape) stepAt(at time.Time) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.started.IsZero() {
		return 0
	}
	played := at.Sub(t.started) - tapeLead
	n, _ := slices.BinarySearchFunc(t.frames, played, func(f tapeFrame, d time.Duration) int {
		if f.after <= d {
			return -1
		}
		return 1
	})
	return int64(n)
}

// seq is the recorded sequence of a step. Where the venue has none per book it is the step.
func (t *tape) seq(step int64) int64 {
	return t.seqs[min(max(step, 0), int64(len(t.seqs)-1))]
}

// stepOf is the last step with a sequence, or 0.
func (t *tape) stepOf(seq int64) int64 {
	for i, s := range slices.Backward(t.seqs) {
		if s == seq {
			return int64(i)
		}
	}
	return 0
}

// between gives the frames that were played after one step and until another.
func (t *tape) between(from, to int64) []tapeFrame {
	return t.frames[min(max(from, 0), int64(len(t.frames))):min(to, int64(len(t.frames)))]
}

// book is the book of a step.
func (t *tape) book(p *pair, step int64, depth int) book {
	t.mu.Lock()
	defer t.mu.Unlock()
	step = min(max(step, 0), int64(len(t.changes)))
	if step < t.step {
		t.step, t.sides = 0, [2]map[int64]int64{maps.Clone(t.base[0]), maps.Clone(t.base[1])}
	}
	for ; t.step < step; t.step++ {
		c := t.changes[t.step]
		if c.snapshot {
			clear(t.sides[0])
			clear(t.sides[1])
		}
		maps.Copy(t.sides[0], c.bids)
		maps.Copy(t.sides[1], c.asks)
		for i, changed := range []map[int64]int64{c.bids, c.asks} {
			for price, size := range changed {
				if size == 0 {
					delete(t.sides[i], price)
				}
			}
		}
	}
	return book{pair: p, step: step, bids: t.side(0, -1, depth), asks: t.side(1, 1, depth)}
}

// side sorts one side, best first.
func (t *tape) side(i int, dir int64, depth int) []level {
	out := make([]level, 0, len(t.sides[i]))
	for price, size := range t.sides[i] {
		out = append(out, level{price: price, size: size, orders: 1})
	}
	slices.SortFunc(out, func(a, b level) int { return cmp.Compare(a.price*dir, b.price*dir) })
	return out[:min(len(out), depth)]
}
