package recorded

import (
	"strings"
	"testing"

	"exchange-gateway/internal/feed"
	"exchange-gateway/internal/market"
)

// playOKXNear: a snapshot and an update of December 2025. The snapshot was shortened, so its old checksum cannot be right;
// nobody asks.
func playOKXNear(t *testing.T, path string) {
	const symbol = "NEAR-USDT"
	r := newRig(t, ofOKX(), newTape(t, ofOKX(), linesOf(t, path), nil, true))
	r.watch(market.StreamBook, "NEAR/USDT")
	r.start()
	r.through(1)
	got := r.wantBook(symbol)
	if len(got.bids) != 3 || len(got.asks) != 3 || got.sequence != market.SequenceOf(9690930615) ||
		!got.bids[0].same([2]string{"1.782", "2173.46443964"}) || !got.asks[0].same([2]string{"1.783", "411.15719291"}) {
		t.Errorf("after the snapshot: %+v", got)
	}
	r.through(2)
	got = r.wantBook(symbol)
	if len(got.bids) != 4 || len(got.asks) != 3 || got.sequence != market.SequenceOf(9690930617) ||
		!got.bids[1].same([2]string{"1.781", "14694.07509503"}) {
		t.Errorf("after the update: %+v", got)
	}
	r.wantStates(symbol, "live")
	r.wantAsked(symbol, 0, 1)
}

// beside plays lines that are no messages of books on a connection that carries a book, one that this package wrote.
func beside(t *testing.T, path, pair string, own *book) (r *rig, symbol string) {
	t.Helper()
	symbol = strings.Replace(pair, "/", "-", 1)
	lines := append([]string{snapshotOfOKX(symbol, own)}, linesOf(t, path)...)
	r = newRig(t, ofOKX(), newTape(t, ofOKX(), lines, nil, true))
	r.watch(market.StreamBest, pair)
	r.start() // the channel of the best prices is asked for when the first answer has come
	r.peer.subscribed(t, "bbo-tbt:"+symbol, 1)
	r.through(1)
	r.wantBook(symbol)
	return r, symbol
}

// narrow is a book of one level a side, two steps around a price.
func narrow(t *testing.T, bid, ask string, sequence int64) *book {
	t.Helper()
	b := newBook()
	bids, err := rows([][]string{{bid, "1"}})
	if err != nil {
		t.Fatal(err)
	}
	asks, err := rows([][]string{{ask, "1"}})
	if err != nil {
		t.Fatal(err)
	}
	b.set(bids, asks)
	b.sequence, b.at = sequence, 1765201257000
	return b
}

// playOKXMisc: the best bid and ask that come alone are shown when they are ahead of the book. The other channels say nothing.
func playOKXMisc(t *testing.T, path string) {
	r, symbol := beside(t, path, "LTC/USDC", narrow(t, "83.79", "83.82", 378617001))
	for n := 2; n <= len(r.tape.lines); n++ {
		r.through(n)
		best := r.wantBook(symbol).best
		shown := plain([]market.Level{best.Bid, best.Ask})
		if best.Sequence != market.SequenceOf(378617009) || !shown[0].same([2]string{"83.8", "11.93317"}) ||
			!shown[1].same([2]string{"83.81", "11.93175"}) {
			t.Errorf("line %d: the best are %v at %v", n, shown, best.Sequence)
		}
	}
	r.wantStates(symbol, "live")
	r.wantAsked(symbol, 0, 1)
}

// playOKXOthers: best prices without a sequence are not shown, for nobody knows whether they are ahead of the book; channels
// that were not asked for say nothing. Neither harms the book.
func playOKXOthers(t *testing.T, path string) {
	r, symbol := beside(t, path, "BTC/USDT", narrow(t, "30000", "30001", 79706760000))
	for n := 2; n <= len(r.tape.lines); n++ {
		r.through(n)
		got := r.wantBook(symbol)
		if !got.bids[0].same([2]string{got.best.Bid.Price.String(), got.best.Bid.Size.String()}) {
			t.Errorf("line %d: the best bid is %v, the book's %v", n, got.best.Bid, got.bids[0])
		}
	}
	if loads, changes := r.told(symbol); loads != 1 || changes != 0 {
		t.Errorf("%d snapshots and %d changes were told", loads, changes)
	}
	r.wantStates(symbol, "live")
	r.wantAsked(symbol, 0, 1)
}

// playOKXControl: confirmations start a book, and errors that concern nothing of ours harm none. On the notice another
// connection takes the place of the one that will be closed, before that is given up.
func playOKXControl(t *testing.T, path string) {
	const symbol = "BTC-USD"
	own := narrow(t, "91527.2", "91527.3", 5)
	recorded := linesOf(t, path)
	const confirmations, notice = 6, 7
	if len(recorded) != 13 || !strings.Contains(recorded[notice-1], "64008") {
		t.Fatalf("%d lines", len(recorded))
	}
	r := newRig(t, ofOKX(), newTape(t, ofOKX(), []string{snapshotOfOKX(symbol, own)}, nil, true))
	r.venue.silent(true)
	r.watch(market.StreamBook, "BTC/USD")
	r.start()
	if !r.peer.say(t, recorded[:confirmations]...) {
		t.Fatal("the client hung up")
	}
	r.through(1)
	epoch := r.wantBook(symbol).epoch
	r.venue.silent(false)
	for i, line := range recorded[confirmations:] {
		if !r.peer.say(t, line) {
			t.Fatalf("the client hung up at line %d", confirmations+i+1)
		}
		if got := r.wantBook(symbol); got.epoch != epoch {
			t.Errorf("line %d begins another epoch", confirmations+i+1)
		}
	}
	r.replaced(symbol, func(next *peer) {
		next.subscribed(t, "books:"+symbol, 1)
		next.say(t, snapshotOfOKX(symbol, own))
	})
	if got := r.wantBook(symbol); got.epoch == epoch {
		t.Error("the book of another connection is in the epoch of the first")
	}
	r.wantStates(symbol, "live")
	r.wantAsked(symbol, 0, 2)
}

// replaced follows the change to another connection, which brings the book first: the old one serves until then.
func (r *rig) replaced(symbol string, bring func(next *peer)) {
	r.Helper()
	next := r.venue.dialled(r.T)
	if r.peer.left() {
		r.Error("the old connection was given up before there was a new one")
	}
	bring(next)
	await(r.T, "the end of the old connection", r.peer.left)
	r.peer = next
	if s := r.see(symbol); s.State != feed.StateLive {
		r.Errorf("%s is %s after the change", symbol, s.State)
	}
}
