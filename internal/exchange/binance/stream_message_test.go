package binance_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"exchange-gateway/internal/exchange/binance"
	"exchange-gateway/internal/market"
	"exchange-gateway/test/bench/cpu"
)

// syncedLine is a stream with the synced books of AB and CD, at 10, and the best prices of AB.
func syncedLine(t *testing.T) *line {
	t.Helper()
	l := newLine(t, ab, "CD")
	l.subscribe(market.StreamBest, ab)
	for _, s := range []string{ab, "CD"} {
		l.hears("wanted "+s, change(s, 9, 10, "", ""))
		l.loads("snapshot "+s+" 10 |", s, 10, "", "")
	}
	return l
}

// TestStream_forms: the same change in every form in which it may come.
func TestStream_forms(t *testing.T) {
	for name, text := range map[string]string{
		"as documented":       change(ab, 11, 12, "1x2", "3x4"),
		"the slower stream":   `{"stream":"ab@depth","data":` + bareChange(ab, 11, 12, "1x2", "3x4") + `}`,
		"bare":                bareChange(ab, 11, 12, "1x2", "3x4"),
		"data first":          `{"data":` + bareChange(ab, 11, 12, "1x2", "3x4") + `,"stream":"ab@depth@100ms"}`,
		"keys in order":       `{"E":1,"U":11,"a":[["3","4"]],"b":[["1","2"]],"e":"depthUpdate","s":"AB","u":12}`,
		"with spaces":         "\n { \"stream\" : \"ab@depth@100ms\" ,\t\"data\" : " + strings.ReplaceAll(bareChange(ab, 11, 12, "1x2", "3x4"), ",", " , ") + " } ",
		"with new fields":     `{"stream":"ab@depth@100ms","ts":[1,{"U":3}],"data":{"new":{"u":1},"x":null,"e":"depthUpdate","E":1,"s":"AB","U":11,"u":12,"b":[["1","2",[]]],"a":[["3","4","9"]]}}`,
		"ids as texts":        `{"e":"depthUpdate","s":"AB","U":"11","u":"12","b":[["1","2"]],"a":[["3","4"]]}`,
		"numbers not quoted":  `{"e":"depthUpdate","s":"AB","U":11,"u":12,"b":[[1,2]],"a":[[3,4]]}`,
		"fields beside data":  `{"stream":"ab@depth@100ms","e":"x","u":3,"b":[["8","8"]],"data":` + bareChange(ab, 11, 12, "1x2", "3x4") + `,"s":"no","u":7}`,
		"characters escaped":  `{"stream":"a\u0062@depth@100ms","data":{"\u0065":"depthUpdate","s":"A\u0042","U":11,"u":12,"b":[["1","2"]],"a":[["3","4"]]}}`,
		"with the time in us": `{"e":"depthUpdate","E":1741046400062507,"s":"AB","U":11,"u":12,"b":[["1","2"]],"a":[["3","4"]]}`,
	} {
		t.Run(name, func(t *testing.T) {
			l := syncedLine(t)
			l.hears("update AB 12 1x2|3x4", text)
			l.hears("update AB 13 |5x6", bareChange(ab, 13, 13, "", "5x6")) // nothing of it is left
		})
	}
}

func TestStream_times(t *testing.T) {
	for text, want := range map[string]time.Time{
		`"E":1622363903670`:    time.UnixMilli(1622363903670),
		`"E":1741046400062507`: time.UnixMicro(1741046400062507),
		`"E":0`:                {},
		`"T":5`:                {}, // none is invented
	} {
		l := syncedLine(t)
		events := l.Decode(fmt.Appendf(nil, `{"e":"depthUpdate",%s,"s":"AB","U":11,"u":11,"b":[],"a":[]}`, text), l.now)
		if len(events) != 1 || !events[0].ExchangeTime.Equal(want) {
			t.Errorf("%s: %+v", text, events)
		}
	}
}

// TestStream_symbolsOfAnyCharacter: names of streams are in small letters as far as the alphabet has them; of events never.
func TestStream_symbolsOfAnyCharacter(t *testing.T) {
	const chinese = "测试币456USDT"
	l := newLine(t, chinese, "1INCHUSDT")
	same(t, "names", strings.Join(l.requests()[0].Params, " "), "测试币456usdt@depth@100ms 1inchusdt@depth@100ms")
	l.hears("wanted 测试币456USDT", `{"stream":"测试币456usdt@depth@100ms","data":`+bareChange(chinese, 1, 1, "", "")+`}`)
	l.hears("", `{"stream":"1INCHUSDT@depth@100ms","data":`+bareChange("1INCHUSDT", 1, 1, "", "")+`}`)
}

// TestStream_best: best bid and ask, whose frames have neither kind nor time.
func TestStream_best(t *testing.T) {
	const data = `{"u":%d,"s":"AB","b":"%s","B":"%s","a":"%s","A":"%s"}`
	l := syncedLine(t)
	f := func(want string, id int, bid, bidSize, ask, askSize string) {
		t.Helper()
		bare := fmt.Sprintf(data, id, bid, bidSize, ask, askSize)
		l.hears(want+"; "+want, bare, `{"stream":"ab@bookTicker","data":`+bare+`}`)
	}
	f("top AB 7 29010.90000000x13.94302000|29010.91000000x3.99953000", 7, "29010.90000000", "13.94302000", "29010.91000000", "3.99953000")
	f("top AB 8 |29010.91x4", 8, "0.00000000", "0.00000000", "29010.91", "4")
	f("top AB 9 |", 9, "0.00000000", "0.00000000", "0", "0")
	l.hears("", `{"stream":"cd@bookTicker","data":{"u":7,"s":"CD","b":"1","B":"1","a":"2","A":"1"}}`) // not subscribed
	if err := l.Unsubscribe(t.Context(), subsOf(market.StreamBest, ab)); err != nil {
		t.Fatal(err)
	}
	l.hears("update AB 11 |", fmt.Sprintf(data, 10, "1", "1", "2", "1"), change(ab, 11, 11, "", ""))
}

// TestStream_ignores: messages that are not about the books of the connection, of which new kinds may come at any time.
func TestStream_ignores(t *testing.T) {
	l := syncedLine(t)
	for _, text := range []string{
		`{"stream":"ab@depth20@100ms","data":{"lastUpdateId":11,"bids":[["1","2"]],"asks":[["3","4"]]}}`, // the best levels alone, not changes
		`{"lastUpdateId":11,"bids":[["1","2"]],"asks":[]}`,
		`{"stream":"ab@aggTrade","data":{"e":"aggTrade","E":1616176861895,"s":"AB","a":640283266,"p":"58942.01","q":"0.1","f":1,"l":1,"T":1,"m":false,"M":true}}`,
		`{"stream":"ab@trade","data":{"e":"trade","E":1,"s":"AB","t":1,"p":"1","q":"1","b":5,"a":6,"T":1,"m":true,"M":true}}`,
		`{"stream":"ab@ticker","data":{"e":"24hrTicker","E":1,"s":"AB","b":"1","B":"2","a":"3","A":"4","u":"no number"}}`,
		`{"stream":"ab@kline_1m","data":{"e":"kline","E":1,"s":"AB","k":{"t":1,"s":"AB","B":"0"}}}`,
		`{"e":"kline","E":1,"s":"AB","b":true}`,
		`{"e":"outboundAccountPosition","E":1,"u":1,"B":[{"a":"BTC","f":"1","l":"0"}]}`,
		`{"stream":"!miniTicker@arr","data":[{"e":"24hrMiniTicker","s":"AB"}]}`,
		`[{"e":"24hrMiniTicker","E":1,"s":"AB"},{"e":"depthUpdate","s":"AB"}]`,
		`{"stream":"xyz@depth@100ms","data":` + bareChange("XYZ", 1, 1, "", "") + `}`, // unsubscribed in the meantime
		`{"stream":"xyz@depth@100ms","data":{"e":"depth`,
		bareChange("XYZ", 1, 1, "", ""),
		`{"stream":"ab@referencePrice","data":{"a":{}}}`,
		`{"stream":"no channel","data":{}}`,
		`{}`, `[]`, `null`, `7`, `{"a":[1]}`,
	} {
		l.hears("", text)
	}
	l.hears("update AB 11 |; update CD 11 |", change(ab, 11, 11, "", ""), change("CD", 11, 11, "", ""))
}

// TestStream_unreadable: what cannot be read costs the book that it was about, and every book where that cannot be told.
func TestStream_unreadable(t *testing.T) {
	const one, all = "lost AB by snapshot %s; wanted AB", "lost by snapshot malformed"
	depth := func(data string) string { return `{"stream":"ab@depth@100ms","data":` + data + `}` }
	whole := bareChange(ab, 11, 12, "1x1", "2x2")
	for text, want := range map[string]string{
		depth(`{"e":"depthUpdate","E":1,"s":"AB","U":11,"u":12,"b":[["1","2"]`): one,
		depth(`{"e":"depthUpdate","s":"AB","U":11,"u":12,"b":[]}`):              one, // a side is missing
		depth(`{"e":"depthUpdate","s":"AB","u":12,"b":[],"a":[]}`):              one, // U is missing, and u is not U
		depth(`{"e":"depthUpdate","s":"AB","U":12,"b":[],"a":[]}`):              one,
		depth(`{"e":"depthUpdate","s":"AB","U":13,"u":12,"b":[],"a":[]}`):       one,
		depth(`{"e":"depthUpdate","s":"AB","U":-5,"u":12,"b":[],"a":[]}`):       one,
		depth(`{"e":"depthUpdate","s":"AB","U":11,"u":12.5,"b":[],"a":[]}`):     one,
		depth(`{"e":"depthUpdate","s":"AB","U":11,"U":1,"u":12,"b":[],"a":[]}`): one,
		depth(`{"e":"depthUpdate","s":"AB","U":11,"u":12,"b":null,"a":[]}`):     one,
		depth(`{"e":"depthUpdate","s":"AB","U":11,"u":12,"b":[["1"]],"a":[]}`):  one,
		depth(strings.Replace(whole, `"1"`, `"NaN"`, 1)):                        one,
		depth(strings.Replace(whole, "AB", "CD", 1)):                            one, // of another symbol than its stream
		depth(strings.Replace(whole, "depthUpdate", "trade", 1)):                one,
		depth(strings.Replace(whole, `["1"`, `["-1"`, 1)):                       strings.Replace(one, "%s", "suspect", 1),
		depth(strings.Replace(whole, `["1"`, `["0"`, 1)):                        strings.Replace(one, "%s", "suspect", 1),
		depth(strings.Replace(whole, `,"2"]`, `,"-2"]`, 1)):                     strings.Replace(one, "%s", "suspect", 1),
		depth(`[]`):        one,
		depth(whole) + "x": one,
		`{"stream":"ab@bookTicker","data":{"u":7,"s":"AB","b":"1","B":"1","a":"2"}}`:          "lost AB best by snapshot malformed",
		`{"stream":"ab@bookTicker","data":{"u":7,"s":"AB","b":"1","B":"1","a":"2","A":"-1"}}`: "lost AB best by snapshot suspect",
		`{"stream":"ab@bookTicker","data":{"u":7,"s":"AB","b":"1`:                             "lost AB best by snapshot malformed",
		`{"stream":"ab@bookTicker","data":` + whole + `}`:                                     "lost AB best by snapshot malformed",
		`{"e":"depthUpdate","s":"AB","U":11`:                                                  one,
		`{"e":"depthUpdate","s":"AB","U":11,"u":12}`:                                          one,
		`{"data":{"e":"depthUpdate","s":"AB"`:                                                 all,
		`{"data":` + whole + `,"stream":5}`:                                                   all,
		`{"e":"depthUpdate","U":[],"s":5}`:                                                    all,
		`{"stream":"ab@dep`:                                                                   all,
		`{"e":"tra`:                                                                           all,
		`[{"e":`:                                                                              all,
		``:                                                                                    all,
		`pong`:                                                                                all,
		`<html>`:                                                                              all,
		strings.Repeat(`{"a":`, 100) + strings.Repeat(`}`, 100):                               all,
	} {
		l := syncedLine(t)
		got := told(l.Decode([]byte(text), l.now))
		if want == all {
			if got != want+"; wanted AB; wanted CD" && got != want+"; wanted CD; wanted AB" {
				t.Errorf("%.200s: got %s", text, got)
			}
			continue
		}
		if strings.Contains(want, "%s") {
			want = fmt.Sprintf(want, "malformed")
		}
		same(t, text, got, want)
		l.hears("update CD 11 |", change("CD", 11, 11, "", ""))
		if strings.Contains(want, "best") {
			l.hears("update AB 11 |", change(ab, 11, 11, "", "")) // the book goes on
			continue
		}
		l.loads("snapshot AB 20 |", ab, 20, "", "")
		l.hears("update AB 21 |", change(ab, 21, 21, "", ""))
	}
}

// TestStream_aTopAloneLosesNothing: where only best bid and ask are streamed there is no book to lose.
func TestStream_aTopAloneLosesNothing(t *testing.T) {
	l := newLine(t)
	l.subscribe(market.StreamBest, ab)
	l.hears("", `{"e":"depthUpdate","s":"AB"`, change(ab, 1, 1, "", ""))
	l.hears("lost by snapshot malformed", `{`)
	l.hears("top AB 7 1x1|2x1", `{"stream":"ab@bookTicker","data":{"u":7,"s":"AB","b":"1","B":"1","a":"2","A":"1"}}`)
	same(t, "told", told(l.Distrust(ab, nil))+told(l.Load(restBook(t, ab, 1, "", ""))), "")
}

func TestStream_retires(t *testing.T) {
	l := syncedLine(t)
	l.hears("retiring; retiring", `{"e":"serverShutdown","E":1770123456789}`,
		`{"stream":"!serverShutdown","data":{"e":"serverShutdown","E":1770123456789}}`)
	l.hears("update AB 11 |", change(ab, 11, 11, "", "")) // until it does
}

// FuzzStream: whatever comes, a book is told only from a snapshot on, by ids that rise, with levels that can be true, and
// what is counted as kept is what is kept.
func FuzzStream(f *testing.F) {
	for _, text := range []string{
		change(ab, 11, 12, "1x2 3x0", "4x5"),
		change(ab, 11, 11, "", "") + "\n" + change(ab, 12, 15, "1x1", "") + "\n" + change(ab, 17, 17, "", ""),
		bareChange("CD", 9, 13, "1x2", "") + "\n" + `{"stream":"ab@bookTicker","data":{"u":7,"s":"AB","b":"1","B":"1","a":"2","A":"1"}}`,
		`{"result":null,"id":1}` + "\n" + `{"error":{"code":2,"msg":"Invalid request"},"id":2}` + "\n" + `{"code":4,"msg":"","id":"1"}`,
		`{"e":"serverShutdown","E":1770123456789}` + "\n" + `[{"e":"24hrMiniTicker"}]`,
		`{"stream":"ab@depth@100ms","data":{"e":"depthUpdate","s":"AB","U":5,"u":4,"b":[["0","1"]],"a":null}}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l := newLine(t, ab, "CD")
		l.subscribe(market.StreamBest, ab)
		books := map[string]*replica{ab: {}, "CD": {}}
		follow := func(events []market.StreamEvent) {
			for _, e := range events {
				plausible(t, e)
				if e.Symbol == "" && e.Kind == market.StreamLost {
					for _, b := range books {
						b.apply(t, e)
					}
				} else if e.Symbol != "" {
					books[e.Symbol].apply(t, e)
				}
			}
		}
		for i, message := range strings.Split(text, "\n") {
			l.now = l.now.Add(time.Second)
			follow(l.Decode([]byte(message), l.now))
			follow(l.Tick(l.now))
			for symbol, b := range books {
				if b.wanted {
					follow(l.Load(restBook(t, symbol, int64(10+i), "1x1", "2x2")))
				}
			}
			if n, counted := binance.Kept(l.StreamConn); n != counted {
				t.Fatalf("%d levels are kept, counted %d", n, counted)
			}
		}
	})
}

// plausible checks what must hold for every event.
func plausible(t *testing.T, e market.StreamEvent) {
	t.Helper()
	if (e.Err != nil) != (e.Kind == market.StreamLost || e.Kind == market.StreamRefused) {
		t.Fatalf("event %+v", e)
	}
	if e.Err != nil {
		if asError(t, e.Err).Kind.Local() {
			t.Fatalf("event %+v", e)
		}
	}
	for _, s := range [][]market.Level{e.Bids, e.Asks} {
		for _, l := range s {
			if l.Price.Sign() <= 0 || l.Size.Sign() < 0 {
				t.Fatalf("event %+v", e)
			}
		}
	}
}

// twentyLevels is a change of ten levels a side as it comes on the wire.
func twentyLevels() string {
	var bids, asks []string
	for i := range 10 {
		bids = append(bids, fmt.Sprintf(`["%d.%02d000000","%d.%08d"]`, 91234-i, i, i%7, 31250000+i*977))
		asks = append(asks, fmt.Sprintf(`["%d.%02d000000","%d.%08d"]`, 91235+i, i, i%5, 90025000-i*613))
	}
	return `{"stream":"btcusdt@depth@100ms","data":{"e":"depthUpdate","E":1622363903670,"s":"BTCUSDT","U":%d,"u":%d,"b":[` +
		strings.Join(bids, ",") + `],"a":[` + strings.Join(asks, ",") + `]}}`
}

// TestStream_allocations: a change of a synced book is read in place.
func TestStream_allocations(t *testing.T) {
	l := newLine(t, "BTCUSDT")
	l.hears("wanted BTCUSDT", change("BTCUSDT", 1, 1, "", ""))
	l.Load(restBook(t, "BTCUSDT", 1, "", ""))
	messages := make([][]byte, 101)
	for i := range messages {
		messages[i] = fmt.Appendf(nil, twentyLevels(), i+2, i+2)
	}
	i := 0
	n := testing.AllocsPerRun(100, func() {
		events := l.Decode(messages[i], l.now)
		if len(events) != 1 || len(events[0].Bids) != 10 {
			t.Fatal(told(events))
		}
		i++
	})
	if n > 0 {
		t.Errorf("%v allocations a change", n)
	}
}

// BenchmarkStream reads a change of twenty levels; the peer does with encoding/json what is least.
func BenchmarkStream(b *testing.B) {
	text := twentyLevels()
	b.Run("ours", func(b *testing.B) {
		c := binance.StreamOn(new(wire))
		if err := c.Subscribe(b.Context(), subsOf(market.StreamBook, "BTCUSDT")); err != nil {
			b.Fatal(err)
		}
		levels, err := market.NewLevels(nil, nil)
		if err != nil {
			b.Fatal(err)
		}
		c.Load(&market.OrderBook{Symbol: "BTCUSDT", Levels: levels, Sequence: market.SequenceOf(0)})
		message, id, now := []byte(nil), 0, time.Now()
		b.ReportAllocs()
		done := cpu.Report(b)
		for b.Loop() {
			id++
			message = fmt.Appendf(message[:0], text, id, id)
			if events := c.Decode(message, now); len(events) != 1 {
				b.Fatal(told(events))
			}
		}
		done()
	})
	b.Run("standard", func(b *testing.B) {
		message := fmt.Appendf(nil, text, 1, 1)
		b.ReportAllocs()
		done := cpu.Report(b)
		for b.Loop() {
			var w struct {
				Stream string `json:"stream"`
				Data   struct {
					First int64       `json:"U"`
					Last  int64       `json:"u"`
					Bids  [][2]string `json:"b"`
					Asks  [][2]string `json:"a"`
				} `json:"data"`
			}
			if err := json.Unmarshal(message, &w); err != nil {
				b.Fatal(err)
			}
		}
		done()
	})
}
