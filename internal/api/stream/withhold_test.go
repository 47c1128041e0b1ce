package stream_test

import (
	"strings"
	"testing"
)

// What an operator withholds is the same on both transports: a status, and then nothing until a status and a snapshot. The
// status is no version of the book, so a client of events that comes back names the version that it holds.
func TestWithhold_overBothTransports(t *testing.T) {
	r := newRig(t)
	c := r.dial(t)
	c.send(subscribeTo(5))
	c.expect("status live", "snapshot")
	c.send(`{"op":"subscribe","channel":"ticker","exchange":"okx","symbols":["BTC/USDT"]}`)
	c.expect("status live", "snapshot")
	in := events(t, r.get(t, "5", "")).begin()
	holds := in.expect("status", "snapshot")[1].id

	r.feed.listener.Withhold("okx", btc, true)
	for _, m := range c.expect("status withheld", "status withheld") {
		if m.Reason != "withheld" {
			t.Errorf("%+v", m)
		}
	}
	if e := in.expect("status")[0]; e.id != "" || !strings.Contains(e.data, `"status":"withheld"`) {
		t.Errorf("%+v", e)
	}
	r.feed.change(42)
	again := events(t, r.get(t, "5", holds)).begin()
	if e := again.expect("status")[0]; !strings.Contains(e.data, `"status":"withheld"`) {
		t.Errorf("%+v", e)
	}
	r.feed.load(20)
	r.feed.change(43)
	c.send(`{"op":"ping"}`)
	c.expect("heartbeat") // and nothing before it

	r.feed.listener.Withhold("okx", btc, false)
	for _, m := range c.expect("status live", "snapshot", "status live", "snapshot") {
		if m.Type == "snapshot" && (m.Seq != 2 || m.Channel == "orderbook" && m.Bids[0][1] != "0.43") {
			t.Errorf("%+v", m)
		}
	}
	for _, r := range []*eventReader{in, again} {
		if e := r.expect("status", "snapshot")[1]; e.id == holds || !strings.Contains(e.data, `["64000.00","0.43"]`) {
			t.Errorf("%+v", e)
		}
	}
}
