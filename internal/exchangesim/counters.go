package exchangesim

import (
	"maps"
	"sync"
	"time"
)

// maxLog bounds the request log of a venue; older entries are dropped and counted.
const maxLog = 20_000

// Request is one request as a venue saw it.
type Request struct {
	Time       time.Time `json:"time"`
	Method     string    `json:"method"`
	Path       string    `json:"path"` // as documented, e.g. /products/{id}/book; "other" for a path that the venue does not have
	Class      string    `json:"class"`
	Symbol     string    `json:"symbol,omitempty"`
	Credential string    `json:"credential,omitempty"` // name of the credential, "unknown" for a key that the venue does not know
	Fault      FaultKind `json:"fault,omitempty"`      // the fault that ended it
	Status     int       `json:"status"`               // 0: none was sent (yet)
}

// Stats counts what a venue was asked since the start or the last reset. Maps and slices are the caller's.
type Stats struct {
	Dials        int            `json:"dials"` // connections accepted
	Requests     int            `json:"requests"`
	ByPath       map[string]int `json:"by_path"`
	ByClass      map[string]int `json:"by_class"`
	ByCredential map[string]int `json:"by_credential"`
	BySymbol     map[string]int `json:"by_symbol"` // known symbols only
	ByStatus     map[int]int    `json:"by_status"`
	ByFault      map[string]int `json:"by_fault"`
	Streams      StreamStats    `json:"streams"`
	DialTimes    []time.Time    `json:"dial_times,omitempty"` // the last 1,000
	Log          []Request      `json:"log,omitempty"`        // the last 20,000, oldest first
	LogDropped   int            `json:"log_dropped,omitempty"`
}

// StreamStats counts what happened on the streams of a venue. Handshakes, refused ones too, are requests of class "stream" and in the
// log. Open and Subscriptions are how it stands now: a reset leaves them.
type StreamStats struct {
	Open          int            `json:"open"`
	Opened        int            `json:"opened"`
	In            int            `json:"in"`            // frames of clients, pings and pongs included
	Out           int            `json:"out"`           // frames sent, pings and pongs included
	Subscriptions int            `json:"subscriptions"` // in force
	Subscribed    map[string]int `json:"subscribed"`    // how often a known symbol was subscribed
}

// counters is what Stats is copied from. All its maps have keys from closed sets.
type counters struct {
	mu    sync.Mutex
	stats Stats
	log   []*Request
}

func newStats() Stats {
	return Stats{
		ByPath: map[string]int{}, ByClass: map[string]int{}, ByCredential: map[string]int{}, BySymbol: map[string]int{},
		ByStatus: map[int]int{}, ByFault: map[string]int{}, Streams: StreamStats{Subscribed: map[string]int{}},
	}
}

func (k *counters) dialed() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stats.Dials++
	k.stats.DialTimes = append(k.stats.DialTimes, time.Now())
	if n := len(k.stats.DialTimes); n > 1000 {
		k.stats.DialTimes = append([]time.Time(nil), k.stats.DialTimes[n-1000:]...)
	}
}

// arrived notes a request when it comes in. The returned entry is finished by answered.
func (k *counters) arrived(req Request, known bool) *Request {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stats.Requests++
	k.stats.ByPath[req.Path]++
	k.stats.ByClass[req.Class]++
	if req.Credential != "" {
		k.stats.ByCredential[req.Credential]++
	}
	if known {
		k.stats.BySymbol[req.Symbol]++
	}
	if req.Fault != "" {
		k.stats.ByFault[string(req.Fault)]++
	}
	if len(k.log) >= 2*maxLog {
		k.stats.LogDropped += len(k.log) - maxLog
		k.log = append([]*Request(nil), k.log[len(k.log)-maxLog:]...)
	}
	entry := &req
	k.log = append(k.log, entry)
	return entry
}

func (k *counters) answered(entry *Request, status int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	entry.Status = status
	k.stats.ByStatus[status]++
}

func (k *counters) snapshot() Stats {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.stats
	s.ByPath, s.ByClass, s.ByCredential = maps.Clone(s.ByPath), maps.Clone(s.ByClass), maps.Clone(s.ByCredential)
	s.BySymbol, s.ByStatus, s.ByFault = maps.Clone(s.BySymbol), maps.Clone(s.ByStatus), maps.Clone(s.ByFault)
	s.DialTimes = append([]time.Time(nil), s.DialTimes...)
	s.Streams.Subscribed = maps.Clone(s.Streams.Subscribed)
	log := k.log
	if over := len(log) - maxLog; over > 0 {
		log, s.LogDropped = log[over:], s.LogDropped+over
	}
	s.Log = make([]Request, len(log))
	for i, r := range log {
		s.Log[i] = *r
	}
	return s
}

func (k *counters) reset() {
	k.mu.Lock()
	defer k.mu.Unlock()
	open, subscriptions := k.stats.Streams.Open, k.stats.Streams.Subscriptions
	k.stats, k.log = newStats(), nil
	k.stats.Streams.Open, k.stats.Streams.Subscriptions = open, subscriptions
}

// stream changes the counts of streams.
func (k *counters) stream(f func(*StreamStats)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f(&k.stats.Streams)
}

func (k *counters) opened()   { k.stream(func(s *StreamStats) { s.Open++; s.Opened++ }) }
func (k *counters) closed()   { k.stream(func(s *StreamStats) { s.Open-- }) }
func (k *counters) received() { k.stream(func(s *StreamStats) { s.In++ }) }
func (k *counters) sent()     { k.stream(func(s *StreamStats) { s.Out++ }) }

func (k *counters) unsubscribed(n int) { k.stream(func(s *StreamStats) { s.Subscriptions -= n }) }

func (k *counters) subscribed(symbol string, known bool) {
	k.stream(func(s *StreamStats) {
		s.Subscriptions++
		if known {
			s.Subscribed[symbol]++
		}
	})
}

// faulted counts a fault that met a stream or one of its messages.
func (k *counters) faulted(kind FaultKind) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stats.ByFault[string(kind)]++
}
