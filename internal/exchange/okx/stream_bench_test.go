package okx_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"exchange-gateway/internal/exchange/okx"
	"exchange-gateway/internal/market"
	"exchange-gateway/test/bench/cpu"
)

// diffs are two updates of n levels that follow each other in a circle, the second being a legal reset.
func diffs(n int) (snapshot string, circle [2][]byte) {
	var bids, asks []string
	for i := range n / 2 {
		bids = append(bids, fmt.Sprintf("%d.%d 1.%08d", 64072-i/10, 9-i%10, 7654321+i))
		asks = append(asks, fmt.Sprintf("%d.%d 0.%08d", 64073+i/10, i%10, 1234567+i))
	}
	b, a := strings.Join(bids, ","), strings.Join(asks, ",")
	return snap("BTC-USDT", 79706765242, b, a),
		[2][]byte{[]byte(diff("BTC-USDT", 79706765242, 79706765249, b, a)), []byte(diff("BTC-USDT", 79706765249, 79706765242, b, a))}
}

func following(t testing.TB, snapshot string) market.StreamConn {
	t.Helper()
	v, _ := newVenue(t, fixtures())
	conn := okx.StreamOver(v, newLink())
	if err := conn.Subscribe(t.Context(), books("BTC-USDT")); err != nil {
		t.Fatal(err)
	}
	if events := conn.Decode([]byte(snapshot), time.Now()); len(events) != 1 || events[0].Kind != market.StreamSnapshot {
		t.Fatalf("%v", texts(events))
	}
	return conn
}

// TestStreamDecode_allocatesNothing: a feed of hundreds of books would else be mostly garbage.
func TestStreamDecode_allocatesNothing(t *testing.T) {
	snapshot, circle := diffs(20)
	conn := following(t, snapshot)
	at := time.Now()
	n := testing.AllocsPerRun(100, func() {
		for _, raw := range circle {
			if events := conn.Decode(raw, at); len(events) != 1 || events[0].Kind != market.StreamUpdate || len(events[0].Bids) != 10 {
				t.Fatalf("%v", texts(events))
			}
		}
	})
	if n != 0 {
		t.Errorf("%v allocations in two updates", n)
	}
}

// BenchmarkStreamDecode is the cost of one update, levels of both sides together.
func BenchmarkStreamDecode(b *testing.B) {
	for _, n := range []int{20, 100} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			snapshot, circle := diffs(n)
			conn := following(b, snapshot)
			at := time.Now()
			b.ReportAllocs()
			done := cpu.Report(b)
			for i := 0; b.Loop(); i++ {
				if events := conn.Decode(circle[i%2], at); len(events) != 1 || events[0].Kind != market.StreamUpdate {
					b.Fatalf("%v", texts(events))
				}
			}
			done()
		})
	}
}
