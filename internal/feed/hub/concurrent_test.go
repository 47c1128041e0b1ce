package hub_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"exchange-gateway/internal/feed"
	"exchange-gateway/internal/feed/hub"
	"exchange-gateway/internal/market"
)

// TestConcurrent_holdsTogether has several books change while clients come, subscribe, read, stop reading, unsubscribe and
// go, all at once. What each of them reads is without a hole, and in the end nothing is left.
func TestConcurrent_holdsTogether(t *testing.T) {
	f := newFeed(hub.Config{MaxFrames: 16, MaxBytes: 1 << 14, SlowAfter: time.Hour})
	var keys []feed.Key
	var books []*fakeBook
	for i := range 3 {
		k := feed.Key{Exchange: "okx", Pair: market.Pair{Base: fmt.Sprint("A", i), Quote: "USDT"}}
		keys, books = append(keys, k), append(books, f.stream(k, 60))
	}
	ctx, cancel := context.WithCancel(t.Context())
	var publishers, clients sync.WaitGroup
	for i, b := range books {
		publishers.Go(func() {
			b.rand = rand.New(rand.NewPCG(uint64(i), 3))
			for n := 0; ctx.Err() == nil; n++ {
				switch {
				case n%50 == 49:
					b.load(60)
				case n%20 == 19:
					b.freshness(feed.StateStale, market.KindTimeout)
				default:
					b.random(20, 100)
				}
			}
		})
	}
	publishers.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			pair := market.Pair{} // the exchange
			if n%4 > 1 {
				pair = keys[0].Pair
			}
			f.listener.Withhold("okx", pair, n%2 == 0)
			runtime.Gosched()
		}
	})
	for i := range 8 {
		clients.Go(func() { comeAndGo(t, f, keys, rand.New(rand.NewPCG(uint64(i), 5))) })
	}
	clients.Wait()
	cancel()
	publishers.Wait()
	watched := 0
	for n := range maps.Values(f.watches) {
		watched += n
	}
	if watched == 0 || watched != f.releases {
		t.Errorf("%d watches, %d releases", watched, f.releases)
	}
	if books, clients := f.listener.Holds(); books+clients != 0 {
		t.Errorf("%d books and %d clients are left", books, clients)
	}
}

func comeAndGo(t *testing.T, f *fakeFeed, keys []feed.Key, random *rand.Rand) {
	topics := []hub.Topic{}
	for _, k := range keys {
		topics = append(topics, hub.Topic{Key: k, Channel: hub.ChannelTicker})
		for _, n := range hub.Depths() {
			topics = append(topics, hub.Topic{Key: k, Channel: hub.ChannelOrderBook, Depth: n})
		}
	}
	for range 4 {
		c := f.listener.NewClient()
		var reader sync.WaitGroup
		reader.Go(func() {
			at := map[string]uint64{} // by channel, symbol and depth
			for {
				frames, err := c.Next(t.Context())
				if err != nil {
					if !errors.Is(err, hub.ErrClosed) {
						t.Error(err)
					}
					return
				}
				for _, frame := range frames {
					m := read(t, frame)
					name := fmt.Sprint(m.Channel, m.Symbol, m.Depth)
					if m.Type == "status" && m.Status == "unsubscribed" {
						delete(at, name)
					}
					if m.Seq == 0 {
						continue
					}
					if old, ok := at[name]; ok && m.Seq != old+1+m.Conflated || !ok && m.Type == "update" {
						t.Errorf("%s: %s %d with %d conflated after %d", name, m.Type, m.Seq, m.Conflated, old)
					}
					at[name] = m.Seq
				}
			}
		})
		for range 40 {
			topic := topics[random.IntN(len(topics))]
			if random.IntN(2) == 0 {
				c.Unsubscribe(topic)
				continue
			}
			l := market.Listing{Exchange: "okx", Pair: topic.Key.Pair, Symbol: topic.Key.Pair.Base}
			if err := c.Subscribe(l, topic, ""); err != nil && !errors.Is(err, hub.ErrSubscribed) {
				t.Error(err)
			}
		}
		c.Close()
		reader.Wait()
	}
}

// A client may be closed in the midst of subscribing, by whoever noticed that the connection is gone.
func TestConcurrent_closedWhileSubscribing(t *testing.T) {
	f := newFeed(hub.Config{})
	f.stream(btcKey, 5)
	for range 200 {
		c := f.listener.NewClient()
		var both sync.WaitGroup
		both.Go(func() {
			for _, n := range hub.Depths() {
				if err := c.Subscribe(listing, depth(n), ""); err != nil && !errors.Is(err, hub.ErrClosed) {
					t.Error(err)
				}
			}
		})
		both.Go(c.Close)
		both.Wait()
	}
	if n := f.watches[market.StreamBook]; n != f.releases {
		t.Errorf("%d watches, %d releases", n, f.releases)
	}
	if books, clients := f.listener.Holds(); books+clients != 0 {
		t.Errorf("%d books and %d clients are left", books, clients)
	}
}
