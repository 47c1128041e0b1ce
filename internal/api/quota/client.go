package quota

import (
	"sync"
	"sync/atomic"
	"time"

	"exchange-gateway/internal/market"
)

// Client is one client and its quota. It is safe for concurrent use and nothing of it waits. A nil Client is a caller without
// a key: it has no quota and no name.
type Client struct {
	name     string
	policy   atomic.Pointer[policy]
	inFlight atomic.Int64
	streams  atomic.Int64
	counts   counts

	mu       sync.Mutex // covers what is below
	requests bucket
	upstream bucket
	minute   minute
	net      int64 // units spent, less those given back
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

// Name is the client's name in the keys file, "" for callers without a key.
func (c *Client) Name() string {
	if c == nil {
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
	c.mu.Lock()
	ok := c.requests.take(now)
	v := Verdict{OK: ok, Limit: c.requests.size}
	v.Remaining, v.Reset = c.requests.left(now)
	if !ok {
		v.Wait = c.requests.wait(now)
	}
	c.minute.request(now, ok)
	c.mu.Unlock()
	if ok {
		c.counts.accepted.Add(1)
	} else {
		c.counts.rate.Add(1)
	}
	return v
}

// Afford implements market.Client: a call may begin as long as one unit is left, whatever it will cost.
func (c *Client) Afford() (wait time.Duration, ok bool) {
	if c == nil {
		return 0, true
	}
	now := time.Now()
	c.mu.Lock()
	wait = c.upstream.wait(now)
	if wait > 0 {
		c.minute.refusal(now)
	}
	c.mu.Unlock()
	if wait > 0 {
		c.counts.upstream.Add(1)
	}
	return wait, wait == 0
}

// Spend implements market.Client. What is spent beyond the quota is owed: nothing may begin until it is made up for.
func (c *Client) Spend(units int) {
	if c == nil || units == 0 {
		return
	}
	now := time.Now()
	c.mu.Lock()
	c.upstream.spend(now, units)
	c.minute.spent(now, units)
	c.net += int64(units)
	c.counts.weight.Store(max(c.counts.weight.Load(), c.net))
	c.mu.Unlock()
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
	if n.Add(1) <= int64(limit) {
		return true
	}
	n.Add(-1)
	refused.Add(1)
	now := time.Now()
	c.mu.Lock()
	c.minute.refusal(now)
	c.mu.Unlock()
	return false
}

// Usage is what the client does now and did in the last minute.
func (c *Client) Usage(now time.Time) Usage {
	u := Usage{Client: c.name, InFlight: int(c.inFlight.Load()), Streams: int(c.streams.Load())}
	c.mu.Lock()
	defer c.mu.Unlock()
	u.Requests, u.Refused, u.Upstream = c.minute.sum(now)
	return u
}
