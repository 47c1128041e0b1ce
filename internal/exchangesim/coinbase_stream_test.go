package exchangesim_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"exchange-gateway/internal/exchangesim"
)

const atURL = "ws://advanced-trade-ws.coinbase.com"

// atMessage is any message of Advanced Trade's streams.
type atMessage struct {
	Type     string `json:"type"` // errors alone
	Message  string `json:"message"`
	Channel  string `json:"channel"`
	Stamp    string `json:"timestamp"`
	Sequence *int64 `json:"sequence_num"`
	Events   []struct {
		Type          string              `json:"type"`
		Product       string              `json:"product_id"`
		Subscriptions map[string][]string `json:"subscriptions"`
		Counter       int64               `json:"heartbeat_counter"`
		Updates       []struct {
			Side  string `json:"side"`
			Time  string `json:"event_time"`
			Price string `json:"price_level"`
			Size  string `json:"new_quantity"`
		} `json:"updates"`
		Tickers []struct {
			Product string `json:"product_id"`
			Price   string `json:"price"`
			Bid     string `json:"best_bid"`
			BidSize string `json:"best_bid_quantity"`
			Ask     string `json:"best_ask"`
			AskSize string `json:"best_ask_quantity"`
		} `json:"tickers"`
		Trades []struct {
			ID    json.Number `json:"trade_id"`
			Side  string      `json:"side"`
			Price string      `json:"price"`
			Time  time.Time   `json:"time"`
		} `json:"trades"`
		Products []struct {
			ID     string `json:"id"`
			Status string `json:"status"`
		} `json:"products"`
	} `json:"events"`
}

// atReader reads one connection by the documented procedure: one sequence for everything, books by product.
type atReader struct {
	t        *testing.T
	v        *exchangesim.Venue
	ws       *streamClient
	expected int64
	books    map[string]ledger
	shuffled bool // a snapshot was not sorted
	joint    int  // updates of more than one product
}

func dialAT(t *testing.T, sim *exchangesim.Sim, tr http.RoundTripper) *atReader {
	t.Helper()
	return &atReader{t: t, v: sim.Venue("coinbase"), ws: dialStream(t, tr, atURL), books: map[string]ledger{}}
}

func (r *atReader) send(kind, channel string, products ...string) {
	r.t.Helper()
	r.ws.send(fmt.Sprintf(`{"type":%q,"channel":%q,"product_ids":%s}`, kind, channel, quoted(products)))
}

func quoted(list []string) string {
	text, err := json.Marshal(slices.Concat([]string{}, list))
	if err != nil {
		panic(err) // strings alone
	}
	return string(text)
}

// next reads one message; books are applied and compared with the truth at the message's moment. A gap fails the test.

func (r *atReader) next(within time.Duration) atMessage {
	r.t.Helper()
	text, ok := r.ws.next(within)
	if !ok {
		r.t.Fatalf("nothing within %v", within)
	}
	m := parse[atMessage](r.t, text)
	if m.Type == "error" {
		if m.Sequence != nil || m.Channel != "" {
			r.t.Fatalf("an error with more than a text: %s", text)
		}
		return m
	}
	if m.Sequence == nil || *m.Sequence != r.expected {
		r.t.Fatalf("sequence %v, want %d: %.200s", m.Sequence, r.expected, text)
	}
	r.expected++
	if m.Channel == "l2_data" {
		r.apply(m)
	}
	return m
}

func (r *atReader) apply(m atMessage) {
	r.t.Helper()
	if len(m.Events) > 1 && m.Events[0].Type == "update" {
		r.joint++
	}
	at, err := time.Parse(time.RFC3339Nano, m.Stamp)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, e := range m.Events {
		book, known := r.books[e.Product]
		if e.Type == "snapshot" {
			book = ledger{map[string]string{}, map[string]string{}}
			r.books[e.Product] = book
		} else if !known {
			r.t.Fatalf("an update of %s before its snapshot", e.Product)
		}
		before := ""
		for _, u := range e.Updates {
			side := map[string]map[string]string{"bid": book.bids, "offer": book.asks}[u.Side]
			if side == nil {
				r.t.Fatalf("side %q", u.Side)
			}
			apply(side, [][2]string{{u.Price, u.Size}})
			r.shuffled = r.shuffled || e.Type == "snapshot" && before == "offer" && u.Side == "bid"
			before = u.Side
		}
		truth, err := r.v.Book(e.Product, at, 5000)
		if err != nil {
			r.t.Fatal(err)
		}
		if !book.equal(ledgerOf(truth)) {
			r.t.Fatalf("%s: another book than the venue's at %v (sequence %d)", e.Product, at, *m.Sequence)
		}
	}
}

// until reads until a message of a channel, or an error, comes.

func (r *atReader) until(channel string, within time.Duration) atMessage {
	r.t.Helper()
	for deadline := time.Now().Add(within); ; {
		if m := r.next(time.Until(deadline)); m.Channel == channel || m.Type == channel {
			return m
		}
	}
}

// thinPairs are products whose books are compared quickly: fast, slow, with bids only, and standing still.

// TestCoinbaseStream_books: the snapshots come before the confirmation; every message leaves every book of it as the venue's.

// TestCoinbaseStream_deepBook: whole books of 5,000 levels a side, each in a message of its own.

// TestCoinbaseStream_subscriptions: a repeated subscription brings no snapshot, one that was ended and started does; every

// confirmation holds the full set.

func TestCoinbaseStream_subscriptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := newSim(t, exchangesim.Config{})
		r := dialAT(t, sim, piped(t, sim, "coinbase"))
		confirmed := func(want string) {
			t.Helper()
			if m := r.next(time.Second); m.Channel != "subscriptions" || fmt.Sprint(m.Events[0].Subscriptions) != want {
				t.Fatalf("got %s %v, want %s", m.Channel, m.Events, want)
			}
		}
		snapshot := func() {
			t.Helper()
			if m := r.next(time.Second); m.Channel != "l2_data" || m.Events[0].Type != "snapshot" {
				t.Fatalf("%+v", m)
			}
		}
		r.send("subscribe", "level2", "HALT-USD")
		snapshot()
		confirmed("map[level2:[HALT-USD]]")
		r.send("subscribe", "level2", "HALT-USD")
		confirmed("map[level2:[HALT-USD]]")
		r.send("subscribe", "level2", "NO-PAIR", "GONE-USD")
		confirmed("map[level2:[HALT-USD]]")
		r.send("subscribe", "heartbeats")
		confirmed("map[heartbeats:[heartbeats] level2:[HALT-USD]]")
		r.send("unsubscribe", "level2", "HALT-USD")
		confirmed("map[heartbeats:[heartbeats]]")
		r.send("subscribe", "level2", "HALT-USD")
		snapshot()
		confirmed("map[heartbeats:[heartbeats] level2:[HALT-USD]]")
		r.send("unsubscribe", "heartbeats")
		confirmed("map[level2:[HALT-USD]]")
		time.Sleep(time.Second)
		r.send("unsubscribe", "level2", "HALT-USD")
		confirmed("map[]")
		if n := sim.Venue("coinbase").Stats().Streams.Subscriptions; n != 0 {
			t.Fatalf("%d subscriptions in force, want 0", n)
		}
	})
}

// TestCoinbaseStream_alias: BTC-USDC is confirmed under its name and sent as BTC-USD.

func TestCoinbaseStream_errors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := newSim(t, exchangesim.Config{})
		r := dialAT(t, sim, piped(t, sim, "coinbase"))
		r.send("subscribe", "heartbeats")
		r.until("subscriptions", time.Second)
		for text, want := range map[string]string{
			`{"type":"subscribe","channel":"levels","product_ids":["BTC-USD"]}`:               "authentication failure",
			`{"type":"subscribe","channel":"user","product_ids":["BTC-USD"]}`:                 "authentication failure",
			`{"type":"subscribe","channel":"level2","product_ids":["BTC-USD"],"jwt":"a.b.c"}`: "authentication failure",
			`{"type":"dance","channel":"level2","product_ids":["BTC-USD"]}`:                   "failure to subscribe",
			`{"type":"subscribe","channel":"level2"}`:                                         "failure to subscribe",
			`{"type":"subscribe"`: "failure to subscribe",
		} {
			time.Sleep(time.Second)
			r.ws.send(text)
			if m := r.until("error", time.Second); m.Message != want {
				t.Fatalf("%s: %q, want %q", text, m.Message, want)
			}
		}
		if _, err := r.v.Inject(exchangesim.Fault{Kind: exchangesim.FaultRefuse, Symbol: "ETH-USD"}); err != nil {
			t.Fatal(err)
		}
		r.send("subscribe", "level2", "ETH-USD", "HALT-USD")
		if m := r.until("error", time.Second); m.Message != "failure to subscribe" {
			t.Fatalf("refused with %q", m.Message)
		}
		if m := r.until("subscriptions", time.Second); fmt.Sprint(m.Events[0].Subscriptions["level2"]) != "[HALT-USD]" {
			t.Fatalf("%+v", m)
		}
	})
}

// TestCoinbaseStream_cap: the 31st book is refused and the others go on.

// TestCoinbaseStream_heartbeats: one counter a second, as often as the channel was subscribed.

func TestCoinbaseStream_heartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := newSim(t, exchangesim.Config{})
		r := dialAT(t, sim, piped(t, sim, "coinbase"))
		r.send("subscribe", "heartbeats")
		r.send("subscribe", "heartbeats")
		r.until("subscriptions", time.Second)
		r.until("subscriptions", time.Second)
		last := int64(-1)
		for range 5 {
			a, b := r.until("heartbeats", 2*time.Second), r.until("heartbeats", 2*time.Second)
			counter := a.Events[0].Counter
			if b.Events[0].Counter != counter || last >= 0 && counter != last+1 {
				t.Fatalf("counters %d and %d after %d", counter, b.Events[0].Counter, last)
			}
			last = counter
		}
		time.Sleep(10 * time.Minute)
		if r.until("heartbeats", time.Second).Events[0].Counter != last+1 {
			t.Fatal("a connection with heartbeats alone is not kept")
		}
	})
}

// TestCoinbaseStream_deadlines: five seconds to the first subscription, 60 to 90 without any message.

func TestCoinbaseStream_deadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := newSim(t, exchangesim.Config{})
		tr := piped(t, sim, "coinbase")
		began := time.Now()
		late, wrong, quiet := dialAT(t, sim, tr), dialAT(t, sim, tr), dialAT(t, sim, tr)
		wrong.send("subscribe", "nonsense", "BTC-USD")
		quiet.send("subscribe", "level2", "HALT-USD")
		for _, r := range []*atReader{late, wrong} {
			if code, _ := r.ws.ended(time.Minute); code != -1 || time.Since(began).Round(time.Second) != 5*time.Second {
				t.Fatalf("ended with %d after %v", code, time.Since(began))
			}
		}
		if code, _ := quiet.ws.ended(2 * time.Minute); code != -1 || time.Since(began) < 59*time.Second || time.Since(began) > 91*time.Second {
			t.Fatalf("ended with %d after %v", code, time.Since(began))
		}
	})
}

func TestCoinbaseStream_limits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := newSim(t, exchangesim.Config{Instruments: thinPairs()})
		tr := piped(t, sim, "coinbase")
		readers := make([]*atReader, 8)
		for i := range readers {
			readers[i] = dialAT(t, sim, tr)
		}
		_, res, err := websocket.Dial(t.Context(), atURL, &websocket.DialOptions{HTTPClient: &http.Client{Transport: tr}})
		if err == nil || res == nil || res.StatusCode != http.StatusTooManyRequests {
			t.Fatalf("the ninth handshake of a second: %v %v", res, err)
		}
		for i := range 9 { // all connections are one IP
			r := readers[i%8]
			r.send("subscribe", "level2", "HALT-USD")
			for m := r.next(time.Second); m.Channel != "subscriptions"; m = r.next(time.Second) {
				if m.Type != "error" {
					continue
				}
				if i < 8 || m.Message != "rate limit exceeded" {
					t.Fatalf("message %d: %+v", i+1, m)
				}
				return
			}
		}
		t.Fatal("nine messages in a second were taken")
	})
}

// TestCoinbaseStream_gap: a message that is lost leaves a hole in the sequence of the connection.

// TestCoinbaseStream_freeze: one product sends nothing, the sequence has no hole, and afterwards the book is made up for.

// TestCoinbaseStream_otherChannels: ticker on trades with the book's best, trades newest first without a hole, all products as status.

func TestCoinbaseStream_otherChannels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := newSim(t, exchangesim.Config{})
		r := dialAT(t, sim, piped(t, sim, "coinbase"))
		r.send("subscribe", "ticker", "BTC-USD", "DUST-BTC")
		for n := range 8 {
			m := r.until("ticker", 6*time.Second)
			at, err := time.Parse(time.RFC3339Nano, m.Stamp)
			if err != nil || (m.Events[0].Type == "snapshot") != (n < 2) {
				t.Fatalf("message %d: %v %+v", n, err, m)
			}
			for _, tick := range m.Events[0].Tickers {
				b, err := r.v.Book(tick.Product, at, 1)
				if err != nil || tick.Bid != b.Bids[0].Price || tick.BidSize != b.Bids[0].Size || tick.Price == "" {
					t.Fatalf("%v: %+v, the book is %+v", err, tick, b)
				}
				if len(b.Asks) == 0 && tick.Ask != "" || len(b.Asks) > 0 && (tick.Ask != b.Asks[0].Price || tick.AskSize != b.Asks[0].Size) {
					t.Fatalf("%+v, the book is %+v", tick, b)
				}
			}
		}
		r.send("unsubscribe", "ticker", "BTC-USD", "DUST-BTC")
		r.until("subscriptions", time.Second)

		r.send("subscribe", "market_trades", "BTC-USD")
		last, seen := int64(0), 0
		for n := range 5 {
			m := r.until("market_trades", 3*time.Second)
			if (m.Events[0].Type == "snapshot") != (n == 0) {
				t.Fatalf("message %d: %+v", n, m)
			}
			for _, tr := range slices.Backward(m.Events[0].Trades) {
				id, err := tr.ID.Int64()
				if err != nil || last != 0 && id != last+1 || tr.Side != "BUY" && tr.Side != "SELL" {
					t.Fatalf("%+v after %d", tr, last)
				}
				last, seen = id, seen+1
			}
		}
		if seen < 8 {
			t.Fatalf("%d trades", seen)
		}
		r.send("unsubscribe", "market_trades", "BTC-USD")

		r.send("subscribe", "status")
		for range 2 {
			products := r.until("status", 6*time.Second).Events[0].Products
			if len(products) != len(r.v.Symbols()) || products[0].ID != "BTC-USD" || products[0].Status != "online" {
				t.Fatalf("%+v", products)
			}
		}
		r.send("unsubscribe", "status")
		r.until("subscriptions", time.Second)
		r.ws.silence(10 * time.Second)
	})
}

// FuzzCoinbaseStream_request: whatever a client sends, the next message is answered too.

func FuzzCoinbaseStream_request(f *testing.F) {
	for _, s := range []string{
		`{"type":"subscribe","channel":"level2","product_ids":["HALT-USD","BTC-USDC"]}`, `{"type":"unsubscribe","channel":"ticker","product_ids":["BTC-USD"]}`,
		`{"type":"subscribe","channel":"status"}`, `{"type":"subscribe","channel":"heartbeats","jwt":"e30.e30.e30"}`, `[]`, `null`, `{`, "\xff",
	} {
		f.Add(s)
	}
	sim, err := exchangesim.New(exchangesim.Config{Unlimited: true})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(sim.Close)
	f.Fuzz(func(t *testing.T, text string) {
		answerPing(t, sim.Venue("coinbase"), atURL, text, `{"type":"subscribe","channel":"heartbeats"}`, `"heartbeats":["heartbeats"]`)
	})
}
