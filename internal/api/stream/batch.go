package stream

import "sync"

// batches are the buffers in which several frames become one write: for a client that has fallen behind, one write of
// eight frames costs a fourth of eight writes.
type batches struct{ pool sync.Pool }

// maxBatch is the most bytes of one write, unless a single frame is larger.
const maxBatch = 128 << 10

func (p *batches) get(size int) []byte {
	if b, ok := p.pool.Get().(*[]byte); ok && cap(*b) >= size {
		return (*b)[:0]
	}
	return make([]byte, 0, max(size, 8<<10))
}

func (p *batches) put(b []byte) {
	if cap(b) <= 2*maxBatch {
		p.pool.Put(&b)
	}
}
