package okx_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/market"
)

func TestStreamRules(t *testing.T) {
	v, _ := newVenue(t, fixtures())
	want := market.StreamRules{Books: 29, Batch: 100, VouchFor: 75 * time.Second, Top: true, SnapshotDepth: 400, Silence: market.SilenceRules{
		ProbeAfter: 5 * time.Second, ProbeSooner: 2 * time.Second, AnswerIn: 3 * time.Second, Most: 10 * time.Second,
	}}
	if got := v.StreamRules(); got != want {
		t.Errorf("%+v", got)
	}
	limits := make(map[market.LimitID]bool)
	for _, l := range v.Limits() {
		limits[l.ID] = true
	}
	for _, act := range []market.StreamAct{market.StreamConnect, market.StreamSubscribe} {
		c := v.StreamPlan(act, 29)
		if c.Op != market.OpStream || c.Class != market.ClassStream || c.Exchange != "okx" {
			t.Errorf("%+v", c)
		}
		for _, charge := range c.Charges {
			if !limits[charge.Limit] || charge.Weight != 1 {
				t.Errorf("%+v is of no limit", charge)
			}
		}
		if (len(c.Charges) == 1) != (act == market.StreamConnect) {
			t.Errorf("act %d is charged %v", act, c.Charges)
		}
	}
}

func TestStream_requests(t *testing.T) {
	p := newPlayer(t)
	alias := listed("BTC-USDC")
	alias.AliasOf = "BTC-USD"
	id := p.subscribe(append(books("BTC-USDT"), market.StreamSub{Listing: alias, Channel: market.StreamBest})...)
	p.unsubscribe(books("BTC-USDT")...)
	p.want(p.link.sent,
		`{"id":"r1","op":"subscribe","args":[{"channel":"books","instId":"BTC-USDT"},{"channel":"bbo-tbt","instId":"BTC-USD"}]}`,
		`{"id":"r2","op":"unsubscribe","args":[{"channel":"books","instId":"BTC-USDT"}]}`)
	if id != "r1" {
		t.Errorf("id %q", id)
	}
	if err := errors.Join(p.conn.Subscribe(t.Context(), nil), p.conn.Unsubscribe(t.Context(), nil)); err != nil || len(p.link.sent) != 2 {
		t.Errorf("nothing to ask for: %v, %v", p.link.sent, err)
	}
}

// TestStream_bounds: what one connection or one request does not take is an error of ours, and nothing is sent.
func TestStream_bounds(t *testing.T) {
	p := newPlayer(t)
	var many []string
	for i := range 30 {
		many = append(many, fmt.Sprintf("A%d-USDT", i))
	}
	f := func(subs []market.StreamSub, ok bool) {
		t.Helper()
		sent := len(p.link.sent)
		err := p.conn.Subscribe(t.Context(), subs)
		if (err == nil) != ok || (len(p.link.sent) > sent) != ok {
			t.Errorf("%d subscriptions: %v, sent %d", len(subs), err, len(p.link.sent)-sent)
		}
		if !ok && failure(t, err).Kind != market.KindInternal {
			t.Error(err)
		}
	}
	f(books(many...), false)
	f(books(many[:29]...), true)
	f(books(many[:29]...), true) // the same ones again
	f(books(many[29:]...), false)
	f(bests(many[:29]...), true)
	p.unsubscribe(books(many[3])...)
	f(books(many[29:]...), true)
	long := newPlayer(t)
	p = long
	f(books("A-"+strings.Repeat("B", 64<<10)), false)
	p.want(p.say(snap("A-"+strings.Repeat("B", 64<<10), 1, "", "")))
}

func TestStream_notSent(t *testing.T) {
	p := newPlayer(t)
	p.link.fail = &market.Error{Exchange: "okx", Op: market.OpStream, Kind: market.KindUnavailable}
	if err := p.conn.Subscribe(t.Context(), books("BTC-USDT")); !errors.Is(err, p.link.fail) {
		t.Errorf("err = %v", err)
	}
	p.want(p.say(snap("BTC-USDT", 1, "1 1", "2 1")))
	p.want(p.after(time.Minute))
}

func TestStreamBook_rules(t *testing.T) {
	p := subscribed(t, "BTC-USDT")
	p.want(p.say(snap("BTC-USDT", 10, "99 1,98 2", "101 3")), "snapshot BTC-USDT #10 b99x1 b98x2 a101x3 limit 400 window true")
	p.want(p.say(diff("BTC-USDT", 10, 12, "99 0", "")), "update BTC-USDT #12 b99x0")
	p.want(p.say(diff("BTC-USDT", 12, 105, "97 1", "102 1.50")), "update BTC-USDT #105 b97x1 a102x1.50")
	p.want(p.say(diff("BTC-USDT", 12, 105, "97 1", "102 1.50"))) // the last one once more
	p.want(p.say(diff("BTC-USDT", 105, 105, "", "")), "vouch BTC-USDT #105")
	p.want(p.say(diff("BTC-USDT", 105, 105, "", "")), "vouch BTC-USDT #105")
	p.want(p.say(diff("BTC-USDT", 105, 106, "", "")), "update BTC-USDT #106")
	p.want(p.say(diff("BTC-USDT", 106, 0, "96 1", "")), "update BTC-USDT #0 b96x1") // a reset
	p.want(p.say(diff("BTC-USDT", 0, 3, "95 1", "")), "update BTC-USDT #3 b95x1")
	p.want(p.say(snap("BTC-USDT", 2, "94 1", "95 1")), "snapshot BTC-USDT #2 b94x1 a95x1 limit 400 window true") // not asked for
	p.want(p.say(diff("BTC-USDT", 2, 9007199254740993, "", "96 1")), "update BTC-USDT #9007199254740993 a96x1")
	p.want(p.after(time.Hour)) // silence is its keeper's business
}

func TestStreamBook_gap(t *testing.T) {
	f := func(prev, seq int64) {
		t.Helper()
		p := subscribed(t, "BTC-USDT", "ETH-USDT")
		p.say(snap("BTC-USDT", 10, "99 1", "101 3"))
		p.say(snap("ETH-USDT", 1, "9 1", "10 3"))
		p.want(p.say(diff("BTC-USDT", prev, seq, "98 1", "")), "lost BTC-USDT malformed: resubscribe")
		p.want(p.say(diff("BTC-USDT", seq, seq+1, "98 1", ""))) // nothing counts any more, and it is said once
		p.want(p.say(diff("BTC-USDT", 10, 11, "98 1", "")))
		p.want(p.after(time.Hour))
		p.want(p.say(diff("ETH-USDT", 1, 2, "9 0", "")), "update ETH-USDT #2 b9x0") // others go on
		p.want(p.say(snap("BTC-USDT", 50, "98 1", "99 1")), "snapshot BTC-USDT #50 b98x1 a99x1 limit 400 window true")
		p.want(p.say(diff("BTC-USDT", 50, 51, "98 0", "")), "update BTC-USDT #51 b98x0")
	}
	f(11, 12) // one is missing
	f(9, 12)  // not the one that we have
	f(8, 9)   // old by its number: a reset was lost
	f(0, 1)
	f(11, 10) // after a reset that was lost
	f(12, 12) // a keep-alive of another version
}

// TestStreamBook_unnumbered: a stream has sequences or has none.
func TestStreamBook_unnumbered(t *testing.T) {
	plain := func(action, bids string) string { return bookMessage("BTC-USDT", action, "", bids, "101 1") }
	p := subscribed(t, "BTC-USDT")
	p.want(p.say(plain("snapshot", "99 1")), "snapshot BTC-USDT b99x1 a101x1 limit 400 window true")
	p.want(p.say(plain("update", "98 1")), "update BTC-USDT b98x1 a101x1")
	p.want(p.say(bookMessage("BTC-USDT", "update", `,"prevSeqId":0`, "98 1", "")), "lost BTC-USDT malformed: resubscribe")
	p = subscribed(t, "BTC-USDT")
	p.say(plain("snapshot", "99 1"))
	p.want(p.say(diff("BTC-USDT", 5, 6, "97 1", "")), "lost BTC-USDT malformed: resubscribe")
	p.want(p.say(snap("BTC-USDT", 6, "97 1", "")), "snapshot BTC-USDT #6 b97x1 limit 400 window true")
	p.want(p.say(plain("update", "98 1")), "lost BTC-USDT malformed: resubscribe")
	p.want(p.say(snap("BTC-USDT", 6, "97 1", "")), "snapshot BTC-USDT #6 b97x1 limit 400 window true")
	p.want(p.say(bookMessage("BTC-USDT", "update", `,"seqId":7`, "98 1", "")), "lost BTC-USDT malformed: resubscribe")
	p.want(p.say(snap("BTC-USDT", 6, "97 1", "")), "snapshot BTC-USDT #6 b97x1 limit 400 window true")
	p.want(p.say(bookMessage("BTC-USDT", "update", `,"prevSeqId":6`, "98 1", "")), "lost BTC-USDT malformed: reconnect")
	p = subscribed(t, "BTC-USDT")
	p.want(p.say(plain("update", "98 1")), "wanted BTC-USDT", "lost BTC-USDT malformed: resubscribe") // no book by REST can be fitted to it
}

// TestStreamBook_beforeAnswer: data comes before the answer now and then. Only a snapshot counts then: updates may be the
// last ones of an earlier subscription.
func TestStreamBook_beforeAnswer(t *testing.T) {
	p := newPlayer(t)
	first := p.subscribe(books("BTC-USDT")...)
	p.want(p.say(snap("BTC-USDT", 10, "99 1", "101 3")), "snapshot BTC-USDT #10 b99x1 a101x3 limit 400 window true")
	p.want(p.say(diff("BTC-USDT", 10, 11, "99 0", "")), "update BTC-USDT #11 b99x0")
	p.want(p.say(ack(first, "books", "BTC-USDT")), "accepted BTC-USDT")
	p.want(p.say(ack(first, "books", "BTC-USDT")))
	p.unsubscribe(books("BTC-USDT")...)
	p.want(p.say(diff("BTC-USDT", 11, 12, "98 1", ""))) // forgotten at once
	second := p.subscribe(books("BTC-USDT")...)
	p.want(p.say(diff("BTC-USDT", 12, 13, "98 1", "")))
	p.want(p.say(`{"id":"r2","event":"unsubscribe","arg":{"channel":"books","instId":"BTC-USDT"},"connId":"x"}`))
	p.want(p.say(ack(first, "books", "BTC-USDT"))) // of the earlier request
	p.want(p.say(diff("BTC-USDT", 13, 14, "98 1", "")))
	p.want(p.say(ack(second, "books", "BTC-USDT")), "accepted BTC-USDT")
	p.want(p.say(snap("BTC-USDT", 20, "99 1", "")), "snapshot BTC-USDT #20 b99x1 limit 400 window true")
}

// TestStreamBook_remedies: after three subscriptions in a row that did not help a new connection is asked for. A book that
// was well for a minute begins to count anew.
func TestStreamBook_remedies(t *testing.T) {
	p := newPlayer(t)
	lose := func(want string) {
		t.Helper()
		id := p.subscribe(books("BTC-USDT")...)
		p.say(ack(id, "books", "BTC-USDT"))
		p.say(snap("BTC-USDT", 10, "99 1", "101 3"))
		p.want(p.say(diff("BTC-USDT", 11, 12, "98 1", "")), "lost BTC-USDT malformed: "+want)
		p.unsubscribe(books("BTC-USDT")...)
	}
	for range 3 {
		lose("resubscribe")
	}
	lose("reconnect")
	lose("reconnect")
	p.now = p.now.Add(59 * time.Minute) // not well, only given up
	p.want(p.after(0))
	lose("reconnect")
	p.want(p.after(time.Hour))
	lose("resubscribe") // so long ago that it is forgotten
	lose("resubscribe")
	lose("resubscribe")
	p.say(ack(p.subscribe(books("BTC-USDT")...), "books", "BTC-USDT"))
	p.say(snap("BTC-USDT", 10, "99 1", "101 3"))
	p.now = p.now.Add(59 * time.Second)
	p.want(p.say(diff("BTC-USDT", 10, 12, "98 1", "")), "update BTC-USDT #12 b98x1")
	p.now = p.now.Add(time.Second)
	p.want(p.say(diff("BTC-USDT", 11, 13, "98 1", "")), "lost BTC-USDT malformed: resubscribe")
}

func TestStreamBook_distrust(t *testing.T) {
	p := subscribed(t, "BTC-USDT")
	distrust := func(why error) []string { return texts(p.conn.Distrust("BTC-USDT", why)) }
	p.want(distrust(market.ErrSuspect)) // there is none yet
	p.say(snap("BTC-USDT", 10, "99 1", "101 3"))
	p.want(distrust(market.ErrSuspect), "lost BTC-USDT suspect: resubscribe")
	p.want(distrust(market.ErrSuspect))
	p.want(p.say(diff("BTC-USDT", 10, 12, "98 1", "")))
	p.say(snap("BTC-USDT", 10, "99 1", "101 3"))
	p.want(distrust(&market.Error{Kind: market.KindTimeout}), "lost BTC-USDT timeout: resubscribe")
	p.want(texts(p.conn.Distrust("ETH-USDT", market.ErrSuspect)))
}

// TestStreamBook_unreadable: a message that cannot be read is lost for its book, or for all where it does not say which.
func TestStreamBook_unreadable(t *testing.T) {
	const arg = `"arg":{"channel":"books","instId":"BTC-USDT"}`
	f := func(raw string, want ...string) {
		t.Helper()
		p := subscribed(t, "BTC-USDT", "ETH-USDT")
		p.say(snap("BTC-USDT", 10, "99 1", "101 3"))
		p.say(snap("ETH-USDT", 10, "9 1", "11 3"))
		p.want(p.say(raw), want...)
		next := p.say(diff("ETH-USDT", 10, 11, "9 0", ""))
		if all := len(want) == 1 && strings.HasPrefix(want[0], "lost malformed"); all {
			p.want(next)
		} else {
			p.want(next, "update ETH-USDT #11 b9x0")
		}
	}
	const lost, all = "lost BTC-USDT malformed: resubscribe", "lost malformed: reconnect"
	f(`{`+arg+`,"action":"update","data":[{"asks":[["1"]],"bids":[],"ts":"1","seqId":11,"prevSeqId":10}]}`, lost)
	f(`{`+arg+`,"action":"update","data":[{"asks":[["x","1"]],"bids":[],"ts":"1","seqId":11,"prevSeqId":10}]}`, lost)
	f(`{`+arg+`,"action":"update","data":[{"bids":[],"ts":"1","seqId":11,"prevSeqId":10}]}`, lost)
	f(`{`+arg+`,"action":"update","data":[{"asks":[],"ts":"1","seqId":11,"prevSeqId":10}]}`, lost)
	f(`{`+arg+`,"action":"update","data":[{"asks":[],"bids":[],"ts":"soon","seqId":11,"prevSeqId":10}]}`, lost)
	f(`{`+arg+`,"action":"update","data":[{"asks":[],"bids":[],"ts":"0","seqId":11,"prevSeqId":10}]}`, lost)
	f(`{`+arg+`,"action":"update","data":[{"asks":[],"bids":[],"ts":"1","seqId":1.5,"prevSeqId":10}]}`, lost)
	f(`{`+arg+`,"action":"update","data":[{"asks":[],"bids":[],"ts":"1","seqId":-1,"prevSeqId":10}]}`, lost)
	f(`{`+arg+`,"action":"update","data":[{"asks":[],"bids":[],"ts":"1","seqId":null,"prevSeqId":10}]}`, lost)
	f(`{`+arg+`,"action":"replace","data":[{"asks":[],"bids":[],"ts":"1","seqId":11,"prevSeqId":10}]}`, lost)
	f(`{`+arg+`,"data":[{"asks":[],"bids":[],"ts":"1","seqId":11,"prevSeqId":10}]}`, lost)
	f(`{`+arg+`,"action":"update","data":[]}`, lost)
	f(`{`+arg+`,"action":"update","data":{}}`, lost)
	f(`{`+arg+`,"action":"update","data":[`+strings.Repeat(`{"asks":[],"bids":[],"seqId":10,"prevSeqId":10},`, 16)+`{"asks":[],"bids":[],"seqId":10,"prevSeqId":10}]}`, lost)
	f(`{`+arg+`,"action":"update","data":[{"asks":[],"bids":[],"ts":"1","seqId":11,"prevSeqId":10}]} x`, lost)
	f(bookMessage("BTC-USDT", "update", `,"seqId":11,"prevSeqId":10`, "99 -1", ""), "lost BTC-USDT suspect: resubscribe")
	f(bookMessage("BTC-USDT", "update", `,"seqId":11,"prevSeqId":10`, "0 1", ""), "lost BTC-USDT suspect: resubscribe")
	f(bookMessage("BTC-USDT", "snapshot", `,"seqId":11,"prevSeqId":-1`, "99 1", "-101 1"), "lost BTC-USDT suspect: resubscribe")
	f(`<html>`, all)
	f(``, all)
	f(`{"data":[{"asks":[],"bids":[],"ts":"1","seqId":11,"prevSeqId":10}],"action":"update"}`, all)
	f(`{"action":"update","data":[{"asks":[["1"]]}]}`, all)
	f(`{"arg":{"channel":"books","instId":"BTC-U`, all)
	f(`{"arg":{"channel":"books","instId":"OTHER-USDT"},"action":"update","data":[{"asks":[["1"]]}]}`)
	f(`{"arg":{"channel":"tickers","instId":"BTC-USDT"},"data":[{"asks":7}]}`)
	f(`{}`)
	f(`pong`)
}

// TestStreamBook_wire: the order of keys does not matter, and neither do those that are new.
func TestStreamBook_wire(t *testing.T) {
	p := subscribed(t, "BTC-USDT")
	p.want(p.say(`{"data":[{"prevSeqId":-1,"seqId":1,"new":{"a":[1]},"ts":"1796000000123","bids":[["99","1","0","1"]],"asks":[]}],"action":"snapshot","more":null,"arg":{"uid":"x","instId":"BTC-USDT","channel":"books"}}`),
		"snapshot BTC-USDT #1 b99x1 limit 400 window true")
	events := p.conn.Decode([]byte(diff("BTC-USDT", 1, 2, "98 1", "")), p.now)
	if len(events) != 1 || events[0].ExchangeTime.UnixMilli() != 1796000000123 || !events[0].ConfirmedAt.IsZero() {
		t.Errorf("%+v", events)
	}
	p.want(p.say(`{"arg":{"channel":"books","instId":"BTC-USDT"},"action":"update","data":[{"asks":[],"bids":[["97","1","0","1"]],"seqId":3,"prevSeqId":2},{"asks":[["102","1"]],"bids":[],"ts":"1796000000124","seqId":4,"prevSeqId":3}]}`),
		"update BTC-USDT #3 b97x1", "update BTC-USDT #4 a102x1")
}

func TestStreamBest(t *testing.T) {
	p := newPlayer(t)
	id := p.subscribe(append(bests("BTC-USDT"), books("BTC-USDT")...)...)
	p.want(p.say(ack(id, "bbo-tbt", "BTC-USDT")), "accepted BTC-USDT best")
	best := func(seq int, bids, asks string) string {
		return fmt.Sprintf(`{"arg":{"channel":"bbo-tbt","instId":"BTC-USDT"},"data":[{"asks":[%s],"bids":[%s],"ts":"1796000000123","seqId":%d}]}`,
			levelsJSON(asks), levelsJSON(bids), seq)
	}
	p.want(p.say(best(7, "99 1", "101 3")), "top BTC-USDT best #7 b99x1 a101x3")
	p.want(p.say(best(7, "99 1", "101 3")), "top BTC-USDT best #7 b99x1 a101x3")
	p.want(p.say(best(3, "", "101 3")), "top BTC-USDT best #3 a101x3")
	p.want(p.say(best(4, "99 1,98 1", "")), "top BTC-USDT best #4 b99x1")
	p.want(p.say(best(4, "99 -1", "")), "lost BTC-USDT best suspect: resubscribe")
	p.want(p.say(best(5, "99 1", "")), "top BTC-USDT best #5 b99x1") // each is whole
	p.want(p.say(snap("BTC-USDT", 10, "99 1", "101 3")), "snapshot BTC-USDT #10 b99x1 a101x3 limit 400 window true")
	p.unsubscribe(bests("BTC-USDT")...)
	p.want(p.say(best(8, "99 1", "101 3")))
	p.want(p.say(diff("BTC-USDT", 10, 11, "98 1", "")), "update BTC-USDT #11 b98x1")
}

func TestNew_streamHosts(t *testing.T) {
	f := func(c exchange.Config, want string) {
		t.Helper()
		v, rig := newVenue(t, fixtures(), func(to *exchange.Config) { to.Region, to.Hosts, to.StreamHosts = c.Region, c.Hosts, c.StreamHosts })
		if _, err := v.Dial(t.Context()); err == nil {
			t.Fatal("connected")
		}
		if got := rig.Requests()[0].URL.String(); got != want {
			t.Errorf("%+v: dialled %s, want %s", c, got, want)
		}
	}
	f(exchange.Config{}, "https://ws.okx.com:8443/ws/v5/public")
	f(exchange.Config{Region: "eea"}, "https://wseea.okx.com:8443/ws/v5/public")
	f(exchange.Config{Region: "us"}, "https://wsus.okx.com:8443/ws/v5/public")
	f(exchange.Config{Hosts: []string{"https://us.okx.com"}}, "https://wsus.okx.com:8443/ws/v5/public")
	f(exchange.Config{StreamHosts: []string{"ws://127.0.0.1:9/"}, Region: "eea"}, "http://127.0.0.1:9/ws/v5/public")
	f(exchange.Config{StreamHosts: []string{"wss://wsus.okx.com:8443"}}, "https://wsus.okx.com:8443/ws/v5/public")
}
