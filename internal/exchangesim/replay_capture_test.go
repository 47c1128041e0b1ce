package exchangesim_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/exchangesim"
)

// recording is how a capture is made at one venue and played again.
type recording struct {
	venue, symbol, pair string
	url, subscribe      string
	frame               string // what messages of the book have in them
	fresh               bool   // the capture begins with the stream's own snapshot
}

var recordings = []recording{
	{
		venue: "binance", symbol: "ETHBTC", pair: "ETH/BTC", url: binanceWS + "/stream", frame: `"depthUpdate"`,
		subscribe: `{"method":"SUBSCRIBE","params":["ethbtc@depth@100ms"],"id":1}`,
	},
	{
		venue: "okx", symbol: "ETH-BTC", pair: "ETH/BTC", url: "ws://ws.okx.com:8443/ws/v5/public", frame: `"action":"update"`,
		subscribe: `{"op":"subscribe","args":[{"channel":"books","instId":"ETH-BTC"}]}`,
	},
	{
		venue: "okx", symbol: "ETH-BTC", pair: "ETH/BTC", url: "ws://ws.okx.com:8443/ws/v5/public", frame: `"action"`, fresh: true,
		subscribe: `{"op":"subscribe","args":[{"channel":"books","instId":"ETH-BTC"}]}`,
	},
	{
		venue: "coinbase", symbol: "ETH-BTC", pair: "ETH/BTC", url: "ws://advanced-trade-ws.coinbase.com/", frame: `"update"`,
		subscribe: `{"type":"subscribe","channel":"level2","product_ids":["ETH-BTC"]}`,
	},
	{
		// The frames are about BTC-USD.
		venue: "coinbase", symbol: "BTC-USDC", pair: "BTC/USDC", url: "ws://advanced-trade-ws.coinbase.com/", frame: `"update"`,
		subscribe: `{"type":"subscribe","channel":"level2","product_ids":["BTC-USDC"]}`,
	},
}

// small is a market whose books are cheap to write down.
func small(id string) map[string][]exchangesim.Instrument {
	name := map[string]string{"binance": "ETHBTC"}[id]
	if name == "" {
		name = "ETH-BTC"
	}
	return map[string][]exchangesim.Instrument{id: {
		{Symbol: name, Base: "ETH", Quote: "BTC", Tick: "0.00001", Lot: "0.0001", Price: "0.05", Size: "8", Levels: 80},
		{Symbol: "BTC-USD", Base: "BTC", Quote: "USD", Tick: "0.01", Lot: "0.00000001", Price: "64000", Size: "0.5", Levels: 80},
		{Symbol: "BTC-USDC", Base: "BTC", Quote: "USDC", Tick: "0.01", Lot: "0.00000001", Price: "64000", Size: "0.3", Levels: 80, Alias: "BTC-USD"},
	}}
}

// record streams a book from a simulated market and writes down its base and the frames, as the gateway does.
func (r recording) record(t *testing.T) (c exchangesim.Capture, end ledger) {
	sim := newSim(t, exchangesim.Config{Seed: 5, Instruments: small(r.venue)})
	v, ws := sim.Venue(r.venue), dialStream(t, piped(t, sim, r.venue), r.url)
	defer ws.close()
	shown := strings.Replace(r.symbol, "BTC-USDC", "BTC-USD", 1)
	ws.send(r.subscribe)
	if !r.fresh {
		ws.want(r.frame, time.Second)
	}
	var base, last exchangesim.Book
	bookNow := func(depth int) exchangesim.Book {
		b, err := v.Book(shown, time.Now(), depth)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	c = exchangesim.Capture{Exchange: r.venue, Symbol: r.symbol, Pair: r.pair, TakenAt: time.Now()}
	if !r.fresh {
		base = bookNow(400)
		if r.venue != "coinbase" {
			c.Base.Sequence = &base.Seq
		}
		for _, l := range base.Bids {
			c.Base.Bids = append(c.Base.Bids, [2]string{l.Price, l.Size})
		}
		for _, l := range base.Asks {
			c.Base.Asks = append(c.Base.Asks, [2]string{l.Price, l.Size})
		}
	}
	for len(c.Frames) < 50 {
		text := ws.want(r.frame, time.Second)
		c.Frames = append(c.Frames, exchangesim.CaptureFrame{At: time.Now(), Text: text})
		last = bookNow(400)
		time.Sleep(37 * time.Millisecond)
	}
	return c, ledgerOf(last)
}

// replay writes a capture into a file and gives a simulator that plays it.
func replay(t *testing.T, c any) *exchangesim.Sim {
	t.Helper()
	data, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "capture.json")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return replaying(t, path)
}

var number = regexp.MustCompile(`"sequence_num":([0-9]+)`)

// TestCapture_replay plays a recorded stretch of each venue's stream: the same messages, at the same pace, over the same book.
func TestCapture_replay(t *testing.T) {
	for _, r := range recordings {
		t.Run(fmt.Sprintf("%s %s fresh %t", r.venue, r.symbol, r.fresh), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, end := r.record(t)
				time.Sleep(time.Hour)
				sim := replay(t, c)
				v, tr := sim.Venue(r.venue), piped(t, sim, r.venue)
				shown := strings.Replace(r.symbol, "BTC-USDC", "BTC-USD", 1)
				if b, err := v.Book(shown, time.Now(), 400); err != nil || len(b.Bids) != len(c.Base.Bids) || len(b.Asks) != len(c.Base.Asks) {
					t.Fatalf("before the start: %d bids, %d asks, %v", len(b.Bids), len(b.Asks), err)
				}
				ws := dialStream(t, tr, r.url)
				ws.send(r.subscribe)
				var first time.Time
				for i, want := range c.Frames {
					got := ws.want(r.frame, time.Second)
					if i == 0 {
						first = time.Now()
					}
					if d, recorded := time.Since(first), want.At.Sub(c.Frames[0].At); d != recorded {
						t.Fatalf("frame %d came after %v, recorded %v", i, d, recorded)
					}
					if number.ReplaceAllString(got, "") != number.ReplaceAllString(want.Text, "") {
						t.Fatalf("frame %d\n got %.300s\nwant %.300s", i, got, want.Text)
					}
				}
				b, err := v.Book(shown, time.Now(), 400)
				if own, err := v.Book(r.symbol, time.Now(), 400); err != nil || !ledgerOf(own).equal(end) {
					t.Errorf("another book under the own name: %v", err)
				}
				if err != nil || !ledgerOf(b).equal(end) {
					t.Errorf("another book at the end: %v", err)
				}
				if r.venue == "binance" {
					id, l := snapshot(t, tr, r.symbol)
					if id != b.Seq || !l.equal(end) {
						t.Errorf("REST: %d, want %d", id, b.Seq)
					}
				}
				r.lateComer(t, tr, v, b)
			})
		})
	}
}

// lateComer subscribes after the end: a snapshot of the last book where the stream has snapshots, and numbers without a hole.
func (r recording) lateComer(t *testing.T, tr http.RoundTripper, v *exchangesim.Venue, b exchangesim.Book) {
	t.Helper()
	ws := dialStream(t, tr, r.url)
	ws.send(r.subscribe)
	switch r.venue {
	case "okx":
		m := ws.want(`"action":"snapshot"`, time.Second)
		if want := fmt.Sprintf(`"seqId":%d,"prevSeqId":-1`, b.Seq); !strings.Contains(m, want) {
			t.Errorf("no %s in %.300s", want, m)
		}
	case "coinbase":
		if m := ws.want(`"snapshot"`, time.Second); !strings.Contains(m, `"`+b.Bids[0].Price+`"`) || !strings.Contains(m, `"sequence_num":0,`) {
			t.Errorf("no best bid %s in %.300s", b.Bids[0].Price, m)
		}
	}
	if again, err := v.BookBySeq(b.Symbol, b.Seq, 400); err != nil || !ledgerOf(again).equal(ledgerOf(b)) {
		t.Errorf("by sequence: %v", err)
	}
}

// TestCapture_past: what the base holds already is not played, and what cannot be read is played and does nothing.
func TestCapture_past(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		diff := func(first, last int, bid string) string {
			return fmt.Sprintf(`{"stream":"abcxyz@depth@100ms","data":{"e":"depthUpdate","E":1,"s":"ABCXYZ","U":%d,"u":%d,"b":[["%s","2.5"]],"a":[]}}`, first, last, bid)
		}
		at := time.Now()
		seq := int64(100)
		c := exchangesim.Capture{Exchange: "binance", Symbol: "ABCXYZ", Pair: "ABC/XYZ", Base: exchangesim.CaptureBase{
			Bids: [][2]string{{"1.50", "3"}}, Asks: [][2]string{{"1.60", "0.5"}}, Sequence: &seq,
		}}
		for i, text := range []string{diff(95, 98, "1.4"), diff(99, 100, "1.5"), diff(101, 103, "1.45"), `{"stream":"abcxyz@depth@100ms","data":{"e":"other"}}`, diff(104, 104, "1.55")} {
			c.Frames = append(c.Frames, exchangesim.CaptureFrame{At: at.Add(time.Duration(i) * time.Second), Text: text})
		}
		sim := replay(t, c)
		tr := piped(t, sim, "binance")
		if id, l := snapshot(t, tr, "ABCXYZ"); id != 100 || len(l.bids) != 1 || l.bids["1.5"] != "3" || l.asks["1.6"] != "0.5" {
			t.Errorf("base: %d %v", id, l)
		}
		ws := dialStream(t, tr, binanceWS+"/ws/abcxyz@depth@100ms")
		for _, part := range []string{`"u":103`, `{"e":"other"}`, `"u":104`} {
			if m, _ := ws.next(2 * time.Second); !strings.Contains(m, part) || strings.Contains(m, `"stream"`) {
				t.Errorf("got %s, want %s", m, part)
			}
		}
		ws.silence(time.Minute)
		if id, l := snapshot(t, tr, "ABCXYZ"); id != 104 || len(l.bids) != 3 || l.bids["1.55"] != "2.5" {
			t.Errorf("end: %d %v", id, l)
		}
	})
}

// TestCapture_alias: a product that shows another one's book is listed together with it, and both have the recorded book.
func TestCapture_alias(t *testing.T) {
	c := exchangesim.Capture{Exchange: "coinbase", Symbol: "ZZZ-USDC", Pair: "ZZZ/USDC", Frames: []exchangesim.CaptureFrame{{
		At:   testTime,
		Text: `{"channel":"l2_data","sequence_num":9,"events":[{"type":"update","product_id":"ZZZ-USD","updates":[{"side":"bid","price_level":"0.5","new_quantity":"10"}]}]}`,
	}}}
	c.Base.Bids, c.Base.Asks = [][2]string{{"0.49", "3"}}, [][2]string{{"0.52", "4"}}
	rest := inMemory(t, replay(t, c).Venue("coinbase"))
	for _, product := range []string{"ZZZ-USD", "ZZZ-USDC"} {
		rest.get("/api/v3/brokerage/market/product_book?product_id="+product+"&limit=5").want(t, 200, `"bids":[{"price":"0.49","size":"3"}],"asks":[{"price":"0.52","size":"4"}]`)
	}
	rest.get("/api/v3/brokerage/market/products/ZZZ-USDC").want(t, 200, `"alias":"ZZZ-USD"`)
}

// TestCapture_refused: what could not be played is refused when it is read.
func TestCapture_refused(t *testing.T) {
	for name, text := range map[string]string{
		"venue":    `{"exchange":"kraken","symbol":"A","pair":"A/B","frames":[]}`,
		"pair":     `{"exchange":"okx","symbol":"A-B","pair":"AB","frames":[]}`,
		"sequence": `{"exchange":"binance","symbol":"AB","pair":"A/B","base":{"bids":[["1","1"]]},"frames":[]}`,
		"level":    `{"exchange":"okx","symbol":"A-B","pair":"A/B","base":{"bids":[["1e5","1"]]},"frames":[]}`,
		"shape":    `{"exchange":"okx","symbol":"A-B","pair":"A/B","frames":{}}`,
		"alias":    `{"exchange":"coinbase","symbol":"A-B","pair":"A/B","frames":[{"text":"{\"channel\":\"l2_data\",\"events\":[{\"product_id\":\"C-D\"}]}"}]}`,
	} {
		path := filepath.Join(t.TempDir(), "capture.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := exchangesim.ReadManifest(path)
		if err == nil {
			_, err = exchangesim.New(exchangesim.Config{Replay: m})
		}
		if err == nil {
			t.Errorf("%s: was taken", name)
		}
	}
}
