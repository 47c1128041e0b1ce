package okx_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"exchange-gateway/internal/exchange/okx"
	"exchange-gateway/internal/market"
)

// follower checks what holds of the events of any stream: changes of a book only between its snapshot and its loss, and
// every error a good one.
type follower struct {
	t    *testing.T
	held map[string]bool // symbols with a book
	gone map[string]bool // refused: nothing may come of them
}

func (f *follower) take(events []market.StreamEvent) (wanted []string) {
	f.t.Helper()
	for _, e := range events {
		f.one(e)
		if e.Kind == market.StreamWanted {
			wanted = append(wanted, e.Symbol)
		}
	}
	return wanted
}

func (f *follower) one(e market.StreamEvent) {
	f.t.Helper()
	bad := func(why string) { f.t.Helper(); f.t.Fatalf("%s: %s", why, texts([]market.StreamEvent{e})[0]) }
	fails := e.Kind == market.StreamLost || e.Kind == market.StreamRefused
	switch {
	case fails != (e.Err != nil):
		bad("an event with an error and without a failure, or the other way round")
	case fails:
		valid(f.t, e.Err)
	}
	if e.Symbol != "BTC-USDT" && e.Symbol != "ETH-USDT" && (e.Symbol != "" || e.Kind != market.StreamLost && e.Kind != market.StreamRetiring) {
		bad("of no book that was asked for")
	}
	for _, l := range append(slices.Clone(e.Bids), e.Asks...) {
		if l.Price.Sign() <= 0 || l.Size.Sign() < 0 {
			bad("an absurd level")
		}
	}
	if e.Sequence.Value < 0 || !utf8.ValidString(e.Symbol) {
		bad("an absurd sequence or name")
	}
	book := e.Channel == market.StreamBook
	if f.gone[e.Symbol] && book && e.Symbol != "" {
		bad("of a book that was refused")
	}
	switch e.Kind {
	case market.StreamSnapshot:
		if f.held[e.Symbol] = true; e.Limit <= 0 {
			bad("no limit")
		}
	case market.StreamUpdate, market.StreamVouch:
		if !f.held[e.Symbol] {
			bad("of a book that is not there")
		}
	case market.StreamLost:
		if e.Symbol == "" {
			clear(f.held)
		} else if book {
			delete(f.held, e.Symbol)
		}
	case market.StreamRefused:
		f.gone[e.Symbol] = f.gone[e.Symbol] || book
	case market.StreamWanted:
		if f.held[e.Symbol] {
			bad("wanted though it is there")
		}
	case market.StreamTop, market.StreamAccepted, market.StreamRetiring:
	}
}

// FuzzStream plays any lines as messages. A byte moves the clock by seconds, and a book that is wanted comes by REST.
func FuzzStream(f *testing.F) {
	join := func(all ...string) []byte { return []byte(strings.Join(all, "\n")) }
	for _, s := range [][]byte{
		join(ack("r1", "books", "BTC-USDT"), snap("BTC-USDT", 10, "99 1,98 2", "101 1"), diff("BTC-USDT", 10, 12, "99 0", ""), diff("BTC-USDT", 12, 12, "", ""), diff("BTC-USDT", 12, 0, "97 1", ""), diff("BTC-USDT", 9, 12, "", "")),
		join(ack("r1", "books", "BTC-USDT"), diff("BTC-USDT", 4, 9, "99 1", ""), diff("BTC-USDT", 9, 11, "98 1", ""), diff("BTC-USDT", 11, 3, "98 1", "")),
		join(ack("r1", "books", "ETH-USDT"), "pong", "", "", diff("ETH-USDT", 5, 6, "99 1", ""), diff("ETH-USDT", 8, 9, "99 1", "")),
		join(ack("r1", "bbo-tbt", "ETH-USDT"), `{"arg":{"channel":"bbo-tbt","instId":"ETH-USDT"},"data":[{"asks":[["83.81","11.93175","0","1"]],"bids":[],"ts":"1765201257149","seqId":378617009}]}`),
		join(errorEvent("r1", "60018", "channel:books, instId:ETH-USDT doesn't exist."), snap("ETH-USDT", 1, "1 1", ""), errorEvent("", "60014", "Requests too frequent")),
		join(`{"event":"notice","code":"64008"}`, `{"data":[{"bids":[],"asks":[]}]}`, bookMessage("BTC-USDT", "snapshot", "", "1 1", "2 1"), bookMessage("BTC-USDT", "update", "", "1 0", "")),
		join(`{"arg":{"channel":"books","instId":"BTC-USDT"},"action":"snapshot","data":[{"asks":[["1e-30","99999999999999999999"]],"bids":[["-1","0"]],"ts":"x"}]}`),
	} {
		f.Add(s, byte(6), byte(3))
	}
	v, _ := newVenue(f, fixtures())
	levels, err := market.NewLevels([]market.Level{{Price: market.MustNumber("1"), Size: market.MustNumber("1")}}, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, raw []byte, rest, seconds byte) {
		conn := okx.StreamOver(v, newLink())
		if err := conn.Subscribe(t.Context(), append(books("BTC-USDT", "ETH-USDT"), bests("BTC-USDT", "ETH-USDT")...)); err != nil {
			t.Fatal(err)
		}
		follow := &follower{t: t, held: make(map[string]bool), gone: make(map[string]bool)}
		now := time.Now()
		for line := range bytes.SplitSeq(raw, []byte("\n")) {
			sent := bytes.Clone(line)
			wanted := follow.take(conn.Decode(line, now))
			if !bytes.Equal(sent, line) {
				t.Fatal("the message was changed")
			}
			now = now.Add(time.Duration(seconds) * time.Second)
			wanted = append(wanted, follow.take(conn.Tick(now))...)
			for _, symbol := range wanted {
				follow.take(conn.Load(&market.OrderBook{Symbol: symbol, Levels: levels, Sequence: market.SequenceOf(int64(rest)), ConfirmedAt: now, Depth: 400}))
			}
		}
		follow.take(conn.Distrust("BTC-USDT", market.ErrSuspect))
		if follow.held["BTC-USDT"] {
			t.Fatal("a book that is distrusted stays")
		}
	})
}
