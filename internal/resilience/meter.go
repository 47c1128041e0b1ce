package resilience

import "time"

// meterSlots is how finely a window that slides is cut. Units leave it when their whole slot has: at most a sixteenth of
// the window late, never early.
const meterSlots = 16

// spent is what one slot of a window counts.
type spent struct{ all, account int }

// meter counts the units spent in one rate limit's window. A window that the exchange aligns to its clock is one slot; one
// that slides is meterSlots and the one that is being filled. So the sum is never less than what the exchange counts.
type meter struct {
	length int64 // of one slot
	offset int64 // what an instant lacks to the exchange's clock, aligned windows alone
	head   int64 // the newest slot that has been used
	slots  []spent
}

func newMeter(window time.Duration, aligned bool) meter {
	if aligned {
		return meter{length: int64(window), slots: make([]spent, 1)}
	}
	return meter{length: max(int64(window)/meterSlots, 1), slots: make([]spent, meterSlots+1)}
}

func (m *meter) index(now int64) int64 { return (now + m.offset) / m.length }

func (m *meter) at(i int64) *spent { return &m.slots[i%int64(len(m.slots))] }

// roll forgets the slots that have left the window. The head never goes back, also when the offset is corrected.
func (m *meter) roll(now int64) {
	to := m.index(now)
	if to-m.head >= int64(len(m.slots)) {
		clear(m.slots)
		m.head = to
	}
	for m.head < to {
		m.head++
		*m.at(m.head) = spent{}
	}
}

// add counts units and returns the slot that they are in.
func (m *meter) add(now int64, units int, account bool) int64 {
	m.roll(now)
	s := m.at(m.head)
	s.all += units
	if account {
		s.account += units
	}
	return m.head
}

// giveBack uncounts units that were added to a slot and not spent, unless the slot has left the window.
func (m *meter) giveBack(slot int64, units int, account bool) {
	if m.head-slot >= int64(len(m.slots)) {
		return
	}
	s := m.at(slot)
	s.all = max(s.all-units, 0)
	if account {
		s.account = max(s.account-units, 0)
	}
}

// used sums up the window as of now. It changes nothing.
func (m *meter) used(now int64) spent {
	var sum spent
	for i := m.oldest(now); i <= m.head; i++ {
		sum.all += m.at(i).all
		sum.account += m.at(i).account
	}
	return sum
}

func (m *meter) oldest(now int64) int64 {
	n := int64(len(m.slots))
	return max(max(m.index(now), m.head)-n+1, m.head-n+1, 0)
}

// room tells how long to wait until units fit under the allowance. More units than the whole allowance fit once the
// window is empty: one dear call is better than none for ever.
func (m *meter) room(now int64, units, allowance int) time.Duration {
	sum := m.used(now).all
	if sum == 0 || sum+units <= allowance {
		return 0
	}
	for i := m.oldest(now); i <= m.head; i++ {
		sum -= m.at(i).all
		if sum == 0 || sum+units <= allowance {
			return time.Duration((i+int64(len(m.slots)))*m.length - m.offset - now)
		}
	}
	return 0
}
