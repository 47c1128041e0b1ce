package notify

import "time"

const (
	// gather is how long news wait for others that happen with them: the circuits of an exchange open within a second.
	gather = time.Second
	// between is the least time between two requests: Slack permits one per second and webhook.
	// https://api.slack.com/apis/rate-limits
	between = time.Second
	// perMinute bounds the requests of any minute.
	perMinute = 20
)

// pace says when a request may be made.
type pace struct {
	times [perMinute]time.Time // of the last requests, the oldest at next
	next  int
	hold  time.Time // until then the receiver wants none
}

// at is when the next request is permitted.
func (p *pace) at() time.Time {
	last := p.times[(p.next+perMinute-1)%perMinute]
	return latest(p.hold, last.Add(between), p.times[p.next].Add(time.Minute))
}

// made notes a request.
func (p *pace) made(now time.Time) {
	p.times[p.next] = now
	p.next = (p.next + 1) % perMinute
}

func latest(times ...time.Time) (last time.Time) {
	for _, t := range times {
		if t.After(last) {
			last = t
		}
	}
	return last
}
