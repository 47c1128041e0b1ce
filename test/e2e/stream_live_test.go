package e2e_test

import (
	"context"
	"encoding/json"
	"net/http"
	"path/filepath"
	"testing"
	"time"
)

// streams is what /v1/exchanges/{exchange}/status says of an exchange's streams.
type streams struct {
	Connections []struct{ Books int }
	Books       struct{ Live, Syncing, Stale int }
	WarmUp      struct{ Wanted, Synced, Queued int } `json:"warm_up"`
}

func (g *gateway) streams(exchange string) (s streams) {
	g.t.Helper()
	a := g.get(context.Background(), g.public+"/v1/exchanges/"+exchange+"/status")
	var doc struct{ Streams *streams }
	if err := json.Unmarshal(a.body, &doc); err != nil || doc.Streams == nil {
		g.t.Errorf("status of %s: %v: %v", exchange, err, a)
		return s
	}
	return *doc.Streams
}

// sameAsTruth compares a book of REST that came from a stream with the exchange's own.
func (x *truths) sameAsTruth(exchange string, a answer) error {
	var doc struct {
		ExchangeSymbol string `json:"exchange_symbol"`
		Nonce          *int64
		Datetime       string
		Depth          int
		Complete       bool
	}
	if err := json.Unmarshal(a.body, &doc); err != nil {
		return err
	}
	bids, asks := map[string]string{}, map[string]string{}
	change(bids, a.Bids)
	change(asks, a.Asks)
	m := message{Exchange: exchange, ExchangeSymbol: doc.ExchangeSymbol, ExchangeSeq: doc.Nonce, ExchangeTime: doc.Datetime, Depth: doc.Depth, Complete: doc.Complete}
	return x.compare(&m, bids, asks)
}

// Over TLS, the books of three exchanges are kept from their streams and pushed on, and every version that is shown, by a
// stream or by REST, is the exchange's own.
func TestStreams_overTLS_everyBookIsTheExchangesOwn(t *testing.T) {
	t.Parallel()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	sim := simulate(t, "--tls", "--ca-file="+ca)
	sim.ca = ca
	g := before(t, sim).streaming(sim).warm(sim).serve(t)
	for _, id := range ids() {
		eventually(t, 15*time.Second, id+": the warm-up is done", func() bool {
			s := g.streams(id)
			return s.WarmUp.Wanted == 1 && s.WarmUp.Synced == 1 && s.WarmUp.Queued == 0 && s.Books.Live == 1 && len(s.Connections) == 1 && s.Connections[0].Books == 1
		})
	}
	var topics []topic
	for _, id := range ids() {
		for _, depth := range []int{1, 20, 400} {
			topics = append(topics, topic{"orderbook", id, pairOf(id), depth})
		}
		topics = append(topics, topic{"ticker", id, pairOf(id), 0}, topic{"orderbook", id, "ETH/BTC", 50})
	}
	topics = append(topics, topic{"orderbook", "coinbase", "BTC/USDC", 5}) // another name of BTC/USD
	w := g.watch(t, sim, topics...)
	w.live(20 * time.Second)
	began := time.Now()
	rest := newTruths(sim, 300)
	for time.Since(began) < 5*time.Second {
		for _, id := range ids() {
			a := g.book(id, pairOf(id), "depth=300")
			if a.status != http.StatusOK || a.Stale || a.Freshness.Source != "stream" {
				t.Errorf("%s: %v, want a live book of the stream", id, a)
			} else if err := rest.sameAsTruth(id, a); err != nil {
				t.Errorf("%s: %v", id, err)
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	w.compared(1, 5*time.Second)
	versions := 0
	w.all(func(of topic, h *shown) bool {
		versions += h.compared
		if len(h.changes) > 2 || of.depth > 1 && h.compared < 10 {
			t.Errorf("%v: %d versions, status %v", of, h.compared, h.changes)
		}
		return true
	})
	t.Logf("%d versions of %d subscriptions are the exchanges' own", versions, len(topics))
	for _, id := range ids() {
		if n := sim.counted(id).Streams; n.Opened != 1 {
			t.Errorf("%s: %d streams were opened, want one", id, n.Opened)
		}
	}
}

// Three reads of a book within a minute are enough: it is streamed without anybody having said so.
func TestStreams_popular_threeReads(t *testing.T) {
	t.Parallel()
	sim := simulate(t)
	g := before(t, sim).streaming(sim).serve(t)
	for _, id := range ids() {
		for n := range 2 {
			if a := g.live(id, "ETH/BTC"); a.Freshness.Source == "stream" {
				t.Errorf("%s: read %d is from a stream", id, n+1)
			}
		}
	}
	time.Sleep(500 * time.Millisecond) // two reads are not enough
	for _, id := range ids() {
		if n := sim.counted(id).Streams.Opened; n != 0 {
			t.Errorf("%s: %d streams after two reads", id, n)
		}
		g.live(id, "ETH/BTC")
	}
	for _, id := range ids() {
		took := eventually(t, 10*time.Second, id+": a book of the stream", func() bool { return g.live(id, "ETH/BTC").Freshness.Source == "stream" })
		n := sim.counted(id)
		t.Logf("%s: from the stream %v after the third read", id, took.Round(time.Millisecond))
		if n.Streams.Open != 1 || n.Streams.Opened != 1 {
			t.Errorf("%s: %+v, want one stream", id, n.Streams)
		}
		asked := n.ByClass["market_data"]
		for range 50 {
			g.live(id, "ETH/BTC")
		}
		if more := sim.counted(id).ByClass["market_data"] - asked; more > 0 {
			t.Errorf("%s: %d books asked for by REST while one is streamed", id, more)
		}
	}
}
