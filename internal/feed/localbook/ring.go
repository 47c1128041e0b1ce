package localbook

// ring is a queue of bytes in one block that holds no pointer. It starts with nothing and doubles up to maxJournal as it is
// filled, so a quiet book costs what its few frames need.
type ring struct {
	block []byte
	start int // of the oldest byte
	used  int
}

const firstRing = 4 << 10

// room grows the block until n more bytes fit or it is as large as it may be, and tells whether they fit.
func (r *ring) room(n int) bool {
	size := max(len(r.block), firstRing)
	for size < r.used+n && size < maxJournal {
		size *= 2
	}
	if size = min(size, maxJournal); size > len(r.block) {
		block := make([]byte, size)
		r.copyTo(block[:r.used], 0)
		r.block, r.start = block, 0
	}
	return r.used+n <= len(r.block)
}

// push appends bytes for which there is room.
func (r *ring) push(b []byte) {
	at := (r.start + r.used) % len(r.block)
	n := copy(r.block[at:], b)
	copy(r.block, b[n:])
	r.used += len(b)
}

// copyTo fills dst with what begins at offset bytes after the oldest.
func (r *ring) copyTo(dst []byte, offset int) {
	if len(dst) == 0 {
		return
	}
	at := (r.start + offset) % len(r.block)
	n := copy(dst, r.block[at:])
	copy(dst[n:], r.block)
}

// drop forgets the oldest n bytes.
func (r *ring) drop(n int) {
	r.used -= n
	if r.used == 0 {
		r.start = 0
		return
	}
	r.start = (r.start + n) % len(r.block)
}
