package binance_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"exchange-gateway/internal/exchange/binance"
	"exchange-gateway/internal/market"
)

func TestStream_requests(t *testing.T) {
	l := newLine(t)
	l.subscribe(market.StreamBook, "BTCUSDT", "ETHUSDT")
	l.subscribe(market.StreamBest, "BTCUSDT")
	if err := l.Unsubscribe(t.Context(), subsOf(market.StreamBook, "ETHUSDT")); err != nil {
		t.Fatal(err)
	}
	same(t, "sent", strings.Join(l.sent, "\n"), `{"method":"SUBSCRIBE","params":["btcusdt@depth@100ms","ethusdt@depth@100ms"],"id":1}
{"method":"SUBSCRIBE","params":["btcusdt@bookTicker"],"id":2}
{"method":"UNSUBSCRIBE","params":["ethusdt@depth@100ms"],"id":3}`)
}

// TestStream_alias: a listing that shows another one's book is streamed under the other's name.
func TestStream_alias(t *testing.T) {
	l := newLine(t)
	alias := market.StreamSub{Listing: market.Listing{Symbol: "OTHER", AliasOf: ab}}
	if err := l.Subscribe(t.Context(), []market.StreamSub{alias}); err != nil {
		t.Fatal(err)
	}
	same(t, "names", fmt.Sprint(l.requests()[0].Params), "[ab@depth@100ms]")
	l.hears("wanted AB", change(ab, 1, 1, "", ""))
}

// TestStream_answers: the forms of an answer. An answer under another id than ours is nobody's.
func TestStream_answers(t *testing.T) {
	const lost = "lost AB by resubscribe invalid; lost CD by resubscribe invalid"
	for text, want := range map[string]string{
		`{"result":null,"id":1}`:    "accepted AB; accepted CD",
		`{"id":1,"result":null}`:    "accepted AB; accepted CD",
		`{"result":[],"id":1}`:      "accepted AB; accepted CD",
		`{"result":null,"id":2}`:    "",
		`{"result":null,"id":"1"}`:  "",
		`{"result":null,"id":null}`: "",
		`{"result":null}`:           "",
		`{"error":{"code":2,"msg":"Invalid request: invalid stream"},"id":1}`:          lost,
		`{"code":2,"msg":"Invalid request: invalid stream","id":1}`:                    lost,
		`{"error":{"code":4,"msg":"Too many subscriptions"},"id":1}`:                   "refused AB rate_limited; refused CD rate_limited",
		`{"code":3,"msg":"Invalid JSON","id":1}`:                                       "refused AB invalid; refused CD invalid",
		`{"error":{"code":2,"msg":"Invalid request"},"id":9}`:                          "",
		`{"code":2,"msg":"Invalid request: missing field method at line 1 column 73"}`: lost, // of the only request that is open
		`{"error":"no object","id":1}`:                                                 "",
		`{"result":null,"id":99999999999999999999}`:                                    "",
		`{"code":"two","msg":"","id":1}`:                                               "",
	} {
		l := newLine(t, ab, "CD")
		l.hears(want, text)
		if want != "" {
			l.hears("", text) // it was answered
		}
		l.hears("wanted AB", change(ab, 1, 1, "", ""))
	}
	l := newLine(t, ab)
	e := asError(t, l.Decode([]byte(`{"error":{"code":2,"msg":"SECRET"},"id":1}`), l.now)[0].Err)
	if !e.OurFault || e.Code != "2" || strings.Contains(e.Error(), "SECRET") {
		t.Errorf("error %v", e)
	}
}

// TestStream_refusedName: one name that the exchange does not accept costs its message, not the other books: the messages get
// smaller until the name stands alone, and larger again after that. A new connection goes on where the last one was.
func TestStream_refusedName(t *testing.T) {
	var symbols []string
	for i := range 200 {
		symbols = append(symbols, fmt.Sprintf("S%dUSDT", i))
	}
	open := binance.StreamsOn()
	var l *line
	connect := func() {
		w := new(wire)
		l = &line{StreamConn: open(w), wire: w, t: t, now: time.Now()}
	}
	seen := 0
	// subscribe sends subscriptions, and returns what was accepted, refused, and to be tried again.
	subscribe := func(symbols []string) (accepted, refused, again []string) {
		seen = len(l.sent)
		l.subscribe(market.StreamBook, symbols...)
		for _, r := range l.requests()[seen:] {
			answer := fmt.Sprintf(`{"result":null,"id":%d}`, r.ID)
			if slices.Contains(r.Params, "s77usdt@depth@100ms") {
				answer = fmt.Sprintf(`{"error":{"code":2,"msg":""},"id":%d}`, r.ID)
			}
			for _, e := range l.Decode([]byte(answer), l.now) {
				// Everything else asks for the message again.
				//exhaustive:ignore
				switch e.Kind {
				case market.StreamAccepted:
					accepted = append(accepted, e.Symbol)
				case market.StreamRefused:
					refused = append(refused, e.Symbol)
				default:
					again = append(again, e.Symbol)
				}
			}
		}
		return accepted, refused, again
	}
	connect()
	accepted, refused, again := subscribe(symbols)
	if len(accepted) != 0 || len(refused) != 0 || len(again) != 200 {
		t.Errorf("at first: %d accepted, %d refused, %d again", len(accepted), len(refused), len(again))
	}
	connect()
	accepted, _, again = subscribe(symbols)
	same(t, "accepted by the second connection", len(accepted), 100)
	rounds := 0
	for ; len(again) > 0 && rounds < 20; rounds++ {
		if err := l.Unsubscribe(t.Context(), subsOf(market.StreamBook, again...)); err != nil {
			t.Fatal(err)
		}
		var more []string
		more, refused, again = subscribe(again)
		accepted = append(accepted, more...)
	}
	if len(accepted) != 199 || len(refused) != 1 || refused[0] != "S77USDT" {
		t.Errorf("%d accepted, refused %v after %d rounds", len(accepted), refused, rounds)
	}
	connect()
	for range 8 { // here no answer comes while messages are being sent, so each time they are twice as long
		if accepted, _, _ = subscribe(symbols[100:]); len(accepted) != 100 {
			t.Errorf("%d accepted", len(accepted))
		}
	}
	same(t, "messages for the same again", len(l.sent)-seen, 1)
}

// TestStream_refusedBest: that best bid and ask are not streamed is no refusal of the book.
func TestStream_refusedBest(t *testing.T) {
	l := newLine(t, ab)
	l.subscribe(market.StreamBest, ab)
	l.hears("refused AB best invalid; accepted AB", `{"error":{"code":2,"msg":""},"id":2}`, `{"result":null,"id":1}`)
	l.subscribe(market.StreamBest, ab)
	l.hears("accepted AB best", `{"result":null,"id":3}`)
}

// TestStream_unanswered: a message that fails without a word is noticed, but books whose events come are left alone.
func TestStream_unanswered(t *testing.T) {
	l := newLine(t, ab, "CD")
	l.ticks("", time.Second)
	l.hears("wanted AB", change(ab, 1, 1, "", ""))
	l.ticks("", 9999*time.Millisecond)
	l.ticks("lost CD by resubscribe timeout", time.Millisecond)
	l.ticks("", time.Hour)
	if err := l.Unsubscribe(t.Context(), subsOf(market.StreamBook, "CD")); err != nil {
		t.Fatal(err)
	}
	l.subscribe(market.StreamBook, "CD")
	l.hears("accepted CD", `{"result":null,"id":2}`, `{"result":null,"id":3}`)
}

// TestStream_unsent: a message that waits for its turn is not one that was not answered, and its answer may come at once.
func TestStream_unsent(t *testing.T) {
	l := newLine(t)
	l.during = func() {
		l.ticks("", time.Second)
		l.ticks("", time.Hour)
	}
	l.subscribe(market.StreamBook, ab)
	l.during = func() { l.hears("accepted CD", `{"result":null,"id":2}`) }
	l.subscribe(market.StreamBook, "CD")
	l.ticks("wanted CD", time.Minute)
	l.ticks("lost AB by resubscribe timeout", 10*time.Second)
	l.ticks("", time.Hour)
}

// TestStream_forgets: after Unsubscribe nothing is known of a book, and a new subscription starts at the beginning.
func TestStream_forgets(t *testing.T) {
	l := syncedLine(t)
	if err := l.Unsubscribe(t.Context(), subsOf(market.StreamBook, ab, "XYZ")); err != nil {
		t.Fatal(err)
	}
	l.hears("update CD 11 |", change(ab, 11, 11, "", ""), change("CD", 11, 11, "", ""))
	l.loads("", ab, 11, "", "")
	l.ticks("", time.Hour)
	l.subscribe(market.StreamBook, ab)
	l.hears("wanted AB", change(ab, 12, 12, "", ""))
	l.loads("snapshot AB 12 |", ab, 12, "", "")
	l.subscribe(market.StreamBook, ab) // twice: acknowledged, and nothing changes
	l.hears("update AB 13 |", change(ab, 13, 13, "", ""))
}

func TestStream_bounded(t *testing.T) {
	l := newLine(t)
	rules := venueRules(t)
	var all []string
	for i := range 1000 {
		all = append(all, fmt.Sprintf("S%d", i))
	}
	for part := range slices.Chunk(all, rules.Batch) {
		l.subscribe(market.StreamBook, part...)
	}
	same(t, "messages", len(l.sent), 5)
	err := l.Subscribe(t.Context(), subsOf(market.StreamBook, "ONEMORE"))
	same(t, "kind", asError(t, err).Kind, market.KindOverloaded)
	same(t, "messages", len(l.sent), 5)
	for _, r := range l.requests() {
		if len(r.Params) > 200 {
			t.Errorf("%d names in one message", len(r.Params))
		}
	}
}

// TestStream_longNames: a message that is too long fails without a word, so long names make shorter lists.
func TestStream_longNames(t *testing.T) {
	l := newLine(t)
	var symbols []string
	for i := range 200 {
		symbols = append(symbols, strings.Repeat("币", 18)+fmt.Sprint(i))
	}
	l.subscribe(market.StreamBook, symbols...)
	names := 0
	for i, r := range l.requests() {
		names += len(r.Params)
		if len(l.sent[i]) > 8<<10 {
			t.Errorf("a message of %d bytes", len(l.sent[i]))
		}
	}
	same(t, "names", names, 200)
}

// TestStream_sendFails: a message that was not sent is not waited for.
func TestStream_sendFails(t *testing.T) {
	l := newLine(t)
	l.err = errors.New("broken pipe")
	if err := l.Subscribe(t.Context(), subsOf(market.StreamBook, ab)); !errors.Is(err, l.err) {
		t.Errorf("err = %v", err)
	}
	l.ticks("", time.Second)
	l.ticks("", time.Hour)
}

func venueRules(t *testing.T) market.StreamRules {
	t.Helper()
	v, _ := venueOn(t, good)
	return v.StreamRules()
}

// TestStream_rules: the bounds of the exchange's documentation, with room to them.
func TestStream_rules(t *testing.T) {
	r := venueRules(t)
	if want := (market.SilenceRules{
		ProbeAfter: 5 * time.Second, ProbeSooner: 2 * time.Second, AnswerIn: 3 * time.Second, Most: 10 * time.Second,
	}); r.Silence != want {
		t.Errorf("silence %+v", r.Silence)
	}
	if r.Books*2 > 1024 || r.Batch > 200 || r.VouchFor != time.Minute || !r.Recheck || !r.Top || r.SnapshotDepth != 1000 ||
		r.RotateAfter < time.Hour || r.RotateBefore >= 24*time.Hour || r.RotateBefore-r.RotateAfter < time.Hour {
		t.Errorf("rules %+v", r)
	}
	v, _ := venueOn(t, good)
	connect, subscribe := v.StreamPlan(market.StreamConnect, 200), v.StreamPlan(market.StreamSubscribe, 200)
	same(t, "connect", fmt.Sprint(connect), "{binance stream stream  [{exchange } {ip } {endpoint stream_hosts}] [{stream_connects 1}]}")
	same(t, "subscribe", fmt.Sprint(subscribe), "{binance stream stream  [{exchange } {ip } {endpoint stream_hosts}] []}")
	if binance.ID != connect.Exchange {
		t.Errorf("exchange %q", connect.Exchange)
	}
}
