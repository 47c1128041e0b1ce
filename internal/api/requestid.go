package api

import (
	"crypto/rand"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
)

const maxRequestID = 64

// requestIDs names requests: an id that the caller sent is kept if it is harmless in a log, and cannot be a key that was
// pasted into the wrong header; else one is made of the process's random prefix and a counter, which needs no randomness per
// request.
type requestIDs struct {
	prefix string
	next   atomic.Uint64
}

func newRequestIDs() *requestIDs {
	return &requestIDs{prefix: strings.ToLower(rand.Text()[:8]) + "-"}
}

// holdsKey tells whether a text has in it what every key begins with.
func holdsKey(text string) bool { return strings.Contains(strings.ToLower(text), keyPrefix) }

func (g *requestIDs) of(r *http.Request) string {
	if v := r.Header["X-Request-Id"]; len(v) == 1 && len(v[0]) <= maxRequestID && plainName(v[0]) && !holdsKey(v[0]) {
		return v[0]
	}
	var buf [32]byte
	return string(strconv.AppendUint(append(buf[:0], g.prefix...), g.next.Add(1), 36))
}
