package exchange

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
)

// DefaultMaxBody is the most that is read of an answer. The largest known body is a full Binance list of instruments,
// 3.3 MB with permission sets for 2,183 symbols; an order book of 5,000 levels is 330 KB.
const DefaultMaxBody = 16 << 20

// maxErrorBody is the most that is read of an answer that is no success: a 504 page of 197,830 bytes is on record.
const maxErrorBody = 64 << 10

// maxKept is the largest buffer that is kept for the next answer.
const maxKept = 1 << 20

var errBodyTooLong = errors.New("body too long")

// bodyPool reuses the buffers of bodies: an answer is decoded within the call that reads it.
type bodyPool struct{ pool sync.Pool }

type body struct{ buf bytes.Buffer }

func (b *body) bytes() []byte { return b.buf.Bytes() }

// read reads and closes the body. Past its bound a success is an error; an error page is cut.
func (p *bodyPool) read(res *http.Response, limit int64) (*body, error) {
	defer res.Body.Close() // the read error is what matters
	b, ok := p.pool.Get().(*body)
	if !ok {
		b = new(body)
	}
	if limit <= 0 {
		limit = DefaultMaxBody
	}
	if res.StatusCode >= http.StatusBadRequest {
		_, err := b.buf.ReadFrom(io.LimitReader(res.Body, maxErrorBody))
		return b, err
	}
	if _, err := b.buf.ReadFrom(io.LimitReader(res.Body, limit+1)); err != nil {
		return b, err
	}
	if int64(b.buf.Len()) > limit {
		return b, fmt.Errorf("%w: over %d bytes", errBodyTooLong, limit)
	}
	return b, nil
}

func (p *bodyPool) put(b *body) {
	if b.buf.Cap() <= maxKept {
		b.buf.Reset()
		p.pool.Put(b)
	}
}
