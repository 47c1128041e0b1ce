package exchangesim

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// maxCached bounds the entries of the CDN; when it is full everything goes.
const maxCached = 512

// cdn is the cache in front of Coinbase's public endpoints.
type cdn struct {
	mu sync.Mutex
	m  map[string]cdnEntry
}

type cdnEntry struct {
	answer answer
	at     time.Time
}

// cached puts an endpoint behind the CDN for a number of whole seconds, as recorded: max-age=1 on tickers, 5 on product lists, with Age
// shown from one second up. "Cache-Control: no-cache" passes it by, and so does a request under a fault.
func (cb *coinbase) cached(seconds int, serve func(*call) answer) func(*call) answer {
	return func(c *call) answer {
		fresh := func() answer {
			a := serve(c)
			if a.status == http.StatusOK {
				a.header.Set("Cache-Control", fmt.Sprintf("public, max-age=%d, must-revalidate", seconds))
				a.header.Set("Cf-Cache-Status", "MISS")
			}
			return a
		}
		if c.fx != (effects{}) {
			return fresh()
		}
		key := c.r.Host + c.requestURI()
		bypass := strings.Contains(c.r.Header.Get("Cache-Control"), "no-cache") || len(key) > 512
		cb.cdn.mu.Lock()
		entry, ok := cb.cdn.m[key]
		cb.cdn.mu.Unlock()
		age := c.now.Sub(entry.at)
		if ok && !bypass && age >= 0 && age < time.Duration(seconds+1)*time.Second {
			hit := entry.answer
			hit.header = hit.header.Clone()
			hit.header.Set("Cf-Cache-Status", "HIT")
			if age >= time.Second {
				hit.header.Set("Age", strconv.FormatInt(int64(age/time.Second), 10))
			}
			return hit
		}
		a := fresh()
		if a.status != http.StatusOK || len(key) > 512 {
			return a
		}
		cb.cdn.mu.Lock()
		defer cb.cdn.mu.Unlock()
		if cb.cdn.m == nil || len(cb.cdn.m) >= maxCached {
			cb.cdn.m = map[string]cdnEntry{}
		}
		cb.cdn.m[key] = cdnEntry{answer{status: a.status, header: a.header.Clone(), body: a.body}, c.now}
		return a
	}
}
