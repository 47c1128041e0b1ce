package coinbase_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/market"
)

// TestStream_book follows one book as the exchange's documentation tells it: the snapshot before its ack, unsorted and
// mixed; absolute sizes; a level that goes; heartbeats that count; and a frame that is missing.
func TestStream_book(t *testing.T) {
	s := newStream(t, "BTC-USD")
	s.want(s.frame("l2_data", event("snapshot", "BTC-USD", "bid 100.00 1", "offer 100.20 3", "bid 100.10 2")),
		"snapshot BTC-USD 100.00x1 100.10x2 | 100.20x3")
	s.want(s.ack("BTC-USD"), "accepted BTC-USD")
	s.want(s.frame("l2_data", event("update", "BTC-USD", "bid 100.10 0", "bid 100.05 4", "offer 100.15 1.5")),
		"update BTC-USD 100.10x0 100.05x4 | 100.15x1.5")
	s.want(s.frame("heartbeats", `{"current_time":"2026-09-07 23:37:22.674409 +0000 UTC m=+139651.27","heartbeat_counter":139651}`))
	s.next++
	s.want(s.frame("l2_data", event("update", "BTC-USD", "bid 100.06 1")), "lost reconnect suspect")
	s.want(s.frame("l2_data", event("update", "BTC-USD", "bid 100.07 1")))
	s.want(s.frame("l2_data", event("snapshot", "BTC-USD", "bid 100.07 1")))
	s.want(s.tick(time.Hour))
}

// TestStream_sequence: every frame with a number counts, whatever it is about, from whatever number the first one has.
func TestStream_sequence(t *testing.T) {
	for _, channel := range []string{"heartbeats", "subscriptions", "ticker", "something_new"} {
		for name, jump := range map[string]int{"next": 0, "gap": 1} {
			t.Run(channel+"/"+name, func(t *testing.T) {
				s := newStream(t, "BTC-USD")
				s.next = 41
				s.want(s.frame("l2_data", event("snapshot", "BTC-USD")), "snapshot BTC-USD |")
				s.want(s.frame(channel, ""))
				s.next += jump
				switch got := s.frame(channel, ""); {
				case jump == 0 && got != "":
					t.Errorf("the next frame: %s", got)
				case jump == 1 && got != "lost reconnect suspect":
					t.Errorf("a gap: %s", got)
				}
			})
		}
	}
	t.Run("errors have none", func(t *testing.T) {
		s := newStream(t, "BTC-USD")
		s.want(s.frame("l2_data", event("snapshot", "BTC-USD")), "snapshot BTC-USD |")
		s.want(s.raw(`{"type":"error","message":"rate limit exceeded"}`))
		s.want(s.frame("heartbeats", ""))
	})
	t.Run("data has to have one", func(t *testing.T) {
		s := newStream(t, "BTC-USD")
		s.want(s.raw(`{"channel":"l2_data","events":[`+event("snapshot", "BTC-USD", "bid 1 1")+`]}`), "lost reconnect malformed")
	})
}

// TestStream_repeats: a frame that came before is dropped, and so is one that is older still; but not for ever.
func TestStream_repeats(t *testing.T) {
	s := newStream(t, "BTC-USD")
	s.frame("l2_data", event("snapshot", "BTC-USD", "bid 1 1"))
	s.frame("l2_data", event("update", "BTC-USD", "bid 1 2"))
	for range 64 {
		s.next = 0
		s.want(s.frame("l2_data", event("update", "BTC-USD", "bid 1 3")))
	}
	s.next = 2
	s.want(s.frame("l2_data", event("update", "BTC-USD", "bid 1 4")), "update BTC-USD 1x4 |")
	for range 64 {
		s.next = 0
		s.want(s.frame("heartbeats", ""))
	}
	s.next = 0
	s.want(s.frame("heartbeats", ""), "lost reconnect suspect")
}

// TestStream_frames: several events, several books, in one message, and what is not ours.
func TestStream_frames(t *testing.T) {
	s := newStream(t, "A-USD", "B-USD")
	s.want(s.frame("l2_data", event("snapshot", "B-USD", "bid 1 1")+","+event("snapshot", "C-USD", "bid 1 1")+","+event("snapshot", "A-USD", "offer 2 1")),
		"snapshot B-USD 1x1 |", "snapshot A-USD | 2x1")
	// Of one book they are one change: in between the book may be crossed.
	s.want(s.frame("l2_data", event("update", "A-USD", "bid 2 1")+","+event("update", "B-USD", "bid 3 1")+","+event("update", "A-USD", "offer 2 0", "bid 2 5")),
		"update A-USD 2x1 2x5 | 2x0", "update B-USD 3x1 |")
	// A snapshot in between is a book of its own.
	s.want(s.frame("l2_data", event("update", "A-USD", "bid 1 1")+","+event("snapshot", "A-USD", "bid 4 1")+","+event("update", "A-USD", "bid 5 1")),
		"update A-USD 1x1 |", "snapshot A-USD 4x1 |", "update A-USD 5x1 |")
	// The exchange speaks of the book even without a level.
	s.want(s.frame("l2_data", event("update", "A-USD")), "update A-USD |")
	s.want(s.frame("l2_data", `{"type":"snapshot","product_id":"A-USD","updates":null}`), "snapshot A-USD |")
	s.want(s.frame("candles", `{"type":"update","product_id":"A-USD","candles":[{"start":"1"}]}`))
	s.want(s.frame("l2_data", ""))
}

// TestStream_spellings: keys in any order, numbers in any spelling, fields that nobody knows.
func TestStream_spellings(t *testing.T) {
	s := newStream(t, "BTC-USD")
	for sequence, c := range []struct{ in, want string }{
		{
			`{"events":[{"updates":[{"new_quantity":1e-8,"x":{"y":[1]},"price_level":64073.00,"side":"bid"}],"product_id":"BTC-USD",
				"type":"snapshot"}], "sequence_num":"%d","channel":"l2_data"}`,
			"snapshot BTC-USD 64073.00x0.00000001 |",
		},
		{
			`{"channel":"l2_data","client_id":"","sequence_num":%d,"events":[{"type":"update","product_id":"BTC-USD","updates":[
				{"side":"offer","price_level":"79944","new_quantity":"0.00000000"},
				{"side":"off\u0065r","price_level":"1e2","new_quantity":"8.664e-05"},
				{"side":"bid","price_level":"0.00000001","new_quantity":"123456789012345678901.5"}]}]}`,
			"update BTC-USD 0.00000001x123456789012345678901.5 | 79944x0.00000000 100x0.00008664",
		},
		{`{"channel":"heartbeats","sequence_num":%d,"events":{"not":"a list"}}`, ""},
		{`{"sequence_num":%d}`, ""},
		{`{"events":[{"subscriptions":{"level2":["BTC-USD"]}}],"channel":"subscriptions","sequence_num":%d}`, "accepted BTC-USD"},
	} {
		s.want(s.raw(fmt.Sprintf(c.in, sequence)), c.want)
	}
}

// TestStream_time: the exchange's own stamp of the message, whatever the times of its levels say.
func TestStream_time(t *testing.T) {
	for text, want := range map[string]string{
		`"2026-09-07T01:57:58.894355Z"`: "2026-09-07T01:57:58.894355Z", `"2026-09-07T23:37:22.278662782Z"`: "2026-09-07T23:37:22.278662782Z",
		`"2026-09-07T01:57:58Z"`: "2026-09-07T01:57:58Z", `"1970-01-01T00:00:00Z"`: "0001-01-01T00:00:00Z", `""`: "0001-01-01T00:00:00Z",
		`null`: "0001-01-01T00:00:00Z", `17`: "0001-01-01T00:00:00Z", `"yesterday"`: "0001-01-01T00:00:00Z",
	} {
		s := newStream(t, "BTC-USD")
		got := s.conn.Decode([]byte(`{"channel":"l2_data","timestamp":`+text+`,"sequence_num":0,"events":[`+event("snapshot", "BTC-USD", "bid 1 1")+`]}`), time.Now())
		if len(got) != 1 || got[0].ExchangeTime.Format(time.RFC3339Nano) != want {
			t.Errorf("%s: %+v", text, got)
		}
	}
}

// TestStream_unreadable: what is wrong with one book is its own; what cannot be told apart is everybody's.
func TestStream_unreadable(t *testing.T) {
	level := func(text string) string {
		return `{"type":"update","product_id":"A-USD","updates":[{"side":"bid","price_level":"1","new_quantity":"1"},` + text + `]}`
	}
	for name, c := range map[string]struct{ list, want string }{
		"size":       {level(`{"side":"bid","price_level":"2","new_quantity":"NaN"}`), "A-USD"},
		"no size":    {level(`{"side":"bid","price_level":"2"}`), "A-USD"},
		"price":      {level(`{"side":"bid","price_level":"","new_quantity":"1"}`), "A-USD"},
		"side":       {level(`{"side":"ask","price_level":"2","new_quantity":"1"}`), "A-USD"},
		"no side":    {level(`{"price_level":"2","new_quantity":"1"}`), "A-USD"},
		"type":       {`{"type":"refresh","product_id":"A-USD","updates":[]}`, "A-USD"},
		"no levels":  {`{"type":"snapshot","product_id":"A-USD"}`, "A-USD"},
		"twice":      {`{"type":"snapshot","product_id":"A-USD","updates":[],"updates":[]}`, "A-USD"},
		"no product": {`{"type":"snapshot","updates":[]}`, ""},
		"cut off":    {`{"type":"snapshot","product_id":"A-USD","updates":[`, ""},
		"no object":  {`7`, ""},
		"many":       {strings.Repeat(event("update", "A-USD")+",", 1000) + event("update", "A-USD"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStream(t, "A-USD", "B-USD")
			s.frame("l2_data", event("snapshot", "A-USD", "bid 1 1")+","+event("snapshot", "B-USD", "bid 1 1"))
			if c.want == "" {
				s.want(s.frame("l2_data", c.list), "lost reconnect malformed")
				s.want(s.frame("l2_data", event("update", "B-USD", "bid 1 2")))
				return
			}
			s.want(s.frame("l2_data", c.list+","+event("update", "B-USD", "bid 1 2")), "lost A-USD resubscribe malformed", "update B-USD 1x2 |")
			// It was told; until a snapshot nothing more is.
			s.want(s.frame("l2_data", event("update", "A-USD", "bid 1 3")+","+c.list))
			s.want(s.frame("l2_data", event("snapshot", "A-USD", "bid 1 3")), "snapshot A-USD 1x3 |")
		})
	}
	for _, text := range []string{
		``, `[]`, `{"channel":"l2_data"`, `{"channel":"x","sequence_num":1,"sequence_num":1}`,
		`{"channel":"x","events":[],"events":[]}`, `{"sequence_num":1.5}`, `{"a":1}}`, `{"events":[],"channel":"l2_data","events":[]}`,
	} {
		s := newStream(t, "A-USD")
		s.want(s.raw(text), "lost reconnect malformed")
	}
	for _, text := range []string{
		`{}`, `{"type":"something_new"}`, `{"type":"subscriptions","channels":[]}`, `{"channel":null}`,
		`{"events":[{"updates":7}],"channel":"candles","sequence_num":0}`,
	} {
		s := newStream(t, "A-USD")
		s.want(s.raw(text))
	}
}

// TestStream_levels: a side is bounded.
func TestStream_levels(t *testing.T) {
	s := newStream(t, "A-USD", "B-USD")
	rows := strings.Repeat(`{"side":"bid","event_time":"","price_level":"1","new_quantity":"1"},`, 200_000)
	last := `{"side":"offer","price_level":"1","new_quantity":"1"}]}`
	got := s.conn.Decode([]byte(envelope("l2_data", 0, `{"type":"snapshot","product_id":"A-USD","updates":[`+rows+last)), time.Now())
	if len(got) != 1 || got[0].Kind != market.StreamSnapshot || len(got[0].Bids) != 200_000 || len(got[0].Asks) != 1 {
		t.Fatalf("%d events", len(got))
	}
	s.next = 1
	s.want(s.frame("l2_data", `{"type":"snapshot","product_id":"A-USD","updates":[`+rows+strings.Replace(last, "offer", "bid", 1)+","+event("snapshot", "B-USD", "bid 1 1")),
		"lost A-USD resubscribe malformed", "snapshot B-USD 1x1 |")
}

// TestStream_noSnapshot: changes of a book without one are not applied, and it begins anew by leaving first.
func TestStream_noSnapshot(t *testing.T) {
	s := newStream(t, "A-USD", "B-USD")
	s.socket.take()
	s.want(s.frame("l2_data", event("update", "A-USD", "bid 1 1")+","+event("snapshot", "B-USD", "bid 1 1")),
		"lost A-USD resubscribe suspect", "snapshot B-USD 1x1 |")
	s.want(s.frame("l2_data", event("update", "A-USD", "bid 1 1")))
	s.unsubscribe("A-USD")
	s.want(s.frame("l2_data", event("update", "A-USD", "bid 1 2")))
	s.subscribe("A-USD")
	// Still of the old subscription.
	s.want(s.frame("l2_data", event("update", "A-USD", "bid 1 3")))
	s.want(s.ack("B-USD"), "accepted B-USD")
	s.want(s.frame("l2_data", event("snapshot", "A-USD", "bid 1 4")), "snapshot A-USD 1x4 |")
	s.want(s.frame("l2_data", event("update", "A-USD", "bid 1 5")), "update A-USD 1x5 |")
	s.want(s.ack("A-USD", "B-USD"), "accepted A-USD")
	if got, want := s.socket.take(), `{"type":"unsubscribe","channel":"level2","product_ids":["A-USD"]}
{"type":"subscribe","channel":"level2","product_ids":["A-USD"]}`; got != want {
		t.Errorf("sent %s", got)
	}
}

// TestStream_leftovers: what is still on its way of a subscription that ended is let pass for 5 s, not longer.
func TestStream_leftovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStream(t, "A-USD")
		s.frame("l2_data", event("snapshot", "A-USD", "bid 1 1"))
		s.unsubscribe("A-USD")
		time.Sleep(time.Second)
		s.subscribe("A-USD")
		time.Sleep(3 * time.Second)
		s.want(s.frame("l2_data", event("update", "A-USD", "bid 1 2")))
		time.Sleep(time.Second)
		s.want(s.frame("l2_data", event("update", "A-USD", "bid 1 2")), "lost A-USD resubscribe suspect")
	})
}

// TestStream_distrust: a book that the feed found wrong begins anew, once.
func TestStream_distrust(t *testing.T) {
	s := newStream(t, "A-USD", "B-USD")
	s.frame("l2_data", event("snapshot", "A-USD", "bid 1 1")+","+event("snapshot", "B-USD", "bid 1 1"))
	distrust := func(symbol string) string { return events(s.conn.Distrust(symbol, market.ErrSuspect)) }
	s.want(distrust("A-USD"), "lost A-USD resubscribe suspect")
	s.want(distrust("A-USD"))
	s.want(distrust("C-USD"))
	s.want(events(s.conn.Distrust("B-USD", nil)), "lost B-USD resubscribe suspect")
	s.want(s.frame("l2_data", event("update", "A-USD", "bid 1 2")))
	s.unsubscribe("A-USD")
	s.want(distrust("A-USD"))
	if got := s.conn.Load(&market.OrderBook{Symbol: "A-USD"}); len(got) != 0 {
		t.Errorf("a REST book: %s", events(got))
	}
}

// TestStream_late: a snapshot that does not come is noticed, but not while those of other books still come.
func TestStream_late(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStream(t, "A-USD", "B-USD")
		s.want(s.ack("A-USD", "B-USD"), "accepted A-USD", "accepted B-USD")
		time.Sleep(9 * time.Second)
		s.want(s.tick(0))
		s.want(s.frame("l2_data", event("snapshot", "B-USD", "bid 1 1")), "snapshot B-USD 1x1 |")
		s.want(s.tick(9 * time.Second))
		s.want(s.tick(10*time.Second), "lost A-USD resubscribe timeout")
		s.want(s.tick(20 * time.Second))
	})
}

// TestStream_together: to subscribe and to read at once is safe.
func TestStream_together(t *testing.T) {
	s := newStream(t, "A-USD")
	var all sync.WaitGroup
	for i := range 4 {
		symbol := fmt.Sprintf("C%d-USD", i)
		all.Go(func() {
			for range 50 {
				if err := s.conn.Subscribe(t.Context(), subs(symbol)); err != nil {
					t.Error(err)
				}
				if err := s.conn.Unsubscribe(t.Context(), subs(symbol)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	s.want(s.frame("l2_data", event("snapshot", "A-USD", "bid 1 1")), "snapshot A-USD 1x1 |")
	for range 200 {
		s.frame("l2_data", event("update", "A-USD", "bid 1 2")+","+event("snapshot", "C1-USD", "bid 1 1"))
		s.ack("A-USD", "C2-USD")
		s.tick(0)
	}
	all.Wait()
	s.want(s.frame("l2_data", event("update", "A-USD", "bid 1 3")), "update A-USD 1x3 |")
}
