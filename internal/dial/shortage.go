package dial

import (
	"sync/atomic"
	"time"

	"exchange-gateway/internal/clock"
)

// Degraded is what [Shortage.Degraded] calls a shortage.
const Degraded = "local_resource"

// shortFor is how long a shortage is told of after it was last met: longer than scrapes are usually apart.
const shortFor = time.Minute

// Shortage remembers when this machine last lacked what a connection needs. The zero value has met none; so has nil, which
// remembers none.
type Shortage struct{ last atomic.Pointer[time.Time] }

// Note says that there was a shortage just now.
func (s *Shortage) Note() {
	if s != nil {
		now := clock.Now()
		s.last.Store(&now)
	}
}

// Degraded is [Degraded] for a minute after a shortage, else nil.
func (s *Shortage) Degraded() []string {
	if s == nil {
		return nil
	}
	if last := s.last.Load(); last == nil || clock.Since(*last) > shortFor {
		return nil
	}
	return []string{Degraded}
}
