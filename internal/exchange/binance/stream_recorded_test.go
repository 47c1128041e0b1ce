package binance_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"exchange-gateway/internal/exchange/exchangetest"
	"exchange-gateway/internal/market"
)

// recordedState is a book as it is expected at one moment.
type recordedState struct {
	ID      int64     `json:"u"`
	BestBid [2]string `json:"best_bid"`
	BestAsk [2]string `json:"best_ask"`
}

// recordedSymbol is what is expected of one symbol of a recorded stream.
type recordedSymbol struct {
	Symbol   string          `json:"symbol"`
	Snapshot json.RawMessage `json:"snapshot"` // the name of a file, or the answer itself
	Events   int             `json:"depth_events"`
	Applied  int             `json:"applied"`
	Final    struct {
		ID      int64     `json:"last_update_id"`
		Bids    int       `json:"bids"`
		Asks    int       `json:"asks"`
		BestBid [2]string `json:"best_bid"`
		BestAsk [2]string `json:"best_ask"`
		BidSum  string    `json:"bid_qty_sum"`
		AskSum  string    `json:"ask_qty_sum"`
		Digest  string    `json:"sha256"`
	} `json:"final"`
	Checkpoints map[string]recordedState `json:"checkpoints_by_event_index"`
	TopChecks   int                      `json:"bookticker_cross_checks_ok"`
	FirstTime   int64                    `json:"first_E_us"`
	LastTime    int64                    `json:"last_E_us"`
}

// snapshot is the recorded snapshot, read by the adapter itself.
func (w recordedSymbol) snapshot(t *testing.T, symbol string) *market.OrderBook {
	t.Helper()
	text := w.Snapshot
	var name string
	if json.Unmarshal(w.Snapshot, &name) == nil {
		b, err := os.ReadFile(filepath.Join(exchangetest.Recorded(t, "binance"), filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		text = b
	}
	v, _ := venueOn(t, body(string(text)))
	book, err := v.OrderBook(t.Context(), listing(symbol), 1000)
	if err != nil {
		t.Fatal(err)
	}
	return book
}

// replay drives a recorded stream through the procedure.
type replay struct {
	*line
	want      map[string]recordedSymbol
	books     map[string]*replica
	compares  bool // with the best prices of their own channel
	late      int  // how many changes pass before a snapshot that was asked for comes
	waited    map[string]int
	events    map[string]int                // changes of each symbol
	tops      map[string]map[int64][]string // best prices by their ids, from their own channel
	bookTops  map[string]map[int64]string   // and those of the book
	snapshots map[string]*market.OrderBook  // as recorded
	times     map[string][2]int64           // of the first and the last update, in microseconds
}

func newReplay(t *testing.T, want map[string]recordedSymbol) *replay {
	t.Helper()
	r := &replay{
		want: want, books: map[string]*replica{}, waited: map[string]int{}, events: map[string]int{},
		tops: map[string]map[int64][]string{}, bookTops: map[string]map[int64]string{}, snapshots: map[string]*market.OrderBook{},
		times: map[string][2]int64{},
	}
	symbols := slices.Sorted(maps.Keys(want))
	r.line = newLine(t, symbols...)
	r.subscribe(market.StreamBest, symbols...)
	for _, s := range symbols {
		r.books[s] = &replica{}
		r.tops[s], r.bookTops[s] = map[int64][]string{}, map[int64]string{}
		r.snapshots[s] = want[s].snapshot(t, s)
	}
	return r
}

func best(t *testing.T, b *replica) string {
	t.Helper()
	levels := b.levels(t)
	return tops(levels.Bids(), levels.Asks())
}

func tops(bids, asks []market.Level) string {
	text := func(side []market.Level) string {
		if len(side) == 0 {
			return "none"
		}
		return fmt.Sprint(levelText(side[0]))
	}
	return text(bids) + text(asks)
}

// run plays messages and follows what they come to.
func (r *replay) run(messages []string) {
	r.t.Helper()
	for _, m := range messages {
		r.follow(r.Decode([]byte(m), r.now))
		var head struct {
			Data struct {
				Event  string `json:"e"`
				Time   int64  `json:"E"`
				Symbol string `json:"s"`
			} `json:"data"`
		}
		if err := json.Unmarshal([]byte(m), &head); err != nil {
			r.t.Fatal(err)
		}
		if head.Data.Event != "depthUpdate" {
			continue
		}
		symbol := head.Data.Symbol
		b := r.books[symbol]
		if b.wanted {
			if r.waited[symbol]++; r.waited[symbol] > r.late || r.events[symbol]+1 == r.want[symbol].Events {
				r.follow(r.Load(r.snapshots[symbol]))
			}
		}
		if b.synced && r.compares {
			r.bookTops[symbol][b.id] = best(r.t, b)
		}
		if c, ok := r.want[symbol].Checkpoints[strconv.Itoa(r.events[symbol])]; ok && r.late == 0 {
			same(r.t, symbol+" checkpoint", recordedTop(r.t, b), c)
		}
		r.events[symbol]++
	}
}

func recordedTop(t *testing.T, b *replica) recordedState {
	t.Helper()
	levels := b.levels(t)
	return recordedState{ID: b.id, BestBid: levelText(levels.Bids()[0]), BestAsk: levelText(levels.Asks()[0])}
}

func (r *replay) follow(events []market.StreamEvent) {
	r.t.Helper()
	for _, e := range events {
		if e.Kind == market.StreamTop {
			r.tops[e.Symbol][e.Sequence.Value] = append(r.tops[e.Symbol][e.Sequence.Value], tops(e.Bids, e.Asks))
			continue
		}
		r.books[e.Symbol].apply(r.t, e)
		if e.Kind == market.StreamUpdate {
			span := r.times[e.Symbol]
			if span[1] = e.ExchangeTime.UnixMicro(); span[0] == 0 {
				span[0] = span[1]
			}
			r.times[e.Symbol] = span
		}
	}
}

// ends checks the books at the end of the stream.
func (r *replay) ends() {
	r.t.Helper()
	for symbol, w := range r.want {
		b := r.books[symbol]
		if !b.synced || b.lost != 0 {
			r.t.Fatalf("%s: synced %t, lost %d times", symbol, b.synced, b.lost)
		}
		levels := b.levels(r.t)
		same(r.t, symbol+" applied", b.applied, w.Applied)
		same(r.t, symbol+" id", b.id, w.Final.ID)
		same(r.t, symbol+" bids", len(levels.Bids()), w.Final.Bids)
		same(r.t, symbol+" asks", len(levels.Asks()), w.Final.Asks)
		same(r.t, symbol+" best bid", levelText(levels.Bids()[0]), w.Final.BestBid)
		same(r.t, symbol+" best ask", levelText(levels.Asks()[0]), w.Final.BestAsk)
		if w.Final.BidSum != "" {
			same(r.t, symbol+" sum of bids", sum(levels.Bids()), w.Final.BidSum)
			same(r.t, symbol+" sum of asks", sum(levels.Asks()), w.Final.AskSum)
		}
		if w.FirstTime != 0 {
			same(r.t, symbol+" times", r.times[symbol], [2]int64{w.FirstTime, w.LastTime})
		}
		same(r.t, symbol+" digest", digest(&market.OrderBook{Levels: levels}), w.Final.Digest)
	}
}

func lines(b []byte) []string { return strings.Split(strings.TrimSpace(string(b)), "\n") }

// recordedSession is a combined stream of several symbols and channels with a snapshot of each.
func recordedSession(t *testing.T, b []byte, raw json.RawMessage) {
	want := expect[struct {
		Messages int                       `json:"messages"`
		Symbols  map[string]recordedSymbol `json:"symbols"`
	}](t, raw)
	same(t, "messages", len(lines(b)), want.Messages)
	t.Run("as it came", func(t *testing.T) {
		r := newReplay(t, want.Symbols)
		r.compares = true
		r.run(lines(b))
		r.ends()
		for symbol, w := range want.Symbols {
			same(t, symbol+" changes", r.events[symbol], w.Events)
			checks := 0
			for id, seen := range r.tops[symbol] {
				book, ok := r.bookTops[symbol][id]
				for _, top := range seen {
					if ok {
						checks++
						same(t, fmt.Sprint(symbol, " best prices at ", id), top, book)
					}
				}
			}
			same(t, symbol+" best prices compared", checks, w.TopChecks)
		}
	})
	recordedFaults(t, lines(b), want.Symbols)
}

// recordedDiffs is the stream of the changes of one symbol.
func recordedDiffs(t *testing.T, b []byte, raw json.RawMessage) {
	want := expect[recordedSymbol](t, raw)
	symbols := map[string]recordedSymbol{want.Symbol: want}
	t.Run("as it came", func(t *testing.T) {
		r := newReplay(t, symbols)
		r.run(lines(b))
		r.ends()
		same(t, "changes", r.events[want.Symbol], want.Events)
	})
	recordedFaults(t, lines(b), symbols)
}

// recordedFaults: the same stream with faults comes to the same books, or to a book that is given up, never to another book.
func recordedFaults(t *testing.T, messages []string, want map[string]recordedSymbol) {
	for _, late := range []int{1, 7, 100_000} {
		t.Run(fmt.Sprintf("snapshots %d changes late", late), func(t *testing.T) {
			r := newReplay(t, want)
			r.late = late
			r.run(messages)
			r.ends()
		})
	}
	t.Run("each message twice", func(t *testing.T) {
		r := newReplay(t, want)
		r.late = 3
		for _, m := range messages {
			r.run([]string{m})
			r.follow(r.Decode([]byte(m), r.now))
		}
		r.ends()
	})
	for symbol, w := range want {
		if w.Events < 10 {
			continue
		}
		t.Run("one change of "+symbol+" missing", func(t *testing.T) {
			r := newReplay(t, want)
			passed := 0
			for i, m := range messages {
				if strings.Contains(m, "depthUpdate") && strings.Contains(m, symbol) {
					if passed++; passed == w.Events/2 {
						r.run(messages[:i])
						r.late = 100_000 // no snapshot is recorded for what follows
						for _, m := range messages[i+1:] {
							r.follow(r.Decode([]byte(m), r.now))
						}
						break
					}
				}
			}
			for s, b := range r.books {
				if (s == symbol) == b.synced || b.lost != btoi(s == symbol) {
					t.Errorf("%s: synced %t, lost %d times", s, b.synced, b.lost)
				}
			}
			same(t, "the old snapshot", told(r.Load(r.snapshots[symbol])), "wanted "+symbol)
		})
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// recordedMisc: messages of kinds that are used and of others, alone.
func recordedMisc(t *testing.T, b []byte, raw json.RawMessage) {
	want := expect[struct {
		Lines int `json:"lines"`
	}](t, raw)
	same(t, "lines", len(lines(b)), want.Lines)
	for i, m := range lines(b) {
		l := newLine(t, "BTCUSDT", "ETHUSDT", "ETHBTC")
		l.subscribe(market.StreamBest, "BTCUSDT", "ETHUSDT", "ETHBTC")
		switch i + 1 {
		case 2:
			l.hears("wanted BTCUSDT", m)
			l.loads("snapshot BTCUSDT 11294093709 |; update BTCUSDT 11294093726 35743.98000000x0.00000000 35743.87000000x0.00001500|"+
				"35743.88000000x0.24000000 35743.97000000x0.00000000", "BTCUSDT", 11294093709, "", "")
		case 7: // without the name of a stream, its keys in alphabetical order
			l.hears("wanted BTCUSDT", m)
			events := l.Load(restBook(t, "BTCUSDT", 7145637265, "", ""))
			if last := events[len(events)-1]; last.Sequence.Value != 7145637297 || len(last.Bids) != 9 || len(last.Asks) != 13 {
				t.Errorf("told %s", told(events))
			}
		default: // of channels that are not used: even that of the best prices of all symbols
			l.hears("", m)
		}
	}
}

// recordedControl: acknowledgements, refusals and announcements, each heard by a connection that asked under its id.
func recordedControl(t *testing.T, b []byte, raw json.RawMessage) {
	want := expect[struct {
		Lines int `json:"lines"`
	}](t, raw)
	same(t, "lines", len(lines(b)), want.Lines)
	var got []string
	for _, text := range lines(b) {
		var w struct{ Dir, Text string }
		if err := json.Unmarshal([]byte(text), &w); err != nil {
			t.Fatal(err)
		}
		if w.Dir != "server" {
			continue
		}
		l := newLine(t, ab)
		l.subscribe(market.StreamBook, "CD")
		s := told(l.Decode([]byte(w.Text), l.now))
		l.hears("wanted AB", change(ab, 1, 1, "", "")) // whatever it was, events go on
		got = append(got, s)
	}
	same(t, "told", strings.Join(got, ","), "accepted AB,,,accepted CD,,refused CD invalid,,,retiring,retiring")
}
