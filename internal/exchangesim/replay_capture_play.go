package exchangesim

import "time"

// begins reports whether a subscription that begins at a step gets its snapshot from the tape: there is no book before the first frame.
func (t *tape) begins(to int64) bool { return to <= 0 && len(t.base[0])+len(t.base[1]) == 0 }

// replay sends the recorded frames between two steps as they are. It reports false if the snapshot of a beginning or a keep-alive is due
// instead.
func (x *okxStream) replay(p *pair, from, to int64) bool {
	if from == noStep || from == to {
		return from == noStep && p.tape.begins(to)
	}
	x.active = time.Now()
	for _, f := range p.tape.between(from, to) {
		x.s.data(p.Symbol, f.text)
	}
	return true
}

// replay sends the recorded frames between two steps with the numbers of this connection. It reports false if the snapshot of a
// beginning is due instead.
func (x *atStream) replay(p *pair, from, to int64) bool {
	if from == noStep {
		return p.tape.begins(to)
	}
	x.flush() // what was gathered before has the numbers before
	x.last = time.Now()
	for _, f := range p.tape.between(from, to) {
		x.s.data(p.Symbol, renumber(f.text, x.next))
		x.next++
	}
	return true
}
