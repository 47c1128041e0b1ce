package okx_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"exchange-gateway/internal/exchange/okx"
	"exchange-gateway/internal/market"
)

// localBook is the plainest book that follows events.
type localBook struct {
	t          testing.TB
	bids, asks map[string]market.Level // by decimal value of the price
	sequence   market.Sequence
	loaded     bool
	vouched    int
}

func (b *localBook) take(e market.StreamEvent) {
	b.t.Helper()
	//exhaustive:ignore
	switch e.Kind {
	case market.StreamSnapshot:
		b.bids, b.asks = make(map[string]market.Level), make(map[string]market.Level)
		b.loaded = true
	case market.StreamUpdate:
		if !b.loaded {
			b.t.Fatal("an update before a snapshot")
		}
	case market.StreamVouch:
		b.vouched++
		if len(e.Bids)+len(e.Asks) != 0 {
			b.t.Errorf("a vouch changes the book: %+v", e)
		}
		return
	default:
		b.t.Fatalf("%s: %v", kindNames[e.Kind], e.Err)
	}
	b.sequence = e.Sequence
	put(b.bids, e.Bids)
	put(b.asks, e.Asks)
}

func put(side map[string]market.Level, changed []market.Level) {
	for _, l := range changed {
		if key := l.Price.Decimal().String(); l.Size.IsZero() {
			delete(side, key)
		} else {
			side[key] = l
		}
	}
}

// sorted is a side, best first, and the sum of its sizes.
func sorted(side map[string]market.Level, direction int) (out []market.Level, sum decimal.Decimal) {
	for _, l := range side {
		out = append(out, l)
		sum = sum.Add(l.Size.Decimal())
	}
	slices.SortFunc(out, func(a, b market.Level) int { return direction * a.Price.Cmp(b.Price) })
	return out, sum
}

// expectation is what a recording says about the book after one line.
type expectation struct {
	Line             int
	SeqID            *int64 `json:"seqId"`
	BestBid, BestAsk [2]string
	NBids, NAsks     int
	BidQtySum        string
	AskQtySum        string
	Final            struct{ Bids, Asks [][]string }
}

func (b *localBook) check(want expectation) {
	b.t.Helper()
	bids, bidSum := sorted(b.bids, -1)
	asks, askSum := sorted(b.asks, 1)
	same := func(name string, l market.Level, text [2]string) {
		b.t.Helper()
		if l.Price.String() != text[0] || l.Size.String() != text[1] {
			b.t.Errorf("line %d: %s is %v x %v, want %v", want.Line, name, l.Price, l.Size, text)
		}
	}
	if len(bids) != want.NBids || len(asks) != want.NAsks {
		b.t.Fatalf("line %d: %d + %d levels, want %d + %d", want.Line, len(bids), len(asks), want.NBids, want.NAsks)
	}
	same("best bid", bids[0], want.BestBid)
	same("best ask", asks[0], want.BestAsk)
	if bidSum.Cmp(decimal.RequireFromString(want.BidQtySum)) != 0 || askSum.Cmp(decimal.RequireFromString(want.AskQtySum)) != 0 {
		b.t.Errorf("line %d: sums are %v and %v, want %s and %s", want.Line, bidSum, askSum, want.BidQtySum, want.AskQtySum)
	}
	if want.SeqID != nil && b.sequence != market.SequenceOf(*want.SeqID) {
		b.t.Errorf("line %d: sequence %v, want %d", want.Line, b.sequence, *want.SeqID)
	}
	every := func(side []market.Level, raw [][]string) {
		b.t.Helper()
		for i, l := range raw {
			if side[i].Price.String() != l[0] || side[i].Size.String() != l[1] {
				b.t.Errorf("level %d is %v x %v, want %v", i, side[i].Price, side[i].Size, l)
			}
		}
	}
	every(bids, want.Final.Bids)
	every(asks, want.Final.Asks)
}

func lines(t testing.TB, name string) []string {
	t.Helper()
	return strings.Split(strings.TrimSpace(string(recorded(t, name))), "\n")
}

func expectations(t testing.TB, name string) (byLine map[int]expectation) {
	t.Helper()
	byLine = make(map[int]expectation)
	for _, l := range lines(t, name) {
		var e expectation
		if err := json.Unmarshal([]byte(l), &e); err != nil {
			t.Fatal(err)
		}
		byLine[e.Line] = e
	}
	return byLine
}

func final(t testing.TB, raw []byte) expectation {
	t.Helper()
	var e expectation
	if err := json.Unmarshal(raw, &e); err != nil {
		t.Fatal(err)
	}
	if len(e.Final.Bids) != 400 || len(e.Final.Asks) != 400 {
		t.Fatalf("%d + %d levels are expected in the end", len(e.Final.Bids), len(e.Final.Asks))
	}
	return e
}

// TestStreamRecorded_books compares the book after every message of two recordings: without sequences (May 2022), and with
// them, where line 43 is a keep-alive and line 64 the reset of a maintenance.
func TestStreamRecorded_books(t *testing.T) {
	f := func(name string, last expectation, vouches int) {
		t.Helper()
		p := newPlayer(t)
		p.subscribe(books("BTC-USDT")...)
		want := expectations(t, name+".expected.jsonl")
		book := &localBook{t: t}
		checked, accepted := 0, 0
		for i, line := range lines(t, name+".jsonl") {
			n := 0
			// The id in the recorded answer is that of the recorded request.
			for _, e := range p.conn.Decode([]byte(strings.Replace(line, `"id":"1512"`, `"id":"r1"`, 1)), p.now) {
				if e.Kind == market.StreamAccepted {
					accepted++
					continue
				}
				n++
				book.take(e)
			}
			w, is := want[i+1]
			if (n == 1) != is || n > 1 {
				t.Fatalf("%s line %d came to %d events", name, i+1, n)
			}
			if is {
				checked++
				book.check(w)
			}
		}
		book.check(last)
		if checked != len(want) || accepted != 1 || book.vouched != vouches {
			t.Errorf("%s: %d of %d states seen, accepted %d times, vouched for %d times", name, checked, len(want), accepted, book.vouched)
		}
	}
	var old map[string]json.RawMessage
	if err := json.Unmarshal(recorded(t, "ws_btc-usdt_2022-05.final.json"), &old); err != nil {
		t.Fatal(err)
	}
	f("ws_btc-usdt_2022-05", final(t, old["BTC-USDT"]), 0)
	f("derived_ws_books_btc-usdt_2026wire", final(t, recorded(t, "derived_ws_books_btc-usdt_2026wire.final.json")), 1)
}

// restBook is the recorded REST book, read by the adapter itself.
func restBook(t testing.TB) *market.OrderBook {
	t.Helper()
	v, _ := newVenue(t, says(string(recorded(t, "derived_rest_books_btc-usdt_sz400.json"))))
	book, err := v.OrderBook(t.Context(), btc, 400)
	if err != nil {
		t.Fatal(err)
	}
	return book
}

// TestStreamRecorded_withoutSnapshot plays the recording as if OKX had sent no snapshot: the updates wait for the book by
// REST, which is the one after line 12, and the end is the same. It comes before any update, before updates that it holds,
// and in the midst of them.
func TestStreamRecorded_withoutSnapshot(t *testing.T) {
	all := lines(t, "derived_ws_books_btc-usdt_2026wire.jsonl")
	want := expectations(t, "derived_ws_books_btc-usdt_2026wire.expected.jsonl")
	last := final(t, recorded(t, "derived_ws_books_btc-usdt_2026wire.final.json"))
	rest := restBook(t)
	f := func(first, loadAfter int) { // 1-based lines
		t.Helper()
		p := subscribed(t, "BTC-USDT")
		p.want(p.after(2*time.Second), "wanted BTC-USDT")
		book := &localBook{t: t}
		follow := func(events []market.StreamEvent) {
			for _, e := range events {
				book.take(e)
			}
		}
		if loadAfter < first {
			follow(p.conn.Load(rest))
		}
		for n := first; n <= len(all); n++ {
			follow(p.conn.Decode([]byte(all[n-1]), p.now))
			if n == loadAfter {
				follow(p.conn.Load(rest))
			}
			if n >= loadAfter && n >= 12 {
				book.check(want[n])
			}
		}
		book.check(last)
	}
	f(13, 0)
	f(9, 0)
	f(5, 11)
	f(5, 12)
	f(13, 13)
	f(4, 50)   // over the keep-alive
	f(3, 80)   // over the reset
	f(13, 100) // all but the last
}

// TestStreamRecorded_faults drops, repeats and swaps messages of the recording: no wrong book is ever shown as right.
func TestStreamRecorded_faults(t *testing.T) {
	all := lines(t, "derived_ws_books_btc-usdt_2026wire.jsonl")
	want := expectations(t, "derived_ws_books_btc-usdt_2026wire.expected.jsonl")
	play := func(order []int) (lostAt int) {
		t.Helper()
		p := subscribed(t, "BTC-USDT")
		book, shown := &localBook{t: t}, 0
		for _, n := range order {
			for _, e := range p.conn.Decode([]byte(all[n-1]), p.now) {
				if e.Kind == market.StreamLost {
					if lostAt != 0 {
						t.Errorf("lost twice: at %d and %d", lostAt, n)
					}
					if lostAt = n; e.Remedy != market.RemedyResubscribe || e.Symbol != "BTC-USDT" {
						t.Errorf("%+v", e)
					}
					continue
				}
				book.take(e)
				shown = n
			}
		}
		book.check(want[shown])
		return lostAt
	}
	upTo := func(n int) []int {
		var order []int
		for i := 2; i <= n; i++ {
			order = append(order, i)
		}
		return order
	}
	whole := upTo(len(all))
	if at := play(whole); at != 0 {
		t.Errorf("the whole recording is lost at %d", at)
	}
	for n := 3; n < len(all); n++ {
		dropped := slices.DeleteFunc(slices.Clone(whole), func(i int) bool { return i == n })
		wantLost := n + 1
		if n == 43 { // a keep-alive changes nothing
			wantLost = 0
		}
		if at := play(dropped); at != wantLost {
			t.Errorf("without line %d the book is lost at %d", n, at)
		}
		twice := slices.Insert(slices.Clone(whole), n-1, n)
		wantLost = 0
		if n == 64 { // the reset once more has a prevSeqId that is not below its seqId: no repetition that is known
			wantLost = 64
		}
		if at := play(twice); at != wantLost {
			t.Errorf("with line %d twice the book is lost at %d", n, at)
		}
		if n+1 < len(all) && n != 42 && n != 43 {
			swapped := slices.Clone(whole)
			swapped[n-2], swapped[n-1] = swapped[n-1], swapped[n-2]
			if at := play(swapped); at != n+1 {
				t.Errorf("with lines %d and %d swapped the book is lost at %d", n, n+1, at)
			}
		}
	}
}

func TestStreamRecorded_near(t *testing.T) {
	p := subscribed(t, "NEAR-USDT")
	all := lines(t, "ws_books_near-usdt_2025-12.jsonl")
	p.want(p.say(all[0]), "snapshot NEAR-USDT #9690930615 b1.782x2173.46443964 b1.781x14620.34390321 b1.32x541.81794985 "+
		"a1.783x411.15719291 a1.784x5842.06737585 a2.194x1.02075576 limit 400 window true")
	p.want(p.say(all[1]), "update NEAR-USDT #9690930617 b1.781x14694.07509503 b1.78x12102.991384")
}

// TestStreamRecorded_best: of all channels only those that were subscribed to say something.
func TestStreamRecorded_best(t *testing.T) {
	p := newPlayer(t)
	p.subscribe(bests("LTC-USDC", "BTC-USDT")...)
	f := func(name string, want ...string) {
		t.Helper()
		var got []string
		for _, l := range lines(t, name) {
			got = append(got, p.say(l)...)
		}
		p.want(got, want...)
	}
	f("ws_misc_2025-12.jsonl", "top LTC-USDC best #378617009 b83.8x11.93317 a83.81x11.93175")
	f("ws_bbo_books5_tickers_2022.jsonl", "top BTC-USDT best b31774.6x0.3392211 a31774.7x0.14368878")
	f("ws_market_btc-usdt_2026-08.jsonl")
}

func TestStreamRecorded_events(t *testing.T) {
	p := newPlayer(t)
	p.subscribe(append(books("BTC-USD"), bests("BTC-USD")...)...)
	p.subscribe(books("ETH-USDT")...)
	var got []string
	for _, l := range lines(t, "ws_control_events.jsonl") {
		got = append(got, p.say(l)...)
	}
	p.want(got, "accepted BTC-USD best", "accepted BTC-USD", "retiring")
	// The errors name nothing: that of the last one, a limit, is what the book without an answer gets.
	p.want(p.after(11*time.Second), "lost ETH-USDT rate_limited 60014: resubscribe", "wanted BTC-USD")
}

// TestStreamRecorded_everyCut: a message that breaks off anywhere is a lost book, or nothing, and never a wrong one.
func TestStreamRecorded_everyCut(t *testing.T) {
	v, _ := newVenue(t, fixtures())
	raw := []byte(lines(t, "ws_books_near-usdt_2025-12.jsonl")[1])
	for i := range raw {
		conn := okx.StreamOver(v, newLink())
		if err := conn.Subscribe(t.Context(), books("NEAR-USDT")); err != nil {
			t.Fatal(err)
		}
		conn.Decode([]byte(lines(t, "ws_books_near-usdt_2025-12.jsonl")[0]), began)
		events := conn.Decode(raw[:i], began)
		if len(events) != 1 || events[0].Kind != market.StreamLost {
			t.Fatalf("cut at %d: %v", i, texts(events))
		}
		named := i > bytes.Index(raw, []byte("}"))
		if (events[0].Symbol == "NEAR-USDT") != named || (events[0].Remedy == market.RemedyResubscribe) != named {
			t.Errorf("cut at %d: %v", i, texts(events))
		}
	}
}
