package stream

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"exchange-gateway/internal/feed/hub"
	"exchange-gateway/internal/market"
)

// FuzzParseRequest: a message is either a request that can be followed as it is, or an error that fits a message to the
// client.
func FuzzParseRequest(f *testing.F) {
	for _, text := range []string{
		`{"op":"subscribe","channel":"orderbook","exchange":"okx","symbols":["BTC/USDT","ETH-USDT"],"depth":50,"id":"a"}`,
		`{"op":"unsubscribe","channel":"ticker","exchange":"okx","symbols":["币安人生/USDT"]}`,
		`{"op":"ping"}`, `{"op":"ping"}}`, `null`, `[1]`, `{"depth":1e999}`, `{"id":"\ud800"}`, `{"symbols":[null]}`, "{\"a\\\"\":1}",
		`{"op":"ping","Depth":1,"depth":5}`, `{"op":"ping","op":"ping"}`, `{"op":"ping","x":{"op":[1,{}]}}`, `{"op":"ping",}`,
		`{"op":"auth","key":"gw_abcd1234_0000000000000000000000fake","id":"k"}`, `{"op":"auth","key":null}`, `{"op":"auth","key":"x","depth":5}`,
		`{"op":"subscribe","key":"gw_abcd1234_0000000000000000000000fake","channel":"ticker","exchange":"okx","symbols":["BTC/USDT"]}`,
	} {
		f.Add([]byte(text))
	}
	known := []market.ExchangeID{"binance", "okx"}
	s := New(Config{Describe: func(error) Problem { return Problem{} }})
	f.Fuzz(func(t *testing.T, text []byte) {
		q, err := parseRequest(text, known)
		if len(q.ID) > maxID {
			t.Errorf("id of %d bytes", len(q.ID))
		}
		if err != nil {
			if b, ok := err.(*badRequest); !ok || b.detail == "" {
				t.Fatalf("%T %v", err, err)
			}
			m := s.refuse(q.ID, hub.Topic{}, err)
			if !json.Valid(m) || len(m) > 2<<10 {
				t.Errorf("%d bytes: %s", len(m), m)
			}
			if q.Key != "" && q.Op != opAuth {
				t.Errorf("a key of %q: %+v", q.Op, q)
			}
			return
		}
		if !json.Valid(text) {
			t.Fatalf("accepted %q", text)
		}
		if (q.Op == opAuth) != (q.Key != "") && !bytes.Contains(text, []byte(`""`)) {
			t.Fatalf("%+v of %q", q, text)
		}
		if q.Op == opPing || q.Op == opAuth {
			return
		}
		if !slices.Contains(ops, q.Op) || !slices.Contains(known, q.Exchange) || len(q.Pairs) == 0 || len(q.Pairs) > maxSymbols {
			t.Fatalf("%+v", q)
		}
		for i, p := range q.Pairs {
			if again, err := market.ParsePair(p.String()); err != nil || again != p || slices.Contains(q.Pairs[:i], p) {
				t.Errorf("pair %q: %v", p, err)
			}
			topic := q.topic(p)
			if book := topic.Channel == hub.ChannelOrderBook; book != slices.Contains(hub.Depths(), topic.Depth) || !book && topic.Depth != 0 {
				t.Errorf("topic %+v", topic)
			}
		}
	})
}
