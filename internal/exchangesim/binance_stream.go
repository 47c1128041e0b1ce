package exchangesim

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gobwas/ws"
)

// Rules of the streams (web-socket-streams.md as of 2026).
const (
	binancePing      = 20 * time.Second
	binancePong      = time.Minute // without a pong with the ping's payload: closed
	binanceLife      = 24 * time.Hour
	binanceMessages  = 5    // of the client's in a rolling second, pings and pongs included
	binanceStreams   = 1024 // on one connection
	binanceShutdown  = 10 * time.Second
	binanceLateAck   = 120 * time.Millisecond
	binanceMostBytes = 8 << 10 // a longer SUBSCRIBE is lost without a word (altangent/ccxws#161)
)

// binanceStream is one stream of Binance.
type binanceStream struct {
	b        *binance
	s        *stream
	combined bool // each event in an envelope that names its stream
	micro    bool
	names    []string // in force, in the order of their subscription
	heardAt  []time.Time
	pinged   map[string]*streamTimer // what waits for the pong of a ping, by payload
	acks     int
}

// connect counts handshakes; an IP that is banned gets none.
func (b *binance) connect(c *call) (answer, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.unlimited:
		return answer{}, true
	case !b.ban.during(c.now).IsZero():
		return b.banAnswer(c.now, b.ban.until), false
	case !b.dials.admit(c.now):
		return b.limitAnswer(c, b.dials.seen[0].Add(b.dials.per).Sub(c.now), "Too many connection attempts; current limit is "+
			strconv.Itoa(binanceDialLimit)+" per 5 MINUTE.")
	}
	return answer{}, true
}

// openStream starts a stream with what its URL asks for. Names in the URL that the venue does not know are silent: clients put counters
// there.
func (b *binance) openStream(s *stream, c *call) speaker {
	bs := &binanceStream{b: b, s: s, combined: c.ep.path == "/stream", micro: strings.EqualFold(c.query.Get("timeUnit"), "MICROSECOND"), pinged: map[string]*streamTimer{}}
	names := strings.Split(c.query.Get("streams"), "/")
	if !bs.combined {
		names = []string{c.part}
	}
	for _, name := range names[:min(len(names), binanceStreams)] {
		if t, ok := parseBinanceStream(name); ok {
			bs.subscribe(name, t)
		}
	}
	s.every(binancePing, bs.ping)
	s.after(binanceLife, s.leave)
	return bs
}

// ping sends a ping whose payload the pong has to repeat.
func (bs *binanceStream) ping() {
	payload := strconv.FormatInt(bs.s.v.clock(time.Now()).UnixMilli(), 10)
	bs.pinged[payload] = bs.s.after(binancePong, func() { bs.s.close(ws.StatusPolicyViolation, "Pong timeout") })
	bs.s.ping([]byte(payload))
}

// heard implements speaker: it counts the client's messages and takes pongs.
func (bs *binanceStream) heard(op ws.OpCode) {
	if op == ws.OpPong {
		if t, ok := bs.pinged[string(bs.s.payload)]; ok {
			delete(bs.pinged, string(bs.s.payload))
			t.stop()
		}
	}
	if op == ws.OpClose || bs.b.unlimited {
		return
	}
	now := time.Now()
	for len(bs.heardAt) > 0 && now.Sub(bs.heardAt[0]) >= time.Second {
		bs.heardAt = bs.heardAt[1:]
	}
	if bs.heardAt = append(bs.heardAt, now); len(bs.heardAt) > binanceMessages {
		bs.s.close(ws.StatusPolicyViolation, "Too many requests")
		bs.b.mu.Lock()
		defer bs.b.mu.Unlock()
		bs.b.ban.refused(bs.s.v.clock(now)) // "IPs that are repeatedly disconnected may be banned"
	}
}

// retire implements speaker: the notice exists since May 2026; no lead is promised.
func (bs *binanceStream) retire() time.Duration {
	bs.s.say(bs.wrap("!serverShutdown", struct {
		Event string `json:"e"`
		Time  int64  `json:"E"`
	}{"serverShutdown", bs.stamp(time.Now())}))
	return binanceShutdown
}

// farewell implements speaker.
func (bs *binanceStream) farewell() (ws.StatusCode, string) { return ws.StatusGoingAway, "" }

// stamp is a time of the venue's clock as this stream writes it.
func (bs *binanceStream) stamp(now time.Time) int64 { return bs.unix(bs.s.v.clock(now)) }

// unix is a time in ms, or in micros for a client that asked for them.
func (bs *binanceStream) unix(t time.Time) int64 {
	if bs.micro {
		return t.UnixMicro()
	}
	return t.UnixMilli()
}

// send puts an event of a symbol on the wire.
func (bs *binanceStream) send(symbol, name string, event any) {
	bs.s.data(symbol, bs.wrap(name, event))
}

// wrap encodes an event.
func (bs *binanceStream) wrap(name string, event any) []byte {
	return bs.envelope(name, jsonAnswer(http.StatusOK, event).body)
}

// envelope names the stream of an event if the connection wants that.
func (bs *binanceStream) envelope(name string, event []byte) []byte {
	if !bs.combined {
		return event
	}
	return slices.Concat([]byte(`{"stream":`), jsonAnswer(http.StatusOK, name).body, []byte(`,"data":`), event, []byte("}"))
}
