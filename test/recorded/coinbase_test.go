package recorded

import (
	"strings"
	"testing"

	"github.com/shopspring/decimal"

	"exchange-gateway/internal/feed"
	"exchange-gateway/internal/market"
)

// coinbaseNote is what is noted of a book.
type coinbaseNote struct {
	bids, asks       int
	bestBid, bestAsk [2]string
	sums             [2]string
}

func (n coinbaseNote) check(r *rig, symbol string) {
	r.Helper()
	got := r.wantBook(symbol)
	if len(got.bids) != n.bids || len(got.asks) != n.asks || !got.bids[0].same(n.bestBid) || !got.asks[0].same(n.bestAsk) {
		r.Errorf("%s has %d + %d levels, best %v and %v, want %+v", symbol, len(got.bids), len(got.asks), got.bids[0], got.asks[0], n)
	}
	for i, s := range []*side{{levels: got.bids}, {levels: got.asks}} {
		if !s.sum().Equal(decimal.RequireFromString(n.sums[i])) {
			r.Errorf("%s: sum %d is %v, want %s", symbol, i, s.sum(), n.sums[i])
		}
	}
}

// coinbaseStream is the derived stream of one connection.
type coinbaseStream struct{ tape *tape }

// ends are the books after its last frame, as its description tells them.
func (s *coinbaseStream) ends(r *rig) {
	r.Helper()
	for symbol, note := range map[string]coinbaseNote{
		"CRV-EUR": {389, 297, [2]string{"3.2956", "96.95"}, [2]string{"3.301", "97.66"}, [2]string{"121341.07", "126866.87"}},
		"NU-GBP":  {118, 450, [2]string{"0.4388", "242.89"}, [2]string{"0.4393", "8208.213533"}, [2]string{"1883142.291043", "2321605.395302"}},
	} {
		note.check(r, symbol)
	}
}

func (s *coinbaseStream) symbols() []string { return []string{"CRV-EUR", "NU-GBP"} }

func playCoinbaseClean(t *testing.T, path string) {
	s := &coinbaseStream{tape: newTape(t, ofCoinbase(), linesOf(t, path), nil, false)}
	if len(s.tape.lines) != 255 {
		t.Fatalf("%d frames", len(s.tape.lines))
	}
	play(t, "as it came", func(t *testing.T) {
		r := s.start(t)
		for n := 1; n <= len(s.tape.lines); n++ {
			r.through(n)
			for _, symbol := range s.symbols() {
				if s.tape.book(symbol, n) != nil {
					r.wantBook(symbol)
				}
			}
		}
		s.endsUndisturbed(r)
	})
	play(t, "every frame twice", func(t *testing.T) {
		r := s.start(t)
		for n, frame := range s.tape.lines {
			r.at(n + 1)
			if !r.peer.say(t, frame, frame) {
				t.Fatalf("the client hung up at frame %d", n)
			}
		}
		s.endsUndisturbed(r)
	})
	const n = 100
	heartbeat := n
	for !strings.Contains(s.tape.lines[heartbeat-1], `"heartbeats"`) {
		heartbeat++
	}
	for name, frames := range map[string]struct{ lost, next int }{
		"a frame lost":       {n, n + 1},
		"a heartbeat lost":   {heartbeat, heartbeat + 1},
		"ten frames lost":    {n, n + 10},
		"two frames swapped": {n, n + 1}, // what comes second comes to nobody any more
	} {
		play(t, name, func(t *testing.T) {
			r := s.start(t)
			r.through(frames.lost - 1)
			r.at(frames.next)
			messages := []string{s.tape.lines[frames.next-1]}
			if strings.Contains(name, "swapped") {
				messages = append(messages, s.tape.lines[frames.lost-1])
			}
			if r.peer.say(t, messages...) {
				t.Error("the client goes on after a gap")
			}
			s.recovers(r)
		})
	}
}

func (s *coinbaseStream) start(t *testing.T) *rig {
	t.Helper()
	r := newRig(t, ofCoinbase(), s.tape)
	r.watch(market.StreamBook, "CRV/EUR", "NU/GBP")
	r.start()
	r.peer.subscribed(t, "heartbeats", 1)
	return r
}

func (s *coinbaseStream) endsUndisturbed(r *rig) {
	r.Helper()
	s.ends(r)
	for _, symbol := range s.symbols() {
		changes := -1 // the snapshot
		for range s.tape.of(symbol) {
			changes++
		}
		if loads, told := r.told(symbol); loads != 1 || told != changes {
			r.Errorf("%s: %d snapshots and %d changes were told, want 1 and %d", symbol, loads, told, changes)
		}
		r.wantStates(symbol, "live")
		r.wantAsked(symbol, 0, 1)
	}
}

// recovers: every book is stale, and comes back on another connection, whose frames are numbered from zero.
func (s *coinbaseStream) recovers(r *rig) {
	r.Helper()
	for _, symbol := range s.symbols() {
		r.wantStale(symbol, market.KindSuspect)
	}
	r.peer = r.venue.dialled(r.T)
	frames := []string{}
	for _, symbol := range s.symbols() {
		r.peer.subscribed(r.T, "level2:"+symbol, 1)
		r.wantStale(symbol, market.KindSuspect)
		frames = append(frames, snapshotOfCoinbase(symbol, s.tape.book(symbol, r.line)))
	}
	r.peer.subscribed(r.T, "heartbeats", 1)
	frames = append(frames, ackOfCoinbase(s.symbols()...), ackOfCoinbase(s.symbols()...))
	for i := range frames {
		frames[i] = numbered(frames[i], i)
	}
	if !r.peer.say(r.T, frames...) {
		r.Fatal("the client hung up")
	}
	count := len(frames)
	for _, symbol := range s.symbols() {
		r.wantBook(symbol)
	}
	for n := r.line + 1; n <= len(s.tape.lines); n++ {
		r.at(n)
		if !r.peer.say(r.T, numbered(s.tape.lines[n-1], count)) {
			r.Fatalf("the client hung up at frame %d", n-1)
		}
		count++
	}
	s.ends(r)
	for _, symbol := range s.symbols() {
		r.wantStates(symbol, "live", "stale suspect", "live")
		r.wantAsked(symbol, 0, 2)
	}
}

// playCoinbaseStart: the snapshot is not sorted and comes before the acks, which list the whole set each time. A product that
// is acked and sends nothing waits.
func playCoinbaseStart(t *testing.T, path string) {
	const silent = "ETH-PERP-INTX"
	r := newRig(t, ofCoinbase(), newTape(t, ofCoinbase(), linesOf(t, path), nil, false))
	r.watch(market.StreamBook, "BTC-PERP/INTX", "ETH-PERP/INTX")
	r.start()
	r.peer.subscribed(t, "heartbeats", 1)
	for n := 1; n <= 4; n++ {
		r.through(n)
		coinbaseNote{2, 2, [2]string{"79943.9", "3.0105"}, [2]string{"79944", "0.048"}, [2]string{"3.5105", "1.248"}}.check(r, "BTC-PERP-INTX")
		if got := r.see(silent); got.held || got.State != feed.StateSyncing || got.Reason != market.KindNone {
			t.Errorf("frame %d: %s is %+v", n-1, silent, got.Freshness)
		}
	}
	r.wantStates("BTC-PERP-INTX", "live")
	r.wantStates(silent)
	r.wantAsked("BTC-PERP-INTX", 0, 1)
}

// playCoinbaseDocs: frames in the style of the documentation, each with a number of its own. Those of the book come as they
// are, the others under the numbers that follow.
func playCoinbaseDocs(t *testing.T, path string) {
	all := linesOf(t, path)
	if len(all) != 7 {
		t.Fatalf("%d frames", len(all))
	}
	lines := all[1:3:3]
	for i, frame := range append(all[:1:1], all[3:]...) {
		lines = append(lines, numbered(frame, 2+i))
	}
	r := newRig(t, ofCoinbase(), newTape(t, ofCoinbase(), lines, nil, false))
	r.watch(market.StreamBook, "BTC/USD")
	r.start()
	r.peer.subscribed(t, "heartbeats", 1)
	r.through(1)
	coinbaseNote{3, 3, [2]string{"68900", "1.5"}, [2]string{"68901", "0.5"}, [2]string{"4.55", "2.5"}}.check(r, "BTC-USD")
	for n := 2; n <= len(lines); n++ {
		r.through(n)
		coinbaseNote{3, 2, [2]string{"68900", "2"}, [2]string{"68901.5", "1.2"}, [2]string{"5.05", "2"}}.check(r, "BTC-USD")
	}
	r.wantStates("BTC-USD", "live")
	r.wantAsked("BTC-USD", 0, 1)
}

// playCoinbase2024: acks, heartbeats and trades of several connections harm no book. The last two frames are one heartbeat
// that came twice, under the numbers 150 and 158: the second is a gap.
func playCoinbase2024(t *testing.T, path string) {
	all := linesOf(t, path)
	if len(all) != 6 {
		t.Fatalf("%d frames", len(all))
	}
	own := narrow(t, "2375.56", "2375.57", 0)
	lines := []string{numbered(snapshotOfCoinbase("ETH-USDT", own), 144), numbered(ackOfCoinbase("ETH-USDT"), 145)}
	for i, frame := range all[:4] {
		if strings.Contains(frame, `"subscriptions"`) {
			frame = strings.Replace(frame, `{"subscriptions":{`, `{"subscriptions":{"level2":["ETH-USDT"],`, 1)
		}
		lines = append(lines, numbered(frame, 146+i))
	}
	lines = append(lines, all[4:]...)
	r := newRig(t, ofCoinbase(), newTape(t, ofCoinbase(), lines, nil, false))
	r.watch(market.StreamBook, "ETH/USDT")
	r.start()
	r.peer.subscribed(t, "heartbeats", 1)
	for n := 1; n < len(lines); n++ {
		r.through(n)
		r.wantBook("ETH-USDT")
	}
	if r.play(len(lines)) {
		t.Error("the client goes on after a gap")
	}
	r.wantStale("ETH-USDT", market.KindSuspect)
	r.venue.dialled(t)
	r.wantStates("ETH-USDT", "live", "stale suspect")
}
