package exchangesim_test

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"exchange-gateway/internal/exchangesim"
)

const (
	okxPublic   = "ws://ws.okx.com:8443/ws/v5/public"
	okxBusiness = "ws://ws.okx.com:8443/ws/v5/business"
)

// okxMessage is any JSON message of OKX's streams.
type okxMessage struct {
	ID        string `json:"id"`
	Event     string `json:"event"`
	Code      string `json:"code"`
	Msg       string `json:"msg"`
	ConnID    string `json:"connId"`
	ConnCount string `json:"connCount"`
	Arg       struct {
		Channel string `json:"channel"`
		InstID  string `json:"instId"`
	} `json:"arg"`
	Action string    `json:"action"`
	Data   []okxData `json:"data"`
}

type okxData struct {
	Asks      [][]string `json:"asks"`
	Bids      [][]string `json:"bids"`
	InstID    string     `json:"instId"`
	TS        string     `json:"ts"`
	Checksum  *int       `json:"checksum"`
	SeqID     int64      `json:"seqId"`
	PrevSeqID *int64     `json:"prevSeqId"`
	TradeID   string     `json:"tradeId"`
	Side      string     `json:"side"`
	Px        string     `json:"px"`
	Last      string     `json:"last"`
	BidPx     string     `json:"bidPx"`
	AskPx     string     `json:"askPx"`
}

// take applies a message and reports false for a gap, which leaves the book alone.

// check compares the book with the truth at its sequence and, where the message has one, at its time.

func subscribeOKX(channel string, symbols ...string) string {
	args := make([]string, len(symbols))
	for i, s := range symbols {
		args[i] = fmt.Sprintf(`{"channel":%q,"instId":%q}`, channel, s)
	}
	return `{"id":"1512","op":"subscribe","args":[` + strings.Join(args, ",") + `]}`
}

// wantOKX is want with the message read.

func wantOKX(t *testing.T, ws *streamClient, part string, within time.Duration) okxMessage {
	t.Helper()
	return parse[okxMessage](t, ws.want(part, within))
}

// pinging keeps a connection open with OKX's own pings until the test is over.

func pinging(t *testing.T, ws *streamClient) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(15 * time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				_ = ws.conn.Write(ctx, websocket.MessageText, []byte("ping")) // it may be closed by now
			case <-ctx.Done():
				return
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
}

// TestOKXStream_books keeps the window of 400 levels by the documented procedure through seconds of changes.

// TestOKXStream_keepAlive: a book that does not change is confirmed about every minute.

// TestOKXStream_idle: 4004 after half a minute without a word and without a push; pings of the protocol do not count, texts do.

func TestOKXStream_idle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := newSim(t, exchangesim.Config{})
		tr := piped(t, sim, "okx")
		began := time.Now()
		silent := dialStream(t, tr, okxPublic)
		quiet := dialStream(t, tr, okxPublic)
		kept := dialStream(t, tr, okxPublic)
		quiet.send(subscribeOKX("books", "HALT-USDT"))
		time.Sleep(20 * time.Second)
		if err := silent.conn.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		kept.send("ping")
		if m, _ := kept.next(time.Second); m != "pong" {
			t.Fatalf("got %q, want pong", m)
		}
		for _, ws := range []*streamClient{silent, quiet} {
			code, reason := ws.ended(time.Minute)
			if took := time.Since(began); code != 4004 || reason != "No data received in 30s" || took < 29*time.Second || took > 31*time.Second {
				t.Fatalf("closed with %d %q after %v", code, reason, took)
			}
		}
		kept.silence(10 * time.Second)
		if code, _ := kept.ended(time.Minute); code != 4004 {
			t.Fatalf("closed with %d", code)
		}
	})
}

// TestOKXStream_requests: every arg is confirmed by itself, and what is wrong is an error without an arg.

func TestOKXStream_requests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := newSim(t, exchangesim.Config{})
		tr := piped(t, sim, "okx")
		ws := dialStream(t, tr, okxPublic)
		ws.send(`{"id":"a1","op":"subscribe","args":[{"channel":"books","instId":"HALT-USDT"},{"channel":"books","instId":"NO-PAIR"},
			{"channel":"books","instId":"GONE-USDT"},{"channel":"bbo-tbt","instId":"HALT-USDT"},{"channel":"trades-all","instId":"BTC-USDT"},
			{"channel":"books-l2-tbt","instId":"BTC-USDT"}]}`)
		time.Sleep(time.Second)
		events, pushes, conn := map[string]int{}, 0, ""
		for m, ok := ws.next(time.Millisecond); ok; m, ok = ws.next(time.Millisecond) {
			e := parse[okxMessage](t, m)
			if e.Event == "" {
				pushes++
				continue
			}
			if e.Event != "channel-conn-count" && e.ID != "a1" || e.ConnID == "" || conn != "" && e.ConnID != conn || e.Event == "error" && strings.Contains(m, `"arg"`) {
				t.Fatalf("event %s", m)
			}
			conn = e.ConnID
			events[e.Event+e.Code]++
		}
		if pushes != 2 || fmt.Sprint(events) != "map[channel-conn-count:1 error60011:1 error60018:3 subscribe:2]" {
			t.Fatalf("%d pushes, events %v", pushes, events)
		}

		ws.send(subscribeOKX("books", "HALT-USDT"))
		if m, _ := ws.next(time.Second); !strings.Contains(m, `"event":"subscribe"`) {
			t.Fatalf("repeated: %s", m)
		}
		ws.silence(time.Second) // and no second snapshot

		for text, want := range map[string]string{
			`{"op":"subscribe","args":["spot/ticker:BTC-USDT"]}`: `"code":"60012"`,
			`{"op":"subscribe"`: `"code":"60012"`,
			`{"op":"dance","args":[{"channel":"books","instId":"BTC-USDT"}]}`: `"code":"60012"`,
			`{"op":"subscribe","args":[]}`:                                    `"code":"60012"`,
			`{"id":"not-alphanumeric","op":"subscribe","args":[]}`:            `"code":"60012"`,
		} {
			ws.send(text)
			if m, _ := ws.next(time.Second); !strings.Contains(m, want) || !strings.Contains(m, `"event":"error"`) {
				t.Fatalf("%s: got %s", text, m)
			}
		}

		ws.send(`{"op":"unsubscribe","args":[{"channel":"books","instId":"HALT-USDT"}]}`)
		if m, _ := ws.next(time.Second); !strings.Contains(m, `"event":"unsubscribe","arg":{"channel":"books","instId":"HALT-USDT"}`) {
			t.Fatalf("unsubscribe: %s", m)
		}
		ws.send(subscribeOKX("books", "HALT-USDT"))
		ws.want(`"action":"snapshot"`, time.Second)
		if n := sim.Venue("okx").Stats().Streams.Subscriptions; n != 2 {
			t.Fatalf("%d subscriptions in force, want 2", n)
		}
	})
}

// TestOKXStream_order: at some subscriptions the data comes first, at most the confirmation.

func TestOKXStream_order(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := newSim(t, exchangesim.Config{})
		v := sim.Venue("okx")
		ws := dialStream(t, piped(t, sim, "okx"), okxPublic)
		first := map[bool]int{}
		for _, s := range v.Symbols() {
			if s == "GONE-USDT" {
				continue
			}
			ws.send(subscribeOKX("tickers", s))
			m := ""
			for !strings.Contains(m, s) {
				m, _ = ws.next(time.Second)
			}
			first[strings.Contains(m, `"event"`)]++
			for i := 0; i < 50 && !strings.Contains(m, `"event":"subscribe","arg":{"channel":"tickers","instId":"`+s); i++ {
				m, _ = ws.next(time.Second)
			}
		}
		if first[true] <= first[false] || first[false] == 0 {
			t.Fatalf("confirmed first: %d, data first: %d", first[true], first[false])
		}
	})
}

func TestOKXStream_limits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := newSim(t, exchangesim.Config{})
		tr := piped(t, sim, "okx")
		ws := dialStream(t, tr, okxPublic)
		dialStream(t, tr, okxPublic)
		dialStream(t, tr, okxBusiness)
		_, res, err := websocket.Dial(t.Context(), okxPublic, &websocket.DialOptions{HTTPClient: &http.Client{Transport: tr}})
		if err == nil || res == nil || res.StatusCode != http.StatusTooManyRequests {
			t.Fatalf("the fourth handshake of a second: %v %v", res, err)
		}
		time.Sleep(time.Second)
		dialStream(t, tr, okxPublic)

		for i := range 481 {
			ws.send(subscribeOKX("books", "HALT-USDT"))
			m := ws.want(`"event"`, time.Second)
			for strings.Contains(m, "channel-conn-count") {
				m = ws.want(`"event"`, time.Second)
			}
			if refused := strings.Contains(m, `"code":"60014"`); refused != (i == 480) {
				t.Fatalf("request %d: %s", i+1, m)
			}
			if i%10 == 0 {
				time.Sleep(time.Second)
			}
		}
	})
}

// TestOKXStream_notice: 64008 a minute before the end, which has no close frame.

func TestOKXStream_notice(t *testing.T) {
	for _, c := range []struct{ scaled, lead time.Duration }{{0, time.Minute}, {5 * time.Second, 5 * time.Second}} {
		t.Run(c.lead.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sim := newSim(t, exchangesim.Config{})
				ws := dialStream(t, piped(t, sim, "okx"), okxPublic)
				pinging(t, ws)
				ws.send(subscribeOKX("books", "BTC-USDT"))
				ws.want(`"snapshot"`, time.Second)
				if _, err := sim.Venue("okx").Inject(exchangesim.Fault{Kind: exchangesim.FaultCut, Latency: c.scaled}); err != nil {
					t.Fatal(err)
				}
				ws.want(`"code":"64008"`, time.Second)
				began := time.Now()
				ws.want(`"update"`, time.Second) // it goes on until then
				code, reason := ws.ended(2 * time.Minute)
				if took := time.Since(began).Round(time.Second); code != -1 || took != c.lead {
					t.Fatalf("ended with %d %s after %v, want %v", code, reason, took, c.lead)
				}
			})
		})
	}
}

// TestOKXStream_reset: after a legal reset the chain goes on from a smaller number, and the truth is still found by it. A reset whose

// message is lost is a gap.

// TestOKXStream_gap: a message that is dropped shows in the chain, and ending and starting the subscription brings a snapshot.

// TestOKXStream_tops: books5 and bbo-tbt are small books without action, checksum and prevSeqId, and repeat when nothing changes.

// TestOKXStream_tickersAndTrades: both agree with what REST says at the same moment.

func TestOKXStream_tickersAndTrades(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := newSim(t, exchangesim.Config{})
		v, tr := sim.Venue("okx"), piped(t, sim, "okx")
		ws := dialStream(t, tr, okxPublic)
		ws.send(subscribeOKX("tickers", "BTC-USDT"))
		for range 10 {
			d := wantOKX(t, ws, `"data"`, time.Second).Data[0]
			truth, err := v.Book("BTC-USDT", okxTime(t, d.TS), 1)
			if err != nil || d.BidPx != truth.Bids[0].Price || d.AskPx != truth.Asks[0].Price || d.Last == "" {
				t.Fatalf("%v: %+v, the book is %+v", err, d, truth)
			}
		}
		for url, channel := range map[string]string{okxPublic: "trades", okxBusiness: "trades-all"} {
			ws := dialStream(t, tr, url)
			ws.send(subscribeOKX(channel, "BTC-USDT"))
			last := int64(0)
			for range 5 {
				d := wantOKX(t, ws, `"data"`, 2*time.Second).Data[0]
				id, err := strconv.ParseInt(d.TradeID, 10, 64)
				if err != nil || last != 0 && id != last+1 || d.Px == "" || d.Side != "buy" && d.Side != "sell" {
					t.Fatalf("after trade %d: %+v", last, d)
				}
				last = id
			}
		}
	})
}

// FuzzOKXStream_request: whatever a client sends, the venue answers the next ping or has closed the connection.

func FuzzOKXStream_request(f *testing.F) {
	for _, s := range []string{
		subscribeOKX("books", "BTC-USDT"), `{"op":"unsubscribe","args":[{"channel":"tickers","instId":"BTC-USDT"}]}`, `{"op":"login","args":[{}]}`,
		`{"id":"1","op":"subscribe","args":[{"channel":"trades"}]}`, `[]`, `null`, `"ping"`, `{`, "\xff",
	} {
		f.Add(s)
	}
	sim, err := exchangesim.New(exchangesim.Config{Unlimited: true})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(sim.Close)
	f.Fuzz(func(t *testing.T, text string) {
		answerPing(t, sim.Venue("okx"), okxPublic, text, "ping", "pong")
	})
}

// answerPing sends a text, then another that has a known answer, and waits for it or for the end of the connection.

func answerPing(t *testing.T, v *exchangesim.Venue, url, text, ping, pong string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, url, &websocket.DialOptions{HTTPClient: &http.Client{Transport: v.Transport()}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	conn.SetReadLimit(64 << 20)
	for _, m := range []string{text, ping} {
		_ = conn.Write(ctx, websocket.MessageText, []byte(m)) // it may be closed by now
	}
	for {
		_, data, err := conn.Read(ctx)
		if err != nil {
			if ctx.Err() != nil {
				t.Fatalf("no answer after %q", text)
			}
			return
		}
		if strings.Contains(string(data), pong) {
			return
		}
	}
}
