package recorded

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/shopspring/decimal"

	"exchange-gateway/internal/market"
)

// okxNote is what is noted of the book after one line.
type okxNote struct {
	Line             int
	SeqID            *int64
	BestBid, BestAsk [2]string
	NBids, NAsks     int
	BidQtySum        string
	AskQtySum        string
	Final            struct{ Bids, Asks [][]string }
}

// check compares a book that is shown with the note.
func (n okxNote) check(t *testing.T, got shown) {
	t.Helper()
	if len(got.bids) != n.NBids || len(got.asks) != n.NAsks {
		t.Fatalf("line %d: %d + %d levels, want %d + %d", n.Line, len(got.bids), len(got.asks), n.NBids, n.NAsks)
	}
	if !got.bids[0].same(n.BestBid) || !got.asks[0].same(n.BestAsk) {
		t.Errorf("line %d: best are %v and %v, want %v and %v", n.Line, got.bids[0], got.asks[0], n.BestBid, n.BestAsk)
	}
	bids, asks := (&side{levels: got.bids}).sum(), (&side{levels: got.asks}).sum()
	if !bids.Equal(decimal.RequireFromString(n.BidQtySum)) || !asks.Equal(decimal.RequireFromString(n.AskQtySum)) {
		t.Errorf("line %d: sums are %v and %v, want %s and %s", n.Line, bids, asks, n.BidQtySum, n.AskQtySum)
	}
	if got.sequence.Known != (n.SeqID != nil) || n.SeqID != nil && got.sequence.Value != *n.SeqID {
		t.Errorf("line %d: sequence %v, want %v", n.Line, got.sequence, n.SeqID)
	}
	for name, half := range map[string]struct {
		got  []level
		want [][]string
	}{"bid": {got.bids, n.Final.Bids}, "ask": {got.asks, n.Final.Asks}} {
		if half.want == nil {
			continue
		}
		want, err := rows(half.want)
		if err != nil {
			t.Fatal(err)
		}
		if d := differ(name, half.got, want); d != "" {
			t.Errorf("line %d: %s", n.Line, d)
		}
	}
}

// okxStream is a recorded stream of BTC-USDT with the notes on its lines.
type okxStream struct {
	tape  *tape
	notes map[int]okxNote
	final okxNote
}

const btcUSDT = "BTC-USDT"

func loadOKX(t *testing.T, path string, numbered bool) *okxStream {
	t.Helper()
	name := strings.TrimSuffix(path, ".jsonl")
	s := &okxStream{notes: make(map[int]okxNote), tape: newTape(t, ofOKX(), linesOf(t, path), nil, numbered)}
	for _, line := range linesOf(t, name+".expected.jsonl") {
		var n okxNote
		if err := json.Unmarshal([]byte(line), &n); err != nil {
			t.Fatal(err)
		}
		s.notes[n.Line] = n
	}
	final := read(t, name+".final.json")
	var bySymbol map[string]json.RawMessage
	if err := json.Unmarshal(final, &bySymbol); err != nil {
		t.Fatal(err)
	}
	if bySymbol[btcUSDT] != nil {
		final = bySymbol[btcUSDT]
	}
	if err := json.Unmarshal(final, &s.final); err != nil {
		t.Fatal(err)
	}
	last := s.notes[len(s.tape.lines)]
	for n := len(s.tape.lines); last.Line == 0; n-- {
		last = s.notes[n]
	}
	s.final.Line, s.final.SeqID = len(s.tape.lines), last.SeqID
	if len(s.final.Final.Bids) != 400 || len(s.final.Final.Asks) != 400 {
		t.Fatalf("%d + %d levels are noted in the end", len(s.final.Final.Bids), len(s.final.Final.Asks))
	}
	return s
}

// playThrough plays the rest of the tape, and compares the book after every message with the note on it.
func (s *okxStream) playThrough(r *rig) {
	r.Helper()
	for n := r.line + 1; n <= len(s.tape.lines); n++ {
		before := r.see(btcUSDT)
		r.through(n)
		note, ok := s.notes[n]
		if !ok { // of another channel
			if got := r.see(btcUSDT); got.State != before.State || got.epoch != before.epoch || got.sequence != before.sequence ||
				!got.changedAt.Equal(before.changedAt) {
				r.Errorf("line %d: %+v was %+v", n, got.Freshness, before.Freshness)
			}
			continue
		}
		note.check(r.T, r.wantBook(btcUSDT))
	}
	s.final.check(r.T, r.wantBook(btcUSDT))
}

// playOKX2022 plays the wire of 2022, which has no sequences: confirmations of several channels, tickers and trades between.
func playOKX2022(t *testing.T, path string) {
	s := loadOKX(t, path, false)
	r := newRig(t, ofOKX(), s.tape)
	r.venue.silent(true) // the recording has the confirmations, without the id of a request
	r.watch(market.StreamBook, "BTC/USDT")
	r.start()
	s.playThrough(r)
	if loads, changes := r.told(btcUSDT); loads != 1 || changes != len(s.notes)-1 {
		t.Errorf("%d snapshots and %d changes were told, of %d messages", loads, changes, len(s.notes))
	}
	r.wantStates(btcUSDT, "live")
	r.wantAsked(btcUSDT, 0, 1)
}

// Lines of the derived stream.
const (
	okxKeepAlive = 43
	okxReset     = 64
)

// playOKX2026 plays the wire of 2026, as it came and with faults.
func playOKX2026(t *testing.T, path string) {
	s := loadOKX(t, path, true)
	play(t, "as it came", s.playAsItCame)
	s.disturb(t)
	s.playJoins(t)
}

func (s *okxStream) playAsItCame(t *testing.T) {
	tape := *s.tape
	tape.lines = append([]string(nil), s.tape.lines...)
	r := newRig(t, ofOKX(), &tape)
	r.venue.silent(true)
	r.watch(market.StreamBook, "BTC/USDT")
	r.start()
	// The confirmation names the recorded request; here it names ours.
	asked := r.peer.subscribed(t, "books:"+btcUSDT, 1)
	tape.lines[0] = strings.Replace(tape.lines[0], `"id":"1512"`, strconv.Quote("id")+":"+strconv.Quote(asked.id), 1)
	for n := 1; n < okxKeepAlive; n++ {
		r.through(n)
		if note, ok := s.notes[n]; ok {
			note.check(t, r.wantBook(btcUSDT))
		}
	}
	s.wantKeepAlive(r)
	s.playThrough(r)
	if loads, changes := r.told(btcUSDT); loads != 1 || changes != len(s.notes)-2 { // a snapshot and a keep-alive are none
		t.Errorf("%d snapshots and %d changes were told, of %d messages", loads, changes, len(s.notes))
	}
	r.wantStates(btcUSDT, "live")
	r.wantAsked(btcUSDT, 0, 1)
	if n := len(r.peer.heard("books:" + btcUSDT)); n != 1 {
		t.Errorf("%d requests, want the first subscription alone: a reset is no gap", n)
	}
}

// wantKeepAlive plays the keep-alive: it vouches for the book, and changes nothing of it.
func (s *okxStream) wantKeepAlive(r *rig) {
	r.Helper()
	before := r.wantBook(btcUSDT)
	_, changes := r.told(btcUSDT)
	r.through(okxKeepAlive)
	got := r.wantBook(btcUSDT)
	s.notes[okxKeepAlive].check(r.T, got)
	if !got.confirmedAt.After(before.confirmedAt) {
		r.Errorf("the keep-alive vouches for %v, before it was %v", got.confirmedAt, before.confirmedAt)
	}
	if !got.changedAt.Equal(before.changedAt) || got.epoch != before.epoch || got.sequence != before.sequence || got.Since != before.Since {
		r.Errorf("the keep-alive changes more than that: %+v, before it was %+v", got, before)
	}
	for _, d := range []string{differ("bid", got.bids, before.bids), differ("ask", got.asks, before.asks)} {
		if d != "" {
			r.Errorf("the keep-alive changes a level: %s", d)
		}
	}
	if _, after := r.told(btcUSDT); after != changes {
		r.Errorf("the keep-alive was told as %d changes", after-changes)
	}
}
