package recorded

import (
	"encoding/json"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/shopspring/decimal"

	"exchange-gateway/internal/feed"
	"exchange-gateway/internal/market"
)

// binanceNote is what expected.json says of one symbol of a stream.
type binanceNote struct {
	Symbol   string
	Snapshot json.RawMessage // the name of a file, or the answer itself
	Events   int             `json:"depth_events"`
	Applied  int
	Final    struct {
		ID     int64 `json:"last_update_id"`
		Bids   int
		Asks   int
		Bid    [2]string `json:"best_bid"`
		Ask    [2]string `json:"best_ask"`
		BidSum string    `json:"bid_qty_sum"`
		AskSum string    `json:"ask_qty_sum"`
		SHA256 string
	}
	Checkpoints map[string]struct {
		ID  int64     `json:"u"`
		Bid [2]string `json:"best_bid"`
		Ask [2]string `json:"best_ask"`
	} `json:"checkpoints_by_event_index"`
	Tops      int   `json:"bookticker_cross_checks_ok"`
	FirstTime int64 `json:"first_E_us"`
	LastTime  int64 `json:"last_E_us"`
}

// binanceStream is a recorded stream with what is noted about it.
type binanceStream struct {
	tape  *tape
	notes map[string]binanceNote
	rest  map[string]string // the recorded answers of REST
	pairs []string
}

// loadBinance reads a stream of some pairs.
func loadBinance(t *testing.T, path string, pairs ...string) *binanceStream {
	t.Helper()
	var all map[string]json.RawMessage
	if err := json.Unmarshal(read(t, "binance", "expected.json"), &all); err != nil {
		t.Fatal(err)
	}
	var session struct {
		binanceNote
		Symbols map[string]binanceNote
	}
	if err := json.Unmarshal(all[strings.TrimPrefix(path, "binance/")], &session); err != nil {
		t.Fatal(err)
	}
	s := &binanceStream{notes: session.Symbols, rest: make(map[string]string), pairs: pairs}
	if session.Symbol != "" {
		s.notes = map[string]binanceNote{session.Symbol: session.binanceNote}
	}
	if len(s.notes) != len(pairs) {
		t.Fatalf("%d symbols are noted, %d are played", len(s.notes), len(pairs))
	}
	before := make(map[string]*book)
	for symbol, note := range s.notes {
		text, name := []byte(note.Snapshot), ""
		if json.Unmarshal(note.Snapshot, &name) == nil {
			text = read(t, "binance", filepath.FromSlash(name))
		}
		s.rest[symbol] = string(text)
		before[symbol] = bookOfBinance(t, text)
	}
	s.tape = newTape(t, ofBinance(), linesOf(t, path), before, true)
	for symbol, note := range s.notes {
		s.checkNote(t, symbol, note)
	}
	return s
}

// checkNote checks this package's own reading: its last book is the noted one, with all its levels.
func (s *binanceStream) checkNote(t *testing.T, symbol string, note binanceNote) {
	t.Helper()
	events := s.tape.of(symbol)
	b := s.tape.book(symbol, len(s.tape.lines))
	if len(events) != note.Events || b.digest() != note.Final.SHA256 || b.sequence != note.Final.ID {
		t.Fatalf("%s: %d events lead to %d, %s", symbol, len(events), b.sequence, b.digest())
	}
}

// rig is ready to start: each book by REST is the recorded one first, and after that the exchange's own of that moment.
func (s *binanceStream) rig(t *testing.T, ch market.StreamChannel) *rig {
	t.Helper()
	r := newRig(t, ofBinance(), s.tape)
	r.venue.answers(func(symbol string) string {
		if r.venue.askedFor(symbol) == 1 {
			return s.rest[symbol]
		}
		r.ear.mu.Lock()
		defer r.ear.mu.Unlock()
		return restOfBinance(s.tape.book(symbol, r.ear.line))
	})
	r.watch(ch, s.pairs...)
	return r
}

// ends checks the books at the end of a stream against the notes.
func (s *binanceStream) ends(r *rig) {
	r.Helper()
	for symbol, note := range s.notes {
		r.live(symbol)
		got := r.wantBook(symbol)
		b := newBook()
		b.set(got.bids, got.asks)
		if b.digest() != note.Final.SHA256 || got.sequence != market.SequenceOf(note.Final.ID) ||
			len(got.bids) != note.Final.Bids || len(got.asks) != note.Final.Asks {
			r.Errorf("%s ends at %v with %d + %d levels, digest %s", symbol, got.sequence, len(got.bids), len(got.asks), b.digest())
		}
		if !got.bids[0].same(note.Final.Bid) || !got.asks[0].same(note.Final.Ask) {
			r.Errorf("%s ends with %v and %v", symbol, got.bids[0], got.asks[0])
		}
		if !b.bids.sum().Equal(decimal.RequireFromString(note.Final.BidSum)) || !b.asks.sum().Equal(decimal.RequireFromString(note.Final.AskSum)) {
			r.Errorf("%s ends with sums %v and %v", symbol, b.bids.sum(), b.asks.sum())
		}
		if note.LastTime != 0 && got.exchangeTime.UnixMicro() != note.LastTime {
			r.Errorf("%s ends at %v", symbol, got.exchangeTime)
		}
	}
}

// session plays a stream of the changes of some pairs, and of what else it holds.
func session(pairs ...string) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		s := loadBinance(t, path, pairs...)
		play(t, "as it came", s.playAsItCame)
		s.disturb(t)
	}
}

// playAsItCame compares the book after every line, and its best bid and ask with those that came alone.
func (s *binanceStream) playAsItCame(t *testing.T) {
	r := s.rig(t, market.StreamBest)
	r.start(market.StreamBest)
	events := make(map[string]int)
	tops := make(map[string]map[int64][2]level) // of books that were shown, by their ids
	var alone []best
	for n := 1; n <= len(s.tape.lines); n++ {
		r.through(n)
		if b, ok := bestOf(t, s.tape.lines[n-1]); ok {
			alone = append(alone, b)
			s.wantBest(r, b)
			continue
		}
		symbol := s.tape.said[n-1].symbol
		if symbol == "" {
			continue
		}
		if events[symbol] == 0 {
			r.live(symbol) // the snapshot is asked for after the first event
		}
		got := r.wantBook(symbol)
		if tops[symbol] == nil {
			tops[symbol] = make(map[int64][2]level)
		}
		tops[symbol][got.sequence.Value] = [2]level{got.bids[0], got.asks[0]}
		s.checkpoint(r, symbol, strconv.Itoa(events[symbol]), got)
		events[symbol]++
	}
	s.ends(r)
	for symbol, note := range s.notes {
		if loads, changes := r.told(symbol); loads != 1 || changes != note.Applied {
			r.Errorf("%s: %d snapshots and %d changes were told, want 1 and %d", symbol, loads, changes, note.Applied)
		}
		r.wantStates(symbol, "live")
		r.wantAsked(symbol, 1, 1)
		compared := 0
		for _, b := range alone {
			if top, ok := tops[symbol][b.id]; ok && b.symbol == symbol {
				compared++
				if !top[0].same(b.levels[0]) || !top[1].same(b.levels[1]) {
					r.Errorf("%s at %d shows %v, and alone came %v", symbol, b.id, top, b.levels)
				}
			}
		}
		if compared != note.Tops {
			r.Errorf("%s: %d best prices compared, want %d", symbol, compared, note.Tops)
		}
	}
}

// checkpoint checks a noted state.
func (s *binanceStream) checkpoint(r *rig, symbol, index string, got shown) {
	r.Helper()
	note := s.notes[symbol]
	if c, ok := note.Checkpoints[index]; ok &&
		(got.sequence != market.SequenceOf(c.ID) || !got.bids[0].same(c.Bid) || !got.asks[0].same(c.Ask)) {
		r.Errorf("%s after event %s stands at %v with %v and %v, want %+v", symbol, index, got.sequence, got.bids[0], got.asks[0], c)
	}
	if index == "0" && note.FirstTime != 0 && got.exchangeTime.UnixMicro() != note.FirstTime {
		r.Errorf("%s begins at %v", symbol, got.exchangeTime)
	}
}

// wantBest checks that a best bid and ask that came alone is shown, if it is ahead of the book.
func (s *binanceStream) wantBest(r *rig, b best) {
	r.Helper()
	got := r.see(b.symbol)
	if got.State != feed.StateLive || b.id <= got.sequence.Value {
		return
	}
	shown := plain([]market.Level{got.best.Bid, got.best.Ask})
	if got.best.Sequence.Value != b.id || !shown[0].same(b.levels[0]) || !shown[1].same(b.levels[1]) {
		r.Errorf("line %d: %s shows %v at %v, want %v at %d", r.line, b.symbol, shown, got.best.Sequence, b.levels, b.id)
	}
}
