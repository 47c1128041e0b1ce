package exchangesim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/gobwas/ws"
)

// What OKX documents of its streams, per connection unless said otherwise.
const (
	okxConnects     = 3                // handshakes a second and IP
	okxRequests     = 480              // subscriptions, their ends and logins an hour
	okxIdle         = 30 * time.Second // without a word from the client and without a push; then close code 4004
	okxNotice       = time.Minute      // from notice 64008 to the close, about
	okxStreamLevels = 400              // the window of books
	okxKeepAlive    = time.Minute      // after which a book that does not change is confirmed, about
)

// okxStream is one connection to /ws/v5/public or /ws/v5/business. Private channels and logins are not simulated.
type okxStream struct {
	o        *okx
	s        *stream
	connID   string
	business bool
	requests rolling
	active   time.Time // of the last text of the client's or push; control frames do not count
	counted  bool      // channel-conn-count was sent
}

func (o *okx) streams() []*endpoint {
	at := func(path string, business bool) *endpoint {
		return &endpoint{path: path, class: ClassStream, connect: o.connect, open: func(s *stream, _ *call) speaker { return o.talk(s, business) }}
	}
	return []*endpoint{at("/ws/v5/public", false), at("/ws/v5/business", true)}
}

// connect enforces the limit of handshakes. OKXLimitAs200 is about answers to requests: a handshake has no envelope.
func (o *okx) connect(c *call) (answer, bool) {
	if o.cfg.Unlimited || o.limits.with(okxConnectKey, func(l *rolling) bool { return l.admit(c.wall) }) {
		return answer{}, true
	}
	return okxBare(http.StatusTooManyRequests, "50011", "Too Many Requests"), false
}

func (o *okx) talk(s *stream, business bool) speaker {
	x := &okxStream{
		o: o, s: s, business: business, connID: fmt.Sprintf("%08x", uint32(mix(hashText("okx connection"), uint64(s.id)))),
		requests: rolling{limit: okxRequests, burst: okxRequests, per: time.Hour}, active: time.Now(),
	}
	s.after(okxIdle, x.idle)
	return x
}

// idle closes a connection on which neither side said anything.
func (x *okxStream) idle() {
	if rest := okxIdle - time.Since(x.active); rest > 0 {
		x.s.after(rest, x.idle)
		return
	}
	x.s.close(4004, "No data received in 30s")
}

// okxArg names a subscription, as it is sent and echoed.
type okxArg struct {
	Channel  string `json:"channel"`
	InstType string `json:"instType,omitempty"`
	InstID   string `json:"instId,omitempty"`
}

// name is how the subscription is told from others of the connection.
func (a okxArg) name() string { return a.Channel + ":" + a.InstID }

type okxRequest struct {
	ID   string   `json:"id"`
	Op   string   `json:"op"`
	Args []okxArg `json:"args"`
}

// okxEvent is every message that is not a push.
type okxEvent struct {
	ID        string  `json:"id,omitempty"`
	Event     string  `json:"event"`
	Arg       *okxArg `json:"arg,omitempty"`
	Channel   string  `json:"channel,omitempty"`
	ConnCount string  `json:"connCount,omitempty"`
	Msg       string  `json:"msg,omitempty"`
	Code      string  `json:"code,omitempty"`
	ConnID    string  `json:"connId"`
}

func (x *okxStream) event(e okxEvent) {
	e.ConnID = x.connID
	x.s.say(mustJSON(e))
}

// fail sends an error. It carries no arg: a client finds what it is about by the id or in the text.
func (x *okxStream) fail(id, code, msg string) {
	x.event(okxEvent{ID: id, Event: "error", Code: code, Msg: msg})
}

// mustJSON encodes what is built here from strings, numbers and maps.
func mustJSON(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}

// heard implements speaker: frames of the protocol count for nothing here.
func (x *okxStream) heard(ws.OpCode) {}

// okxID is what an id may look like.
var okxID = regexp.MustCompile(`^[0-9A-Za-z]{0,32}$`)

// text implements speaker.
func (x *okxStream) text(msg []byte) {
	x.active = time.Now()
	if string(msg) == "ping" {
		x.s.say([]byte("pong"))
		return
	}
	var req okxRequest
	known := json.Unmarshal(msg, &req) == nil && okxID.MatchString(req.ID) && (req.Op == "subscribe" || req.Op == "unsubscribe")
	switch {
	case !known || len(req.Args) == 0:
		x.fail(req.ID, "60012", "Illegal request: "+string(msg))
	case !x.o.cfg.Unlimited && !x.requests.admit(x.active):
		x.fail(req.ID, "60014", "Requests too frequent")
	default:
		for _, arg := range req.Args {
			x.do(req, arg)
		}
	}
}

// do is the request for one of its args. A wrong one is an error of its own and leaves the others alone.
func (x *okxStream) do(req okxRequest, arg okxArg) {
	p, ok := x.find(req, arg)
	switch {
	case !ok:
	case req.Op == "subscribe":
		x.subscribe(req.ID, arg, p)
	default:
		x.unsubscribe(req.ID, arg)
	}
}

// find gives the pair of an arg, or sends the error.
func (x *okxStream) find(req okxRequest, arg okxArg) (*pair, bool) {
	if strings.HasSuffix(arg.Channel, "-l2-tbt") && !x.business {
		x.fail(req.ID, "60011", "Please log in")
		return nil, false
	}
	channel, known := okxChannels[arg.Channel]
	p, listed := x.s.v.pairs[arg.InstID]
	if !known || channel.business != x.business || !listed || p.State == Delisted || req.Op == "subscribe" && x.s.refused(arg.InstID) {
		x.fail(req.ID, "60018", fmt.Sprintf("Wrong URL or channel:%s, instId:%s doesn't exist. "+
			"Please use the correct URL, channel and parameters referring to API document.", arg.Channel, arg.InstID))
		return nil, false
	}
	return p, true
}

// subscribe starts a subscription; one that is in force is only confirmed again. One in four sends its first data before the
// confirmation, which the venue does at times.
func (x *okxStream) subscribe(id string, arg okxArg, p *pair) {
	channel := okxChannels[arg.Channel]
	if x.s.subscribed(arg.name(), arg.InstID) {
		f := x.s.follow(arg.name(), p, channel.pace, noStep, channel.emit(x, arg, p))
		f.quiet = channel.quiet
		if mix(hashText(arg.name()), uint64(x.s.id))%4 == 0 {
			f.advance(x.s.v.clock(time.Now()))
		}
	}
	x.event(okxEvent{ID: id, Event: "subscribe", Arg: &arg})
	if arg.Channel == "books" && !x.counted {
		// Documented for private channels. It comes with the first book here, so that who takes an unknown event for an error shows.
		x.counted = true
		x.event(okxEvent{Event: "channel-conn-count", Channel: arg.Channel, ConnCount: "1"})
	}
}

func (x *okxStream) unsubscribe(id string, arg okxArg) {
	x.s.unfollow(arg.name())
	x.s.unsubscribed(arg.name())
	x.event(okxEvent{ID: id, Event: "unsubscribe", Arg: &arg})
}

// retire implements speaker.
func (x *okxStream) retire() time.Duration {
	x.event(okxEvent{Event: "notice", Code: "64008", Msg: "The connection will soon be closed for a service upgrade. Please reconnect."})
	return okxNotice
}

// farewell implements speaker: connections end without a close frame (1006 at the client).
func (x *okxStream) farewell() (ws.StatusCode, string) { return 0, "" }
