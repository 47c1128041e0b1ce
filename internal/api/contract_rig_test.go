package api_test

import (
	"bufio"
	"net"
	"net/http"
	"sync"
	"testing"
)

// hold holds every response of a server against the contract. What is not as written fails the test at its end, or is lost
// if it is sent even later.
func (c *contract) hold(t testing.TB, listener string, h http.Handler) http.Handler {
	var mu sync.Mutex
	told := map[string]bool{}
	over := false
	t.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		over = true
		for text := range told {
			t.Error(text)
		}
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := &recording{ResponseWriter: w}
		h.ServeHTTP(rec, r) // a panic breaks the connection off, and there is no response
		if rec.status == 0 {
			return // the caller left before there was one
		}
		path := r.URL.Path
		if r.URL.RawPath != "" {
			path = r.URL.RawPath // as the router reads it: an escaped slash separates nothing
		}
		err := c.check(&response{
			listener: listener, method: r.Method, path: path, status: rec.status, header: rec.header, body: rec.body,
		})
		if err == nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if !over && len(told) < 10 {
			told[err.Error()] = true
		}
	})
}

// bare is a test whose server is not held against the contract: one that counts allocations.
type bare struct{ testing.TB }

// recording is a response that is kept while it is written.
type recording struct {
	http.ResponseWriter
	status int
	header http.Header
	body   []byte
}

// maxRecorded is more than any document that has a schema. Of a stream that is longer, the beginning is held.
const maxRecorded = 4 << 20

func (r *recording) Unwrap() http.ResponseWriter { return r.ResponseWriter }

func (r *recording) WriteHeader(status int) {
	if r.status == 0 {
		r.status, r.header = status, r.Header().Clone()
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recording) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status, r.header = http.StatusOK, r.Header().Clone()
	}
	if len(r.body)+len(b) <= maxRecorded {
		r.body = append(r.body, b...)
	}
	return r.ResponseWriter.Write(b)
}

// Hijack gives the connection away: what is said there is not HTTP.
func (r *recording) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(r.ResponseWriter).Hijack()
}
