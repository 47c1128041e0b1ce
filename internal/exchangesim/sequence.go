package exchangesim

// era is a stretch of a pair's clock with numbers of its own: each begins with a reset.
type era struct {
	start int64 // first step
	base  int64 // sequence of the first step, about
	lost  bool  // the stream's message that tells of it is lost
}

// maxResets bounds the resets of one pair; one more is refused.
const maxResets = 31

// raw is the sequence of a step before any reset: rising, with gaps of 1 to 7.
func (p *pair) raw(step int64) int64 { return step*4 + int64(mix(p.salt, uint64(step))%4) }

// seq is the venue's sequence of a step.
func (p *pair) seq(step int64) int64 {
	if p.tape != nil {
		return p.tape.seq(step)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := len(p.eras) - 1; i >= 0; i-- {
		if e := p.eras[i]; step >= e.start {
			return e.base + p.raw(step) - p.raw(e.start)
		}
	}
	return p.raw(step)
}

// stepOf turns a sequence back into its step. Each era has the room of a 64th of the first one's numbers, from high to low, so that no
// number is used twice.
func (p *pair) stepOf(seq int64) int64 {
	if p.tape != nil {
		return p.tape.stepOf(seq)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, e := range p.eras {
		if above := p.eras[0].base + p.room; i == 0 && seq < above && seq >= e.base || i > 0 && seq >= e.base && seq < p.eras[i-1].base {
			return (seq - e.base + p.raw(e.start)) / 4
		}
	}
	return seq / 4
}

// reset makes the sequence fall at a step, as OKX's may after maintenance. It reports false if the pair has fallen too often, or is a
// recorded one.
func (p *pair) reset(step int64, lost bool) bool {
	if p.tape != nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.eras) >= maxResets || len(p.eras) > 0 && step <= p.eras[len(p.eras)-1].start {
		return false
	}
	if len(p.eras) == 0 {
		p.room = p.raw(step) / 64
	}
	p.eras = append(p.eras, era{start: step, base: int64(maxResets-len(p.eras)) * p.room, lost: lost})
	return true
}

// losesReset reports whether the message from one step to another would tell of a reset whose message is lost.
func (p *pair) losesReset(from, to int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.eras {
		if e.lost && from < e.start && e.start <= to {
			return true
		}
	}
	return false
}
