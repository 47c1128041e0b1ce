package coinbase_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"exchange-gateway/internal/exchange/coinbase"
	"exchange-gateway/internal/market"
)

// fakeSocket keeps what is sent and refuses as told.
type fakeSocket struct {
	mu     sync.Mutex
	sent   []string
	refuse error
}

func (s *fakeSocket) Read(ctx context.Context) ([]byte, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (s *fakeSocket) LastFrame() time.Time { return time.Time{} }
func (s *fakeSocket) LastByte() time.Time  { return time.Time{} }
func (s *fakeSocket) Ping() bool           { return true }
func (s *fakeSocket) Close()               {}

func (s *fakeSocket) Send(_ context.Context, text []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuse != nil {
		return s.refuse
	}
	s.sent = append(s.sent, string(text))
	return nil
}

// take returns what was sent since the last call.
func (s *fakeSocket) take() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := strings.Join(s.sent, "\n")
	s.sent = nil
	return all
}

// connection is one under test. It numbers the frames.
type connection struct {
	t      testing.TB
	conn   market.StreamConn
	socket *fakeSocket
	venue  *coinbase.Venue
	door   *fakeCoinbase
	next   int
}

// newStream has subscribed the symbols.
func newStream(t testing.TB, symbols ...string) *connection {
	t.Helper()
	v, f := newVenue(t)
	s := &connection{t: t, socket: &fakeSocket{}, venue: v, door: f}
	s.conn = coinbase.StreamOver(v, s.socket)
	if len(symbols) > 0 {
		s.subscribe(symbols...)
	}
	return s
}

func subs(symbols ...string) (all []market.StreamSub) {
	for _, symbol := range symbols {
		all = append(all, market.StreamSub{Listing: market.Listing{Exchange: "coinbase", Symbol: symbol}})
	}
	return all
}

func (s *connection) subscribe(symbols ...string) {
	s.t.Helper()
	if err := s.conn.Subscribe(s.t.Context(), subs(symbols...)); err != nil {
		s.t.Fatal(err)
	}
}

func (s *connection) unsubscribe(symbols ...string) {
	s.t.Helper()
	if err := s.conn.Unsubscribe(s.t.Context(), subs(symbols...)); err != nil {
		s.t.Fatal(err)
	}
}

// raw decodes a message as it is.
func (s *connection) raw(text string) string {
	return events(s.conn.Decode([]byte(text), time.Now()))
}

// frame decodes the next frame in order.
func (s *connection) frame(channel, list string) string {
	text := envelope(channel, s.next, list)
	s.next++
	return s.raw(text)
}

func (s *connection) ack(symbols ...string) string {
	return s.frame("subscriptions", `{"subscriptions":{"heartbeats":["heartbeats"],"level2":["`+strings.Join(symbols, `","`)+`"]}}`)
}

// tick lets some time pass in which nothing comes but heartbeats, each second.
func (s *connection) tick(after time.Duration) string {
	now := time.Now()
	for d := time.Duration(0); d < after; d += time.Second {
		s.want(s.heartbeat(now.Add(d)))
	}
	return s.stalled(after)
}

func (s *connection) heartbeat(at time.Time) string {
	text := envelope("heartbeats", s.next, `{"current_time":"2026-09-07 23:37:22.674409 +0000 UTC m=+139651.27","heartbeat_counter":139651}`)
	s.next++
	return events(s.conn.Decode([]byte(text), at))
}

// stalled lets some time pass in which nothing comes at all.
func (s *connection) stalled(after time.Duration) string {
	return events(s.conn.Tick(time.Now().Add(after)))
}

// want compares what a message came to.
func (s *connection) want(got string, want ...string) {
	s.t.Helper()
	if w := strings.Join(want, "\n"); got != w {
		s.t.Errorf("got\n%s\nwant\n%s", got, w)
	}
}

func envelope(channel string, sequence int, list string) string {
	return fmt.Sprintf(`{"channel":%q,"timestamp":"2026-09-07T01:57:58.894355Z","sequence_num":%d,"events":[%s]}`, channel, sequence, list)
}

// event is one event of l2_data; the changes are "bid 100.10 2".
func event(kind, product string, changes ...string) string {
	var rows []string
	for _, c := range changes {
		w := strings.Fields(c)
		rows = append(rows, fmt.Sprintf(`{"side":%q,"event_time":"1970-01-01T00:00:00Z","price_level":%q,"new_quantity":%q}`, w[0], w[1], w[2]))
	}
	return fmt.Sprintf(`{"type":%q,"product_id":%q,"updates":[%s]}`, kind, product, strings.Join(rows, ","))
}

var kindNames = map[market.StreamEventKind]string{
	market.StreamSnapshot: "snapshot", market.StreamUpdate: "update", market.StreamVouch: "vouch", market.StreamTop: "top",
	market.StreamAccepted: "accepted", market.StreamRefused: "refused", market.StreamWanted: "wanted", market.StreamLost: "lost",
	market.StreamRetiring: "retiring",
}

var remedyNames = map[market.StreamRemedy]string{
	market.RemedySnapshot: "snapshot", market.RemedyResubscribe: "resubscribe", market.RemedyReconnect: "reconnect",
}

// events is one line for each event.
func events(all []market.StreamEvent) string {
	var lines []string
	for _, e := range all {
		line := kindNames[e.Kind]
		if e.Symbol != "" {
			line += " " + e.Symbol
		}
		// The others have nothing more to show.
		//exhaustive:ignore
		switch e.Kind {
		case market.StreamSnapshot, market.StreamUpdate:
			line += side(e.Bids) + " |" + side(e.Asks)
			if e.Sequence.Known || e.Limit != 0 || e.Window || !e.ConfirmedAt.IsZero() {
				line += " and more than the exchange says"
			}
		case market.StreamLost:
			line += " " + remedyNames[e.Remedy]
		}
		if e.Err != nil {
			x, ok := e.Err.(*market.Error) // exactly this type is promised
			if !ok || x.Exchange != "coinbase" || x.Op != market.OpStream || x.Err == nil {
				line += fmt.Sprintf(" badly formed %#v", e.Err)
			} else {
				line += " " + x.Kind.String()
			}
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func side(levels []market.Level) string {
	var b strings.Builder
	for _, l := range levels {
		b.WriteString(" " + l.Price.String() + "x" + l.Size.String())
	}
	return b.String()
}

// sides is a local book as simple as can be.
type sides struct{ bids, asks []market.Level }

// books are the local books of a connection.
type books map[string]*sides

func (b books) apply(t testing.TB, all []market.StreamEvent) {
	t.Helper()
	for _, e := range all {
		// The others change no levels.
		//exhaustive:ignore
		switch e.Kind {
		case market.StreamSnapshot:
			b[e.Symbol] = &sides{}
			b[e.Symbol].apply(e)
		case market.StreamUpdate:
			if b[e.Symbol] == nil {
				t.Fatalf("%s changed before its snapshot", e.Symbol)
			}
			b[e.Symbol].apply(e)
		case market.StreamLost:
			if e.Symbol == "" {
				clear(b)
			}
			delete(b, e.Symbol)
		}
	}
}

func (s *sides) apply(e market.StreamEvent) {
	for _, l := range e.Bids {
		s.bids = set(s.bids, l, -1)
	}
	for _, l := range e.Asks {
		s.asks = set(s.asks, l, 1)
	}
}

func set(side []market.Level, l market.Level, direction int) []market.Level {
	i, found := slices.BinarySearchFunc(side, l, func(a, b market.Level) int { return direction * a.Price.Cmp(b.Price) })
	switch {
	case found && l.Size.IsZero():
		return slices.Delete(side, i, i+1)
	case found:
		side[i] = l
		return side
	case l.Size.IsZero():
		return side
	}
	return slices.Insert(side, i, l)
}

// digest is the number of levels, the best of each side, and the sums of the sizes.
func (s *sides) digest() string {
	sum := func(side []market.Level) string {
		d := market.Number{}.Decimal()
		for _, l := range side {
			d = d.Add(l.Size.Decimal())
		}
		return d.String()
	}
	top := func(side []market.Level) string {
		if len(side) == 0 {
			return "none"
		}
		return side[0].Price.String() + "x" + side[0].Size.String()
	}
	return fmt.Sprintf("%d/%d %s %s sums %s %s", len(s.bids), len(s.asks), top(s.bids), top(s.asks), sum(s.bids), sum(s.asks))
}
