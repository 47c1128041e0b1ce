package okx_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/shopspring/decimal"

	"exchange-gateway/internal/exchange/okx"
	"exchange-gateway/internal/market"
	"exchange-gateway/test/bench/cpu"
)

// bookBody is a book as OKX sends it, with so many levels a side.
func bookBody(levels int) []byte {
	var asks, bids bytes.Buffer
	for i := range levels {
		if i > 0 {
			asks.WriteByte(',')
			bids.WriteByte(',')
		}
		fmt.Fprintf(&asks, `["%d.%d","0.%08d","0","%d"]`, 64073+i/10, i%10, 1234567+i, i%9+1)
		fmt.Fprintf(&bids, `["%d.%d","1.%08d","0","%d"]`, 64072-i/10, 9-i%10, 7654321+i, i%9+1)
	}
	return fmt.Appendf(nil, `{"code":"0","msg":"","data":[{"asks":[%s],"bids":[%s],"ts":"1796000000123","seqId":79706765242}]}`, asks.Bytes(), bids.Bytes())
}

// BenchmarkBook decodes, validates, encodes and publishes a book of 100 levels a side; the peer does it with encoding/json
// and shopspring/decimal both ways.
func BenchmarkBook(b *testing.B) {
	body := bookBody(100)
	b.Run("ours", func(b *testing.B) {
		var published atomic.Pointer[market.OrderBook]
		out := make([]byte, 0, 16<<10)
		b.ReportAllocs()
		done := cpu.Report(b)
		for b.Loop() {
			bids, asks, err := okx.ScanBook(body, 100)
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
				Data []plainBook `json:"data"`
			}
			if err := json.Unmarshal(body, &w); err != nil {
				b.Fatal(err)
			}
			if !w.Data[0].ordered() {
				b.Fatal("not in order")
			}
			if _, err := json.Marshal(w.Data[0]); err != nil {
				b.Fatal(err)
			}
		}
		done()
	})
}

type plainBook struct {
	Bids [][2]decimal.Decimal `json:"bids"`
	Asks [][2]decimal.Decimal `json:"asks"`
	TS   string               `json:"ts"`
	ID   int64                `json:"seqId"`
}

func (w plainBook) ordered() bool {
	for direction, side := range map[int][][2]decimal.Decimal{-1: w.Bids, 1: w.Asks} {
		for i, l := range side {
			if !l[1].IsPositive() || i > 0 && l[0].Cmp(side[i-1][0]) != direction {
				return false
			}
		}
	}
	return true
}
