package cache

import (
	"errors"
	"log/slog"
	"time"

	"exchange-gateway/internal/clock"
)

// What is asked of Redis: metric labels.
const (
	opRead  = "read"
	opWrite = "write"
	opPing  = "ping"
	opPurge = "purge"
)

// observe counts one round trip to Redis.
func (s *Store) observe(op string, start time.Time, err error) {
	s.metrics.seconds.WithLabelValues(op).Observe(clock.Since(start).Seconds())
	if err != nil {
		s.metrics.errors.WithLabelValues(op, cause(err)).Inc()
		s.log.Debug("redis failed", slog.String("op", op), slog.Any("err", err))
	}
}

// strange notes a value in Redis that is not ours or is newer than we are.
func (s *Store) strange(err error) {
	now := clock.Nanoseconds(clock.Now())
	if last := s.odd.Swap(now); now-last > strangeFor.Nanoseconds() {
		if errors.Is(err, ErrNewerFormat) {
			s.log.Warn("redis holds copies of a newer gateway, which are left alone")
		} else {
			s.log.Warn("redis holds values that are not copies, which are ignored", slog.Any("err", err))
		}
	}
}

// Degraded names the parts that do not work, in a fixed order; nil when all do, and always without Redis. No answer
// fails because of them: what is lost is the copy that a restart in an outage would need.
func (s *Store) Degraded() []string {
	var parts []string
	for i, on := range s.health() {
		if on {
			parts = append(parts, degradedParts()[i])
		}
	}
	return parts
}

func degradedParts() [3]string { return [3]string{DegradedRead, DegradedWrite, DegradedValues} }

func (s *Store) health() [3]bool {
	odd := s.odd.Load()
	return [3]bool{
		s.reads.open(), s.writes.open(), odd != 0 && clock.Nanoseconds(clock.Now())-odd < strangeFor.Nanoseconds(),
	}
}

// report logs each change of a part, once.
func (s *Store) report() {
	for i, on := range s.health() {
		if on == s.shown[i] {
			continue
		}
		s.shown[i] = on
		if on {
			s.log.Warn("last-known copies degraded", slog.String("part", degradedParts()[i]))
		} else {
			s.log.Info("last-known copies whole again", slog.String("part", degradedParts()[i]))
		}
	}
}
