package coinbase_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"exchange-gateway/internal/exchange/coinbase"
	"exchange-gateway/internal/market"
	"exchange-gateway/test/bench/cpu"
)

// hundred is a book of 100 levels a side as it comes on the wire.
func hundred() []byte {
	var bids, asks []string
	for i := range 100 {
		bids = append(bids, `{"price":"`+strconv.Itoa(64000-i)+`.12","size":"0.`+strconv.Itoa(58849577+i)+`"}`)
		asks = append(asks, `{"price":"`+strconv.Itoa(64001+i)+`.1","size":"1.`+strconv.Itoa(27909367+i)+`"}`)
	}
	return []byte(book("BTC-USD", strings.Join(bids, ","), strings.Join(asks, ",")))
}

// BenchmarkBook decodes, validates, encodes and publishes a book of 100 levels a side; the peer does it with encoding/json
// and shopspring/decimal both ways.
func BenchmarkBook(b *testing.B) {
	body := hundred()
	b.Run("ours", func(b *testing.B) {
		var published atomic.Pointer[market.OrderBook]
		out := make([]byte, 0, 16<<10)
		b.ReportAllocs()
		done := cpu.Report(b)
		for b.Loop() {
			bids, asks, err := coinbase.DecodeBook(body, 100)
			if err != nil {
				b.Fatal(err)
			}
			levels, err := market.NewLevels(bids, asks)
			if err != nil {
				b.Fatal(err)
			}
			book := &market.OrderBook{Levels: levels, Depth: 100}
			published.Store(book)
			out = book.AppendAsks(book.AppendBids(out[:0], 100), 100)
		}
		done()
	})
	b.Run("standard", func(b *testing.B) {
		b.ReportAllocs()
		done := cpu.Report(b)
		for b.Loop() {
			var w struct {
				Book plainBook `json:"pricebook"`
			}
			if err := json.Unmarshal(body, &w); err != nil {
				b.Fatal(err)
			}
			if !w.Book.ordered() {
				b.Fatal("not in order")
			}
			if _, err := json.Marshal(w.Book); err != nil {
				b.Fatal(err)
			}
		}
		done()
	})
}

type plainLevel struct {
	Price decimal.Decimal `json:"price"`
	Size  decimal.Decimal `json:"size"`
}

type plainBook struct {
	Product string       `json:"product_id"`
	Bids    []plainLevel `json:"bids"`
	Asks    []plainLevel `json:"asks"`
	Time    string       `json:"time"`
}

func (w plainBook) ordered() bool {
	for direction, side := range map[int][]plainLevel{-1: w.Bids, 1: w.Asks} {
		for i, l := range side {
			if !l.Size.IsPositive() || i > 0 && l.Price.Cmp(side[i-1].Price) != direction {
				return false
			}
		}
	}
	return true
}

// BenchmarkStream decodes changes of 20 levels, and the snapshot of a large book of 25,000 levels a side.
func BenchmarkStream(b *testing.B) {
	changes := func(n int) (rows []string) {
		for i := range n {
			rows = append(rows, "bid "+strconv.Itoa(64000-i%20000)+".12 0."+strconv.Itoa(58849577+i), "offer "+strconv.Itoa(64001+i)+".1 1."+strconv.Itoa(27909367+i))
		}
		return rows
	}
	for name, n := range map[string]int{"20": 10, "50000": 25_000} {
		b.Run(name, func(b *testing.B) {
			s := newStream(b, "BTC-USD")
			s.next = 1_000_000
			s.frame("l2_data", event("snapshot", "BTC-USD"))
			list := event("update", "BTC-USD", changes(n)...)
			if n > 10 {
				list = event("snapshot", "BTC-USD", changes(n)...)
			}
			text := []byte(strings.Replace(envelope("l2_data", 7_000_000, list), "1970-01-01T00:00:00Z", "2026-09-07T01:57:58.894355Z", -1))
			digits := text[strings.Index(string(text), "7000000"):][:7]
			at := time.Now()
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			done := cpu.Report(b)
			for i := 1; b.Loop(); i++ {
				copy(digits, strconv.Itoa(1_000_000+i))
				if got := s.conn.Decode(text, at); len(got) != 1 || len(got[0].Bids) != n || len(got[0].Asks) != n {
					b.Fatal(events(got))
				}
			}
			done()
		})
	}
}
