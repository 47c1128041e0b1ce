package okx_test

import (
	"testing"
	"time"

	"exchange-gateway/internal/market"
)

const restBTC = "snapshot BTC-USDT #100 b99x1 a101x1 limit 400 window true earlier"

// TestStreamREST_wanted: an update as the first message after the answer, or nothing for two seconds, and the book is
// asked for by REST, once.
func TestStreamREST_wanted(t *testing.T) {
	p := subscribed(t, "BTC-USDT", "ETH-USDT")
	p.want(p.say(diff("BTC-USDT", 99, 101, "98 1", "")), "wanted BTC-USDT")
	p.want(p.after(1900 * time.Millisecond))
	p.want(p.say(diff("BTC-USDT", 101, 102, "98 2", "")))
	p.want(p.after(200*time.Millisecond), "wanted ETH-USDT")
	p.want(p.after(time.Hour)) // a book of REST takes what it takes: its keeper asks
	p.want(p.load("XRP-USDT", 400, market.SequenceOf(100), began))
	p.want(p.load("BTC-USDT", 400, market.SequenceOf(100), began), restBTC,
		"update BTC-USDT #101 b98x1 earlier", "update BTC-USDT #102 b98x2 earlier")
	p.want(p.say(diff("BTC-USDT", 102, 103, "97 1", "")), "update BTC-USDT #103 b97x1")
	p.want(p.load("BTC-USDT", 400, market.SequenceOf(100), began)) // nobody asked for another
}

// TestStreamREST_snapshotWins: the stream's own snapshot is better than any, whenever it comes.
func TestStreamREST_snapshotWins(t *testing.T) {
	const snapshot = "snapshot BTC-USDT #200 b99x1 limit 400 window true"
	p := subscribed(t, "BTC-USDT")
	p.want(p.after(2*time.Second), "wanted BTC-USDT")
	p.want(p.say(snap("BTC-USDT", 200, "99 1", "")), snapshot)
	p.want(p.load("BTC-USDT", 400, market.SequenceOf(100), began))
	p.want(p.say(diff("BTC-USDT", 200, 201, "98 1", "")), "update BTC-USDT #201 b98x1")

	p = subscribed(t, "BTC-USDT")
	p.after(2 * time.Second)
	p.want(p.load("BTC-USDT", 400, market.SequenceOf(100), began), restBTC)
	p.want(p.say(snap("BTC-USDT", 200, "99 1", "")), snapshot)
	p.want(p.say(diff("BTC-USDT", 200, 201, "98 1", "")), "update BTC-USDT #201 b98x1")
}

// TestStreamREST_position goes through where a book can lie among the updates that wait: before, in and behind them, in the
// midst of one, and around a reset.
func TestStreamREST_position(t *testing.T) {
	type step struct{ prev, seq int64 }
	f := func(rest int64, held []step, want ...string) {
		t.Helper()
		p := subscribed(t, "BTC-USDT")
		p.after(2 * time.Second)
		for _, s := range held {
			bids := "98 1"
			if s.prev == s.seq {
				bids = ""
			}
			p.want(p.say(diff("BTC-USDT", s.prev, s.seq, bids, "")))
		}
		got := p.load("BTC-USDT", 400, market.SequenceOf(rest), time.UnixMilli(1796000000100))
		if len(got) > 0 && len(want) > 0 && want[0] == "book" {
			got[0] = "book"
		}
		p.want(got, want...)
	}
	chain := []step{{100, 105}, {105, 107}, {107, 120}}
	f(99, chain, "wanted BTC-USDT") // older than all
	f(100, chain, "book", "update BTC-USDT #105 b98x1 earlier", "update BTC-USDT #107 b98x1 earlier", "update BTC-USDT #120 b98x1 earlier")
	f(103, chain, "book", "update BTC-USDT #105 b98x1 earlier", "update BTC-USDT #107 b98x1 earlier", "update BTC-USDT #120 b98x1 earlier")
	f(105, chain, "book", "update BTC-USDT #107 b98x1 earlier", "update BTC-USDT #120 b98x1 earlier")
	f(119, chain, "book", "update BTC-USDT #120 b98x1 earlier")
	f(120, chain, "book")
	f(500, chain, "book") // ahead of the stream
	f(7, nil, "book")
	f(105, []step{{100, 105}, {100, 105}, {105, 107}}, "book", "update BTC-USDT #107 b98x1 earlier") // one came twice
	f(100, []step{{100, 105}, {105, 107}, {105, 107}, {107, 108}}, "book", "update BTC-USDT #105 b98x1 earlier", "update BTC-USDT #107 b98x1 earlier", "update BTC-USDT #108 b98x1 earlier")
	// What lies before a hole counts for nothing.
	f(103, []step{{100, 105}, {106, 107}}, "wanted BTC-USDT")
	f(106, []step{{100, 105}, {106, 107}}, "book", "update BTC-USDT #107 b98x1 earlier")
	// A keep-alive and a reset among them.
	f(105, []step{{105, 105}, {105, 106}}, "book", "vouch BTC-USDT #105 earlier", "update BTC-USDT #106 b98x1 earlier")
	reset := []step{{100, 105}, {105, 3}, {3, 9}}
	f(100, reset, "book", "update BTC-USDT #105 b98x1 earlier", "update BTC-USDT #3 b98x1 earlier", "update BTC-USDT #9 b98x1 earlier")
	f(105, reset, "book", "update BTC-USDT #3 b98x1 earlier", "update BTC-USDT #9 b98x1 earlier")
	f(9, reset, "wanted BTC-USDT") // of after the reset: no book fits any more, and in the end it is subscribed to anew
}

// TestStreamREST_join: the first update after the book is held to the same rule, those after it to the common one.
func TestStreamREST_join(t *testing.T) {
	joined := func() *player {
		p := subscribed(t, "BTC-USDT")
		p.after(2 * time.Second)
		p.want(p.load("BTC-USDT", 400, market.SequenceOf(100), time.UnixMilli(1796000000100)), restBTC)
		return p
	}
	p := joined()
	p.want(p.say(diff("BTC-USDT", 90, 99, "98 1", ""))) // in the book already
	p.want(p.say(diff("BTC-USDT", 99, 100, "98 1", "")))
	p.want(p.say(diff("BTC-USDT", 100, 104, "98 1", "")), "update BTC-USDT #104 b98x1")
	p.want(p.say(diff("BTC-USDT", 104, 2, "98 2", "")), "update BTC-USDT #2 b98x2") // a reset is no old update
	p.want(p.say(diff("BTC-USDT", 2, 3, "98 3", "")), "update BTC-USDT #3 b98x3")
	p = joined()
	p.want(p.say(diff("BTC-USDT", 98, 101, "98 1", "")), "update BTC-USDT #101 b98x1") // across the book
	p.want(p.say(diff("BTC-USDT", 100, 102, "98 1", "")), "lost BTC-USDT malformed: resubscribe")
	p = joined()
	p.want(p.say(diff("BTC-USDT", 100, 100, "", "")), "vouch BTC-USDT #100")
	p = joined()
	p.want(p.say(diff("BTC-USDT", 100, 5, "98 1", "")), "update BTC-USDT #5 b98x1") // a reset, first of all
	p = joined()
	p.want(texts(p.conn.Distrust("BTC-USDT", market.ErrSuspect)), "lost BTC-USDT suspect: resubscribe")
	p = joined()
	p.want(p.say(bookMessage("BTC-USDT", "update", "", "98 1", "")), "lost BTC-USDT malformed: resubscribe")
	// A hole between the two: what was shown is wrong, another book is asked for, and the update waits for it.
	p = joined()
	p.want(p.say(diff("BTC-USDT", 101, 102, "98 1", "")), "lost BTC-USDT malformed: snapshot", "wanted BTC-USDT")
	p.want(p.load("BTC-USDT", 400, market.SequenceOf(101), began), "snapshot BTC-USDT #101 b99x1 a101x1 limit 400 window true earlier",
		"update BTC-USDT #102 b98x1 earlier")
	// The book is of before a reset whose message came before we listened: its number is high, its time is not.
	p = joined()
	late := `{"arg":{"channel":"books","instId":"BTC-USDT"},"action":"update","data":[{"asks":[],"bids":[["98","1"]],"ts":"1796000001200","seqId":4,"prevSeqId":3}]}`
	p.want(p.say(late), "lost BTC-USDT malformed: snapshot", "wanted BTC-USDT")
	p.want(p.load("BTC-USDT", 400, market.SequenceOf(3), time.UnixMilli(1796000001100)),
		"snapshot BTC-USDT #3 b99x1 a101x1 limit 400 window true earlier", "update BTC-USDT #4 b98x1 earlier")
}

func TestStreamREST_givesUp(t *testing.T) {
	p := subscribed(t, "BTC-USDT")
	p.want(p.say(diff("BTC-USDT", 100, 101, "98 1", "")), "wanted BTC-USDT")
	for range 4 {
		p.want(p.load("BTC-USDT", 400, market.SequenceOf(50), began), "wanted BTC-USDT")
	}
	p.want(p.load("BTC-USDT", 400, market.SequenceOf(50), began), "lost BTC-USDT unavailable: resubscribe")
	p.want(p.load("BTC-USDT", 400, market.SequenceOf(100), began))

	// Books that are shown and then turn out to lie before a hole count as well.
	p = subscribed(t, "BTC-USDT")
	p.after(2 * time.Second)
	for i := range int64(4) {
		p.load("BTC-USDT", 400, market.SequenceOf(100+10*i), began)
		p.want(p.say(diff("BTC-USDT", 105+10*i, 110+10*i, "98 1", "")), "lost BTC-USDT malformed: snapshot", "wanted BTC-USDT")
	}
	if got := p.load("BTC-USDT", 400, market.SequenceOf(140), began); len(got) != 1 {
		t.Errorf("%v", got)
	}
	p.want(p.say(diff("BTC-USDT", 145, 150, "98 1", "")), "lost BTC-USDT unavailable: resubscribe")

	p = subscribed(t, "BTC-USDT")
	p.after(2 * time.Second)
	p.want(p.load("BTC-USDT", 400, market.Sequence{}, began), "lost BTC-USDT not_supported: resubscribe")
}

// TestStreamREST_shallow: of a book that was cut to less than the window nothing is known beyond its last level.
func TestStreamREST_shallow(t *testing.T) {
	p := subscribed(t, "BTC-USDT")
	p.after(2 * time.Second)
	p.want(p.load("BTC-USDT", 100, market.SequenceOf(100), began), "snapshot BTC-USDT #100 b99x1 a101x1 limit 100 window false earlier")
}

// TestStreamREST_bound: of the updates that wait the oldest go, so a book by REST has to reach those that are left.
func TestStreamREST_bound(t *testing.T) {
	f := func(n, each int, oldest int64) {
		t.Helper()
		levels := ""
		for i := range each {
			if i > 0 {
				levels += ","
			}
			levels += "98 1"
		}
		p := subscribed(t, "BTC-USDT")
		p.after(2 * time.Second)
		for i := range n {
			p.want(p.say(diff("BTC-USDT", int64(i), int64(i)+1, levels, "")))
		}
		p.want(p.load("BTC-USDT", 400, market.SequenceOf(oldest-1), began), "wanted BTC-USDT")
		if got := p.load("BTC-USDT", 400, market.SequenceOf(oldest), began); len(got) != 1+n-int(oldest) {
			t.Errorf("%d updates of %d levels: %d events", n, each, len(got))
		}
	}
	f(300, 1, 300-128)
	f(100, 400, 100-20) // 20 times 400 levels are the most below 8,192
}
