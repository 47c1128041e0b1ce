package exchangesim

import (
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/gobwas/ws"
)

// What is known of Advanced Trade's streams. An "IP" is every client of the venue.
const (
	atConnects  = 8                // handshakes a second and IP; another official page says 750
	atMessages  = 8                // messages without a token a second and IP
	atFirst     = 5 * time.Second  // until the first subscription; then the server drops the connection
	atBooks     = 30               // level2 products of a connection, enforced since August 2026
	atQuiet     = 60 * time.Second // without any message, or up to atQuietMore longer; then the connection ends
	atQuietMore = 30               // seconds
	atBeat      = time.Second
	atStatus    = 5 * time.Second // between messages of the channel status: "a preset interval"
)

// The keys of the limiters of streams.
const (
	atConnectKey = "connect"
	atMessageKey = "message"
)

func newATStreamLimiter(key string) *rolling {
	n := atMessages
	if key == atConnectKey {
		n = atConnects
	}
	return &rolling{limit: n, burst: n, per: time.Second}
}

// within reports whether a limit of streams has room for one more.
func (cb *coinbase) within(key string, now time.Time) bool {
	return cb.unlimited || cb.streamLimits.with(key, func(l *rolling) bool { return l.admit(now) })
}

// stream is the endpoint of advanced-trade-ws, which has no path.
func (cb *coinbase) stream() *endpoint {
	return &endpoint{path: "/", class: ClassStream, connect: cb.connect, open: cb.talk}
}

func (cb *coinbase) connect(c *call) (answer, bool) {
	if cb.within(atConnectKey, c.wall) {
		return answer{}, true
	}
	return exError(http.StatusTooManyRequests, "rate limit exceeded"), false
}

// atStream is one connection. Its messages share one sequence, acknowledgements and heartbeats included.
type atStream struct {
	cb    *coinbase
	s     *stream
	next  int64               // sequence_num of the next message
	subs  map[string][]string // products by channel, in the order in which they came
	began bool                // something was subscribed once
	last  time.Time           // of the last message
	quiet time.Duration       // that ends the connection

	beats    int   // heartbeat subscriptions: each brings a heartbeat a second, with the same counter
	uptime   int64 // seconds that the server had been up when the stream opened
	beating  bool  // the timers of heartbeats and status, once started, go on
	telling  bool
	gathered []atBookEvent // events that wait for their message
	gather   bool          // they are sent by whoever set this
}

func (cb *coinbase) talk(s *stream, _ *call) speaker {
	h := mix(hashText("coinbase connection"), uint64(s.id))
	x := &atStream{
		cb: cb, s: s, subs: map[string][]string{}, last: s.opened, uptime: int64(h % 1_000_000),
		quiet: atQuiet + time.Duration(h%(atQuietMore+1))*time.Second,
	}
	s.after(atFirst, func() {
		if !x.began {
			s.leave()
		}
	})
	s.after(x.quiet, x.idle)
	return x
}

// idle ends a connection on which nothing was sent.
func (x *atStream) idle() {
	if rest := x.quiet - time.Since(x.last); rest > 0 {
		x.s.after(rest, x.idle)
		return
	}
	x.s.leave()
}

// heard implements speaker: what the client sends does not keep the connection.
func (x *atStream) heard(ws.OpCode) {}

// retire implements speaker: there is no notice.
func (x *atStream) retire() time.Duration { return 0 }

// farewell implements speaker: connections end without a close frame (1006 at the client).
func (x *atStream) farewell() (ws.StatusCode, string) { return 0, "" }

type atRequest struct {
	Type       string   `json:"type"`
	ProductIDs []string `json:"product_ids"`
	Channel    string   `json:"channel"`
	JWT        string   `json:"jwt"`
}

// The texts of the errors. They name neither channel nor product.
const (
	atErrAuth    = "authentication failure" // a bad token, and a channel that does not exist
	atErrBooks   = "too many L2 streams requested in a single session"
	atErrRate    = "rate limit exceeded"
	atErrRefused = "failure to subscribe"
)

// fail sends an error, which has no sequence.
func (x *atStream) fail(msg string) {
	x.s.say(mustJSON(struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}{"error", msg}))
}

// text implements speaker.
func (x *atStream) text(msg []byte) {
	now := time.Now()
	var req atRequest
	channel, known := atChannel{}, false
	if err := json.Unmarshal(msg, &req); err == nil {
		channel, known = atChannels[req.Channel]
	} else {
		req = atRequest{}
	}
	switch {
	case req.JWT == "" && !x.cb.within(atMessageKey, now):
		x.fail(atErrRate)
	case req.Type != "subscribe" && req.Type != "unsubscribe":
		x.fail(atErrRefused)
	case !known || req.JWT != "" && x.cb.verifyToken(req.JWT, x.s.v.clock(now), "") == nil:
		x.fail(atErrAuth)
	case req.Type == "unsubscribe":
		x.unsubscribe(req, channel)
	case channel.follow != nil && len(req.ProductIDs) == 0:
		x.fail(atErrRefused)
	default:
		x.began = true
		x.subscribe(req, channel)
	}
}

// subscribe starts what is new, sends the snapshots and then what is subscribed now. Products that do not exist are left out.
func (x *atStream) subscribe(req atRequest, channel atChannel) {
	if channel.start != nil {
		channel.start(x)
		x.add(req.Channel, req.Channel, "")
		x.confirm()
		return
	}
	clock := x.s.v.clock(time.Now())
	full, refused := false, false
	x.gather = true
	for _, id := range req.ProductIDs {
		p, ok := x.product(id)
		switch {
		case !ok || slices.Contains(x.subs[req.Channel], id):
		case x.s.refused(id):
			refused = true
		case req.Channel == "level2" && len(x.subs[req.Channel]) >= atBooks:
			full = true
		default:
			x.add(req.Channel, id, id)
			name := req.Channel + ":" + p.Symbol
			if x.s.feedOf(name) == nil {
				x.s.follow(name, p, channel.pace, noStep, channel.follow(x, p)).advance(clock)
			}
			if x.levelsGathered() >= atSnapshotLevels {
				x.flush()
			}
		}
	}
	x.gather = false
	x.flush()
	if full {
		x.fail(atErrBooks)
	}
	if refused {
		x.fail(atErrRefused)
	}
	x.confirm()
}

// product finds the pair whose market a product shows: BTC-USDC is confirmed under its own name and sent as BTC-USD.
func (x *atStream) product(id string) (*pair, bool) {
	p, ok := x.s.v.pairs[id]
	if !ok || p.State == Delisted {
		return nil, false
	}
	if shown, ok := x.s.v.pairs[p.Alias]; ok {
		p = shown
	}
	return p, true
}

func (x *atStream) add(channel, product, symbol string) {
	if x.s.subscribed(channel+":"+product, symbol) {
		x.subs[channel] = append(x.subs[channel], product)
	}
}

// unsubscribe ends subscriptions. A book goes on while another product that shows it is subscribed.
func (x *atStream) unsubscribe(req atRequest, channel atChannel) {
	ids := req.ProductIDs
	if channel.start != nil {
		ids = []string{req.Channel}
	}
	if req.Channel == "heartbeats" {
		x.beats = 0
	}
	for _, id := range ids {
		if !x.s.unsubscribed(req.Channel + ":" + id) {
			continue
		}
		x.subs[req.Channel] = slices.DeleteFunc(x.subs[req.Channel], func(other string) bool { return other == id })
		p, _ := x.product(id)
		if p != nil && !slices.ContainsFunc(x.subs[req.Channel], func(other string) bool {
			o, _ := x.product(other)
			return o == p
		}) {
			x.s.unfollow(req.Channel + ":" + p.Symbol)
		}
	}
	if len(x.subs[req.Channel]) == 0 {
		delete(x.subs, req.Channel)
	}
	x.confirm()
}

// confirm sends the full current set of subscriptions.
func (x *atStream) confirm() {
	now := x.s.v.clock(time.Now()).UTC()
	x.send("", "subscriptions", now.Format(time.RFC3339Nano), object{"subscriptions": x.subs})
}

// send sends one message with the next number. Without a symbol no fault of single messages touches it.
func (x *atStream) send(symbol, channel, stamp string, events ...any) {
	text := mustJSON(struct {
		Channel     string `json:"channel"`
		Timestamp   string `json:"timestamp"`
		SequenceNum int64  `json:"sequence_num"`
		Events      []any  `json:"events"`
	}{channel, stamp, x.next, events})
	x.next++
	x.last = time.Now()
	if symbol == "" {
		x.s.say(text)
		return
	}
	x.s.data(symbol, text)
}
