package stream

import (
	"fmt"
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
	opAuth        = "auth"
)

var ops = []string{opSubscribe, opUnsubscribe, opPing, opAuth}

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
	Key      string // of auth; never repeated
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

// maxID is the most bytes of an id.
const maxID = 64

// parseRequest reads one message strictly: a field that is unknown, spelled otherwise or there twice is an error, because a
// mistyped depth must not mean the default. The id is filled in, if it could be read, also where there is an error.
func parseRequest(text []byte, exchanges []market.ExchangeID) (q request, err error) {
	var w wireRequest
	wrong := w.read(text)
	if w.ID != nil {
		if len(*w.ID) > maxID {
			return q, bad("id", fmt.Sprintf("id is longer than %d bytes", maxID))
		}
		q.ID = *w.ID
	}
	if wrong != nil {
		return q, wrong
	}
	if w.Op == nil || !slices.Contains(ops, *w.Op) {
		return q, bad("op", "op is missing or unknown", ops...)
	}
	if q.Op = *w.Op; q.Op == opAuth {
		return q, q.key(&w)
	}
	if w.Key != nil {
		return q, bad("key", "key belongs to the op auth")
	}
	if q.Op == opPing {
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

// key reads what auth has beside its id: a key, and nothing else.
func (q *request) key(w *wireRequest) error {
	switch {
	case w.Key == nil:
		return bad("key", `key is missing: {"op":"auth","key":"gw_..."}`)
	case w.Channel != nil || w.Exchange != nil || w.Symbols != nil || w.Depth != nil:
		return bad("op", "auth has a key and an id, and no other fields")
	}
	q.Key = *w.Key
	return nil
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
