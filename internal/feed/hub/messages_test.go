package hub_test

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gobwas/ws"

	"exchange-gateway/internal/feed"
	"exchange-gateway/internal/feed/hub"
	"exchange-gateway/internal/market"
)

func level(price, size string) market.Level {
	return market.Level{Price: market.MustNumber(price), Size: market.MustNumber(size)}
}

// small is a book of two bids and one ask, told of at the beginning of the bubble's time.
func small(f *fakeFeed) *fakeBook {
	b := f.stream(btcKey, 0)
	b.bids = []market.Level{level("64073.00", "0.58849577"), level("64072.9", "1")}
	b.asks = []market.Level{level("64073.1", "1.07909367")}
	b.sequence, b.limit = 66813971942, 20
	b.rise()
	return b
}

func expect(t *testing.T, frames []*hub.Frame, want ...string) {
	t.Helper()
	for i := range max(len(frames), len(want)) {
		switch {
		case i >= len(frames):
			t.Errorf("missing: %s", want[i])
		case i >= len(want):
			t.Errorf("not expected: %s", frames[i].JSON())
		case string(frames[i].JSON()) != want[i]:
			t.Errorf("got  %s\nwant %s", frames[i].JSON(), want[i])
		}
	}
}

func TestMessages_ofABook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFeed(hub.Config{})
		b := small(f)
		c := f.listener.NewClient()
		defer c.Close()
		subscribe(t, c, depth(20))
		const name = `"channel":"orderbook","exchange":"okx","symbol":"BTC/USDT","exchange_symbol":"BTC-USDT","depth":20,"epoch":"run-1.1"`
		expect(
			t, next(t, c),
			`{"type":"status",`+name+`,"status":"live","reason":null,"since":"2000-01-01T00:00:00Z","confirmed_at":"2000-01-01T00:00:00Z","sent_at":"2000-01-01T00:00:00Z"}`,
			`{"type":"snapshot",`+name+`,"seq":1,"prev_seq":null,"status":"live","complete":true,"exchange_seq":66813971942,"exchange_time":"1999-12-31T23:59:59.999Z",`+
				`"confirmed_at":"2000-01-01T00:00:00Z","changed_at":"2000-01-01T00:00:00Z","sent_at":"2000-01-01T00:00:00Z","conflated":0,`+
				`"bids":[["64073.00","0.58849577"],["64072.9","1"]],"asks":[["64073.1","1.07909367"]]}`,
		)
		time.Sleep(1234567 * time.Microsecond)
		b.change([]market.Level{level("64073.00", "0"), level("64072.95", "2.0")}, []market.Level{level("64073.1", "0.5")})
		expect(
			t, next(t, c),
			`{"type":"update",`+name+`,"seq":2,"prev_seq":1,"status":"live","complete":true,"exchange_seq":66813971943,"exchange_time":"2000-01-01T00:00:01.233567Z",`+
				`"confirmed_at":"2000-01-01T00:00:01.234567Z","changed_at":"2000-01-01T00:00:01.234567Z","sent_at":"2000-01-01T00:00:01.234567Z","conflated":0,`+
				`"bids":[["64073.00","0"],["64072.95","2.0"]],"asks":[["64073.1","0.5"]]}`,
		)
		b.freshness(feed.StateStale, market.KindTimeout)
		expect(t, next(t, c), `{"type":"status",`+name+`,"status":"stale","reason":"timeout","since":"2000-01-01T00:00:01.234567Z",`+
			`"confirmed_at":"2000-01-01T00:00:01.234567Z","sent_at":"2000-01-01T00:00:01.234567Z"}`)
		b.lose(market.KindUnavailable)
		if !c.Unsubscribe(depth(20)) || c.Unsubscribe(depth(20)) {
			t.Error("a subscription ends once")
		}
		expect(t, next(t, c), `{"type":"status",`+name+`,"status":"unsubscribed","reason":"unavailable","since":"2000-01-01T00:00:01.234567Z",`+
			`"confirmed_at":null,"sent_at":"2000-01-01T00:00:01.234567Z"}`)
	})
}

func TestMessages_ofATicker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFeed(hub.Config{})
		b := small(f)
		c := f.listener.NewClient()
		defer c.Close()
		subscribe(t, c, ticker)
		frames := slices.Clone(next(t, c)[1:])
		b.change([]market.Level{level("64072.9", "3")}, nil) // not the top
		b.change([]market.Level{level("64073.00", "0.6")}, []market.Level{level("64073.1", "0")})
		b.change([]market.Level{level("64073.00", "0.7")}, []market.Level{level("64073.02", "9")})
		frames = append(frames, next(t, c)...)
		const name = `"channel":"ticker","exchange":"okx","symbol":"BTC/USDT","exchange_symbol":"BTC-USDT","epoch":"run-1.1"`
		const clocks = `"exchange_time":"1999-12-31T23:59:59.999Z","confirmed_at":"2000-01-01T00:00:00Z","changed_at":"2000-01-01T00:00:00Z","sent_at":"2000-01-01T00:00:00Z","conflated":0,`
		expect(
			t, frames,
			`{"type":"snapshot",`+name+`,"seq":1,"prev_seq":null,"status":"live","exchange_seq":66813971942,`+clocks+
				`"bid":"64073.00","bidVolume":"0.58849577","ask":"64073.1","askVolume":"1.07909367","mid":"64073.05","spread":"0.10"}`,
			`{"type":"update",`+name+`,"seq":2,"prev_seq":1,"status":"live","exchange_seq":66813971944,`+clocks+
				`"bid":"64073.00","bidVolume":"0.6","ask":null,"askVolume":null,"mid":null,"spread":null}`,
			`{"type":"update",`+name+`,"seq":3,"prev_seq":2,"status":"live","exchange_seq":66813971945,`+clocks+
				`"bid":"64073.00","bidVolume":"0.7","ask":"64073.02","askVolume":"9","mid":"64073.01","spread":"0.02"}`,
		)
	})
}

func TestTicker_midIsExact(t *testing.T) {
	f := func(bid, ask, mid, spread string) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			f := newFeed(hub.Config{})
			b := f.stream(btcKey, 0)
			b.bids, b.asks = []market.Level{level(bid, "1")}, []market.Level{level(ask, "1")}
			b.rise()
			c := f.listener.NewClient()
			defer c.Close()
			subscribe(t, c, ticker)
			if got, want := string(next(t, c)[1].JSON()), `"mid":"`+mid+`","spread":"`+spread+`"}`; !strings.HasSuffix(got, want) {
				t.Errorf("%s / %s: %s, want %s", bid, ask, got, want)
			}
		})
	}
	f("64073.00", "64073.10", "64073.05", "0.10")
	f("64073.00", "64073.01", "64073.005", "0.01")
	f("99999999999999999.5", "100000000000000000.25", "99999999999999999.875", "0.75")
	f("0.00000001", "0.00000002", "0.000000015", "0.00000001")
}

func TestFrame_isAWebSocketTextFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFeed(hub.Config{})
		c := f.listener.NewClient()
		defer c.Close()
		for _, n := range []int{0, 1, 125, 126, 65535, 65536, 70000} {
			c.Tell(bytes.Repeat([]byte{'x'}, n))
			frames := next(t, c)
			if len(frames) != 1 || len(frames[0].JSON()) != n || frames[0].ID() != "" {
				t.Fatalf("%d bytes: %d frames", n, len(frames))
			}
			rest := bytes.NewReader(frames[0].WebSocket())
			head, err := ws.ReadHeader(rest)
			payload, _ := io.ReadAll(rest) // of memory
			if err != nil || !head.Fin || head.Masked || head.OpCode != ws.OpText || head.Length != int64(n) || !bytes.Equal(payload, frames[0].JSON()) {
				t.Errorf("%d bytes: header %+v, %d bytes after it, err %v", n, head, len(payload), err)
			}
		}
	})
}

// A client that keeps levels by their text must hold the next snapshot to the letter, also when the exchange spells the
// same number another way.
func TestUpdate_followsTheSpelling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFeed(hub.Config{})
		b := small(f)
		c := f.listener.NewClient()
		defer c.Close()
		subscribe(t, c, depth(5))
		next(t, c)
		b.change([]market.Level{level("64072.90", "1"), level("64073.00", "0.588495770")}, nil)
		m := messages(t, c)
		want := [][2]string{{"64073.00", "0.588495770"}, {"64072.9", "0"}, {"64072.90", "1"}}
		if len(m) != 1 || len(m[0].Bids) != 3 || [3][2]string(m[0].Bids) != [3][2]string(want) {
			t.Errorf("got %+v, want bids %v", m, want)
		}
		// Past 18 digits a number is no longer compared by its parts.
		long := "123456789012345678901.5"
		b.change(nil, []market.Level{level("70000", long)})
		if m := messages(t, c); len(m) != 1 || m[0].Asks[0][1] != long {
			t.Errorf("got %+v", m)
		}
		b.change(nil, []market.Level{level("70000", long)})
		if m := messages(t, c); len(m) != 0 {
			t.Errorf("nothing changed: %+v", m)
		}
	})
}

func TestNames_areEscaped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFeed(hub.Config{})
		pair := market.Pair{Base: "币安人生", Quote: "USDT"}
		key := feed.Key{Exchange: "okx", Pair: pair}
		f.stream(key, 3)
		c := f.listener.NewClient()
		defer c.Close()
		l := market.Listing{Exchange: "okx", Pair: pair, Symbol: "a\"b\\\x01"}
		if err := c.Subscribe(l, hub.Topic{Key: key, Channel: hub.ChannelOrderBook, Depth: 1}, ""); err != nil {
			t.Fatal(err)
		}
		for _, m := range messages(t, c) {
			if m.Symbol != "币安人生/USDT" || m.ExchangeSymbol != "a\"b\\\x01" {
				t.Errorf("got %+v", m)
			}
		}
	})
}

func TestTopic_hasToExist(t *testing.T) {
	f := newFeed(hub.Config{})
	c := f.listener.NewClient()
	defer c.Close()
	for _, bad := range []hub.Topic{
		depth(0), depth(2), depth(1000), depth(-1),
		{Key: btcKey, Channel: hub.ChannelTicker, Depth: 1},
		{Key: btcKey, Channel: "trades"},
		{Key: feed.Key{Exchange: "binance", Pair: btc}, Channel: hub.ChannelTicker},
		{Key: feed.Key{Exchange: "okx", Pair: market.Pair{Base: "ETH", Quote: "USDT"}}, Channel: hub.ChannelTicker},
	} {
		if err := c.Subscribe(listing, bad, ""); !errors.Is(err, hub.ErrTopic) {
			t.Errorf("%+v: err = %v", bad, err)
		}
	}
	if len(f.watches) != 0 {
		t.Errorf("the feed was asked for %v", f.watches)
	}
}
