package recorded

import (
	"encoding/json"
	"strings"
	"testing"

	"exchange-gateway/internal/market"
)

// emptyBook is a book without levels, as of a sequence.
func emptyBook(sequence int64) *book {
	b := newBook()
	b.sequence = sequence
	return b
}

// misc is a rig for single messages: each book by REST is empty and ends where the first message about it begins.
func misc(t *testing.T, lines []string, before map[string]*book, pairs ...string) *rig {
	t.Helper()
	r := newRig(t, ofBinance(), newTape(t, ofBinance(), lines, before, true))
	r.venue.answers(func(symbol string) string { return restOfBinance(before[symbol]) })
	r.watch(market.StreamBook, pairs...)
	r.start()
	return r
}

// playBinanceMisc: one message of each of several channels. Those of changes are followed, with an envelope or without, and
// whatever the order of their keys; the others change nothing.
func playBinanceMisc(t *testing.T, path string) {
	const symbol = "BTCUSDT"
	lines := linesOf(t, path)
	play(t, "all", func(t *testing.T) {
		r := misc(t, lines, map[string]*book{symbol: emptyBook(11294093709), "ETHUSDT": emptyBook(1), "ETHBTC": emptyBook(1)},
			"BTC/USDT", "ETH/USDT", "ETH/BTC")
		for _, s := range []string{symbol, "ETHUSDT", "ETHBTC"} {
			r.through(2)
			r.live(s)
		}
		for n := 2; n <= len(lines); n++ {
			r.through(n)
			got := r.wantBook(symbol)
			if got.sequence != market.SequenceOf(11294093726) || len(got.bids) != 1 || len(got.asks) != 1 ||
				!got.bids[0].same([2]string{"35743.87", "0.000015"}) || !got.asks[0].same([2]string{"35743.88", "0.24"}) {
				t.Errorf("line %d: %+v", n, got)
			}
		}
		for s, changed := range map[string]int{symbol: 1, "ETHUSDT": 0, "ETHBTC": 0} {
			if loads, changes := r.told(s); loads != 1 || changes != changed {
				t.Errorf("%s: %d snapshots and %d changes were told, want 1 and %d", s, loads, changes, changed)
			}
			r.wantStates(s, "live")
			r.wantAsked(s, 1, 1)
		}
	})
	play(t, "without an envelope", func(t *testing.T) {
		r := misc(t, lines[6:7], map[string]*book{symbol: emptyBook(7145637265)}, "BTC/USDT")
		r.through(1)
		r.live(symbol)
		if got := r.wantBook(symbol); got.sequence != market.SequenceOf(7145637297) {
			t.Errorf("it stands at %v", got.sequence)
		}
		r.ear.mu.Lock()
		defer r.ear.mu.Unlock()
		if h := r.ear.of(symbol); h.changed != 1 || h.bids != 9 || h.asks != 13 {
			t.Errorf("%d changes, of %d bids and %d asks, want one of 9 and 13", h.changed, h.bids, h.asks)
		}
	})
}

// playBinanceControl: the recorded answers, where their ids fit, and the announcement that the connection will end.
func playBinanceControl(t *testing.T, path string) {
	var server []string
	for _, line := range linesOf(t, path) {
		var w struct{ Dir, Text string }
		if err := json.Unmarshal([]byte(line), &w); err != nil {
			t.Fatal(err)
		}
		if w.Dir == "server" {
			server = append(server, w.Text)
		}
	}
	answers := make(map[string]string) // by the id of the request
	for _, text := range server {
		switch {
		case strings.HasSuffix(text, `"result":null,"id":1}`):
			answers["1"] = text
		case strings.Contains(text, "invalid stream"):
			answers["2"] = text
		}
	}
	if len(server) != 10 || len(answers) != 2 {
		t.Fatalf("%d messages of the exchange, %d answers to the first requests", len(server), len(answers))
	}
	const symbol, after = "NKNUSDT", 4
	s := loadBinance(t, "binance/ws/derived_nknusdt_1000ms_straddle.jsonl", "NKN/USDT")
	r := s.rig(t, market.StreamBest)
	ack := r.venue.dialect.answer
	r.venue.dialect.answer = func(q request) []string {
		if a, ok := answers[q.id]; ok {
			return []string{a}
		}
		return ack(q)
	}
	r.start(market.StreamBest) // the second request, of the best prices, is refused: the book goes on without
	r.through(1)
	r.live(symbol)
	r.through(after)
	epoch := r.wantBook(symbol).epoch
	for _, text := range server {
		if !r.peer.say(t, text) {
			t.Fatalf("the client hung up over %s", text)
		}
		if got := r.wantBook(symbol); got.epoch != epoch {
			t.Errorf("%s begins another epoch", text)
		}
	}
	r.replaced(symbol, func(next *peer) {
		next.subscribed(t, r.venue.dialect.channel(symbol, market.StreamBook), 1)
		r.at(after + 1)
		r.peer.say(t, s.tape.lines[after])
		next.say(t, s.tape.lines[after])
	})
	if got := r.wantBook(symbol); got.epoch == epoch {
		t.Error("the book of another connection is in the epoch of the first")
	}
	r.through(len(s.tape.lines))
	s.ends(r)
	r.wantStates(symbol, "live")
	r.wantAsked(symbol, 2, 2)
}
