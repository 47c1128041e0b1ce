package recorded

import (
	"testing"

	"exchange-gateway/internal/feed"
	"exchange-gateway/internal/market"
)

// fewest is how many changes a symbol needs to have some of them disturbed.
const fewest = 10

// disturb plays the stream with faults: it comes to the same books, and what is not them is never shown as live.
func (s *binanceStream) disturb(t *testing.T) {
	t.Helper()
	play(t, "snapshots by REST late", s.playLate)
	play(t, "every message twice", s.playTwice)
	for symbol, note := range s.notes {
		if note.Events >= fewest {
			play(t, "one change of "+symbol+" lost", func(t *testing.T) { s.playLost(t, symbol) })
			play(t, "two changes of "+symbol+" swapped", func(t *testing.T) { s.playSwapped(t, symbol) })
		}
	}
}

// playLate: changes are kept until the books come, the recorded ones, which are old by then.
func (s *binanceStream) playLate(t *testing.T) {
	r := s.rig(t, market.StreamBook)
	r.venue.hold()
	r.start()
	r.through(len(s.tape.lines) / 2)
	for symbol := range s.notes {
		if got := r.see(symbol); got.held || got.State != feed.StateSyncing {
			t.Errorf("%s without a snapshot is %+v", symbol, got.Freshness)
		}
	}
	r.venue.release()
	r.through(len(s.tape.lines))
	s.ends(r)
	for symbol, note := range s.notes {
		if loads, changes := r.told(symbol); loads != 1 || changes != note.Applied {
			t.Errorf("%s: %d snapshots and %d changes were told, want 1 and %d", symbol, loads, changes, note.Applied)
		}
		r.wantStates(symbol, "live")
		r.wantAsked(symbol, 1, 1)
	}
}

// straddle plays a stream whose first change holds the id of the snapshot in the midst of its own: also with the snapshot
// loaded before it comes, which the adapter asks for when a book stays silent.
func straddle(pair string) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		s := loadBinance(t, path, pair)
		first, before := s.tape.said[0], bookOfBinance(t, []byte(s.rest[s.tape.said[0].symbol]))
		if first.first > before.sequence || first.sequence <= before.sequence {
			t.Fatalf("the first change is %d to %d, the snapshot %d", first.first, first.sequence, before.sequence)
		}
		session(pair)(t, path)
		play(t, "a snapshot by REST early", func(t *testing.T) {
			r := s.rig(t, market.StreamBook)
			r.start()
			if got := r.live(first.symbol); got.sequence != market.SequenceOf(before.sequence) {
				t.Errorf("before any change it stands at %v", got.sequence)
			}
			for n := range s.tape.lines {
				r.through(n + 1)
				r.wantBook(first.symbol)
			}
			s.ends(r)
			r.wantStates(first.symbol, "live")
			r.wantAsked(first.symbol, 1, 1)
		})
	}
}

// playTwice: what comes again changes nothing.
func (s *binanceStream) playTwice(t *testing.T) {
	r := s.rig(t, market.StreamBook)
	r.start()
	for n, line := range s.tape.lines {
		r.at(n + 1)
		if !r.peer.say(t, line, line) {
			t.Fatalf("the client hung up at line %d", n+1)
		}
	}
	s.ends(r)
	for symbol, note := range s.notes {
		if loads, changes := r.told(symbol); loads != 1 || changes != note.Applied {
			t.Errorf("%s: %d snapshots and %d changes were told, want 1 and %d", symbol, loads, changes, note.Applied)
		}
		r.wantStates(symbol, "live")
		r.wantAsked(symbol, 1, 1)
	}
}

// middle are two changes of a symbol that follow each other, the line before which it is live.
func (s *binanceStream) middle(r *rig, symbol string) (first, second int) {
	r.Helper()
	r.start()
	events := s.tape.of(symbol)
	k := len(events) / 2
	r.through(events[0])
	r.live(symbol)
	r.through(events[k] - 1)
	r.wantBook(symbol)
	r.venue.hold() // so that it can be seen what is shown in the meantime
	return events[k], events[k+1]
}

// playLost: the next change shows that one is missing. The book is stale at once, and right when a snapshot has come.
func (s *binanceStream) playLost(t *testing.T, symbol string) {
	r := s.rig(t, market.StreamBook)
	lost, next := s.middle(r, symbol)
	r.at(lost)
	r.through(next)
	s.recovers(r, symbol)
}

// playSwapped: the first of the two comes after the second, when the book is given up already.
func (s *binanceStream) playSwapped(t *testing.T, symbol string) {
	r := s.rig(t, market.StreamBook)
	first, second := s.middle(r, symbol)
	r.at(first)
	r.through(second)
	r.wantStale(symbol, market.KindUnavailable)
	if !r.peer.say(t, s.tape.lines[first-1]) {
		t.Fatal("the client hung up")
	}
	s.recovers(r, symbol)
}

// recovers checks that a book is stale until another snapshot is there, that no other book suffers, and the end.
func (s *binanceStream) recovers(r *rig, symbol string) {
	r.Helper()
	r.wantStale(symbol, market.KindUnavailable)
	r.through(min(r.line+3, len(s.tape.lines)))
	r.wantStale(symbol, market.KindUnavailable)
	r.venue.release()
	r.live(symbol)
	r.wantBook(symbol)
	r.through(len(s.tape.lines))
	s.ends(r)
	for other := range s.notes {
		if other != symbol {
			r.wantStates(other, "live")
			r.wantAsked(other, 1, 1)
		}
	}
	r.wantStates(symbol, "live", "stale unavailable", "live")
	r.wantAsked(symbol, 2, 1)
}
