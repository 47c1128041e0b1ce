package okx_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"exchange-gateway/internal/market"
)

const noSuch = "Wrong URL or channel:books, instId:NO-SUCH doesn't exist. Please use the correct URL, channel and parameters referring to API document."

func TestStreamAnswer_refused(t *testing.T) {
	p := newPlayer(t)
	id := p.subscribe(append(books("NO-SUCH", "BTC-USDT"), bests("NO-SUCH")...)...)
	p.want(p.say(errorEvent(id, "60018", noSuch)), "refused NO-SUCH unknown_symbol 60018")
	p.want(p.say(ack(id, "books", "BTC-USDT")), "accepted BTC-USDT") // the others go on
	p.want(p.say(errorEvent("", "60018", strings.Replace(noSuch, "books", "bbo-tbt", 1))), "refused NO-SUCH best unknown_symbol 60018")
	p.want(p.say(snap("NO-SUCH", 1, "1 1", ""))) // no longer ours
	p.want(p.say(errorEvent("", "60018", noSuch)))
	p.want(p.after(time.Minute), "wanted BTC-USDT")
}

// TestStreamAnswer_whichOne: without a name in the text, what is not confirmed in time was meant.
func TestStreamAnswer_whichOne(t *testing.T) {
	f := func(withID bool, code, msg, at, after string) {
		t.Helper()
		p := newPlayer(t)
		id := p.subscribe(books("NEAR-USDT", "BTC-USDT")...)
		other := p.subscribe(books("ETH-USDT")...)
		p.say(ack(other, "books", "ETH-USDT"))
		p.say(snap("ETH-USDT", 1, "1 1", ""))
		said := id
		if !withID {
			said = ""
		}
		got := p.say(errorEvent(said, code, msg))
		p.want(compact(got), compact([]string{at})...)
		p.say(ack(id, "books", "BTC-USDT"))
		p.say(snap("BTC-USDT", 1, "1 1", ""))
		p.want(p.after(11*time.Second), compact([]string{after})...)
	}
	const refused, lost = "refused NEAR-USDT ", "lost NEAR-USDT "
	f(true, "60018", "doesn't exist", "", refused+"unknown_symbol 60018")
	f(false, "60018", "doesn't exist", "", refused+"unknown_symbol 60018")
	f(false, "60018", "Wrong URL or channel:books, instId:NEAR-USDT-SWAP doesn't exist.", "", refused+"unknown_symbol 60018")
	f(false, "60018", "channel:books, instId:NEAR-USDT doesn't exist.", refused+"unknown_symbol 60018", "")
	f(false, "60014", "Requests too frequent", "", lost+"rate_limited 60014: resubscribe")
	f(false, "60012", "Invalid request", "", refused+"invalid 60012")
	f(false, "63999", "Internal system error", "", lost+"unavailable 63999: resubscribe")
	f(false, "50001", "Service temporarily unavailable", "", lost+"maintenance 50001: resubscribe")
	f(false, "99999", "Something new", "", lost+"unavailable 99999: resubscribe")
	f(false, "what?", "Something new", "", lost+"unavailable: resubscribe")
	f(false, "", "", "", lost+"unavailable: resubscribe")
}

func compact(all []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return s == "" })
}

// TestStreamAnswer_whole: an error about a request is about all that it asked for, and about nothing else.
func TestStreamAnswer_whole(t *testing.T) {
	f := func(code, want string) {
		t.Helper()
		p := newPlayer(t)
		id := p.subscribe(books("BTC-USDT", "ETH-USDT")...)
		other := p.subscribe(books("XRP-USDT")...)
		got := p.say(errorEvent(id, code, "made up"))
		slices.Sort(got)
		p.want(got, strings.ReplaceAll(want, "?", "BTC-USDT"), strings.ReplaceAll(want, "?", "ETH-USDT"))
		p.want(p.say(ack(other, "books", "XRP-USDT")), "accepted XRP-USDT")
	}
	f("60014", "lost ? rate_limited 60014: resubscribe")
	f("60023", "lost ? rate_limited 60023: resubscribe")
	f("60012", "refused ? invalid 60012")
	f("60013", "refused ? invalid 60013")
	f("64000", "refused ? invalid 64000")
	f("64007", "lost ? unavailable 64007: resubscribe")
	f("60032", "refused ? auth 60032")
}

func TestStreamAnswer_codes(t *testing.T) {
	f := func(code string, kind market.Kind, ours bool) {
		t.Helper()
		p := newPlayer(t)
		events := p.conn.Decode([]byte(errorEvent(p.subscribe(books("BTC-USDT")...), code, "see https://example.invalid")), p.now)
		if len(events) != 1 {
			t.Fatalf("%s: %v", code, texts(events))
		}
		e := failure(t, events[0].Err)
		if e.Kind != kind || e.OurFault != ours || e.Code != code || strings.Contains(e.Error(), "://") {
			t.Errorf("%s: %v, ours %t", code, e, e.OurFault)
		}
		if wait := e.RetryAfter; (wait > 0) != (kind == market.KindRateLimited) {
			t.Errorf("%s: retry after %v", code, wait)
		}
	}
	for _, code := range []string{"60008", "60028", "64001", "64002", "64004", "60019", "60027", "60033"} {
		f(code, market.KindInvalid, true)
	}
	for _, code := range []string{"60011", "64003"} {
		f(code, market.KindAuth, false)
	}
	f("63999", market.KindUnavailable, false)
	f("50011", market.KindRateLimited, false)
	f("51001", market.KindUnknownSymbol, false)
	f("50121", market.KindRestricted, false)
}

// TestStreamAnswer_none: a subscription that is not answered is started anew; an answer that cannot be read is none.
func TestStreamAnswer_none(t *testing.T) {
	p := newPlayer(t)
	p.subscribe(append(books("BTC-USDT"), bests("BTC-USDT")...)...)
	p.want(p.say(`{"event":"subscribe","arg":[7]}`))
	p.want(p.say(`{"event":"subscribe","arg":{"channel":"bo`))
	p.want(p.after(9 * time.Second))
	p.want(p.after(1100*time.Millisecond), "lost BTC-USDT best timeout: resubscribe", "lost BTC-USDT timeout: resubscribe")
	p.want(p.after(time.Hour))
}

// TestStreamAnswer_noBest: the best bid and ask may be silent for as long as they do not change.
func TestStreamAnswer_noBest(t *testing.T) {
	p := newPlayer(t)
	p.want(p.say(ack(p.subscribe(bests("BTC-USDT")...), "bbo-tbt", "BTC-USDT")), "accepted BTC-USDT best")
	p.want(p.after(time.Hour))
}

func TestStreamAnswer_notices(t *testing.T) {
	p := subscribed(t, "BTC-USDT")
	p.want(p.say(`{"event":"notice","code":"64008","msg":"The connection will soon be closed for a service upgrade. Please reconnect.","connId":"x"}`), "retiring")
	p.want(p.say(`{"event":"notice","code":64008,"msg":""}`), "retiring")
	p.want(p.say(`{"event":"notice","code":"64999","msg":"News"}`))
	p.want(p.say(`{"event":"channel-conn-count","channel":"account","connCount":"1","connId":"x"}`))
	p.want(p.say(`{"event":"something-new","arg":{"channel":"books","instId":"BTC-USDT"},"data":[7]}`))
	p.want(p.say(`{"event":"login","code":"0","msg":"","connId":"x"}`))
	p.want(p.say(errorEvent("", "60032", "API key doesn't exist"))) // of nothing that we asked for
	p.want(p.say(snap("BTC-USDT", 1, "1 1", "")), "snapshot BTC-USDT #1 b1x1 limit 400 window true")
}

// TestStreamAnswer_first: the error that answers the first request of a connection is about all of it, with an id or without:
// what is said at once is not waited for.
func TestStreamAnswer_first(t *testing.T) {
	f := func(code, want string) {
		t.Helper()
		p := newPlayer(t)
		p.subscribe(books("BTC-USDT", "ETH-USDT")...)
		got := p.say(errorEvent("", code, "made up"))
		slices.Sort(got)
		p.want(got, strings.ReplaceAll(want, "?", "BTC-USDT"), strings.ReplaceAll(want, "?", "ETH-USDT"))
	}
	f("60011", "refused ? auth 60011")
	f("64003", "refused ? auth 64003")
	f("60012", "refused ? invalid 60012")
	f("60014", "lost ? rate_limited 60014: resubscribe")
	f("60023", "lost ? rate_limited 60023: resubscribe")
	f("63999", "lost ? unavailable 63999: resubscribe")
	f("50001", "lost ? maintenance 50001: resubscribe")

	p := newPlayer(t)
	events := p.conn.Decode([]byte(errorEvent(p.subscribe(books("BTC-USDT")...), "60014", "made up")), p.now)
	e := failure(t, events[0].Err)
	connects := market.Scope{Kind: market.ScopeEndpoint, Name: "stream_connects"}
	if e.Refusal == nil || e.Refusal.Scope != connects || e.Refusal.First != 10*time.Second || e.Refusal.Max < e.Refusal.First {
		t.Errorf("%+v, want a hold of connects", e.Refusal)
	}
	v, _ := newVenue(t, fixtures())
	if plan := v.StreamPlan(market.StreamConnect, 1); !slices.Contains(plan.Scopes, connects) {
		t.Errorf("connects do not pass it: %+v", plan.Scopes)
	}
}
