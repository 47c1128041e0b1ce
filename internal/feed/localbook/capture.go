package localbook

import (
	"slices"
	"time"

	"exchange-gateway/internal/market"
)

// Capture is a journal read out: a book, and the frames that made the present one of it.
type Capture struct {
	Bids, Asks []market.Level // of the book before the first frame, best first
	Before     Mark           // of that book
	Loaded     bool           // false: that book was empty because nothing had been loaded; the first frame is a snapshot
	Frames     []Frame        // oldest first
}

// Frame is one raw message of an exchange.
type Frame struct {
	At   time.Time
	Text []byte
}

// Capture reads the journal of b, which has to be as it was after the last frame. What it returns belongs to the caller. It
// copies the book and up to 256 KiB, so it is for operators, not for a hot path.
func (j *Journal) Capture(b *Book) Capture {
	c := Capture{Before: j.now, Loaded: b.loaded && !j.snapshot, Frames: make([]Frame, 0, j.frames)}
	undos := make([][]byte, 0, j.frames)
	for offset := 0; len(c.Frames) < j.frames; {
		h := j.header(offset)
		if offset == 0 {
			c.Before = h.before
		}
		both := make([]byte, h.raw+h.undo)
		j.ring.copyTo(both, offset+headerSize)
		c.Frames = append(c.Frames, Frame{At: h.at, Text: both[:h.raw:h.raw]})
		undos = append(undos, both[h.raw:])
		offset += h.size()
	}
	if !c.Loaded {
		return c
	}
	base := b.clone()
	for _, records := range slices.Backward(undos) {
		base.takeBack(records)
	}
	bids, asks := base.Len()
	c.Bids, c.Asks = base.Bids(nil, bids), base.Asks(nil, asks)
	return c
}

// clone copies what takeBack changes.
func (b *Book) clone() *Book {
	c := *b
	c.work, c.undo = work{}, Undo{}
	for _, s := range []*side{&c.bids, &c.asks} {
		s.levels, s.odd, s.free = slices.Clone(s.levels), slices.Clone(s.odd), slices.Clone(s.free)
	}
	return &c
}
