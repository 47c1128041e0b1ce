package market_test

import (
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/market"
)

func TestOrderBook_age(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		wall := now.Round(0)
		for name, c := range map[string]struct {
			book market.OrderBook
			want time.Duration
			ok   bool
		}{
			"confirmed now":                   {market.OrderBook{ConfirmedAt: now}, 0, true},
			"confirmed before":                {market.OrderBook{ConfirmedAt: now.Add(-3 * time.Second)}, 3 * time.Second, true},
			"of another process":              {market.OrderBook{ConfirmedAt: wall.Add(-time.Hour)}, time.Hour, true},
			"never":                           {market.OrderBook{}, 0, false},
			"a little ahead":                  {market.OrderBook{ConfirmedAt: wall.Add(time.Second)}, 0, true},
			"ahead":                           {market.OrderBook{ConfirmedAt: wall.Add(time.Second + 1)}, 0, false},
			"anchored further back":           {market.OrderBook{ConfirmedAt: wall, Anchor: now.Add(-time.Minute)}, time.Minute, true},
			"anchored, and the wall is older": {market.OrderBook{ConfirmedAt: wall.Add(-time.Hour), Anchor: now}, 0, true},
			"anchored, and the wall is ahead": {market.OrderBook{ConfirmedAt: wall.Add(time.Hour), Anchor: now}, 0, true},
			"anchored, but never confirmed":   {market.OrderBook{Anchor: now}, 0, false},
		} {
			if got, ok := c.book.Age(now); got != c.want || ok != c.ok {
				t.Errorf("%s: %v, %t, want %v, %t", name, got, ok, c.want, c.ok)
			}
		}
		book := market.OrderBook{ConfirmedAt: now}
		time.Sleep(90 * time.Second)
		if got, ok := book.Age(time.Now()); got != 90*time.Second || !ok {
			t.Errorf("after 90 s: %v, %t", got, ok)
		}
		listings, statistics := market.Listings{ConfirmedAt: now}, market.Statistics{ConfirmedAt: now}
		if got, ok := listings.Age(time.Now()); got != 90*time.Second || !ok {
			t.Errorf("listings: %v, %t", got, ok)
		}
		if got, ok := statistics.Age(time.Now()); got != 90*time.Second || !ok {
			t.Errorf("statistics: %v, %t", got, ok)
		}
	})
}

// TestOrderBook_ageOfAChangedClock: what the wall clock says of an anchored book, here or on the machine that wrote it, changes
// nothing.
func TestOrderBook_ageOfAChangedClock(t *testing.T) {
	confirmed := time.Now()
	later := confirmed.Add(5 * time.Second) // both clocks
	book := market.OrderBook{ConfirmedAt: confirmed}
	if got, ok := book.Age(later); got != 5*time.Second || !ok {
		t.Errorf("both clocks: %v, %t", got, ok)
	}
	// A stamp without monotonic reading stands for what another clock said.
	book = market.OrderBook{ConfirmedAt: confirmed.Round(0).Add(-time.Hour), Anchor: confirmed}
	if got, ok := book.Age(later); got != 5*time.Second || !ok {
		t.Errorf("the wall clock is an hour ahead: %v, %t", got, ok)
	}
	book = market.OrderBook{ConfirmedAt: confirmed.Round(0).Add(4 * time.Second), Anchor: confirmed}
	if got, ok := book.Age(later); got != 5*time.Second || !ok {
		t.Errorf("the wall clock was set back: %v, %t", got, ok)
	}
}

func TestOrderBook_complete(t *testing.T) {
	f := func(bids, asks string, asked, shown int, want bool) {
		t.Helper()
		b := market.OrderBook{Levels: mustLevels(t, bids, asks), Depth: asked}
		if got := b.Complete(shown); got != want {
			t.Errorf("%s | %s asked %d: complete for %d: %t", bids, asks, asked, shown, got)
		}
	}
	f("2x1 1x1", "3x1 4x1", 2, 2, true)
	f("2x1 1x1", "3x1 4x1", 2, 3, false) // there may be more
	f("2x1 1x1", "3x1 4x1", 3, 3, true)  // there is no more
	f("2x1 1x1", "3x1", 2, 2, true)      // the asks are all there are
	f("2x1", "3x1 4x1", 2, 3, false)
	f("", "", 100, 100, true)
	f("2x1 1x0", "3x1 4x1", 2, 2, false) // a level of size zero took the place of one that we were not sent
	f("2x1 1x0", "3x1 4x1", 3, 2, true)  // two levels of three came, so there is no more
}

func TestOrderBook_top(t *testing.T) {
	b := market.OrderBook{Levels: mustLevels(t, "2x1 1x1", "3x5 4x1")}
	if bid, ask, hasBid, hasAsk := b.Top(); !hasBid || !hasAsk || text([]market.Level{bid, ask}) != "2x1 3x5" {
		t.Errorf("got %v, %v", bid, ask)
	}
	b.Levels = mustLevels(t, "", "3x5")
	if _, _, hasBid, hasAsk := b.Top(); hasBid || !hasAsk {
		t.Errorf("one-sided: %t, %t", hasBid, hasAsk)
	}
}

func TestOrderBook_compare(t *testing.T) {
	at := time.Date(2026, 11, 29, 2, 0, 0, 0, time.UTC)
	type version struct {
		exchange, confirmed time.Duration // after at; negative: none
		sequence            int64         // negative: none
	}
	of := func(v version) *market.OrderBook {
		b := &market.OrderBook{ConfirmedAt: at.Add(v.confirmed)}
		if v.exchange >= 0 {
			b.ExchangeTime = at.Add(v.exchange)
		}
		if v.sequence >= 0 {
			b.Sequence = market.SequenceOf(v.sequence)
		}
		return b
	}
	f := func(why string, a, b version, want int) {
		t.Helper()
		if got := of(a).Compare(of(b)); got != want {
			t.Errorf("%s: %d, want %d", why, got, want)
		}
		if got := of(b).Compare(of(a)); got != -want {
			t.Errorf("%s, the other way: %d, want %d", why, got, -want)
		}
	}
	f("the exchange's time decides", version{2, 1, 1}, version{1, 9, 9}, 1)
	f("then its sequence", version{1, 1, 9}, version{1, 9, 8}, 1)
	f("one version", version{1, 1, 9}, version{1, 9, 9}, 0)
	f("one time, no sequence", version{1, 1, -1}, version{1, 9, -1}, 0)
	f("one time, one sequence", version{1, 1, 3}, version{1, 9, -1}, 0)
	f("without a time on both, the sequence", version{-1, 1, 9}, version{5, 9, 8}, 1)
	f("0 is a sequence", version{-1, 1, 1}, version{-1, 9, 0}, 1)
	f("with neither, the moment of confirmation", version{-1, 9, -1}, version{-1, 1, -1}, 1)
	f("with neither on both", version{-1, 9, 5}, version{7, 1, -1}, 1)
	f("nothing differs", version{-1, 1, -1}, version{-1, 1, -1}, 0)
}
