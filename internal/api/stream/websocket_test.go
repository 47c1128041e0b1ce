package stream_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"exchange-gateway/internal/api/stream"
	"exchange-gateway/internal/market"
)

func TestWebSocket_aSubscriptionFromBeginToEnd(t *testing.T) {
	r := newRig(t)
	c := r.dial(t)
	c.send(subscribeTo(5))
	first := c.expect("status live", "snapshot")[1]
	if len(first.Bids) != 5 || first.Bids[0][0] != "64000.00" || first.Depth != 5 || first.Exchange != "okx" || first.Symbol != "BTC/USDT" {
		t.Errorf("snapshot %+v", first)
	}
	r.feed.change(777)
	if m := c.expect("update")[0]; m.Seq != first.Seq+1 || len(m.Bids) != 1 || m.Bids[0] != [2]string{"64000.00", "7.77"} {
		t.Errorf("update %+v", m)
	}
	c.send(`{"op":"subscribe","channel":"ticker","exchange":"okx","symbols":["BTC-USDT"]}`)
	if m := c.expect("status live", "snapshot")[1]; m.Channel != "ticker" {
		t.Errorf("snapshot of a ticker: %+v", m)
	}
	c.send(`{"op":"unsubscribe","channel":"orderbook","exchange":"okx","symbols":["BTC/USDT"],"depth":5}`)
	if m := c.expect("status unsubscribed")[0]; m.Channel != "orderbook" || m.Depth != 5 {
		t.Errorf("unsubscribed: %+v", m)
	}
	before := time.Now().Add(-time.Millisecond)
	c.send(`{"op":"ping"}`)
	if m := c.expect("heartbeat")[0]; m.SentAt.Before(before) || m.SentAt.Location() != time.UTC {
		t.Errorf("heartbeat: %+v", m)
	}
	r.feed.change(778) // of the ticker alone now
	if m := c.expect("update")[0]; m.Channel != "ticker" {
		t.Errorf("after unsubscribe: %+v", m)
	}
	if watched, released := r.feed.counts(); watched != 2 || released != 1 {
		t.Errorf("watched %d, released %d", watched, released)
	}
	if err := c.Close(websocket.StatusNormalClosure, ""); err != nil {
		t.Errorf("close: %v", err)
	}
	until(t, "the session ends", func() bool { return r.clients("websocket") == 0 })
	if _, released := r.feed.counts(); released != 2 {
		t.Errorf("released %d", released)
	}
	if got := r.ended("websocket", "client"); got != 1 {
		t.Errorf("ended by the client: %d", got)
	}
	if got := r.value("gateway_stream_frames_total", "websocket"); got < 8 {
		t.Errorf("frames: %d", got)
	}
	r.lint(t)
}

func TestWebSocket_severalPairsAtOnce(t *testing.T) {
	r := newRig(t)
	c := r.dial(t)
	c.send(`{"op":"subscribe","id":"a1","channel":"orderbook","exchange":"okx","symbols":["ETH/USDT","BTC/EUR","BTC/USDT","ETH/USDT"]}`)
	all := c.expect("status syncing", "error", "status live", "snapshot")
	if m := all[1]; m.Symbol != "BTC/EUR" || m.Code != "fake" || m.Detail != errUnknown.Error() || m.RetryAfterMS != 2000 ||
		m.Channel != "orderbook" || m.Exchange != "okx" || m.Depth != stream.DefaultDepth || m.ID == nil || *m.ID != "a1" {
		t.Errorf("error %+v", m)
	}
	if all[0].Symbol != "ETH/USDT" || all[2].Symbol != "BTC/USDT" {
		t.Errorf("got %+v", all)
	}
	if watched, _ := r.feed.counts(); watched != 2 {
		t.Errorf("watched %d: a pair that is named twice is meant once", watched)
	}
}

// A message that cannot be followed is answered, changes nothing, and ends nothing.
func TestWebSocket_badMessages(t *testing.T) {
	r := newRig(t)
	type bad struct{ text, field, detail, id string }
	const rest = `,"op":"subscribe","channel":"orderbook","exchange":"okx","symbols":["BTC/USDT"]}`
	for _, in := range []bad{
		{``, "", "not a JSON object", ""},
		{`nonsense`, "", "not a JSON object", ""},
		{`[]`, "", "not a JSON object", ""},
		{`"subscribe"`, "", "not a JSON object", ""},
		{`{"op":"ping"}}`, "", "one JSON object", ""},
		{`{"op":"ping"} {"op":"ping"}`, "", "one JSON object", ""},
		{`null`, "", "not a JSON object", ""},
		{`{"op":"ping"`, "", "not a JSON object", ""},
		{`{"op" "ping"}`, "", "not a JSON object", ""},
		{`{"op":"ping",}`, "", "not a JSON object", ""},
		{`{"x":nonsense,"id":"x"}`, "", "not a JSON object", ""},
		{`{}`, "op", "missing", ""},
		{`{"op":"SUBSCRIBE","id":"x"}`, "op", "unknown", "x"},
		{`{"op":1,"id":"x"}`, "op", "wrong type", "x"},
		{`{"depht":5,"id":"7"` + rest, "", `no field "depht"`, "7"},
		{`{"Depth":1,"depth":5,"id":"7"` + rest, "", `no field "Depth"`, "7"},
		{`{"depth":5,"Depth":1,"id":"7"` + rest, "", `no field "Depth"`, "7"},
		{`{"depth":1,"depth":5,"id":"7"` + rest, "depth", "depth is there twice", "7"},
		{`{"depth":5,"depth":5` + rest, "depth", "depth is there twice", ""},
		{`{"dep\u0074h":1,"depth":5` + rest, "depth", "depth is there twice", ""},
		{`{"id":"7","id":"8"` + rest, "id", "id is there twice", "7"},
		{`{"ID":"7"` + rest, "", `no field "ID"`, ""},
		{`{"\u017fymbols":["ETH/USDT"]` + rest, "", "no field", ""}, // a long s, which json takes for an s
		{`{"depth":null,"depth":5` + rest, "depth", "depth is there twice", ""},
		{`{"depth":"5","id":"7"` + rest, "depth", "wrong type", "7"},
		{`{"depth":5.5` + rest, "depth", "wrong type", ""},
		{`{"depth":7,"id":"7"` + rest, "depth", "depth 7 is not offered", "7"},
		{`{"depth":-1` + rest, "depth", "not offered", ""},
		{`{"depth":` + strings.Repeat("9", 60_000) + rest, "depth", "wrong type", ""},
		{`{"id":1` + rest, "id", "wrong type", ""},
		{`{"id":"` + strings.Repeat("a", 65) + `"` + rest, "id", "longer than 64 bytes", ""},
		{`{"op":"subscribe","channel":"trades","exchange":"okx","symbols":["BTC/USDT"]}`, "channel", "unknown", ""},
		{`{"op":"subscribe","exchange":"okx","symbols":["BTC/USDT"]}`, "channel", "missing", ""},
		{`{"op":"subscribe","channel":"orderbook","exchange":"kraken","symbols":["BTC/USDT"]}`, "exchange", "unknown", ""},
		{`{"op":"subscribe","channel":"orderbook","symbols":["BTC/USDT"]}`, "exchange", "missing", ""},
		{`{"op":"subscribe","channel":"ticker","exchange":"okx","symbols":["BTC/USDT"],"depth":5}`, "depth", "no depth", ""},
		{`{"op":"subscribe","channel":"orderbook","exchange":"okx"}`, "symbols", "missing", ""},
		{`{"op":"subscribe","channel":"orderbook","exchange":"okx","symbols":[]}`, "symbols", "missing", ""},
		{`{"op":"subscribe","channel":"orderbook","exchange":"okx","symbols":"BTC/USDT"}`, "symbols", "wrong type", ""},
		{`{"op":"subscribe","channel":"orderbook","exchange":"okx","symbols":["BTC/USDT","BTCUSDT"]}`, "symbols", "symbols[1]", ""},
		{`{"op":"subscribe","channel":"orderbook","exchange":"okx","symbols":["BTC/USDT"` + strings.Repeat(`,"BTC/USDT"`, 200) + `]}`, "symbols", "201 pairs", ""},
		{`{"op":"unsubscribe","channel":"orderbook","exchange":"okx","symbols":["BTC/USDT"],"id":"u"}`, "symbols", "not subscribed", "u"},
	} {
		c := r.dial(t)
		c.send(in.text)
		m := c.expect("error")[0]
		id := ""
		if m.ID != nil {
			id = *m.ID
		}
		if m.Code != "invalid_parameter" || m.Field != in.field || !strings.Contains(m.Detail, in.detail) || id != in.id || m.SentAt.IsZero() {
			t.Errorf("%.100s: %+v, want field %q, detail %q, id %q", in.text, m, in.field, in.detail, in.id)
		}
		if len(m.Detail) > 400 {
			t.Errorf("%.100s: a detail of %d bytes", in.text, len(m.Detail))
		}
		c.send(`{"op":"ping"}`)
		c.expect("heartbeat")
		_ = c.CloseNow()
	}
	if watched, _ := r.feed.counts(); watched != 0 {
		t.Errorf("watched %d", watched)
	}
	if got := r.value("gateway_stream_requests_refused_total"); got < 29 {
		t.Errorf("refused: %d", got)
	}
}

func TestWebSocket_listsWhatIsAllowed(t *testing.T) {
	c := newRig(t).dial(t)
	f := func(text string, want ...string) {
		t.Helper()
		c.send(text)
		if m := c.expect("error")[0]; !slices.Equal(m.Allowed, want) {
			t.Errorf("%s: allowed %q, want %q", text, m.Allowed, want)
		}
	}
	f(`{"op":"x"}`, "subscribe", "unsubscribe", "ping", "auth")
	f(`{"op":"subscribe","chanel":"x"}`, "id", "op", "channel", "exchange", "symbols", "depth", "key")
	f(`{"op":"subscribe","channel":"x"}`, "orderbook", "ticker")
	f(`{"op":"subscribe","channel":"ticker","exchange":"x"}`, "binance", "okx")
	f(`{"op":"subscribe","channel":"orderbook","exchange":"okx","depth":2}`, "1", "5", "20", "50", "100", "400")
}

func TestWebSocket_twiceSubscribed(t *testing.T) {
	r := newRig(t)
	c := r.dial(t)
	c.send(subscribeTo(5))
	c.send(subscribeTo(5))
	all := c.expect("status live", "snapshot", "error")
	if m := all[2]; m.Detail != "already subscribed" || m.Symbol != "BTC/USDT" {
		t.Errorf("error %+v", m)
	}
	c.send(subscribeTo(20)) // another depth is another topic
	c.expect("status live", "snapshot")
	if watched, released := r.feed.counts(); watched != 2 || released != 0 {
		t.Errorf("watched %d, released %d", watched, released)
	}
}

// The list of an exchange that does not answer is waited for once per message, and other clients are not kept waiting.
func TestWebSocket_aListThatDoesNotAnswer(t *testing.T) {
	asked := make(chan context.Context, 1)
	r := newRig(t, func(c *stream.Config) {
		c.Listing = func(ctx context.Context, e market.ExchangeID, p market.Pair) (market.Listing, error) {
			if e == "binance" {
				asked <- ctx
				<-ctx.Done()
				return market.Listing{}, ctx.Err()
			}
			return listing(ctx, e, p)
		}
	})
	waiting, other := r.dial(t), r.dial(t)
	waiting.send(strings.Replace(subscribeTo(5), "okx", "binance", 1))
	ctx := <-asked
	if at, ok := ctx.Deadline(); !ok || time.Until(at) > 10*time.Second {
		t.Errorf("deadline %v %v", at, ok)
	}
	other.send(subscribeTo(5))
	other.expect("status live", "snapshot")
	// The gateway stops: the wait is over at once.
	began := time.Now()
	closing, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := r.streams.Close(closing); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("Close took %v", took)
	}
	if code, reason := waiting.closed(); code != websocket.StatusGoingAway || reason != "the gateway is stopping" {
		t.Errorf("closed with %d %q", code, reason)
	}
}

// A panic ends one client. It once would have ended the gateway.
func TestWebSocket_aPanicEndsOneClient(t *testing.T) {
	r := newRig(t, func(c *stream.Config) {
		c.Listing = func(ctx context.Context, e market.ExchangeID, p market.Pair) (market.Listing, error) {
			if e == "binance" {
				panic("as the test says")
			}
			return listing(ctx, e, p)
		}
	})
	c, other := r.dial(t), r.dial(t)
	other.send(subscribeTo(5))
	other.expect("status live", "snapshot")
	c.send(strings.Replace(subscribeTo(5), "okx", "binance", 1))
	if code, reason := c.closed(); code != websocket.StatusInternalError || reason != "internal error" {
		t.Errorf("closed with %d %q", code, reason)
	}
	r.feed.change(5)
	other.expect("update")
	until(t, "the session is counted", func() bool { return r.ended("websocket", "failed") == 1 })
}

func TestWebSocket_refusesWhatIsNoHandshake(t *testing.T) {
	r := newRig(t)
	good := map[string]string{
		"Upgrade": "websocket", "Connection": "Upgrade", "Sec-Websocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec-Websocket-Version": "13",
	}
	f := func(want error, name, value string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+r.addr+"/v1/stream", nil)
		if err != nil {
			t.Fatal(err)
		}
		for k, v := range good {
			req.Header.Set(k, v)
		}
		if req.Header.Set(name, value); value == "" {
			req.Header.Del(name)
		}
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if want == nil {
			if res.StatusCode != http.StatusSwitchingProtocols {
				t.Errorf("%s: %s: %s", name, value, res.Status)
			}
			return
		}
		text := make([]byte, 100)
		n, _ := res.Body.Read(text)
		if got := strings.TrimSpace(string(text[:n])); got != want.Error() {
			t.Errorf("%s: %s: %q, want %q", name, value, got, want)
		}
	}
	f(stream.ErrNoHandshake, "Upgrade", "")
	f(stream.ErrNoHandshake, "Upgrade", "h2c")
	f(stream.ErrNoHandshake, "Connection", "")
	f(stream.ErrNoHandshake, "Connection", "keep-alive")
	f(stream.ErrNoHandshake, "Sec-Websocket-Key", "")
	f(stream.ErrNoHandshake, "Sec-Websocket-Key", "short")
	f(stream.ErrNoHandshake, "Sec-Websocket-Version", "")
	f(stream.ErrNoHandshake, "Sec-Websocket-Version", "8")
	f(stream.ErrForeignOrigin, "Origin", "https://example.com")
	f(stream.ErrForeignOrigin, "Origin", "null")
	f(stream.ErrForeignOrigin, "Origin", "http://"+r.addr+".example.com")
	f(nil, "Origin", "http://"+r.addr)
	f(nil, "Upgrade", "WebSocket")
	f(nil, "Connection", "keep-alive, upgrade")
	until(t, "all are gone", func() bool { return r.clients("websocket") == 0 })
}

func TestStreams_full(t *testing.T) {
	r := newRig(t, func(c *stream.Config) { c.MaxClients = 2 })
	first := r.dial(t)
	r.dial(t)
	for _, path := range []string{"/events?depth=5", "/v1/stream"} {
		url := "http://" + r.addr + path
		_, res, err := websocket.Dial(t.Context(), url, nil)
		if err == nil || res == nil || res.StatusCode != http.StatusTeapot {
			t.Errorf("%s: a third client: %v", path, err)
		}
	}
	_ = first.Close(websocket.StatusNormalClosure, "")
	until(t, "the first is gone", func() bool { return r.clients("websocket") == 1 })
	until(t, "there is room", func() bool {
		c, _, err := websocket.Dial(t.Context(), "ws://"+r.addr+"/v1/stream", nil)
		if err == nil {
			_ = c.CloseNow()
		}
		return err == nil
	})
}

// Beyond its bound of subscriptions a client is told so.
func TestWebSocket_tooManySubscriptions(t *testing.T) {
	c := newRig(t).dial(t)
	var names []string
	for i := range 200 {
		names = append(names, fmt.Sprintf(`"A%d/USDT"`, i))
	}
	c.send(`{"op":"subscribe","channel":"ticker","exchange":"okx","symbols":[` + strings.Join(names, ",") + `]}`)
	for range 200 {
		c.expect("status syncing")
	}
	c.send(subscribeTo(5))
	if m := c.expect("error")[0]; !strings.Contains(m.Detail, "at most 200") {
		t.Errorf("error %+v", m)
	}
}
