package hub_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"

	"exchange-gateway/internal/feed"
	"exchange-gateway/internal/feed/hub"
	"exchange-gateway/internal/market"
)

// replica is a downstream client as a bot would write it: levels by the text of their price.
type replica struct {
	client     *hub.Client
	topic      hub.Topic
	often      int // it reads once in so many steps
	epoch      string
	seq        uint64
	begun      bool
	bids, asks map[string]string
	last       message // of a ticker
	status     string
	conflated  uint64
	updates    int
}

// follow applies what waits, and checks that nothing is missing in it.
func (r *replica) follow(t *testing.T) {
	t.Helper()
	for _, m := range messages(t, r.client) {
		switch m.Type {
		case "status":
			r.status = m.Status
			continue
		case "heartbeat":
			continue
		case "snapshot":
			if m.PrevSeq != nil {
				t.Fatalf("a snapshot after %d", *m.PrevSeq)
			}
			r.bids, r.asks = map[string]string{}, map[string]string{}
		case "update":
			r.updates++
			if !r.begun || m.PrevSeq == nil || *m.PrevSeq != r.seq || *m.Epoch != r.epoch {
				t.Fatalf("depth %d: update %+v after %s-%d", r.topic.Depth, m, r.epoch, r.seq)
			}
		}
		if r.begun && m.Seq != r.seq+1+m.Conflated {
			t.Fatalf("depth %d: seq %d with %d conflated after %d", r.topic.Depth, m.Seq, m.Conflated, r.seq)
		}
		if m.Channel != string(r.topic.Channel) || m.Depth != r.topic.Depth || m.Symbol != "BTC/USDT" || m.ExchangeSymbol != "BTC-USDT" {
			t.Fatalf("subscribed to %+v, got %+v", r.topic, m)
		}
		r.begun, r.epoch, r.seq, r.last, r.status = true, *m.Epoch, m.Seq, m, m.Status
		r.conflated += m.Conflated
		set(r.bids, m.Bids)
		set(r.asks, m.Asks)
	}
}

func set(side map[string]string, levels [][2]string) {
	for _, l := range levels {
		if l[1] == "0" {
			delete(side, l[0])
		} else {
			side[l[0]] = l[1]
		}
	}
}

// compare holds the replica against the book.
func (r *replica) compare(t *testing.T, b *fakeBook, withheld bool) {
	t.Helper()
	if withheld {
		if r.status != "withheld" {
			t.Fatalf("depth %d: status %q of a book that is withheld", r.topic.Depth, r.status)
		}
		return
	}
	if r.status != string(b.fresh.State) {
		t.Fatalf("depth %d: status %q, the book is %q", r.topic.Depth, r.status, b.fresh.State)
	}
	if !b.held {
		return
	}
	if r.topic.Channel == hub.ChannelTicker {
		for name, pair := range map[string][2]string{
			"bid": {text(r.last.Bid), topText(b.best.Bid.Price, b.best.HasBid)}, "bidVolume": {text(r.last.BidVolume), topText(b.best.Bid.Size, b.best.HasBid)},
			"ask": {text(r.last.Ask), topText(b.best.Ask.Price, b.best.HasAsk)}, "askVolume": {text(r.last.AskVolume), topText(b.best.Ask.Size, b.best.HasAsk)},
		} {
			if pair[0] != pair[1] {
				t.Fatalf("ticker %s = %s, want %s", name, pair[0], pair[1])
			}
		}
		return
	}
	for name, side := range map[string]struct {
		got  map[string]string
		want []market.Level
	}{"bids": {r.bids, b.bids}, "asks": {r.asks, b.asks}} {
		want := map[string]string{}
		for _, l := range side.want[:min(len(side.want), r.topic.Depth)] {
			want[l.Price.String()] = l.Size.String()
		}
		if !maps.Equal(side.got, want) {
			t.Fatalf("depth %d seq %d: %s = %v\nwant %v", r.topic.Depth, r.seq, name, side.got, want)
		}
	}
	if r.last.Complete != b.Complete(r.topic.Depth) {
		t.Fatalf("depth %d: complete %v", r.topic.Depth, r.last.Complete)
	}
}

func text(s *string) string {
	if s == nil {
		return "null"
	}
	return *s
}

func topText(n market.Number, has bool) string {
	if !has {
		return "null"
	}
	return n.String()
}

// TestModel_everyClientHoldsTheBook drives one book through everything that can happen to it, with clients of every depth
// that read at once, seldom, and rarely, that come and go. Whenever one has read, it holds the book exactly.
func TestModel_everyClientHoldsTheBook(t *testing.T) {
	var updates, conflated uint64
	seeds := uint64(8)
	if raceDetector {
		seeds = 2 // nothing runs at once here; TestConcurrent is for that
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { u, c := runModel(t, seed); updates += u; conflated += c })
		})
	}
	if updates < 500*seeds || conflated < 500*seeds {
		t.Errorf("%d updates and %d conflated versions: the model tests little", updates, conflated)
	}
}

func runModel(t *testing.T, seed uint64) (updates, conflated uint64) {
	random := rand.New(rand.NewPCG(seed, 7))
	f := newFeed(hub.Config{MaxFrames: 8, MaxBytes: 1 << 15, SlowAfter: 1 << 40})
	b := f.stream(btcKey, 60)
	b.rand = random
	topics := []hub.Topic{ticker}
	for _, n := range hub.Depths() {
		topics = append(topics, depth(n))
	}
	join := func() *replica {
		r := &replica{client: f.listener.NewClient(), topic: topics[random.IntN(len(topics))], often: []int{1, 1, 5, 40}[random.IntN(4)]}
		subscribe(t, r.client, r.topic)
		return r
	}
	var all []*replica
	for range 16 {
		all = append(all, join())
	}
	leave := func(i int) {
		updates, conflated = updates+uint64(all[i].updates), conflated+all[i].conflated
		all[i].client.Close()
		all = slices.Delete(all, i, i+1)
	}
	withheld := map[market.Pair]bool{} // the zero pair: the exchange
	for step := range 300 {
		switch random.IntN(40) {
		case 0:
			b.load([]int{0, 3, 60, 450}[random.IntN(4)])
		case 1:
			b.lose(market.KindUnavailable)
		case 2:
			b.freshness(feed.StateStale, market.KindTimeout)
		case 3:
			b.freshness(feed.StateLive, market.KindNone)
		case 4:
			b.limit = 1 + random.IntN(500)
		case 5:
			leave(random.IntN(len(all)))
		case 6, 7:
			all = append(all, join())
		case 8:
			pair := []market.Pair{{}, btc}[random.IntN(2)]
			f.listener.Withhold(btcKey.Exchange, pair, true)
			withheld[pair] = true
		case 9, 10, 11, 12, 13, 14:
			pair := []market.Pair{{}, btc}[random.IntN(2)]
			f.listener.Withhold(btcKey.Exchange, pair, false)
			delete(withheld, pair)
		}
		if b.held {
			b.random(1+random.IntN(20), []int64{5, 40, 400, 1000}[random.IntN(4)])
		} else if random.IntN(4) == 0 {
			b.load(random.IntN(100))
		}
		for _, r := range all {
			if step%r.often == 0 {
				r.follow(t)
				r.follow(t) // what one turn left for the next
				r.compare(t, b, len(withheld) > 0)
			}
		}
	}
	for len(all) > 0 {
		leave(0)
	}
	return updates, conflated
}
