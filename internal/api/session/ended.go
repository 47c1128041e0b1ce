package session

import (
	"strings"
	"sync"
	"time"
)

// MaxEnded is how many sessions that were ended before their time are remembered: 12 hours of more than one a minute. A
// cookie is needed to end one, so nobody fills it who may not act or look anyway. At the bound the one is dropped that
// would be over first; should its cookie have been copied, it works again for the rest of its time.
const MaxEnded = 1024

// ended remembers sessions until their time would be over. The zero value is ready.
type ended struct {
	mu  sync.RWMutex
	all map[string]time.Time // when it would be over, by the cookie's value
}

func (e *ended) has(value string) bool {
	e.mu.RLock()
	defer e.mu.RUnlock()
	_, ok := e.all[value]
	return ok
}

func (e *ended) add(value string, ends, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, again := e.all[value]; again {
		return
	}
	if e.all == nil {
		e.all = make(map[string]time.Time)
	}
	first := ""
	for v, at := range e.all {
		if !now.Before(at) {
			delete(e.all, v)
		} else if first == "" || at.Before(e.all[first]) {
			first = v
		}
	}
	if len(e.all) >= MaxEnded {
		delete(e.all, first)
	}
	e.all[strings.Clone(value)] = ends // it is part of a request's headers, which need not be kept
}
