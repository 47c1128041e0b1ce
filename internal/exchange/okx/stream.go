package okx

import (
	"context"
	"encoding/json"
	"time"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/market"
)

const pathStream = "/ws/v5/public"

// Bounds and habits of OKX's public streams.
const (
	// streamBooks is below the 30 channels of 400 levels that OKX recommends as the most for one connection.
	streamBooks = 29
	// streamBatch subscriptions fill a tenth of the 64 KB that one request may have.
	streamBatch = 100
	// vouchFor is the keep-alive of about 60 s of a quiet book, and room for it to be late.
	vouchFor = 75 * time.Second
	// silence is a little more than the 30 s after which OKX itself calls a connection dead.
	silence = 33 * time.Second
	// sendPace keeps below the 3 a second that OKX allows an address to connect; many requests at once were refused with
	// 60014 (ccxt/ccxt#25373).
	sendPace = 400 * time.Millisecond
	// maxStreamMessage bounds a message: a snapshot of 400 levels a side is 25 KB.
	maxStreamMessage = 1 << 20
)

// silenceRules find a dead connection before OKX would, and their pings keep a quiet one: OKX closes at 30 s without a message,
// and pings after 19 to 20 s came too late (ccxt/ccxt#22883). Pings do not count towards the limit of requests.
var silenceRules = market.SilenceRules{
	ProbeAfter: 5 * time.Second, ProbeSooner: 2 * time.Second, AnswerIn: 3 * time.Second, Most: 10 * time.Second,
}

// StreamRules implements market.Streamer. OKX documents no lifetime of a connection: it announces the end of one with a
// notice, or none.
func (v *Venue) StreamRules() market.StreamRules {
	return market.StreamRules{
		Books: streamBooks, Batch: streamBatch, VouchFor: vouchFor, Top: true, SnapshotDepth: maxDepth,
		Silence: silenceRules,
	}
}

// StreamPlan implements market.Streamer. Connects are limited per address, all else per connection: that pace is the
// connection's own. A connect that was refused as one too many holds back connects alone.
func (v *Venue) StreamPlan(act market.StreamAct, _ int) market.Call {
	c := market.Call{
		Exchange: v.id, Op: market.OpStream, Class: market.ClassStream,
		Scopes: []market.Scope{{Kind: market.ScopeExchange}, {Kind: market.ScopeIP}},
	}
	if act == market.StreamConnect {
		c.Scopes = append(c.Scopes, market.Scope{Kind: market.ScopeEndpoint, Name: string(limitConnects)})
		c.Charges = []market.Charge{{Limit: limitConnects, Weight: 1}}
	}
	return c
}

// Dial implements market.Streamer.
func (v *Venue) Dial(ctx context.Context) (market.StreamConn, error) {
	call := v.StreamPlan(market.StreamConnect, 0)
	socket, err := v.client.Open(ctx, exchange.Dial{
		Call: call, Hosts: v.stream, Path: pathStream, MaxMessage: maxStreamMessage,
		Silence: silence, TextPing: "ping", TextPong: "pong", Pace: sendPace,
	}, func(a *exchange.Response) *market.Error { return v.refusedHandshake(call, a) })
	if err != nil {
		return nil, err
	}
	return v.newStream(socket), nil
}

// refusedHandshake reads what came instead of a connection as the answer to any other request is read.
func (v *Venue) refusedHandshake(call market.Call, a *exchange.Response) *market.Error {
	var env envelope[json.RawMessage]
	_ = json.Unmarshal(a.Body, &env) // a body without a code is judged by its status
	if e := v.refused(call, a, string(env.Code), string(env.Msg)); e != nil {
		return e
	}
	return v.malformed(call, a, errShape)
}
