package binance_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"exchange-gateway/internal/exchange/binance"
	"exchange-gateway/internal/market"
)

// wire stands for a connection: it keeps what is sent, and fails when it is told to.
type wire struct {
	sent   []string
	err    error
	during func() // called within Send
}

func (w *wire) Read(context.Context) ([]byte, error) { return nil, errors.New("nothing is read here") }
func (w *wire) LastFrame() time.Time                 { return time.Time{} }
func (w *wire) LastByte() time.Time                  { return time.Time{} }
func (w *wire) Ping() bool                           { return true }
func (w *wire) Close()                               {}

func (w *wire) Send(_ context.Context, text []byte) error {
	if w.during != nil {
		w.during()
	}
	if w.err != nil {
		return w.err
	}
	w.sent = append(w.sent, string(text))
	return nil
}

// line is a stream on a wire, with a clock that only its test moves.
type line struct {
	market.StreamConn
	*wire
	t   *testing.T
	now time.Time
}

func listing(symbol string) market.Listing {
	return market.Listing{Exchange: binance.ID, Symbol: symbol, Status: market.TradingActive}
}

func subsOf(c market.StreamChannel, symbols ...string) []market.StreamSub {
	var subs []market.StreamSub
	for _, s := range symbols {
		subs = append(subs, market.StreamSub{Listing: listing(s), Channel: c})
	}
	return subs
}

// newLine is a stream on which the books of the symbols are subscribed.
func newLine(t *testing.T, symbols ...string) *line {
	t.Helper()
	w := new(wire)
	l := &line{StreamConn: binance.StreamOn(w), wire: w, t: t, now: time.Date(2026, 11, 29, 2, 0, 0, 0, time.UTC)}
	if len(symbols) > 0 {
		l.subscribe(market.StreamBook, symbols...)
	}
	return l
}

func (l *line) Close()               { l.StreamConn.Close() }
func (l *line) LastFrame() time.Time { return l.StreamConn.LastFrame() }
func (l *line) LastByte() time.Time  { return l.StreamConn.LastByte() }
func (l *line) Ping() bool           { return l.StreamConn.Ping() }
func (l *line) Read(ctx context.Context) ([]byte, error) {
	return l.StreamConn.Read(ctx)
}

func (l *line) subscribe(c market.StreamChannel, symbols ...string) {
	l.t.Helper()
	if err := l.Subscribe(l.t.Context(), subsOf(c, symbols...)); err != nil {
		l.t.Fatal(err)
	}
}

// hears checks what the messages come to, together.
func (l *line) hears(want string, messages ...string) {
	l.t.Helper()
	var got []string
	for _, m := range messages {
		if s := told(l.Decode([]byte(m), l.now)); s != "" {
			got = append(got, s)
		}
	}
	if s := strings.Join(got, "; "); s != want {
		l.t.Errorf("%.300s:\n got %s\nwant %s", messages, s, want)
	}
}

// loads checks what a snapshot comes to.
func (l *line) loads(want, symbol string, id int64, bids, asks string) {
	l.t.Helper()
	if got := told(l.Load(restBook(l.t, symbol, id, bids, asks))); got != want {
		l.t.Errorf("snapshot %d:\n got %s\nwant %s", id, got, want)
	}
}

// ticks lets time pass and checks what is noticed.
func (l *line) ticks(want string, d time.Duration) {
	l.t.Helper()
	l.now = l.now.Add(d)
	if got := told(l.Tick(l.now)); got != want {
		l.t.Errorf("tick after %v:\n got %s\nwant %s", d, got, want)
	}
}

var askedAt = time.Date(2026, 11, 29, 1, 59, 59, 0, time.UTC)

func restBook(t *testing.T, symbol string, id int64, bids, asks string) *market.OrderBook {
	t.Helper()
	levels, err := market.NewLevels(levelsOf(bids), levelsOf(asks))
	if err != nil {
		t.Fatal(err)
	}
	return &market.OrderBook{
		Exchange: binance.ID, Symbol: symbol, Levels: levels, Sequence: market.SequenceOf(id), ConfirmedAt: askedAt, Depth: 1000,
	}
}

// levelsOf reads "4x431 5x1".
func levelsOf(text string) []market.Level {
	var side []market.Level
	for _, f := range strings.Fields(text) {
		price, size, _ := strings.Cut(f, "x")
		side = append(side, market.Level{Price: market.MustNumber(price), Size: market.MustNumber(size)})
	}
	return side
}

// wireLevels writes "4x431 5x1" as it comes on the wire.
func wireLevels(text string) string {
	parts := make([]string, 0, 4)
	for _, l := range levelsOf(text) {
		parts = append(parts, fmt.Sprintf(`["%v","%v"]`, l.Price, l.Size))
	}
	return "[" + strings.Join(parts, ",") + "]"
}

// change is an event of a book as the combined stream sends it.
func change(symbol string, first, last int64, bids, asks string) string {
	return fmt.Sprintf(`{"stream":"%s@depth@100ms","data":%s}`, strings.ToLower(symbol), bareChange(symbol, first, last, bids, asks))
}

func bareChange(symbol string, first, last int64, bids, asks string) string {
	return fmt.Sprintf(`{"e":"depthUpdate","E":1622363903670,"s":"%s","U":%d,"u":%d,"b":%s,"a":%s}`,
		symbol, first, last, wireLevels(bids), wireLevels(asks))
}

// told writes events down: kind, symbol, sequence, levels, remedy and kind of error, as far as each has them.
func told(events []market.StreamEvent) string {
	kinds := [...]string{"snapshot", "update", "vouch", "top", "accepted", "refused", "wanted", "lost", "retiring"}
	remedies := [...]string{"snapshot", "resubscribe", "reconnect"}
	var all []string
	for _, e := range events {
		words := []string{kinds[e.Kind]}
		if e.Symbol != "" {
			words = append(words, e.Symbol)
		}
		if e.Sequence.Known {
			words = append(words, fmt.Sprint(e.Sequence.Value), side(e.Bids)+"|"+side(e.Asks))
		}
		if e.Channel == market.StreamBest {
			words = append(words, "best")
		}
		if e.Kind == market.StreamLost {
			words = append(words, "by "+remedies[e.Remedy])
		}
		if e.Err != nil {
			words = append(words, market.KindOf(e.Err).String())
		}
		all = append(all, strings.Join(words, " "))
	}
	return strings.Join(all, "; ")
}

// replica is a book kept from events, with nothing but maps and decimals. It fails on what no procedure may tell.
type replica struct {
	bids, asks map[string]market.Level
	id         int64
	synced     bool
	wanted     bool
	lost       int
	applied    int
}

func (r *replica) apply(t testing.TB, e market.StreamEvent) {
	t.Helper()
	// The others change no levels.
	//exhaustive:ignore
	switch e.Kind {
	case market.StreamSnapshot:
		if e.Window || e.ConfirmedAt.IsZero() || e.Limit == 0 || !e.Sequence.Known {
			t.Fatalf("snapshot of %s: window %t, confirmed at %v, limit %d, sequence %v", e.Symbol, e.Window, e.ConfirmedAt, e.Limit, e.Sequence)
		}
		r.bids, r.asks = make(map[string]market.Level), make(map[string]market.Level)
		r.synced, r.wanted = true, false
	case market.StreamUpdate:
		if !r.synced || e.Sequence.Value <= r.id {
			t.Fatalf("update %d of %s over %d, synced %t", e.Sequence.Value, e.Symbol, r.id, r.synced)
		}
		r.applied++
	case market.StreamLost:
		if e.Channel == market.StreamBest {
			return
		}
		r.synced = false
		r.lost++
		return
	case market.StreamWanted:
		r.wanted = true
		return
	default:
		return
	}
	r.id = e.Sequence.Value
	set(r.bids, e.Bids)
	set(r.asks, e.Asks)
}

func set(side map[string]market.Level, levels []market.Level) {
	for _, l := range levels {
		key := fixed(l.Price)
		if l.Size.IsZero() {
			delete(side, key)
		} else {
			side[key] = l
		}
	}
}

// levels are the sides in order.
func (r *replica) levels(t testing.TB) *market.Levels {
	t.Helper()
	values := func(side map[string]market.Level) []market.Level {
		all := make([]market.Level, 0, len(side))
		for _, l := range side {
			all = append(all, l)
		}
		slices.SortFunc(all, func(a, b market.Level) int { return a.Price.Cmp(b.Price) })
		return all
	}
	levels, err := market.NewLevels(values(r.bids), values(r.asks))
	if err != nil {
		t.Fatal(err)
	}
	return levels
}

// sentRequest is a message of ours.
type sentRequest struct {
	Method string   `json:"method"`
	Params []string `json:"params"`
	ID     int64    `json:"id"`
}

func (l *line) requests() []sentRequest {
	l.t.Helper()
	var all []sentRequest
	for _, text := range l.sent {
		var r sentRequest
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			l.t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}
