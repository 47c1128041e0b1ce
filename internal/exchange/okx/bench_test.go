package okx_test

import (
	"bytes"
	"fmt"
	"testing"

	"exchange-gateway/internal/exchange/okx"
	"exchange-gateway/internal/market"
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

// BenchmarkBook is what a 100-level book costs from its bytes to ours: decoded, validated, encoded.
func BenchmarkBook(b *testing.B) {
	for _, levels := range []int{100, 400} {
		b.Run(fmt.Sprint(levels), func(b *testing.B) {
			body := bookBody(levels)
			out := make([]byte, 0, 128<<10)
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				bids, asks, err := okx.ScanBook(body, levels)
				if err != nil {
					b.Fatal(err)
				}
				l, err := market.NewLevels(bids, asks)
				if err != nil {
					b.Fatal(err)
				}
				out = l.AppendAsks(l.AppendBids(out[:0], levels), levels)
			}
			if len(out) < levels*20 {
				b.Fatalf("%d bytes", len(out))
			}
		})
	}
}
