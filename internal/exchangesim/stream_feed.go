package exchangesim

import (
	"cmp"
	"slices"
	"time"
)

// noStep is the step of a feed that has sent nothing yet.
const noStep = -1

// feed follows the clock of a pair for one subscription. At each step, or at each stride of several, emit is called to send what
// changed between the step sent last and this one; steps that were missed in between are made up for at once.
type feed struct {
	s      *stream
	name   string
	pair   *pair
	stride int64 // steps of the pair's clock
	last   int64 // the step sent last; noStep makes emit begin with a snapshot
	// emit reports whether it sent; otherwise last stays and the next call spans more. from is noStep for a beginning. With a quiet
	// above zero it is also called with from == to, for a keep-alive, after so long without anything sent.
	emit  func(from, to int64) bool
	quiet time.Duration

	tried int64 // the step of the last call
	sent  time.Time
}

// follow starts a feed under a name. pace is how often the subscription sends at most; a slower pair sends at its own pace. last is
// noStep to begin with a snapshot, or the step that the client is taken to know.
func (s *stream) follow(name string, p *pair, pace time.Duration, last int64, emit func(from, to int64) bool) *feed {
	if p.tape != nil {
		p.tape.start(s.v.clock(time.Now()))
	}
	f := &feed{s: s, name: name, pair: p, stride: max(1, int64(pace/p.Every)), last: last, tried: last, emit: emit, sent: s.v.clock(time.Now())}
	s.feeds = append(s.feeds, f)
	return f
}

// unfollow ends a feed.
func (s *stream) unfollow(name string) {
	for i, f := range s.feeds {
		if f.name == name {
			s.feeds = append(s.feeds[:i], s.feeds[i+1:]...)
			delete(s.held, f.pair.Symbol)
			return
		}
	}
}

// feedOf finds a feed by name, nil if there is none.
func (s *stream) feedOf(name string) *feed {
	for _, f := range s.feeds {
		if f.name == name {
			return f
		}
	}
	return nil
}

// stepAt is the newest step that the feed shows at t: the last full stride.
func (f *feed) stepAt(t time.Time) int64 {
	step := f.pair.stepAt(t)
	return step - step%f.stride
}

// due reports whether there is something to try at t on the venue's clock.
func (f *feed) due(t time.Time) bool { return !t.Before(f.next()) }

// next is when the feed is due again, on the venue's clock.
func (f *feed) next() time.Time {
	if f.tried == noStep {
		return f.sent // at once
	}
	at := f.pair.timeOf(f.tried - f.tried%f.stride + f.stride)
	if f.quiet > 0 {
		at = sooner(at, f.sent.Add(f.quiet))
	}
	return at
}

// advance sends what is due. A frozen pair sends nothing and is made up for afterwards.
func (f *feed) advance(t time.Time) {
	if !f.due(t) {
		return
	}
	to := max(f.stepAt(t), f.last)
	f.tried = to
	if f.s.frozen(f.pair.Symbol) {
		f.sent = t
		return
	}
	switch {
	case f.last == noStep || to > f.last:
		f.s.lost = f.last != noStep && f.pair.losesReset(f.last, to)
		if f.emit(f.last, to) {
			f.last, f.sent = to, t
		}
		f.s.lost = false
	}
	if f.quiet > 0 && f.last != noStep && t.Sub(f.sent) >= f.quiet {
		f.emit(f.last, f.last)
		f.sent = t
	}
}

// change is what differs between the books of two steps: a level that is gone has size 0.
type change struct{ bids, asks []level }

// change compares the first depth levels of two steps; FaultCrossed spoils the outcome.
func (s *stream) change(p *pair, from, to int64, depth int) change {
	a, b := p.shared(from, depth), p.shared(to, depth)
	d := change{bids: sideChange(a.bids, b.bids, -1), asks: sideChange(a.asks, b.asks, 1)}
	if len(d.bids)+len(d.asks) > 0 {
		s.cross(&d, b)
	}
	return d
}

// sideChange is what differs between two sides, best first; dir is -1 for bids.
func sideChange(old, cur []level, dir int64) []level {
	var out []level
	eachChange(old, cur, dir, func(l level) { out = append(out, l) })
	return out
}

// eachChange merges two sides, best first, and tells what changed from best outwards.
func eachChange(old, cur []level, dir int64, tell func(level)) {
	for len(old) > 0 || len(cur) > 0 {
		switch {
		case len(cur) == 0 || len(old) > 0 && (old[0].price-cur[0].price)*dir < 0:
			tell(level{price: old[0].price})
			old = old[1:]
		case len(old) == 0 || old[0].price != cur[0].price:
			tell(cur[0])
			cur = cur[1:]
		default:
			if old[0] != cur[0] {
				tell(cur[0])
			}
			old, cur = old[1:], cur[1:]
		}
	}
}

// changeThrough is change with what was otherwise in between, too, as an exchange's change of a stretch of time has it: whoever begins
// with a REST book of a step within the stretch ends with the same book.
func (s *stream) changeThrough(p *pair, from, to int64, depth int) change {
	d := s.change(p, from, to, depth)
	if to-from < 2 {
		return d
	}
	last, bids, asks := p.shared(to, depth), newUnion(d.bids), newUnion(d.asks)
	for step := from + 1; step < to; step++ {
		b := p.book(step, depth)
		eachChange(b.bids, last.bids, -1, bids.add)
		eachChange(b.asks, last.asks, 1, asks.add)
	}
	return change{bids: bids.sorted(-1), asks: asks.sorted(1)}
}

// union is several changes of a side put together: what was told of a price first stays.
type union struct {
	levels []level
	told   map[int64]struct{}
}

func newUnion(first []level) *union {
	u := &union{told: map[int64]struct{}{}}
	for _, l := range first {
		u.add(l)
	}
	return u
}

func (u *union) add(l level) {
	if _, ok := u.told[l.price]; !ok {
		u.told[l.price] = struct{}{}
		u.levels = append(u.levels, l)
	}
}

// sorted gives the levels best first.
func (u *union) sorted(dir int64) []level {
	slices.SortFunc(u.levels, func(a, b level) int { return cmp.Compare(a.price*dir, b.price*dir) })
	return u.levels
}

// cheapDepth is up to which depth a book is computed anew: keeping it would drive out a deep one.
const cheapDepth = 50

// shared is book for streams: neighbours of one symbol on several streams ask for the same ones. It must not be written to.
func (p *pair) shared(step int64, depth int) book {
	if depth <= cheapDepth {
		return p.book(step, depth)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, k := range p.kept {
		if k.step == step && k.depth == depth && k.book.pair != nil {
			return k.book
		}
	}
	b := p.book(step, depth)
	p.kept[p.keep] = keptBook{step: step, depth: depth, book: b}
	p.keep = (p.keep + 1) % len(p.kept)
	return b
}

// keptBook is a book that was computed for a stream.
type keptBook struct {
	step  int64
	depth int
	book  book
}
