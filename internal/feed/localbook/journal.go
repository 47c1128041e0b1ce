package localbook

import (
	"encoding/binary"
	"time"

	"exchange-gateway/internal/market"
)

// Bounds of a journal. Past either the oldest frames go.
const (
	maxFrames  = 200
	maxJournal = 256 << 10 // bytes: frames, what takes their changes back, and headers
)

// Mark is where a book stood at a moment, apart from its levels.
type Mark struct {
	Sequence     market.Sequence
	ExchangeTime time.Time // to the nanosecond, zero if unknown
}

// Journal holds the last raw frames that concerned one book, with what takes their changes back: the book as it stood before
// the first of them is had by undoing them, so none is stored. The zero value is an empty journal of an empty book. It is not
// safe for concurrent use; the caller tells it of every frame that changes the book, or else calls Restart.
type Journal struct {
	ring   ring
	frames int
	now    Mark // of the book after the newest frame
	// snapshot: the oldest frame is a snapshot that the exchange sent, before which the book was empty.
	snapshot bool
}

// header stands before each frame in the ring.
type header struct {
	at     time.Time
	raw    int  // bytes of the frame
	undo   int  // bytes of the records that follow it
	before Mark // of the book before the frame
}

const headerSize = 8 + 4 + 4 + 8 + 8 + 1

func (h *header) size() int { return headerSize + h.raw + h.undo }

// Restart forgets all frames. The journal goes on from the book as it is now, as after a snapshot that came by REST.
func (j *Journal) Restart(now Mark) {
	j.ring.drop(j.ring.used)
	j.frames, j.now, j.snapshot = 0, now, false
}

// AddSnapshot starts the journal anew with a frame that was loaded into the book, before which the book was empty.
func (j *Journal) AddSnapshot(at time.Time, raw []byte, after Mark) {
	j.Restart(Mark{})
	j.snapshot = true
	j.Add(at, raw, nil, after)
}

// Add appends a frame, copying it. undo is what its changes were recorded in, nil if it changed no level. A frame that is
// larger than the journal is not held: the journal starts anew after it, with the book as it is now.
func (j *Journal) Add(at time.Time, raw []byte, undo *Undo, after Mark) {
	h := header{at: at, raw: len(raw), before: j.now}
	if undo != nil {
		h.undo = len(undo.records)
	}
	if h.size() > maxJournal {
		j.Restart(after)
		return
	}
	for j.frames >= maxFrames || !j.ring.room(h.size()) {
		j.evict()
	}
	var head [headerSize]byte
	h.put(&head)
	j.ring.push(head[:])
	j.ring.push(raw)
	if undo != nil {
		j.ring.push(undo.records)
	}
	j.frames++
	j.now = after
}

// evict drops the oldest frame.
func (j *Journal) evict() {
	h := j.header(0)
	j.ring.drop(h.size())
	j.frames--
	j.snapshot = false
}

func (j *Journal) header(offset int) (h header) {
	var head [headerSize]byte
	j.ring.copyTo(head[:], offset)
	h.take(&head)
	return h
}

// Flags of a header.
const (
	hasSequence byte = 1 << iota
	hasTime
)

func (h *header) put(b *[headerSize]byte) {
	binary.LittleEndian.PutUint64(b[0:], uint64(h.at.UnixNano()))
	binary.LittleEndian.PutUint32(b[8:], uint32(h.raw)) // at most maxJournal, and so is undo
	binary.LittleEndian.PutUint32(b[12:], uint32(h.undo))
	binary.LittleEndian.PutUint64(b[16:], uint64(h.before.Sequence.Value))
	if h.before.Sequence.Known {
		b[32] |= hasSequence
	}
	if t := h.before.ExchangeTime; !t.IsZero() {
		binary.LittleEndian.PutUint64(b[24:], uint64(t.UnixNano()))
		b[32] |= hasTime
	}
}

func (h *header) take(b *[headerSize]byte) {
	h.at = time.Unix(0, int64(binary.LittleEndian.Uint64(b[0:]))).UTC()
	h.raw = int(binary.LittleEndian.Uint32(b[8:]))
	h.undo = int(binary.LittleEndian.Uint32(b[12:]))
	h.before.Sequence.Value = int64(binary.LittleEndian.Uint64(b[16:]))
	h.before.Sequence.Known = b[32]&hasSequence != 0
	if b[32]&hasTime != 0 {
		h.before.ExchangeTime = time.Unix(0, int64(binary.LittleEndian.Uint64(b[24:]))).UTC()
	}
}
