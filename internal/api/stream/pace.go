package stream

import "time"

// pace bounds how often a client may ask. It belongs to the goroutine that receives.
type pace struct {
	left float64 // messages, not money
	at   time.Time
}

// allow takes one message out of the bucket, if there is one.
func (p *pace) allow(now time.Time) bool {
	if p.at.IsZero() {
		p.left = messageBurst
	} else {
		p.left = min(messageBurst, p.left+now.Sub(p.at).Seconds()*messagesPerSecond)
	}
	p.at = now
	if p.left < 1 {
		return false
	}
	p.left--
	return true
}
