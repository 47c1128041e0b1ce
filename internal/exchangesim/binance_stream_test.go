package exchangesim_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"exchange-gateway/internal/exchangesim"
)

const binanceWS = "ws://stream.binance.com:9443"

// depthEvent is a diff as a combined stream sends it.
type depthEvent struct {
	Stream string `json:"stream"`
	Data   struct {
		Event string      `json:"e"`
		Time  int64       `json:"E"`
		Sym   string      `json:"s"`
		First int64       `json:"U"`
		Last  int64       `json:"u"`
		Bids  [][2]string `json:"b"`
		Asks  [][2]string `json:"a"`
	} `json:"data"`
}

// ledger is a book as text by price, to compare with the truth.
type ledger struct{ bids, asks map[string]string }

func ledgerOf(b exchangesim.Book) ledger {
	l := ledger{map[string]string{}, map[string]string{}}
	for _, x := range b.Bids {
		l.bids[x.Price] = x.Size
	}
	for _, x := range b.Asks {
		l.asks[x.Price] = x.Size
	}
	return l
}

func (l ledger) equal(o ledger) bool { return maps.Equal(l.bids, o.bids) && maps.Equal(l.asks, o.asks) }

// plainNumber strips trailing zeros, as the truth is written.
func plainNumber(s string) string {
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

func apply(side map[string]string, rows [][2]string) {
	for _, r := range rows {
		if price, size := plainNumber(r[0]), plainNumber(r[1]); size == "0" {
			delete(side, price)
		} else {
			side[price] = size
		}
	}
}

func (l ledger) apply(e depthEvent) {
	apply(l.bids, e.Data.Bids)
	apply(l.asks, e.Data.Asks)
}

func truthBySeq(t *testing.T, v *exchangesim.Venue, symbol string, seq int64) ledger {
	t.Helper()
	b, err := v.BookBySeq(symbol, seq, 5000)
	if err != nil {
		t.Fatal(err)
	}
	return ledgerOf(b)
}

// snapshot asks the venue for a whole book by REST.
func snapshot(t *testing.T, rt http.RoundTripper, symbol string) (int64, ledger) {
	t.Helper()
	var b struct {
		ID   int64       `json:"lastUpdateId"`
		Bids [][2]string `json:"bids"`
		Asks [][2]string `json:"asks"`
	}
	client{t: t, http: &http.Client{Transport: rt}, base: "http://api.binance.com"}.get("/api/v3/depth?limit=5000&symbol="+symbol).decode(t, &b)
	l := ledger{map[string]string{}, map[string]string{}}
	apply(l.bids, b.Bids)
	apply(l.asks, b.Asks)
	return b.ID, l
}

// TestBinanceStream_book keeps books by the documented procedure and compares each with the truth at its sequence.
func TestBinanceStream_book(t *testing.T) {
	for _, c := range []struct {
		symbol, stream string
		events         int
	}{{"BTCUSDT", "btcusdt@depth@100ms", 100}, {"SHIBUSDT", "shibusdt@depth", 20}, {"RUNEEUR", "runeeur@depth@100ms", 5}, {"DUSTETH", "dusteth@depth@100ms", 5}} {
		t.Run(c.symbol, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sim := newSim(t, exchangesim.Config{Seed: 3})
				v, tr := sim.Venue("binance"), piped(t, sim, "binance")
				ws := dialStream(t, tr, binanceWS+"/stream?streams="+c.stream)
				first := parse[depthEvent](t, ws.want(`"depthUpdate"`, time.Minute))
				time.Sleep(130 * time.Millisecond)
				id, book := snapshot(t, tr, c.symbol)
				straddles := 0
				for e, n := first, 0; n < c.events; e = parse[depthEvent](t, ws.want(`"depthUpdate"`, time.Minute)) {
					if e.Stream != c.stream || e.Data.Sym != c.symbol {
						t.Fatalf("%+v", e)
					}
					if e.Data.Last <= id {
						continue
					}
					if e.Data.First > id+1 {
						t.Fatalf("a gap: id %d, then %d to %d", id, e.Data.First, e.Data.Last)
					}
					if e.Data.First <= id {
						straddles++
					}
					book.apply(e)
					id = e.Data.Last
					if !book.equal(truthBySeq(t, v, c.symbol, id)) {
						t.Fatalf("event %d: not the book of sequence %d", n, id)
					}
					n++
				}
				if c.stream == "shibusdt@depth" && straddles != 1 {
					t.Errorf("%d events straddle the snapshot, want 1", straddles)
				}
			})
		})
	}
}

// TestBinanceStream_quote compares best bid and ask with the book of the same sequence.
// TestBinanceStream_straddle: a REST book from the middle of what one message makes up for ends as the exchange's, whatever there was at
// that moment alone.
func TestBinanceStream_straddle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := newSim(t, exchangesim.Config{Instruments: map[string][]exchangesim.Instrument{"binance": {{
			Symbol: "AAAUSDT", Base: "AAA", Quote: "USDT", Tick: "0.01", Lot: "0.001", Price: "6400", Size: "4", Levels: 20, Every: time.Second,
		}, {
			Symbol: "BBBUSDT", Base: "BBB", Quote: "USDT", Tick: "0.01", Lot: "0.001", Price: "6400", Size: "4", Levels: 5000,
		}}}})
		v := sim.Venue("binance")
		c := dialStream(t, v.Transport(), binanceWS+"/stream?streams=aaausdt@depth@100ms")
		c.want("depthUpdate", 2*time.Second)
		inject(t, v, exchangesim.Fault{Kind: exchangesim.FaultFreeze, For: time.Minute})
		var books []exchangesim.Book
		for range 50 {
			time.Sleep(time.Second)
			b, err := v.Book("AAAUSDT", time.Now(), 5000)
			if err != nil {
				t.Fatal(err)
			}
			books = append(books, b)
		}
		e := parse[depthEvent](t, c.want("depthUpdate", 20*time.Second))
		want := truthBySeq(t, v, "AAAUSDT", e.Data.Last)
		for _, b := range books {
			if b.Seq+1 < e.Data.First || b.Seq >= e.Data.Last {
				t.Fatalf("%d is not within %d..%d", b.Seq, e.Data.First, e.Data.Last)
			}
			got := ledgerOf(b)
			got.apply(e)
			if !got.equal(want) {
				t.Errorf("the book of %d ends as another", b.Seq)
			}
		}

		deep := dialStream(t, v.Transport(), binanceWS+"/stream?streams=bbbusdt@depth@100ms")
		deep.want("depthUpdate", 2*time.Second)
		last := parse[depthEvent](t, deep.want("depthUpdate", time.Second)).Data.Last
		inject(t, v, exchangesim.Fault{Kind: exchangesim.FaultFreeze, For: 3 * time.Minute})
		time.Sleep(3 * time.Minute)
		if first := parse[depthEvent](t, deep.want("depthUpdate", time.Second)).Data.First; first <= last+1 {
			t.Errorf("%d follows %d, though more was missed than is made up for", first, last)
		}
	})
}

func TestBinanceStream_quote(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := newSim(t, exchangesim.Config{Seed: 3})
		ws := dialStream(t, piped(t, sim, "binance"), binanceWS+"/ws/ethusdt@bookTicker")
		for range 20 {
			q := parse[struct {
				ID     int64  `json:"u"`
				Symbol string `json:"s"`
				Bid    string `json:"b"`
				BidQty string `json:"B"`
				Ask    string `json:"a"`
				AskQty string `json:"A"`
			}](t, ws.want(`"B"`, 5*time.Second))
			b, err := sim.Venue("binance").BookBySeq("ETHUSDT", q.ID, 1)
			if err != nil {
				t.Fatal(err)
			}
			got := []string{q.Symbol, plainNumber(q.Bid), plainNumber(q.BidQty), plainNumber(q.Ask), plainNumber(q.AskQty)}
			if want := []string{"ETHUSDT", b.Bids[0].Price, b.Bids[0].Size, b.Asks[0].Price, b.Asks[0].Size}; !slices.Equal(got, want) {
				t.Fatalf("%v, want %v", got, want)
			}
		}
	})
}

// TestBinanceStream_others looks at the events that are not books.
func TestBinanceStream_others(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := newSim(t, exchangesim.Config{Seed: 3})
		ws := dialStream(t, piped(t, sim, "binance"), binanceWS+"/stream?timeUnit=microsecond")
		ws.send(`{"method":"SUBSCRIBE","params":["btcusdt@ticker","btcusdt@miniTicker","btcusdt@trade","btcusdt@aggTrade","btcusdt@depth5@100ms","!miniTicker@arr","btcusdt@kline_1m"],"id":"a1"}`)
		seen := map[string]string{}
		for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
			if m, ok := ws.next(time.Until(deadline)); ok {
				seen[parse[anyEvent](t, m).Stream] = m
			}
		}
		for stream, part := range map[string]string{
			"btcusdt@ticker": `"24hrTicker"`, "btcusdt@miniTicker": `"24hrMiniTicker"`, "btcusdt@trade": `"t":`, "btcusdt@aggTrade": `"aggTrade"`,
			"btcusdt@depth5@100ms": `"lastUpdateId"`, "!miniTicker@arr": `"data":[{`, "": `{"result":null,"id":"a1"}`,
		} {
			if !strings.Contains(seen[stream], part) {
				t.Errorf("%s: %.200s", stream, seen[stream])
			}
		}
		if len(seen) != 7 {
			t.Errorf("%d streams", len(seen))
		}
		if !regexp.MustCompile(`"E":[0-9]{15,16},`).MatchString(seen["btcusdt@ticker"]) {
			t.Errorf("no time in microseconds: %.400s", seen["btcusdt@ticker"])
		}
	})
}

// anyEvent is what all events share.
type anyEvent struct {
	Stream string `json:"stream"`
}

// TestBinanceStream_control goes through the control messages and their errors.
func TestBinanceStream_control(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := newSim(t, exchangesim.Config{})
		v := sim.Venue("binance")
		ws := dialStream(t, piped(t, sim, "binance"), binanceWS+"/ws/0")
		ask := func(request, want string) {
			t.Helper()
			ws.send(request)
			if got, _ := ws.next(time.Second); got != want {
				t.Errorf("%s\n got %s\nwant %s", request, got, want)
			}
			time.Sleep(time.Second)
		}
		ask(`{"method":"SUBSCRIBE","params":["haltusdt@depth","nosuchpair@depth@100ms","HALTUSDT@trade"],"id":1}`, `{"result":null,"id":1}`)
		ask(`{"method":"SUBSCRIBE","params":["haltusdt@depth"],"id":null}`, `{"result":null,"id":null}`) // 120 ms late, and still in time
		ask(`{"method":"LIST_SUBSCRIPTIONS","id":3}`, `{"result":["haltusdt@depth","nosuchpair@depth@100ms","HALTUSDT@trade"],"id":3}`)
		ask(`{"method":"UNSUBSCRIBE","params":["haltusdt@depth","btcusdt@depth"],"id":4}`, `{"result":null,"id":4}`)
		ask(`{"method":"LIST_SUBSCRIPTIONS","id":5}`, `{"result":["nosuchpair@depth@100ms","HALTUSDT@trade"],"id":5}`)
		ask(`{"method":"GET_PROPERTY","params":["combined"],"id":6}`, `{"result":false,"id":6}`)
		ask(`{"method":"SET_PROPERTY","params":["combined",true],"id":7}`, `{"result":null,"id":7}`)
		ask(`{"method":"GET_PROPERTY","params":["combined"],"id":8}`, `{"result":true,"id":8}`)
		ask(`{"method":"SET_PROPERTY","params":["combined","yes"],"id":9}`, `{"code":1,"msg":"Invalid value type: expected Boolean","id":9}`)
		ask(`{"method":"GET_PROPERTY","params":["split"],"id":10}`, `{"code":0,"msg":"Unknown property","id":10}`)
		ask(`{"method":"SUBSCRIBE","params":["btcusdt@depth1"],"id":11}`, `{"error":{"code":2,"msg":"Invalid request: invalid stream"},"id":11}`)
		ask(`{"method":"SUBSCRIBE","params":["!bookTicker"],"id":12}`, `{"error":{"code":2,"msg":"Invalid request: invalid stream"},"id":12}`)
		ask(`{"method":"SUBSCRIBE","params":[],"id":13}`, `{"error":{"code":2,"msg":"Invalid request: params must be an array of strings"},"id":13}`)
		ask(`{"method":"LOGIN","id":14}`, "{\"error\":{\"code\":2,\"msg\":\"Invalid request: unknown variant `LOGIN`, expected one of `SUBSCRIBE`, `UNSUBSCRIBE`, `LIST_SUBSCRIPTIONS`, `SET_PROPERTY`, `GET_PROPERTY`\"},\"id\":14}")
		ask(`{"method":`, `{"code":3,"msg":"Invalid JSON: expected value at line 1 column 1","id":null}`)
		inject(t, v, exchangesim.Fault{Kind: exchangesim.FaultRefuse, Symbol: "ETHUSDT", Count: 1})
		ask(`{"method":"SUBSCRIBE","params":["ethusdt@depth"],"id":16}`, `{"error":{"code":2,"msg":"Invalid request: invalid stream"},"id":16}`)
		s := v.Stats().Streams
		if s.Subscriptions != 2 || s.Subscribed["HALTUSDT"] != 2 || s.Subscribed["ETHUSDT"] != 0 || s.Open != 1 || s.Opened != 1 || s.In < 16 || s.Out < 16 {
			t.Errorf("%+v", s)
		}
		ws.close()
		synctest.Wait()
		if s := v.Stats().Streams; s.Subscriptions != 0 || s.Open != 0 || s.Opened != 1 {
			t.Errorf("after the client left: %+v", s)
		}
	})
}

// TestBinanceStream_limits breaks each limit once.
func TestBinanceStream_limits(t *testing.T) {
	t.Run("messages", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ws := dialStream(t, piped(t, newSim(t, exchangesim.Config{}), "binance"), binanceWS+"/stream")
			for range 3 { // fifteen messages at the pace that is allowed
				for range 5 {
					ws.send(`{"method":"LIST_SUBSCRIPTIONS","id":1}`)
				}
				time.Sleep(time.Second)
			}
			for range 6 {
				ws.send(`{"method":"LIST_SUBSCRIPTIONS","id":1}`)
			}
			if code, reason := ws.ended(time.Second); code != websocket.StatusPolicyViolation || reason != "Too many requests" {
				t.Errorf("%d %s", code, reason)
			}
		})
	})
	t.Run("ban", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			sim := newSim(t, exchangesim.Config{})
			tr := piped(t, sim, "binance")
			for range 11 {
				ws := dialStream(t, tr, binanceWS+"/stream")
				for range 6 {
					ws.send(`{"method":"LIST_SUBSCRIPTIONS","id":1}`)
				}
				ws.ended(time.Second)
			}
			_, res, err := websocket.Dial(t.Context(), binanceWS+"/stream", &websocket.DialOptions{HTTPClient: &http.Client{Transport: tr}})
			if err == nil || res == nil || res.StatusCode != 418 {
				t.Errorf("after being closed eleven times: %v %v", res, err)
			}
			client{t: t, http: &http.Client{Transport: tr}, base: "http://api.binance.com"}.get("/api/v3/ping").want(t, 418, "IP banned until")
		})
	})
	t.Run("streams", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ws := dialStream(t, piped(t, newSim(t, exchangesim.Config{}), "binance"), binanceWS+"/stream")
			names := func(from, n int) string {
				out := make([]string, n)
				for i := range out {
					out[i] = fmt.Sprintf(`"x%d@depth"`, from+i)
				}
				return `{"method":"SUBSCRIBE","params":[` + strings.Join(out, ",") + `],"id":1}`
			}
			for i := range 4 {
				ws.send(names(256*i, 256))
				ws.want(`{"result":null,"id":1}`, time.Second)
				time.Sleep(time.Second)
			}
			ws.send(names(1024, 1))
			ws.want(`{"error":{"code":4,"msg":"Too many subscriptions"},"id":1}`, time.Second)
			ws.send(names(0, 1)) // one that is in force
			ws.want(`{"result":null,"id":1}`, time.Second)
			ws.send(names(0, 900)) // too long a message is lost
			ws.silence(5 * time.Second)
		})
	})
	t.Run("handshakes", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			sim := newSim(t, exchangesim.Config{})
			tr := piped(t, sim, "binance")
			for range 300 {
				dialStream(t, tr, binanceWS+"/stream").close()
			}
			_, res, err := websocket.Dial(t.Context(), binanceWS+"/stream", &websocket.DialOptions{HTTPClient: &http.Client{Transport: tr}})
			if err == nil || res == nil || res.StatusCode != 429 || res.Header.Get("Retry-After") == "" {
				t.Errorf("%v %v", err, res)
			}
			time.Sleep(5 * time.Minute)
			dialStream(t, tr, binanceWS+"/stream")
			if s := sim.Venue("binance").Stats(); s.ByClass["stream"] != 302 || s.ByStatus[101] != 301 || s.Streams.Opened != 301 {
				t.Errorf("%v %v %+v", s.ByClass, s.ByStatus, s.Streams)
			}
		})
	})
}

// TestBinanceStream_heartbeat: a client that answers pings stays, one that does not is closed a minute after the first; after a day all
// are.
func TestBinanceStream_heartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := piped(t, newSim(t, exchangesim.Config{}), "binance")
		start, pings := time.Now(), 0
		deaf, _, err := websocket.Dial(t.Context(), binanceWS+"/stream", &websocket.DialOptions{
			HTTPClient:     &http.Client{Transport: tr},
			OnPingReceived: func(_ context.Context, payload []byte) bool { pings++; return len(payload) == 0 },
		})
		if err != nil {
			t.Fatal(err)
		}
		defer deaf.CloseNow()
		good := dialStream(t, tr, binanceWS+"/stream")
		_, _, err = deaf.Read(t.Context())
		if websocket.CloseStatus(err) != websocket.StatusPolicyViolation || pings != 3 || time.Since(start) != 80*time.Second {
			t.Errorf("after %v and %d pings: %v", time.Since(start), pings, err)
		}
		good.ended(25 * time.Hour)
		if d := time.Since(start); d != 24*time.Hour {
			t.Errorf("closed after %v", d)
		}
	})
}
