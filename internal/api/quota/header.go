package quota

import (
	"strconv"
	"time"
)

// The headers of draft-ietf-httpapi-ratelimit-headers-11: structured fields, whole numbers, seconds.

func policyHeader(l Limits) string {
	return `"requests";q=` + strconv.Itoa(l.RequestsPerSecond) + `;w=1, "upstream";q=` + strconv.Itoa(l.UpstreamPerMinute) + `;w=60`
}

// RateLimitPolicy is the value of the header RateLimit-Policy, "" for callers without a key: they have no quota. It is made once for each change
// of the limits.
func (c *Client) RateLimitPolicy() string {
	if c == nil {
		return ""
	}
	return c.policy.Load().header
}

// AppendRateLimit appends the value of the header RateLimit to dst: of requests as v tells, of units of the exchanges' limits
// as it is now. t is the seconds until the whole quota is there again, or until one is there if none is left, which then is
// no later than Retry-After. It appends nothing for callers without a key.
func (c *Client) AppendRateLimit(dst []byte, v Verdict, now time.Time) []byte {
	if c.keyless() {
		return dst
	}
	c.mu.Lock()
	left, reset := c.upstream.left(now)
	c.mu.Unlock()
	dst = append(dst, `"requests";r=`...)
	dst = strconv.AppendInt(dst, int64(v.Remaining), 10)
	dst = append(dst, `;t=`...)
	dst = strconv.AppendInt(dst, seconds(v.Reset), 10)
	dst = append(dst, `, "upstream";r=`...)
	dst = strconv.AppendInt(dst, int64(left), 10)
	dst = append(dst, `;t=`...)
	return strconv.AppendInt(dst, seconds(reset), 10)
}

// seconds rounds up.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }
