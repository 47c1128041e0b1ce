package okx_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"exchange-gateway/internal/exchange/okx"
	"exchange-gateway/internal/market"
)

// fakeLink is a socket that notes what is sent and never says anything by itself.
type fakeLink struct {
	sent   []string
	fail   error // of Send
	closed int
	ended  chan struct{}
}

func newLink() *fakeLink { return &fakeLink{ended: make(chan struct{})} }

func (l *fakeLink) Read(ctx context.Context) ([]byte, error) {
	select {
	case <-l.ended:
		return nil, &market.Error{Exchange: "okx", Op: market.OpStream, Kind: market.KindUnavailable}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *fakeLink) Send(_ context.Context, text []byte) error {
	l.sent = append(l.sent, string(text))
	return l.fail
}

func (l *fakeLink) LastFrame() time.Time { return began }
func (l *fakeLink) LastByte() time.Time  { return began }
func (l *fakeLink) Ping() bool           { return true }
func (l *fakeLink) Close()               { l.closed++ }

// began is when the tests of the procedure begin.
var began = time.UnixMilli(1796000000000)

// player plays messages to the procedure at a clock of its own and writes down what they came to.
type player struct {
	t    testing.TB
	link *fakeLink
	conn market.StreamConn
	now  time.Time
}

func newPlayer(t testing.TB) *player {
	v, _ := newVenue(t, fixtures())
	link := newLink()
	return &player{t: t, link: link, conn: okx.StreamOver(v, link), now: time.Now()}
}

func listed(symbol string) market.Listing {
	base, quote, _ := strings.Cut(symbol, "-")
	return market.Listing{Exchange: "okx", Pair: market.Pair{Base: base, Quote: quote}, Symbol: symbol}
}

func books(symbols ...string) []market.StreamSub {
	subs := make([]market.StreamSub, len(symbols))
	for i, s := range symbols {
		subs[i] = market.StreamSub{Listing: listed(s)}
	}
	return subs
}

func bests(symbols ...string) []market.StreamSub {
	subs := books(symbols...)
	for i := range subs {
		subs[i].Channel = market.StreamBest
	}
	return subs
}

// subscribe asks for books and returns the id that the request had.
func (p *player) subscribe(subs ...market.StreamSub) string {
	p.t.Helper()
	if err := p.conn.Subscribe(p.t.Context(), subs); err != nil {
		p.t.Fatal(err)
	}
	return p.lastID()
}

func (p *player) unsubscribe(subs ...market.StreamSub) {
	p.t.Helper()
	if err := p.conn.Unsubscribe(p.t.Context(), subs); err != nil {
		p.t.Fatal(err)
	}
}

func (p *player) lastID() string {
	p.t.Helper()
	var r struct{ ID string }
	if err := json.Unmarshal([]byte(p.link.sent[len(p.link.sent)-1]), &r); err != nil {
		p.t.Fatal(err)
	}
	return r.ID
}

// subscribed is a player with accepted subscriptions of books.
func subscribed(t testing.TB, symbols ...string) *player {
	t.Helper()
	p := newPlayer(t)
	id := p.subscribe(books(symbols...)...)
	for _, s := range symbols {
		p.want(p.say(ack(id, "books", s)), "accepted "+s)
	}
	return p
}

// say plays one message.
func (p *player) say(raw string) []string { return texts(p.conn.Decode([]byte(raw), p.now)) }

// after moves the clock and lets the procedure notice. Its events are of several books, in no order, and are sorted here.
func (p *player) after(d time.Duration) []string {
	p.now = p.now.Add(d)
	all := texts(p.conn.Tick(p.now))
	slices.Sort(all)
	return all
}

// load hands a REST book over.
func (p *player) load(symbol string, depth int, seq market.Sequence, at time.Time) []string {
	p.t.Helper()
	one := market.MustNumber("1")
	levels, err := market.NewLevels([]market.Level{{Price: market.MustNumber("99"), Size: one}}, []market.Level{{Price: market.MustNumber("101"), Size: one}})
	if err != nil {
		p.t.Fatal(err)
	}
	return texts(p.conn.Load(&market.OrderBook{
		Exchange: "okx", Symbol: symbol, Levels: levels, Sequence: seq, ExchangeTime: at, ConfirmedAt: began, Depth: depth,
	}))
}

func (p *player) want(got []string, want ...string) {
	p.t.Helper()
	if !slices.Equal(got, want) {
		p.t.Errorf("got:\n\t%s\nwant:\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// snap and diff are messages of the books channel; levels are "price size" separated by commas.
func snap(symbol string, seq int64, bids, asks string) string {
	return bookMessage(symbol, "snapshot", fmt.Sprintf(`,"seqId":%d,"prevSeqId":-1`, seq), bids, asks)
}

func diff(symbol string, prev, seq int64, bids, asks string) string {
	return bookMessage(symbol, "update", fmt.Sprintf(`,"seqId":%d,"prevSeqId":%d`, seq, prev), bids, asks)
}

func bookMessage(symbol, action, numbers, bids, asks string) string {
	return fmt.Sprintf(`{"arg":{"channel":"books","instId":%q},"action":%q,"data":[{"asks":[%s],"bids":[%s],"ts":"1796000000123","checksum":0%s}]}`,
		symbol, action, levelsJSON(asks), levelsJSON(bids), numbers)
}

func levelsJSON(s string) string {
	if s == "" {
		return ""
	}
	var out []string
	for l := range strings.SplitSeq(s, ",") {
		price, size, _ := strings.Cut(l, " ")
		out = append(out, fmt.Sprintf(`[%q,%q,"0","1"]`, price, size))
	}
	return strings.Join(out, ",")
}

func ack(id, channel, symbol string) string {
	return fmt.Sprintf(`{"id":%q,"event":"subscribe","arg":{"channel":%q,"instId":%q},"connId":"a4d3ae55"}`, id, channel, symbol)
}

func errorEvent(id, code, msg string) string {
	if id != "" {
		id = fmt.Sprintf(`"id":%q,`, id)
	}
	return fmt.Sprintf(`{%s"event":"error","code":%q,"msg":%q,"connId":"a4d3ae55"}`, id, code, msg)
}

var kindNames = map[market.StreamEventKind]string{
	market.StreamSnapshot: "snapshot", market.StreamUpdate: "update", market.StreamVouch: "vouch", market.StreamTop: "top",
	market.StreamAccepted: "accepted", market.StreamRefused: "refused", market.StreamWanted: "wanted", market.StreamLost: "lost",
	market.StreamRetiring: "retiring",
}

var remedyNames = map[market.StreamRemedy]string{
	market.RemedySnapshot: "snapshot", market.RemedyResubscribe: "resubscribe", market.RemedyReconnect: "reconnect",
}

// texts writes events down.
func texts(events []market.StreamEvent) []string {
	var all []string
	for _, e := range events {
		s := kindNames[e.Kind]
		if e.Symbol != "" {
			s += " " + e.Symbol
		}
		if e.Channel == market.StreamBest {
			s += " best"
		}
		if e.Sequence.Known {
			s += fmt.Sprintf(" #%d", e.Sequence.Value)
		}
		for _, l := range e.Bids {
			s += fmt.Sprintf(" b%vx%v", l.Price, l.Size)
		}
		for _, l := range e.Asks {
			s += fmt.Sprintf(" a%vx%v", l.Price, l.Size)
		}
		if e.Limit != 0 {
			s += fmt.Sprintf(" limit %d window %t", e.Limit, e.Window)
		}
		if !e.ConfirmedAt.IsZero() {
			s += " earlier"
		}
		if e.Err != nil {
			err, ok := e.Err.(*market.Error)
			if !ok || err.Exchange != "okx" || err.Op != market.OpStream {
				s += fmt.Sprintf(" BAD ERROR %v", e.Err)
			} else {
				s += strings.TrimRight(fmt.Sprintf(" %v %s", err.Kind, err.Code), " ")
			}
		}
		if e.Kind == market.StreamLost {
			s += ": " + remedyNames[e.Remedy]
		}
		all = append(all, s)
	}
	return all
}
