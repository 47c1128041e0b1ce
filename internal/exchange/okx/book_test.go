package okx_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/exchange/exchangetest"
	"exchange-gateway/internal/market"
)

func TestOrderBook_alwaysSendsSize(t *testing.T) {
	v, rig := newVenue(t, fixtures())
	f := func(depth int, want string, asked int) {
		t.Helper()
		rig.Answer(fixtures())
		book, err := v.OrderBook(t.Context(), btc, depth)
		if err != nil {
			t.Fatal(err)
		}
		if got := rig.Requests()[0].URL.RequestURI(); got != "/api/v5/market/books?instId=BTC-USDT&sz="+want || book.Depth != asked {
			t.Errorf("depth %d: asked %s, says %d", depth, got, book.Depth)
		}
	}
	f(1, "1", 1)
	f(5, "5", 5)
	f(100, "100", 100)
	f(400, "400", 400)
	f(401, "400", 400)
	f(1000, "400", 400)
	f(0, "1", 1)
	f(-3, "1", 1)
}

func TestOrderBook_escapesTheSymbol(t *testing.T) {
	v, rig := newVenue(t, fixtures())
	l := btc
	l.Symbol = "A&sz=1#-B"
	if _, err := v.OrderBook(t.Context(), l, 7); err != nil {
		t.Fatal(err)
	}
	if q := rig.Requests()[0].URL.Query(); q.Get("instId") != l.Symbol || q.Get("sz") != "7" || len(q) != 2 {
		t.Errorf("asked %v", q)
	}
}

func TestOrderBook_clocksAndSequence(t *testing.T) {
	f := func(row string, at time.Time, sequence market.Sequence) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			v, _ := newVenue(t, always(exchangetest.Reply{
				Body: `{"data":[` + row + `],"inTime":"1","outTime":"2","msg":"","code":"0"}`, Delay: 50 * time.Millisecond,
			}))
			sent := time.Now()
			book, err := v.OrderBook(t.Context(), btc, 5)
			if err != nil {
				t.Fatal(err)
			}
			changed := at
			if at.IsZero() {
				changed = sent
			}
			if !book.ExchangeTime.Equal(at) || book.Sequence != sequence || !book.ConfirmedAt.Equal(sent) || !book.ChangedAt.Equal(changed) {
				t.Errorf("%s: time %v, sequence %v, confirmed %v, changed %v", row, book.ExchangeTime, book.Sequence, book.ConfirmedAt, book.ChangedAt)
			}
		})
	}
	at := time.UnixMilli(1796000000123)
	const sides = `"asks":[["2","1","0","1"]],"bids":[["1","1","0","1"]]`
	f(`{`+sides+`,"ts":"1796000000123","seqId":79706765242}`, at, market.SequenceOf(79706765242))
	f(`{`+sides+`,"ts":"1796000000123"}`, at, market.Sequence{})            // until July 2026
	f(`{`+sides+`,"ts":1796000000123,"seqId":null}`, at, market.Sequence{}) // a number where a string is documented
	f(`{"seqId":0,"ts":"1796000000123",`+sides+`}`, at, market.SequenceOf(0))
	f(`{`+sides+`,"ts":"1796000000123","seqId":1727000000000000001,"checksum":0,"prevSeqId":-1}`, at, market.SequenceOf(1727000000000000001))
	f(`{`+sides+`,"seqId":-1}`, time.Time{}, market.Sequence{})
}

func TestOrderBook_levels(t *testing.T) {
	f := func(bids, asks, wantBids, wantAsks string, zeros int) {
		t.Helper()
		v, _ := newVenue(t, data(`{"asks":`+asks+`,"bids":`+bids+`,"ts":"1796000000123"}`))
		book, err := v.OrderBook(t.Context(), btc, 5)
		if err != nil {
			t.Fatal(err)
		}
		got, gotAsks := string(book.AppendBids(nil, 9)), string(book.AppendAsks(nil, 9))
		if got != wantBids || gotAsks != wantAsks || book.Zeros() != zeros {
			t.Errorf("bids %s, asks %s, %d zeros", got, gotAsks, book.Zeros())
		}
	}
	f(`[["41006.3","0.30178218","0","2"]]`, `[["41006.8","0.60038921","0","1"]]`, `[["41006.3","0.30178218"]]`, `[["41006.8","0.60038921"]]`, 0)
	f(`[]`, `[["2","1","0","1"]]`, `[]`, `[["2","1"]]`, 0) // legal for an illiquid pair
	f(`[]`, `[]`, `[]`, `[]`, 0)
	f(`[["1","0","0","1"],["0.9","5","0","1"]]`, `[["3","1","0","1"],["2","1","0","1"]]`, `[["0.9","5"]]`, `[["2","1"],["3","1"]]`, 1)
	// The smallest tick of April 2026 has twelve decimals, at sizes of ten digits and more.
	f(`[["0.000000000987","12345678901.000000001","0","1"]]`, `[]`, `[["0.000000000987","12345678901.000000001"]]`, `[]`, 0)
}

// TestOrderBook_tooLong: what is cut off by our own bound holds the symbol like every other book that cannot be read.
func TestOrderBook_tooLong(t *testing.T) {
	v, _ := newVenue(t, says(`{"code":"0","msg":"`+strings.Repeat("x", 1<<20)+`","data":[]}`))
	book, err := v.OrderBook(t.Context(), btc, 5)
	e := failure(t, err)
	want := market.Scope{Kind: market.ScopeSymbol, Name: "BTC-USDT"}
	if book != nil || e.Kind != market.KindMalformed || e.Refusal == nil || e.Refusal.Scope != want || e.Refusal.First != time.Second || e.Refusal.Max != 30*time.Second {
		t.Errorf("got %v, %v with refusal %+v", book, e, e.Refusal)
	}
}
