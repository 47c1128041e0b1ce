package exchangesim

import (
	"strings"
	"time"
)

// fate is what faults of the whole connection do to a stream now.
type fate struct {
	until  time.Time // when to look again; zero: when the faults change
	mute   bool      // nothing is sent and nothing taken
	frozen []string  // symbols that send nothing; "" is all
}

// whole reports whether a fault meets whole streams, as opposed to requests, handshakes and single messages.
func (k FaultKind) whole() bool {
	//exhaustive:ignore
	switch k {
	case FaultSilent, FaultFreeze, FaultHalfOpen, FaultStorm, FaultCut:
		return true
	}
	return false
}

// message reports whether a fault meets single messages of streams and nothing else.
func (k FaultKind) message() bool {
	//exhaustive:ignore
	switch k {
	case FaultGap, FaultDuplicate, FaultReorder, FaultMalformed:
		return true
	}
	return false
}

// streamOnly reports whether a fault never meets a request, not even a handshake.
func (k FaultKind) streamOnly() bool {
	return k.whole() || k.message() || k == FaultRefuse || k == FaultResetSequence || k == FaultLostReset
}

// meetsHandshake reports whether a fault means something for the handshake of a stream, whose answer has no body.
func (k FaultKind) meetsHandshake() bool {
	//exhaustive:ignore
	switch k {
	case FaultStatus, FaultHang, FaultReset, FaultClose, FaultHTML, FaultWrongJSON, FaultEmpty, FaultUnavailable, FaultMaintenance, FaultRateLimit,
		FaultBan, FaultGeoBlock, FaultLatency, FaultSkew:
		return true
	}
	return false
}

// endsStreams reports whether a fault of the whole venue also ends, or with FaultHang silences, the streams that were open before it.
func (f Fault) endsStreams() bool {
	//exhaustive:ignore
	switch f.Kind {
	case FaultMaintenance, FaultUnavailable, FaultReset, FaultClose, FaultHang:
		return f.Symbol == "" && f.Credential == "" && f.Count == 0 && f.Percent == 0
	}
	return false
}

// onStream reports whether a fault is about streams with this path.
func (f Fault) onStream(path string) bool {
	return (f.Class == "" || f.Class == ClassStream) && strings.HasPrefix(path, f.Path) && f.Credential == ""
}

// wholeFaults gives the faults that meet a stream as a whole, oldest first, and when the first of them ends. What a count or a share
// decided for this stream is kept in met.
func (s *faultSet) wholeFaults(st *stream, now time.Time) (faults []activeFault, until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prune(now)
	live := map[int64]bool{}
	for _, a := range s.active {
		if !a.Kind.whole() && !a.endsStreams() || !a.onStream(st.path) {
			continue
		}
		if _, drawn := st.met[a.id]; !drawn {
			st.met[a.id] = a.drawFor(st)
		}
		if live[a.id] = st.met[a.id]; live[a.id] {
			faults = append(faults, *a)
		}
		until = sooner(until, a.until)
	}
	for id := range st.met {
		if _, ok := live[id]; !ok {
			delete(st.met, id)
		}
	}
	return faults, until
}

// drawFor decides whether a stream is met, and counts it if so. The caller holds the lock.
func (a *activeFault) drawFor(st *stream) bool {
	if a.olderOnly() && a.id <= st.born || a.Count > 0 && a.hits >= a.Count {
		return false
	}
	if a.Percent > 0 && a.Percent < 100 && mix(a.Seed, uint64(st.id))%100 >= uint64(a.Percent) {
		return false
	}
	a.hits++
	st.v.count.faulted(a.Kind)
	return true
}

// olderOnly reports whether a fault leaves streams alone whose handshake came after it began.
func (f Fault) olderOnly() bool {
	return f.Kind != FaultSilent && f.Kind != FaultFreeze && f.Kind != FaultStorm
}

// suffer looks at the faults that meet the whole connection, and ends it if they say so.
func (s *stream) suffer() {
	now := time.Now()
	faults, until := s.v.faults.wholeFaults(s, now)
	wasDeaf := s.deaf.Load()
	s.fate = fate{until: until}
	deaf := false
	for _, f := range faults {
		//exhaustive:ignore
		switch f.Kind {
		case FaultSilent, FaultHang:
			s.fate.mute = true
		case FaultHalfOpen:
			s.fate.mute, deaf = true, true
		case FaultFreeze:
			s.fate.frozen = append(s.fate.frozen, f.Symbol)
		case FaultCut:
			s.retire(f)
		case FaultStorm:
			if at := s.opened.Add(orInt(f.Latency, time.Second)); f.id <= s.born && now.Before(at) {
				s.fate.until = sooner(s.fate.until, at)
			} else {
				s.cut()
			}
		case FaultReset:
			s.cut()
		case FaultClose:
			s.over = true
		default: // maintenance, unavailable
			s.leave()
		}
		if s.over {
			return
		}
	}
	s.deaf.Store(deaf)
	if wasDeaf && !deaf {
		s.cut() // whoever answers now knows nothing of the connection
	}
}

// retire announces the end of the stream once, in the venue's own way, and brings it about.
func (s *stream) retire(f activeFault) {
	if s.retiring == f.id {
		return
	}
	s.retiring = f.id
	lead := s.speaker.retire()
	s.after(orInt(f.Latency, lead), s.leave)
}

// frozen reports whether a symbol sends nothing now.
func (s *stream) frozen(symbol string) bool {
	for _, f := range s.fate.frozen {
		if f == "" || f == symbol {
			return true
		}
	}
	return false
}

// meets gives the faults of the wanted kinds that meet one message or subscription of a symbol, and counts them as met.
func (s *stream) meets(symbol string, wanted func(FaultKind) bool) []FaultKind {
	set := &s.v.faults
	set.mu.Lock()
	defer set.mu.Unlock()
	if len(set.active) == 0 {
		return nil
	}
	set.prune(time.Now())
	var met []FaultKind
	for _, a := range set.active {
		if wanted(a.Kind) && a.onStream(s.path) && (a.Symbol == "" || a.Symbol == symbol) && a.draw() {
			a.hits++
			met = append(met, a.Kind)
			s.v.count.faulted(a.Kind)
		}
	}
	return met
}

// refused reports whether a fault refuses the subscription of a symbol.
func (s *stream) refused(symbol string) bool {
	return len(s.meets(symbol, func(k FaultKind) bool { return k == FaultRefuse })) > 0
}

// data sends a message with market data of a symbol, past the faults of single messages.
func (s *stream) data(symbol string, text []byte) {
	if s.lost || s.frozen(symbol) {
		return
	}
	times, later := 1, false
	for _, k := range s.meets(symbol, FaultKind.message) {
		//exhaustive:ignore
		switch k {
		case FaultGap:
			times = 0
		case FaultDuplicate:
			times *= 2
		case FaultReorder:
			later = true
		case FaultMalformed:
			text = text[:len(text)/2]
		}
	}
	first, waits := s.held[symbol]
	if later && times > 0 && !waits {
		s.held[symbol] = text
		return
	}
	for range times {
		s.say(text)
	}
	if waits {
		delete(s.held, symbol)
		s.say(first)
	}
}

// cross spoils a change so that whoever applies it holds a bid above the best ask, or an ask at the best bid of a book without asks.
func (s *stream) cross(d *change, b book) {
	if len(b.bids)+len(b.asks) == 0 || len(s.meets(b.pair.Symbol, func(k FaultKind) bool { return k == FaultCrossed })) == 0 {
		return
	}
	if len(b.asks) == 0 {
		d.asks = []level{{price: b.bids[0].price, size: 1, orders: 1}}
		return
	}
	d.bids = append([]level{{price: b.asks[0].price + 1, size: 1, orders: 1}}, d.bids...)
}

// skew is how far the venue's clock is off for all that it says.
func (v *Venue) skew() time.Duration {
	v.faults.mu.Lock()
	defer v.faults.mu.Unlock()
	var d time.Duration
	now := time.Now()
	for _, a := range v.faults.active {
		if a.Kind == FaultSkew && a.Path == "" && a.Class == "" && a.Symbol == "" && a.Credential == "" && a.Count == 0 && a.Percent == 0 &&
			(a.until.IsZero() || now.Before(a.until)) {
			d += a.Skew
		}
	}
	return d
}

// clock is the venue's own clock, which the steps of its books follow in answers and on streams alike.
func (v *Venue) clock(now time.Time) time.Time { return now.Add(v.skew()) }

// resetSequences makes the sequence of a symbol, or of all if "", fall at the next step.
func (v *Venue) resetSequences(symbol string, lost bool, now time.Time) {
	for name, p := range v.pairs {
		if symbol == "" || symbol == name {
			p.reset(p.stepAt(v.clock(now))+1, lost)
		}
	}
}
