package quota

import (
	"cmp"
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"exchange-gateway/internal/api/keys"
	"exchange-gateway/internal/clock"
)

// Limits are what a client may do. A zero limit means the default beside it.
type Limits struct {
	RequestsPerSecond int // 100; as many may come at once after a second of silence
	UpstreamPerMinute int // 2,000 units of the exchanges' limits; as many may be spent at once after a minute of silence
	InFlight          int // 250 requests being answered at once: a quarter of what the gateway answers
	Streams           int // 2,500 connections at once: a quarter of what the gateway keeps
}

func (l Limits) withDefaults(d Limits) Limits {
	return Limits{
		RequestsPerSecond: cmp.Or(l.RequestsPerSecond, d.RequestsPerSecond), UpstreamPerMinute: cmp.Or(l.UpstreamPerMinute, d.UpstreamPerMinute),
		InFlight: cmp.Or(l.InFlight, d.InFlight), Streams: cmp.Or(l.Streams, d.Streams),
	}
}

func (l Limits) complete() *Limits {
	l = l.withDefaults(Limits{RequestsPerSecond: 100, UpstreamPerMinute: 2000, InFlight: 250, Streams: 2500})
	return &l
}

// Config is what Clients are made of.
type Config struct {
	Defaults Limits                // of clients without settings of their own
	Ring     *keys.Ring            // needed: its file names the clients and their settings
	Metrics  prometheus.Registerer // nil registers nothing
}

// Clients are all clients that have a key in the ring's file, each with its quota, and one for all callers without a key. They
// follow the file: new settings count from the next request on and take nothing of what a client has left, and a client
// without keys is forgotten together with its metrics. So there is never more than one of them beyond the keys in the file.
// Safe for concurrent use.
type Clients struct {
	defaults atomic.Pointer[Limits]
	ring     *keys.Ring
	keyless  *Client

	following sync.Mutex // one at a time brings all up to date
	all       atomic.Pointer[table]
}

// table is the clients of one version of the file.
type table struct {
	version uint64
	clients map[string]*Client
}

// New makes the quotas of a ring's clients. It starts nothing.
func New(c Config) *Clients {
	cs := &Clients{ring: c.Ring}
	cs.defaults.Store(c.Defaults.complete())
	cs.keyless = newKeyless(Limits{InFlight: 500, Streams: 5000}, func() bool { return c.Ring.AnyValid(clock.Now()) })
	cs.all.Store(&table{})
	cs.follow()
	if c.Metrics != nil {
		c.Metrics.MustRegister(newCollector(cs))
	}
	return cs
}

// Keyless is all callers without a key together. They have no quota: of requests and of units of the exchanges' limits they
// may use what there is. But once the file holds a valid key they may have at most half of the requests in flight and half of
// the streams, so that whoever has a key finds room.
func (cs *Clients) Keyless() *Client { return cs.keyless }

// Halve says how many requests in flight and streams there are in all, of which callers without a key may have half (at least
// one); 1,000 and 10,000 until it is said. It counts from the next request on.
func (cs *Clients) Halve(inFlight, streams int) {
	cs.keyless.policy.Store(&policy{limits: Limits{InFlight: max(1, inFlight/2), Streams: max(1, streams/2)}})
}

// each is every client of the file as it is now, and the callers without a key.
func (cs *Clients) each() iter.Seq[*Client] {
	return func(yield func(*Client) bool) {
		if !yield(cs.keyless) {
			return
		}
		for _, c := range cs.follow().clients {
			if !yield(c) {
				return
			}
		}
	}
}

// Of is the client of a key: the same one for all keys of a client, as long as the file has one of them. Without a key it is
// [Clients.Keyless].
func (cs *Clients) Of(k *keys.Key) *Client {
	if k == nil {
		return cs.keyless
	}
	if c := cs.follow().clients[k.Client]; c != nil {
		return c
	}
	// The key was removed since it was checked. Its last requests count for nobody.
	return newClient(k.Client, cs.limits(k.Client))
}

// follow takes over what changed in the file. Mostly that is nothing, and costs two atomic loads.
func (cs *Clients) follow() *table {
	t := cs.all.Load()
	if t.version == cs.ring.Version() {
		return t
	}
	cs.following.Lock()
	defer cs.following.Unlock()
	old := cs.all.Load()
	version := cs.ring.Version() // before what it is the version of: a change in between is taken over the next time
	if old.version == version {
		return old
	}
	names := cs.ring.ClientNames()
	next := &table{version: version, clients: make(map[string]*Client, len(names))}
	for _, name := range names {
		c, limits := old.clients[name], cs.limits(name)
		if c == nil {
			c = newClient(name, limits)
		} else {
			c.set(limits, clock.Now())
		}
		next.clients[name] = c
	}
	cs.all.Store(next)
	return next
}

func (cs *Clients) limits(name string) Limits {
	c := cs.ring.Client(name)
	own := Limits{RequestsPerSecond: c.RequestsPerSecond, UpstreamPerMinute: c.UpstreamPerMinute, Streams: c.Streams}
	return own.withDefaults(*cs.defaults.Load())
}

// SetDefaults changes what clients without settings of their own may do, from now on. It takes nothing of what one has left.
func (cs *Clients) SetDefaults(l Limits) {
	cs.following.Lock()
	defer cs.following.Unlock()
	cs.defaults.Store(l.complete())
	for name, c := range cs.all.Load().clients {
		c.set(cs.limits(name), clock.Now())
	}
}

// Usage is what a client does.
type Usage struct {
	Client   string // its name in the keys file, or market.Keyless
	Requests int64  // of the last minute, refused ones included
	Refused  int64  // of the last minute, by the client's quota or for its share
	Upstream int64  // units of the exchanges' limits of the last minute
	InFlight int
	Streams  int
}

// idle tells whether there is nothing to show.
func (u *Usage) idle() bool {
	return u.Requests == 0 && u.Upstream == 0 && u.InFlight == 0 && u.Streams == 0
}

// Top lists the n clients that did most in the last minute: by units of the exchanges' limits, then by requests, then by
// streams. Callers without a key are one of them. Clients that do nothing are not in it.
func (cs *Clients) Top(n int) []Usage {
	now := clock.Now()
	all := make([]Usage, 0, n)
	for c := range cs.each() {
		if u := c.Usage(now); !u.idle() {
			all = append(all, u)
		}
	}
	slices.SortFunc(all, func(a, b Usage) int {
		return cmp.Or(cmp.Compare(b.Upstream, a.Upstream), cmp.Compare(b.Requests, a.Requests), cmp.Compare(b.Streams, a.Streams),
			cmp.Compare(a.Client, b.Client))
	})
	return all[:min(n, len(all))]
}
