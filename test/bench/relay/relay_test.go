package relay_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/exchange/binance"
	"exchange-gateway/internal/exchange/coinbase"
	"exchange-gateway/internal/exchange/okx"
	"exchange-gateway/internal/feed"
	"exchange-gateway/internal/feed/hub"
	"exchange-gateway/internal/market"
	"exchange-gateway/test/bench/cpu"
)

// atOnce is how many changes are on their way together. The hub queues 256 for a client before it leaves any out.
const atOnce = 64

// relayed is a feed of one book with one client of its best 100 levels.
type relayed struct {
	wire   *wire
	client *hub.Client
	stop   func()
}

func relay(b *testing.B, d *dialect, streamer func(exchange.Config) (market.Streamer, error)) *relayed {
	b.Helper()
	w := newWire(d)
	s, err := streamer(exchange.Config{ID: d.listing.Exchange, Door: door{}, Transport: w})
	if err != nil {
		b.Fatal(err)
	}
	h := hub.New(hub.Config{})
	f := feed.New(feed.Config{Listener: h, Venues: []feed.Venue{{
		ID: d.listing.Exchange, Streamer: s, Data: books{wire: w},
		Do: func(ctx context.Context, _ market.Call, do func(context.Context) error) error { return do(ctx) },
	}}})
	h.Attach(f)
	r := &relayed{wire: w, client: h.NewClient()}
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	r.stop = func() {
		r.client.Close()
		cancel()
		if err := <-done; err != nil {
			b.Error(err)
		}
	}
	topic := hub.Topic{Key: feed.Key{Exchange: d.listing.Exchange, Pair: d.listing.Pair}, Channel: hub.ChannelOrderBook, Depth: 100}
	if err := r.client.Subscribe(d.listing, topic, ""); err != nil {
		b.Fatal(err)
	}
	w.allowed <- 2 // a procedure may wait for the first before it asks for a snapshot
	for r.versions(b, hub.TypeSnapshot) == 0 {
	}
	return r
}

// versions waits for frames and counts those of a type.
func (r *relayed) versions(b *testing.B, t hub.Type) (n int) {
	ctx, cancel := context.WithTimeout(b.Context(), 10*time.Second)
	defer cancel()
	frames, err := r.client.Next(ctx)
	if err != nil {
		b.Fatal(err)
	}
	for _, f := range frames {
		if f.Type() == t {
			n++
		}
	}
	return n
}

// BenchmarkChange is one change of 20 levels of a book of 1,000 (OKX: 400) a side: read from the connection, decoded, put in
// order, applied, checked, journalled, and encoded for the clients. What the standard library takes to decode the same bytes
// is there to compare with.
func BenchmarkChange(b *testing.B) {
	for name, venue := range map[string]struct {
		dialect  *dialect
		streamer func(exchange.Config) (market.Streamer, error)
		plain    func() any
	}{
		"binance": {
			binanceDialect(), func(c exchange.Config) (market.Streamer, error) { return binance.New(c) }, func() any { return new(plainBinance) },
		},
		"okx": {
			okxDialect(), func(c exchange.Config) (market.Streamer, error) { return okx.New(c) }, func() any { return new(plainOKX) },
		},
		"coinbase": {
			coinbaseDialect(), func(c exchange.Config) (market.Streamer, error) { return coinbase.New(c) }, func() any { return new(plainCoinbase) },
		},
	} {
		b.Run(name+"/ours", func(b *testing.B) {
			r := relay(b, venue.dialect, venue.streamer)
			defer r.stop()
			b.ReportAllocs()
			b.ResetTimer()
			done := cpu.Report(b)
			for left := b.N; left > 0; left -= atOnce {
				n := min(left, atOnce)
				r.wire.allowed <- n
				for n > 0 {
					n -= r.versions(b, hub.TypeUpdate)
				}
			}
			done()
			b.StopTimer()
		})
		b.Run(name+"/standard", func(b *testing.B) {
			raw := venue.dialect.changes[0].append(nil, venue.dialect.first)
			b.ReportAllocs()
			done := cpu.Report(b)
			for b.Loop() {
				if err := json.Unmarshal(raw, venue.plain()); err != nil {
					b.Fatal(err)
				}
			}
			done()
		})
	}
}

// What is used of a change, as text.
type (
	plainBinance struct {
		Data struct {
			First int64       `json:"U"`
			Last  int64       `json:"u"`
			Bids  [][2]string `json:"b"`
			Asks  [][2]string `json:"a"`
		} `json:"data"`
	}
	plainOKX struct {
		Data []struct {
			Sequence int64       `json:"seqId"`
			Previous int64       `json:"prevSeqId"`
			Bids     [][2]string `json:"bids"`
			Asks     [][2]string `json:"asks"`
		} `json:"data"`
	}
	plainCoinbase struct {
		Sequence int64 `json:"sequence_num"`
		Events   []struct {
			Product string `json:"product_id"`
			Updates []struct {
				Side  string `json:"side"`
				Price string `json:"price_level"`
				Size  string `json:"new_quantity"`
			} `json:"updates"`
		} `json:"events"`
	}
)
