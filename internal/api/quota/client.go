package quota

import (
	"sync"
	"sync/atomic"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// Client is one client and its quota. It is safe for concurrent use and nothing of it waits. All callers without a key
// together are one, see [Clients.Keyless]. A nil Client is nobody's: it has no name, is counted nowhere and let through always.
type Client struct {
	name     string
	policy   atomic.Pointer[policy]
	inFlight atomic.Int64
	streams  atomic.Int64
	counts   counts
	minute   minute
	net      atomic.Int64 // units spent, less those given back

	// crowded tells whether there is somebody to leave room to. Nil: always. Callers without a key are asked it at their bound
	// alone; they have no quota, and of them nothing below is used.
	crowded func() bool

	mu       sync.Mutex // covers what is below
	requests bucket
	upstream bucket
}

var _ market.Client = (*Client)(nil)

// policy is what a client may do, and how its answers tell.
type policy struct {
	limits Limits
	header string // RateLimit-Policy
}

func newClient(name string, l Limits) *Client {
	c := &Client{name: name}
	c.requests = newBucket(time.Second, l.RequestsPerSecond)
	c.upstream = newBucket(time.Minute, l.UpstreamPerMinute)
	c.policy.Store(&policy{limits: l, header: policyHeader(l)})
	return c
}

// newKeyless is the client of all callers without a key. Its limits are of what it does at once.
func newKeyless(l Limits, crowded func() bool) *Client {
	c := &Client{name: market.Keyless, crowded: crowded}
	c.policy.Store(&policy{limits: l})
	return c
}

// keyless tells that the client has no quota, being nobody or all who have no key.
func (c *Client) keyless() bool { return c == nil || c.crowded != nil }

// set changes what the client may do from now on. What it has left stays, cut to the new limit.
func (c *Client) set(l Limits, now time.Time) {
	if c.policy.Load().limits == l {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests.set(l.RequestsPerSecond, now)
	c.upstream.set(l.UpstreamPerMinute, now)
	c.policy.Store(&policy{limits: l, header: policyHeader(l)})
}

// Name is the client's name in the keys file, or [market.Keyless]; "" for nobody.
func (c *Client) Name() string {
	if c == nil {
		return ""
	}
	return c.name
}

// Holder is the name on whose account books are streamed for the client; "" as long as there is nobody to leave room to.
func (c *Client) Holder() string {
	if c.keyless() && (c == nil || !c.crowded()) {
		return ""
	}
	return c.name
}

// Limits are what the client may do now.
func (c *Client) Limits() Limits {
	if c == nil {
		return Limits{}
	}
	return c.policy.Load().limits
}

// Verdict is what became of a request.
type Verdict struct {
	OK        bool
	Wait      time.Duration // how long until one more request is let through; 0 if OK
	Limit     int           // requests a second
	Remaining int           // requests that are left now
	Reset     time.Duration // until the whole limit is left again; if nothing is left, until one request is
}

// Request counts a request of the client and tells whether its quota has room for it.
func (c *Client) Request(now time.Time) Verdict {
	if c == nil {
		return Verdict{OK: true}
	}
	if c.keyless() {
		c.minute.request(now, true)
		c.counts.accepted.Add(1)
		return Verdict{OK: true}
	}
	c.mu.Lock()
	ok := c.requests.take(now)
	v := Verdict{OK: ok, Limit: c.requests.size}
	v.Remaining, v.Reset = c.requests.left(now)
	if !ok {
		v.Wait = c.requests.wait(now)
	}
	c.mu.Unlock()
	c.minute.request(now, ok)
	if ok {
		c.counts.accepted.Add(1)
	} else {
		c.counts.rate.Add(1)
	}
	return v
}

// Afford implements market.Client: a call may begin as long as one unit is left, whatever it will cost.
func (c *Client) Afford() (wait time.Duration, ok bool) {
	if c.keyless() {
		return 0, true
	}
	now := clock.Now()
	c.mu.Lock()
	wait = c.upstream.wait(now)
	c.mu.Unlock()
	if wait > 0 {
		c.minute.refusal(now)
		c.counts.upstream.Add(1)
	}
	return wait, wait == 0
}

// Spend implements market.Client. What is spent beyond the quota is owed: nothing may begin until it is made up for.
func (c *Client) Spend(units int) {
	if c == nil || units == 0 {
		return
	}
	now := clock.Now()
	if !c.keyless() {
		c.mu.Lock()
		c.upstream.spend(now, units)
		c.mu.Unlock()
	}
	c.minute.spent(now, units)
	c.counts.spent(c.net.Add(int64(units)))
}

// Enter begins a request. False: as many of the client's are being answered as may be. Every true is followed by one Leave.
func (c *Client) Enter() bool {
	return c == nil || c.one(&c.inFlight, c.policy.Load().limits.InFlight, &c.counts.inFlight)
}

// Leave ends a request that Enter began.
func (c *Client) Leave() {
	if c != nil {
		c.inFlight.Add(-1)
	}
}

// OpenStream begins a stream. False: the client has as many as it may. Every true is followed by one CloseStream.
func (c *Client) OpenStream() bool {
	return c == nil || c.one(&c.streams, c.policy.Load().limits.Streams, &c.counts.streams)
}

// CloseStream ends a stream that OpenStream began.
func (c *Client) CloseStream() {
	if c != nil {
		c.streams.Add(-1)
	}
}

// one takes one place of limit; a limit that was lowered takes away nobody's.
func (c *Client) one(n *atomic.Int64, limit int, refused *atomic.Int64) bool {
	if n.Add(1) <= int64(limit) || c.crowded != nil && !c.crowded() {
		return true
	}
	n.Add(-1)
	refused.Add(1)
	c.minute.refusal(clock.Now())
	return false
}

// Usage is what the client does now and did in the last minute.
func (c *Client) Usage(now time.Time) Usage {
	u := Usage{Client: c.name, InFlight: int(c.inFlight.Load()), Streams: int(c.streams.Load())}
	u.Requests, u.Refused, u.Upstream = c.minute.sum(now)
	return u
}
