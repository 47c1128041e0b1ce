package resilience

import (
	"sync/atomic"
	"time"

	"exchange-gateway/internal/market"
)

// worstHours is how many hours the worst is kept for, the one under way among them: between 23 and 24.
const worstHours = 24

// worst is the worst that one circuit's window held, hour by hour, in a ring: 192 bytes, made at the first failure or slow
// call, so that a circuit that never sees one stays small. Each hour is one word, so readers need no lock and see no
// halves: its number in the low 20 bits, then failures in a row (16 bits, where they stay at the bound), then the two
// shares in ten-thousandths, rounded down (14 bits each), so that a share that is shown never reached what it did not.
type worst [worstHours]atomic.Uint64

const (
	hourBits  = 20
	rowBits   = 16
	shareBits = 14
	wholes    = 10_000
)

// hour is what one word of worst holds.
type hour struct {
	number         int64
	row            uint64
	failures, slow uint64 // in ten-thousandths
}

func (h hour) pack() uint64 {
	return uint64(h.number)&(1<<hourBits-1) | h.row<<hourBits | h.failures<<(hourBits+rowBits) |
		h.slow<<(hourBits+rowBits+shareBits)
}

func unpackHour(v uint64) hour {
	return hour{
		number: int64(v & (1<<hourBits - 1)), row: v >> hourBits & (1<<rowBits - 1),
		failures: v >> (hourBits + rowBits) & (1<<shareBits - 1), slow: v >> (hourBits + rowBits + shareBits),
	}
}

// raise takes over what is worse in another hour.
func (h *hour) raise(o hour) {
	h.row, h.failures, h.slow = max(h.row, o.row), max(h.failures, o.failures), max(h.slow, o.slow)
}

// worsen takes note of the window as it stands, under the circuit's lock. Shares count from as many settled calls as the
// policy asks for: one failure of one call is no share to compare with.
func (c *circuit) worsen() {
	t, number := c.window.sum, c.now/int64(time.Hour)
	now := hour{number: number, row: min(uint64(c.row), 1<<rowBits-1)}
	if t.settled >= uint32(c.policy.MinSettled) {
		now.failures = uint64(t.failures) * wholes / uint64(t.settled)
		now.slow = uint64(t.slow) * wholes / uint64(t.settled)
	}
	all := c.worst.Load()
	if all == nil {
		all = new(worst)
		c.worst.Store(all)
	}
	word := &all[number%worstHours]
	kept := unpackHour(word.Load())
	if kept.number == number {
		now.raise(kept)
	}
	if now != kept {
		word.Store(now.pack())
	}
}

// worstOf reads the worst of the last hours. It changes nothing: an hour that is too old is passed over.
func (c *circuit) worstOf(now int64) market.Worst {
	oldest := now/int64(time.Hour) - worstHours + 1
	var sum hour
	if all := c.worst.Load(); all != nil {
		for i := range all {
			word := all[i].Load()
			if word == 0 {
				continue // mostly
			}
			if h := unpackHour(word); h.number >= oldest {
				sum.raise(h)
			}
		}
	}
	return market.Worst{
		Since:       c.env.clock.wall(max(oldest*int64(time.Hour), c.born)),
		Consecutive: int(sum.row), FailureShare: float64(sum.failures) / wholes, SlowShare: float64(sum.slow) / wholes,
	}
}
