package api

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"exchange-gateway/internal/api/cork"
	"exchange-gateway/internal/api/keys"
	"exchange-gateway/internal/api/quota"
	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/compat"
	"exchange-gateway/internal/market"
)

// statusClientClosed is logged for a caller that went away before its answer; it is never sent. nginx introduced it.
const statusClientClosed = 499

// maxKept is the largest document whose buffer is kept for the next request: a full book of 1,000 levels is 70 KB.
const maxKept = 128 << 10

// Header values that are the same in every answer. They are shared and never written to.
var (
	jsonType    = []string{"application/json"}
	problemType = []string{"application/problem+json"}
	noStore     = []string{"no-store"}
	noSniff     = []string{"nosniff"}
)

// call is one request being answered: the writer below, the buffer for its document, and what the log and the metrics
// will say about it. Calls are reused; none outlives its request.
type call struct {
	http.ResponseWriter
	id     string
	route  Route
	start  time.Time
	status int
	size   int
	wrote  bool // the status line is sent
	abort  bool // the connection is broken off when the call ends
	key    *keys.Key
	note   note

	exchange market.ExchangeID // of the path, "" where the router found the route

	public  bool           // it came to the public listener
	proxied bool           // through a trusted proxy: it is not from this machine
	cookie  string         // of the session that stands for the key, "" without one
	client  *quota.Client  // on whose account it is, nil for nobody's: on the admin listener, and until a key is checked
	verdict quota.Verdict  // what the client's quota said
	dialect compat.Dialect // of the facade that answers, nil for all else

	conn   *cork.Conn         // nil where an answer cannot be held back: it is not a GET's, or not on a plain connection
	span   market.RequestSpan // nil without one
	doc    doc
	values []string // room for the header values of this request; it outlives the call, see header
}

type callPool struct{ pool sync.Pool }

func (p *callPool) get(w http.ResponseWriter, start time.Time) *call {
	c, ok := p.pool.Get().(*call)
	if !ok {
		c = new(call)
	}
	c.ResponseWriter, c.start = w, start
	return c
}

func (p *callPool) put(c *call) {
	buf := c.doc.b[:0]
	if cap(buf) > maxKept {
		buf = nil
	}
	*c = call{doc: doc{b: buf}}
	p.pool.Put(c)
}

// header sets a header whose name is in canonical form. The values of one request share one piece of memory, which is
// not reused: the server may still read it when the call has ended.
func (c *call) header(name, value string) {
	if len(c.values) == cap(c.values) {
		c.values = make([]string, 0, 6) // what a book has, asked for with a key
	}
	n := len(c.values)
	c.values = append(c.values, value)
	c.Header()[name] = c.values[n : n+1 : n+1]
}

// send writes the document as the whole answer. Every answer names its length, so that HEAD says what GET would and a
// reader can tell a body that broke off.
func (c *call) send(status int, contentType []string) { c.sendBody(status, contentType, c.doc.b) }

// sendBody is send for a text that is somebody else's; it is not changed.
func (c *call) sendBody(status int, contentType []string, body []byte) {
	h := c.Header()
	h["Content-Type"] = contentType
	h["Cache-Control"] = noStore
	h["X-Content-Type-Options"] = noSniff
	c.header("Content-Length", strconv.Itoa(len(body)))
	c.tellQuota(clock.Now())
	c.conn.Hold(len(body))
	c.WriteHeader(status)
	_, _ = c.Write(body) // a caller that left is seen by the server, and there is nobody to tell
}

// tellQuota says in the headers what the client has left, as late as it can: what the request itself spent is in it.
func (c *call) tellQuota(now time.Time) {
	policy := c.client.RateLimitPolicy()
	if policy == "" {
		return
	}
	var buf [96]byte
	c.header("Ratelimit-Policy", policy)
	c.header("Ratelimit", string(c.client.AppendRateLimit(buf[:0], c.verdict, now)))
}

// Unwrap lets http.ResponseController reach the connection.
func (c *call) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// WriteHeader notes the status for the log.
func (c *call) WriteHeader(status int) {
	if !c.wrote {
		c.status, c.wrote = status, true
	}
	c.ResponseWriter.WriteHeader(status)
}

// Write notes the size for the log.
func (c *call) Write(b []byte) (int, error) {
	if !c.wrote {
		c.status, c.wrote = http.StatusOK, true
	}
	n, err := c.ResponseWriter.Write(b)
	c.size += n
	return n, err
}
