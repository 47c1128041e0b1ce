package exchangesim

import (
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"net"
	"net/http"
	"strconv"
	"strings"
)

// ServeHTTP answers as the venue does. Hanging answers end when the client leaves or the Sim is closed. A reset needs a server of
// HTTP/1.1, as those of [Sim.Start] and [Sim.StartPipe] are; elsewhere the request is aborted.
func (v *Venue) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d := v.prepare(r.Context(), r)
	if d.open != nil {
		v.count.answered(d.entry, d.status)
		v.serveStream(w, r, d)
		return
	}
	if d.sent >= 0 {
		v.count.answered(d.entry, d.status)
		d = compress(d, r)
		d.send(w)
	}
	switch d.end {
	case endNormal:
		return
	case endHang:
		select {
		case <-r.Context().Done():
		case <-v.done:
		}
	case endReset:
		reset(w)
	case endClose:
	}
	panic(http.ErrAbortHandler) // the answer that net/http would make up must not be sent
}

// send writes head and body, and flushes if the body is not all.
func (d delivery) send(w http.ResponseWriter) {
	for k, vals := range d.header {
		w.Header()[k] = vals
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(d.body)))
	w.WriteHeader(d.status)
	if _, err := w.Write(d.body[:d.sent]); err != nil {
		return // the client left: nothing more to do for it
	}
	if d.end != endNormal {
		_ = http.NewResponseController(w).Flush() // a writer that cannot flush shows the cut all the same
	}
}

// compressFrom is the size from which bodies are compressed for clients that ask for it, as all three CDNs do.
const compressFrom = 1024

// compress packs a body for a client that accepts gzip. The cut of a broken delivery moves along.
func compress(d delivery, r *http.Request) delivery {
	if len(d.body) < compressFrom || !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		return d
	}
	var buf bytes.Buffer
	z, err := gzip.NewWriterLevel(&buf, gzip.BestSpeed)
	if err != nil {
		return d // cannot be: the level is a constant
	}
	if _, err := z.Write(d.body); err != nil || z.Close() != nil {
		return d // cannot be: a buffer takes all
	}
	if d.sent < len(d.body) {
		d.sent = buf.Len() / 2
	} else {
		d.sent = buf.Len()
	}
	d.header = d.header.Clone()
	d.header.Set("Content-Encoding", "gzip")
	d.header.Add("Vary", "Accept-Encoding")
	d.body = buf.Bytes()
	return d
}

// resetter is a connection that can be reset: the in-memory ones.
type resetter interface{ Reset() error }

// reset cuts the connection with an RST, which needs it out of the server's hands.
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return // HTTP/2 or a foreign writer: the abort that follows has to do
	}
	resetConn(conn)
}

func resetConn(conn net.Conn) {
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn()
	}
	switch c := conn.(type) {
	case *net.TCPConn:
		_ = c.SetLinger(0) // best effort: without it the close is a FIN
	case resetter:
		_ = c.Reset()
	}
	_ = conn.Close() // nothing is owed to this client
}
