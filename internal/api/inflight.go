package api

import "sync/atomic"

// inFlight bounds the requests that are being answered at once. At the bound a request is refused at once; nothing
// queues.
type inFlight struct {
	n      atomic.Int64
	common atomic.Int64 // those of n that may not use the reserve
	limit  int64
	// reserve is the part of limit that is kept for some: however many others ask, that many of them are answered.
	reserve int64
}

// enter takes a place, of the reserve only if that is for the request.
func (f *inFlight) enter(reserved bool) bool {
	if !reserved && f.common.Add(1) > f.limit-f.reserve {
		f.common.Add(-1)
		return false
	}
	if f.n.Add(1) > f.limit {
		f.n.Add(-1)
		if !reserved {
			f.common.Add(-1)
		}
		return false
	}
	return true
}

// leave gives the place back that enter took.
func (f *inFlight) leave(reserved bool) {
	f.n.Add(-1)
	if !reserved {
		f.common.Add(-1)
	}
}
