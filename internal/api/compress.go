package api

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// packFrom is the smallest document worth compressing.
const packFrom = 1 << 10

// packers reuses gzip writers: one is 800 KB.
type packers struct{ pool sync.Pool }

func (p *packers) get(w io.Writer) *gzip.Writer {
	if z, ok := p.pool.Get().(*gzip.Writer); ok {
		z.Reset(w)
		return z
	}
	z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		panic(err) // the level is a constant
	}
	return z
}

// sendPacked is send, compressed for callers who accept it. It is for long lists that rarely change; books are sent as
// they are, because their age changes with every answer, and balances because no length should depend on them.
func (s *Server) sendPacked(c *call, r *http.Request, status int) {
	if h := c.Header(); h["Vary"] == nil {
		h["Vary"] = varyEncoding
	} else {
		h.Add("Vary", varyEncoding[0])
	}
	if len(c.doc.b) < packFrom || !acceptsGzip(r.Header["Accept-Encoding"]) {
		c.send(status, jsonType)
		return
	}
	var packed bytes.Buffer
	packed.Grow(len(c.doc.b) / 4)
	w := s.packers.get(&packed)
	_, _ = w.Write(c.doc.b) // into memory: cannot fail
	_ = w.Close()
	s.packers.pool.Put(w)
	c.doc.b = append(c.doc.b[:0], packed.Bytes()...)
	c.header("Content-Encoding", "gzip")
	c.send(status, jsonType)
}

var varyEncoding = []string{"Accept-Encoding"}

// acceptsGzip reads Accept-Encoding (RFC 9110 12.5.3): gzip or * with a weight that is not zero; gzip's own word wins.
func acceptsGzip(values []string) bool {
	star := false
	for _, line := range values {
		for item := range strings.SplitSeq(line, ",") {
			coding, params, _ := strings.Cut(item, ";")
			switch coding = strings.TrimSpace(coding); {
			case strings.EqualFold(coding, "gzip"), strings.EqualFold(coding, "x-gzip"):
				return !weighsZero(params)
			case coding == "*":
				star = !weighsZero(params)
			}
		}
	}
	return star
}

// weighsZero tells whether parameters hold q=0, q=0.0 and so on. A weight that cannot be read counts as zero.
func weighsZero(params string) bool {
	for p := range strings.SplitSeq(params, ";") {
		name, q, _ := strings.Cut(strings.TrimSpace(p), "=")
		if !strings.EqualFold(strings.TrimSpace(name), "q") {
			continue
		}
		whole, part, _ := strings.Cut(strings.TrimSpace(q), ".")
		n, err := strconv.Atoi(whole + part)
		return err != nil || n <= 0
	}
	return false
}
