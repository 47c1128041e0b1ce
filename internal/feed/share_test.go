package feed_test

import (
	"testing"
	"time"

	"exchange-gateway/internal/feed"
	"exchange-gateway/internal/market"
)

// TestFeed_oneClientLeavesRoomForOthers: of eight books one client may hold six.
func TestFeed_oneClientLeavesRoomForOthers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(market.StreamRules{})
		r := start(t, w, func(c *feed.Config) { c.MaxBooks = 8 })
		bases, _ := names(10)
		take := func(client, base string, want market.Kind) (release func()) {
			t.Helper()
			release, err := r.WatchFor(client, listing(base), market.StreamBook)
			if market.KindOf(err) != want {
				t.Fatalf("%s for %s: %v, want %v", base, client, err, want)
			}
			return release
		}
		take("modest", bases[0], market.KindNone)
		var held []func()
		for _, b := range bases[1:7] {
			held = append(held, take("greedy", b, market.KindNone))
		}
		twice := take("greedy", bases[1], market.KindNone) // another depth of it
		take("greedy", bases[7], market.KindOverloaded)
		take("greedy", bases[0], market.KindNone) // it is streamed already
		take("modest", bases[7], market.KindNone)
		take("modest", bases[8], market.KindOverloaded) // there are eight
		take("", bases[8], market.KindOverloaded)

		// One that is given up makes room, but not as long as another subscription holds it.
		held[0]()
		take("greedy", bases[8], market.KindOverloaded)
		twice()
		twice()
		take("modest", bases[8], market.KindNone)
		held[1]()
		held[2]()
		take("greedy", bases[9], market.KindNone)
		sleep(time.Second)
		if n := len(r.Books(fakeID)); n != 8 {
			t.Errorf("%d books", n)
		}
	})
}

// TestFeed_readingOftenIsNoWayRoundTheShare: a book that is streamed because it is read often is nobody's until it is held.
func TestFeed_readingOftenIsNoWayRoundTheShare(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(market.StreamRules{})
		r := start(t, w, func(c *feed.Config) { c.MaxBooks = 8 })
		sleep(time.Second)
		bases, _ := names(7)
		for _, b := range bases[:6] {
			if _, err := r.WatchFor("greedy", listing(b), market.StreamBook); err != nil {
				t.Fatal(err)
			}
		}
		for range 3 {
			r.Used(listing(bases[6]))
			sleep(time.Second)
		}
		r.wantState(t, bases[6], feed.StateLive, market.KindNone)
		if _, err := r.WatchFor("greedy", listing(bases[6]), market.StreamBook); market.KindOf(err) != market.KindOverloaded {
			t.Errorf("the seventh of eight: %v", err)
		}
		release, err := r.WatchFor("modest", listing(bases[6]), market.StreamBook)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.WatchFor("greedy", listing(bases[6]), market.StreamBook); err != nil {
			t.Errorf("one that another holds: %v", err)
		}
		release()
	})
}

// TestFeed_theGatewayItselfHasAllBooks: pairs that are kept warm leave no room to clients.
func TestFeed_theGatewayItselfHasAllBooks(t *testing.T) {
	w := newWorld(market.StreamRules{})
	f := feed.New(feed.Config{Venues: []feed.Venue{{ID: fakeID, Streamer: w, Data: w, Do: w.Do}}, MaxBooks: 4})
	bases, _ := names(4)
	for _, b := range bases {
		if _, err := f.Watch(listing(b), market.StreamBook); err != nil {
			t.Errorf("%s: %v", b, err)
		}
	}
}
