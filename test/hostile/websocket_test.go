package hostile_test

import (
	"bytes"
	"encoding/binary"
	"strings"
	"time"

	"github.com/gobwas/ws"

	"exchange-gateway/test/hostile/attack"
)

const subscribe = `{"op":"subscribe","channel":"orderbook","exchange":"okx","symbols":["BTC/USDT"],"depth":1}`

// handshake is a right one; lines are more of its header.
func handshake(lines ...string) string {
	return get("/v1/stream", append([]string{
		"Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
	}, lines...)...)
}

// frame is a client's frame, masked as it has to be.
func frame(op ws.OpCode, fin bool, payload string) []byte {
	f := ws.MaskFrameInPlace(ws.NewFrame(op, fin, []byte(payload)))
	b, err := ws.CompileFrame(f)
	if err != nil {
		panic(err) // a test's own frame that cannot be written
	}
	return b
}

func text(payload string) []byte { return frame(ws.OpText, true, payload) }

// twisted is a frame with other bits in its first two bytes.
func twisted(first, second byte) []byte {
	b := text("{}")
	b[0] ^= first
	b[1] ^= second
	return b
}

// socket is a handshake, and what follows it.
func socket(name string, steps ...attack.Step) attack.Script {
	return attack.Script{
		Name: name, WebSocket: true, Conns: 3,
		Steps: append([]attack.Step{{Send: []byte(handshake())}}, steps...),
	}
}

// ended is a socket that the gateway closes with a code that says why.
func ended(name string, code int, steps ...attack.Step) hostility {
	return hostility{Script: socket(name, steps...), statuses: []int{101}, answers: 1, close: code, ends: closes}
}

func send(b []byte) attack.Step { return attack.Step{Send: b} }

// frames are frames that RFC 6455 forbids, or more of them than anybody needs.
func frames() []hostility {
	bad := func(name string, b []byte) hostility { return ended(name, 1002, send(b)) }
	huge := append([]byte{0x81, 0xff}, binary.BigEndian.AppendUint64(nil, 1<<62)...)
	negative := append([]byte{0x81, 0xff}, binary.BigEndian.AppendUint64(nil, 1<<63)...)
	mask := []byte{1, 2, 3, 4}
	long := ws.Header{Fin: true, OpCode: ws.OpPing, Length: 126}
	var ping bytes.Buffer
	long.Masked, long.Mask = true, [4]byte(mask)
	if err := ws.WriteHeader(&ping, long); err != nil {
		panic(err) // a buffer takes everything
	}
	ping.Write(make([]byte, 126))
	return []hostility{
		bad("a frame without a mask", twisted(0, 0x80)),
		bad("a frame with a reserved bit", twisted(0x40, 0)),
		bad("a frame of a reserved kind", twisted(0x02, 0)),
		bad("a control frame of a reserved kind", twisted(0x0a, 0)),
		bad("a continuation of nothing", frame(ws.OpContinuation, true, "{}")),
		bad("a message inside a message", append(frame(ws.OpText, false, "{"), text("{}")...)),
		bad("a ping in parts", frame(ws.OpPing, false, "a")),
		bad("a ping of 126 bytes", ping.Bytes()),
		bad("a close of one byte", frame(ws.OpClose, true, "a")),
		bad("a close with a code that is none", frame(ws.OpClose, true, "\x00\x01")),
		bad("a length with its highest bit set", append(negative, mask...)),
		bad("HTTP where frames belong", []byte(get("/livez"))),
		ended("a frame of 4 EiB", 1009, send(append(huge, mask...))),
		ended("a message of 70 KB", 1009, send(text(strings.Repeat("a", 70_000)))),
		ended("a message of 70 KB in parts", 1009, send(frame(ws.OpText, false, strings.Repeat("a", 40_000))),
			send(frame(ws.OpContinuation, true, strings.Repeat("a", 40_000)))),
		ended("parts without end", 1008, send(frame(ws.OpText, false, "{")),
			attack.Step{Send: frame(ws.OpContinuation, false, ""), Repeat: 5000}),
		ended("pings without end", 1008, attack.Step{Send: frame(ws.OpPing, true, "a"), Repeat: 5000}),
		ended("pongs without end", 1008, attack.Step{Send: frame(ws.OpPong, true, "a"), Repeat: 5000}),
		ended("messages without end", 1008, attack.Step{Send: text(`{"op":"ping"}`), Repeat: 5000}),
		ended("text that is no UTF-8", 1007, send(text("\xff\xfe"))),
		ended("bytes instead of text", 1003, send(frame(ws.OpBinary, true, "{}"))),
	}
}

// halves are messages that are begun and not ended. They take 10 s to be given up.
func halves() []hostility {
	half := ended("half a message", 1008, send(frame(ws.OpText, false, `{"op":`)))
	head := ended("half a header", 1008, send([]byte{0x81}))
	for _, h := range []*hostility{&half, &head} {
		h.Wait = 20 * time.Second
	}
	return []hostility{half, head}
}

// messages are well-framed messages that mean nothing. Each is answered with an error, and the connection goes on.
func messages() []hostility {
	all := []string{
		"", "{", "null", "[]", "1e999", `"subscribe"`, `{"op":1}`, `{"op":"subscribe"}`, `{"op":"drop"}`, "{}{}",
		`{"op":"ping","op":"ping"}`, `{"op":"ping","x":1}`,
		`{"op":"subscribe","channel":"orderbook","exchange":"okx","symbols":"BTC/USDT"}`,
		`{"op":"subscribe","channel":"orderbook","exchange":"okx","symbols":[]}`,
		`{"op":"subscribe","channel":"orderbook","exchange":"okx","symbols":[null]}`,
		`{"op":"subscribe","channel":"orderbook","exchange":"../okx","symbols":["BTC/USDT"]}`,
		`{"op":"subscribe","channel":"orderbook","exchange":"okx","symbols":["BTC/USDT"],"depth":1e9}`,
		`{"op":"subscribe","channel":"orderbook","exchange":"okx","symbols":["BTC/USDT"],"depth":-5}`,
		`{"op":"subscribe","channel":"orderbook","exchange":"okx","symbols":["` + strings.Repeat("A", 4000) + `/USDT"]}`,
		strings.Repeat("[", 30_000), strings.Repeat(`{"op":`, 5000),
		`{"op":"unsubscribe","channel":"ticker","exchange":"okx","symbols":["BTC/USDT"]}`,
		`{"op":"ping","id":"` + strings.Repeat("a", 65) + `"}`,
		`{"op":"subscribe","channel":"ticker","exchange":"okx","symbols":[` + strings.Repeat(`"BTC/USDT",`, 200) + `"BTC/USDT"]}`,
	}
	var steps []attack.Step
	for _, m := range all {
		steps = append(steps, send(text(m)))
	}
	s := socket("messages that mean nothing", steps...)
	s.Wait = 2 * time.Second
	return []hostility{
		{Script: s, statuses: []int{101}, answers: 1, errors: len(all), ends: []string{attack.EndOpen}},
		{
			Script: socket("a goodbye", send(text(subscribe)), send(frame(ws.OpClose, true, "\x03\xe8"))), statuses: []int{101},
			answers: 1, close: 1000, ends: closes,
		},
	}
}

// handshakes are none.
func handshakes() []hostility {
	line := func(old, new string) string { return strings.Replace(handshake(), old, new, 1) }
	return []hostility{
		refused("a stream without a handshake", get("/v1/stream"), 426, "upgrade_required"),
		refused("a handshake without a key", line("Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n", ""), 426,
			"upgrade_required"),
		refused("a handshake with a short key", line("dGhlIHNhbXBsZSBub25jZQ==", "YQ=="), 426, "upgrade_required"),
		refused("a handshake of another version", line("Version: 13", "Version: 8"), 426, "upgrade_required"),
		refused("a handshake of a web page", handshake("Origin: https://elsewhere.example"), 403, "forbidden"),
		refused("a handshake with a key in the query",
			strings.Replace(handshake(), "/v1/stream", "/v1/stream?key=gw_aaaaaaaa_aaaaaaaaaaaaaaaaaaaaaaaaaa", 1), 400,
			"invalid_parameter"),
		refused("a handshake with a wrong key", handshake("Authorization: Bearer gw_aaaaaaaa_aaaaaaaaaaaaaaaaaaaaaaaaaa"), 401,
			"unauthenticated"),
		refused("events of nothing", get("/v1/stream/orderbook"), 400, "invalid_parameter"),
		refused("events of every depth", get("/v1/stream/orderbook?exchange=okx&symbol=BTC/USDT&depth=3"), 400,
			"invalid_parameter"),
		refused("events of an unknown pair", get("/v1/stream/orderbook?exchange=okx&symbol=NO/SUCH"), 404, "symbol_unknown"),
	}
}
