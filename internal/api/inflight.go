package api

import "sync/atomic"

// inFlight bounds the requests that are being answered at once. At the bound a request is refused at once; nothing
// queues.
type inFlight struct {
	n     atomic.Int64
	limit int64
}

func (f *inFlight) enter() bool {
	if f.n.Add(1) > f.limit {
		f.n.Add(-1)
		return false
	}
	return true
}

func (f *inFlight) leave() { f.n.Add(-1) }
