package stream

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"exchange-gateway/internal/feed"
	"exchange-gateway/internal/feed/hub"
	"exchange-gateway/internal/market"
)

// The words of a client.
const (
	opSubscribe   = "subscribe"
	opUnsubscribe = "unsubscribe"
	opPing        = "ping"
)

var ops = []string{opSubscribe, opUnsubscribe, opPing}

// maxSymbols is how many pairs one message may name: as many as the hub lets one client subscribe to.
const maxSymbols = 200

// DefaultDepth is the depth of a subscription that names none.
const DefaultDepth = 50

// request is one message of a client.
type request struct {
	ID       string // echoed in an error
	Op       string
	Channel  hub.Channel
	Exchange market.ExchangeID
	Pairs    []market.Pair
	Depth    int
}

// badRequest is a message that cannot be followed: the field at fault and the allowed values.
type badRequest struct {
	field   string
	detail  string
	allowed []string
}

func (e *badRequest) Error() string { return e.detail }

func bad(field, detail string, allowed ...string) error {
	if len(allowed) > 0 {
		detail += ". Allowed: " + strings.Join(allowed, ", ")
	}
	return &badRequest{field: field, detail: detail + ".", allowed: allowed}
}

// wireRequest is the JSON of a request.
type wireRequest struct {
	ID       *string   `json:"id"`
	Op       *string   `json:"op"`
	Channel  *string   `json:"channel"`
	Exchange *string   `json:"exchange"`
	Symbols  *[]string `json:"symbols"`
	Depth    *int      `json:"depth"`
}

// maxID is the most bytes of an id.
const maxID = 64

// parseRequest reads one message strictly: an unknown field is an error, because a mistyped depth must not mean the default.
// The id is filled in, if it could be read, also where there is an error.
func parseRequest(text []byte, exchanges []market.ExchangeID) (q request, err error) {
	var w wireRequest
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	wrong := d.Decode(&w) // the other fields are filled in also beside one that is unknown or of the wrong type
	if w.ID != nil {
		if len(*w.ID) > maxID {
			return q, bad("id", fmt.Sprintf("id is longer than %d bytes", maxID))
		}
		q.ID = *w.ID
	}
	if wrong != nil {
		return q, unreadable(wrong)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return q, bad("", "One message holds one JSON object")
	}
	if w.Op == nil || !slices.Contains(ops, *w.Op) {
		return q, bad("op", "op is missing or unknown", ops...)
	}
	if q.Op = *w.Op; q.Op == opPing {
		return q, nil
	}
	if err := q.channel(w.Channel); err != nil {
		return q, err
	}
	if err := q.exchange(w.Exchange, exchanges); err != nil {
		return q, err
	}
	if err := q.depth(w.Depth); err != nil {
		return q, err
	}
	return q, q.symbols(w.Symbols)
}

// unreadable says in our own words what is wrong with a message that is no request.
func unreadable(err error) error {
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && e.Field != "" {
		return bad(e.Field, e.Field+" has the wrong type: it is "+clip(e.Value))
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return bad("", "There is no field "+clip(name), "id", "op", "channel", "exchange", "symbols", "depth")
	}
	return bad("", `The message is not a JSON object such as {"op":"subscribe","channel":"orderbook","exchange":"okx","symbols":["BTC/USDT"],"depth":50}`)
}

func (q *request) channel(name *string) error {
	channels := hub.Channels()
	if name == nil || !slices.Contains(channels, hub.Channel(*name)) {
		allowed := make([]string, len(channels))
		for i, c := range channels {
			allowed[i] = string(c)
		}
		return bad("channel", "channel is missing or unknown", allowed...)
	}
	q.Channel = hub.Channel(*name)
	return nil
}

func (q *request) exchange(name *string, known []market.ExchangeID) error {
	if name == nil || !slices.Contains(known, market.ExchangeID(*name)) {
		allowed := make([]string, len(known))
		for i, id := range known {
			allowed[i] = string(id)
		}
		return bad("exchange", "exchange is missing or unknown", allowed...)
	}
	q.Exchange = market.ExchangeID(*name)
	return nil
}

func (q *request) depth(depth *int) error {
	switch {
	case q.Channel == hub.ChannelTicker && depth != nil:
		return bad("depth", "the ticker channel has no depth")
	case q.Channel == hub.ChannelTicker:
		return nil
	case depth == nil:
		q.Depth = DefaultDepth
		return nil
	case !slices.Contains(hub.Depths(), *depth):
		allowed := make([]string, 0, len(hub.Depths()))
		for _, d := range hub.Depths() {
			allowed = append(allowed, strconv.Itoa(d))
		}
		return bad("depth", "depth "+strconv.Itoa(*depth)+" is not offered", allowed...)
	}
	q.Depth = *depth
	return nil
}

func (q *request) symbols(names *[]string) error {
	if names == nil || len(*names) == 0 {
		return bad("symbols", `symbols is missing: a list of pairs, for example ["BTC/USDT"]`)
	}
	if len(*names) > maxSymbols {
		return bad("symbols", fmt.Sprintf("symbols names %d pairs: at most %d", len(*names), maxSymbols))
	}
	for i, name := range *names {
		p, err := market.ParsePair(name)
		if err != nil {
			return bad("symbols", fmt.Sprintf("symbols[%d] is no pair: %v", i, err))
		}
		if !slices.Contains(q.Pairs, p) {
			q.Pairs = append(q.Pairs, p)
		}
	}
	return nil
}

// topic is what a request means for one of its pairs.
func (q *request) topic(p market.Pair) hub.Topic {
	return hub.Topic{Key: feed.Key{Exchange: q.Exchange, Pair: p}, Channel: q.Channel, Depth: q.Depth}
}

// clip bounds text of the client that is shown back to it.
func clip(s string) string {
	if len(s) > maxID {
		return strings.ToValidUTF8(s[:maxID], "") + "..."
	}
	return s
}
