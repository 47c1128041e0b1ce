package exchangesim_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"exchange-gateway/internal/exchangesim"
)

// FuzzStreamFrames: whatever bytes a client sends end in messages within the bound, or in a close code of RFC 6455.
func FuzzStreamFrames(f *testing.F) {
	f.Add([]byte{0x81, 0x82, 1, 2, 3, 4, '{' ^ 1, '}' ^ 2})
	f.Add([]byte{0x01, 0x81, 0, 0, 0, 0, '{', 0x89, 0x80, 0, 0, 0, 0, 0x80, 0x81, 0, 0, 0, 0, '}'})
	f.Add([]byte{0x81, 0xff, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0})
	f.Add([]byte{0x81, 0x02, '{', '}'})
	f.Add([]byte{0x88, 0x82, 0, 0, 0, 0, 3, 0xe8})
	f.Fuzz(func(t *testing.T, data []byte) {
		texts, code := exchangesim.ReadFrames(bytes.NewReader(data))
		for _, text := range texts {
			if len(text) > 64<<10 || len(text) > len(data) {
				t.Errorf("a message of %d bytes out of %d", len(text), len(data))
			}
		}
		if code != 0 && code != 1002 && code != 1009 {
			t.Errorf("closed with %d", code)
		}
	})
}

// FuzzStreamText: every venue answers whatever a client says with whole frames of valid JSON, or with a close.
func FuzzStreamText(f *testing.F) {
	for _, seed := range []string{
		`{"method":"SUBSCRIBE","params":["btcusdt@depth@100ms","!miniTicker@arr"],"id":"a"}`, `{"method":"SET_PROPERTY","params":["combined",true],"id":-1}`,
		`{"method":"GET_PROPERTY","params":[],"id":null}`, `{"op":"subscribe","args":[{"channel":"books","instId":"BTC-USDT"}]}`, `ping`, `[]`, `{"id":{}}`,
		`{"type":"subscribe","channel":"level2","product_ids":["BTC-USD"]}`, `{"type":"subscribe","channel":"heartbeats"}`, `{"op":"unsubscribe","args":[{}]}`,
	} {
		f.Add([]byte(seed))
	}
	small := []exchangesim.Instrument{
		{Symbol: "BTCUSDT", Base: "BTC", Quote: "USDT", Tick: "0.01", Lot: "0.01", Price: "64000", Size: "1", Levels: 5},
		{Symbol: "BTC-USDT", Base: "BTC", Quote: "USDT", Tick: "0.01", Lot: "0.01", Price: "64000", Size: "1", Levels: 5},
		{Symbol: "BTC-USD", Base: "BTC", Quote: "USD", Tick: "0.01", Lot: "0.01", Price: "64000", Size: "1", Levels: 5},
	}
	sim, err := exchangesim.New(exchangesim.Config{
		Unlimited: true, Instruments: map[string][]exchangesim.Instrument{"binance": small, "okx": small, "coinbase": small},
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(sim.Close)
	f.Fuzz(func(t *testing.T, msg []byte) {
		for _, v := range sim.Venues() {
			for _, frame := range exchangesim.Speak(v, msg) {
				payload := payloadOf(frame)
				if op := frame[0] & 0x0f; op == 1 && !json.Valid(payload) && string(payload) != "pong" {
					t.Errorf("%s answers %q with %q", v.ID(), msg, payload)
				}
			}
		}
	})
}

// payloadOf takes the head of a frame without a mask away.
func payloadOf(frame []byte) []byte {
	switch frame[1] {
	case 126:
		return frame[4:]
	case 127:
		return frame[10:]
	}
	return frame[2:]
}

// FuzzCapture: a capture is refused, or each of its steps has a book without levels of size zero, and the way back gives the same.
func FuzzCapture(f *testing.F) {
	f.Add([]byte(`{"exchange":"binance","symbol":"AB","pair":"A/B","base":{"bids":[["1.5","2"]],"asks":[],"sequence":7},"frames":[{"at":"2026-11-30T00:00:00Z","text":"{\"stream\":\"ab@depth\",\"data\":{\"e\":\"depthUpdate\",\"E\":1,\"U\":8,\"u\":9,\"b\":[[\"1.5\",\"0\"],[\"1.4\",\"3\"]],\"a\":[]}}"}]}`))
	f.Add([]byte(`{"exchange":"okx","symbol":"A-B","pair":"A/B","base":{},"frames":[{"text":"{\"arg\":{\"channel\":\"books\",\"instId\":\"A-B\"},\"action\":\"snapshot\",\"data\":[{\"bids\":[[\"1\",\"2\",\"0\",\"1\"]],\"asks\":[],\"seqId\":5,\"prevSeqId\":-1}]}"}]}`))
	f.Add([]byte(`{"exchange":"coinbase","symbol":"A-B","pair":"A/B","frames":[{"text":"{\"channel\":\"l2_data\",\"sequence_num\":3,\"events\":[{\"type\":\"snapshot\",\"product_id\":\"A-B\",\"updates\":[{\"side\":\"offer\",\"price_level\":\"2\",\"new_quantity\":\"1\"}]}]}"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		v, frames, err := exchangesim.PlayCapture(data)
		if err != nil || v == nil {
			return
		}
		last := ledgerOf(v.BookOfFrame(frames))
		for n := range frames + 1 {
			b := v.BookOfFrame(n)
			for _, l := range append(b.Bids, b.Asks...) {
				if l.Size == "0" {
					t.Errorf("after %d frames: %+v", n, l)
				}
			}
			if n == frames && !ledgerOf(b).equal(last) {
				t.Error("another book at the end")
			}
		}
	})
}
