package recorded

import (
	"encoding/json"
	"slices"
	"testing"

	"exchange-gateway/internal/feed"
	"exchange-gateway/internal/market"
)

// disturb plays the stream with faults. What is lost is noticed by the next message, the book comes back by another
// subscription, and in the end it is the noted one.
func (s *okxStream) disturb(t *testing.T) {
	t.Helper()
	const n = 30 // an update among others
	for name, f := range map[string]struct {
		until int   // played as it came
		then  []int // lines after that; the last shows that something is wrong
	}{
		"one message lost":               {n - 1, []int{n + 1}},
		"two messages swapped":           {n - 1, []int{n + 1, n}},
		"the reset lost":                 {okxReset - 1, []int{okxReset + 1}},
		"the reset and its next swapped": {okxReset - 1, []int{okxReset + 1, okxReset}},
		"the last before the reset lost": {okxReset - 2, []int{okxReset}},
	} {
		play(t, name, func(t *testing.T) {
			r := s.subscribed(t)
			r.through(f.until)
			r.wantBook(btcUSDT)
			r.at(slices.Max(f.then))
			for _, line := range f.then {
				if !r.peer.say(t, s.tape.lines[line-1]) {
					t.Fatalf("the client hung up at line %d", line)
				}
				r.wantStale(btcUSDT, market.KindMalformed)
			}
			s.recovers(r)
		})
	}
	for name, line := range map[string]int{"a message twice": n, "the keep-alive twice": okxKeepAlive, "the last twice": len(s.tape.lines)} {
		play(t, name, func(t *testing.T) {
			r := s.subscribed(t)
			r.through(line)
			r.play(line)
			s.playThrough(r)
			r.wantStates(btcUSDT, "live")
			r.wantAsked(btcUSDT, 0, 1)
			if loads, changes := r.told(btcUSDT); loads != 1 || changes != len(s.notes)-2 {
				t.Errorf("%d snapshots and %d changes were told, of %d messages", loads, changes, len(s.notes))
			}
		})
	}
	play(t, "the keep-alive lost", func(t *testing.T) {
		r := s.subscribed(t)
		r.through(okxKeepAlive - 1)
		r.at(okxKeepAlive)
		s.playThrough(r)
		r.wantStates(btcUSDT, "live")
		r.wantAsked(btcUSDT, 0, 1)
	})
}

// subscribed is a rig whose subscription is confirmed and, in the same moment, served: OKX sends the snapshot right behind.
func (s *okxStream) subscribed(t *testing.T) *rig {
	t.Helper()
	r := newRig(t, ofOKX(), s.tape)
	r.venue.silent(true)
	r.watch(market.StreamBook, "BTC/USDT")
	r.start()
	const first = 2 // line 1 is the recorded confirmation
	r.at(first)
	r.serve(s.tape.lines[first-1], 1)
	return r
}

// serve confirms the latest of so many subscriptions, and sends a snapshot.
func (r *rig) serve(snapshot string, times int) {
	r.Helper()
	asked := r.peer.subscribed(r.T, "books:"+btcUSDT, times)
	if !r.peer.say(r.T, append(answerOKX(asked), snapshot)...) {
		r.Fatal("the client hung up")
	}
}

// recovers subscribes anew: the exchange sends the book as it is by then.
func (s *okxStream) recovers(r *rig) {
	r.Helper()
	r.peer.subscribed(r.T, "books:"+btcUSDT, 2)
	r.wantStale(btcUSDT, market.KindMalformed)
	r.serve(snapshotOfOKX(btcUSDT, s.tape.book(btcUSDT, r.line)), 2)
	r.wantBook(btcUSDT)
	s.playThrough(r)
	r.wantStates(btcUSDT, "live", "stale malformed", "live")
	r.wantAsked(btcUSDT, 0, 1)
	if n := len(r.peer.heard("books:" + btcUSDT)); n != 3 {
		r.Errorf("%d requests, want a subscription, its end, and another", n)
	}
}

// okxRESTLine is the line after which the book is that of the recorded answer of REST.
const okxRESTLine = 12

// playJoins: no snapshot comes by the stream, so the book comes by REST, and the updates that came meanwhile are fitted to
// it: none yet, some that the book holds, and some that it does not hold.
func (s *okxStream) playJoins(t *testing.T) {
	t.Helper()
	recorded := string(read(t, "okx", "derived_rest_books_btc-usdt_sz400.json"))
	early := restOfOKX(s.tape.book(btcUSDT, okxReset-1))
	for name, f := range map[string]struct {
		rest     string
		of       int // the line that it is the book after
		from, to int // lines that come before it does
	}{
		"by REST before any update":           {recorded, okxRESTLine, okxRESTLine + 1, okxRESTLine},
		"by REST after old updates":           {recorded, okxRESTLine, okxRESTLine - 3, okxRESTLine},
		"by REST after old and newer updates": {recorded, okxRESTLine, okxRESTLine - 3, okxRESTLine + 8},
		"by REST over keep-alive and reset":   {recorded, okxRESTLine, okxRESTLine - 3, okxReset + 8},
		"by REST right before the reset":      {early, okxReset - 1, okxReset - 3, okxReset - 1},
	} {
		play(t, name, func(t *testing.T) {
			r := newRig(t, ofOKX(), s.tape)
			r.watch(market.StreamBook, "BTC/USDT")
			r.start()
			r.venue.answers(func(string) string { return f.rest })
			r.venue.hold()
			r.at(f.from - 1)
			r.through(f.to)
			await(t, "the question by REST", func() bool { return r.venue.askedFor(btcUSDT) == 1 })
			if got := r.see(btcUSDT); got.held || got.State != feed.StateSyncing {
				t.Errorf("without a book it is %+v", got.Freshness)
			}
			r.venue.release()
			got := r.live(btcUSDT)
			if f.to == f.of {
				checkREST(t, []byte(f.rest), got)
			}
			s.notes[max(f.to, f.of)].check(t, r.wantBook(btcUSDT))
			s.playThrough(r)
			r.wantStates(btcUSDT, "live")
			r.wantAsked(btcUSDT, 1, 1)
		})
	}
}

// checkREST compares the book with the recorded answer itself.
func checkREST(t *testing.T, text []byte, got shown) {
	t.Helper()
	var w struct {
		Data []struct {
			Bids, Asks [][]string
			SeqID      int64
		}
	}
	if err := json.Unmarshal(text, &w); err != nil {
		t.Fatal(err)
	}
	for name, half := range map[string]struct {
		got  []level
		want [][]string
	}{"bid": {got.bids, w.Data[0].Bids}, "ask": {got.asks, w.Data[0].Asks}} {
		want, err := rows(half.want)
		if err != nil {
			t.Fatal(err)
		}
		if d := differ(name, half.got, want); d != "" || got.sequence != market.SequenceOf(w.Data[0].SeqID) {
			t.Errorf("the book by REST at %v: %s", got.sequence, d)
		}
	}
}
