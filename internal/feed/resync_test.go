package feed_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"exchange-gateway/internal/feed"
	"exchange-gateway/internal/market"
)

func TestFeed_aLostBookIsStaleFirst(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(market.StreamRules{SnapshotDepth: 1000})
		w.byREST = true
		r := start(t, w)
		r.watch(t, "BTC", "ETH")
		sleep(3 * time.Second)
		w.change("BTCUSDT")
		synctest.Wait()
		last := r.wantBook(t, "BTC", 2)
		// The exchange says of a gap that it is one, and REST is slow to answer.
		w.tell(
			market.StreamEvent{Kind: market.StreamLost, Symbol: "BTCUSDT", Err: failure(market.KindMalformed)},
			market.StreamEvent{Kind: market.StreamWanted, Symbol: "BTCUSDT"},
		)
		synctest.Wait()
		r.wantState(t, "BTC", feed.StateStale, market.KindMalformed)
		r.wantState(t, "ETH", feed.StateLive, market.KindNone)
		r.wantBook(t, "BTC", 2)
		kept := r.kept.of("BTCUSDT")
		if len(kept) != 1 || kept[0].Levels != last.Levels || !kept[0].ConfirmedAt.Equal(last.ConfirmedAt) {
			t.Errorf("kept %d versions, want the last good one with its own clock", len(kept))
		}
		w.change("BTCUSDT") // what the procedure would not apply is not applied here either
		sleep(time.Second)
		r.wantState(t, "BTC", feed.StateLive, market.KindNone)
		r.wantBook(t, "BTC", 3)
		want := []string{"live", "stale malformed", "live"}
		if diff := cmp.Diff(want, r.ear.heard(key("BTC"))); diff != "" {
			t.Error(diff)
		}
		if w.tally().dials != 1 || w.asked("BTCUSDT") != 2 {
			t.Errorf("%d dials, %d questions about the book, want 1 and 2", w.tally().dials, w.asked("BTCUSDT"))
		}
	})
}

func TestFeed_theFrameOfAGapVouchesForNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(market.StreamRules{Silence: unprobed})
		r := start(t, w)
		r.watch(t, "BTC")
		sleep(2 * time.Second)
		was := r.wantBook(t, "BTC", 1).ConfirmedAt
		sleep(10 * time.Second)
		w.tell(market.StreamEvent{Kind: market.StreamLost, Remedy: market.RemedyReconnect, Err: failure(market.KindMalformed)})
		synctest.Wait()
		b, f, _ := r.Book(key("BTC"))
		if f.State != feed.StateStale || !b.ConfirmedAt.Equal(was) {
			t.Errorf("%s, confirmed %v later than before the gap", f.State, b.ConfirmedAt.Sub(was))
		}
		sleep(5 * time.Second)
		r.wantState(t, "BTC", feed.StateLive, market.KindNone)
		if w.tally().dials != 2 {
			t.Errorf("%d dials, want 2: only a new connection helps", w.tally().dials)
		}
	})
}

func TestFeed_aCrossedBookIsGivenUpBeforeAnybodySeesIt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(market.StreamRules{})
		r := start(t, w)
		r.watch(t, "BTC")
		sleep(2 * time.Second)
		changed := r.ear.count("changed")
		w.set(func() { w.mute["BTCUSDT"] = true })
		w.tell(
			market.StreamEvent{Kind: market.StreamUpdate, Symbol: "BTCUSDT", Bids: levels("102", 5), Sequence: market.SequenceOf(2)},
			market.StreamEvent{Kind: market.StreamUpdate, Symbol: "BTCUSDT", Bids: levels("102", 0), Sequence: market.SequenceOf(3)},
		)
		synctest.Wait()
		r.wantState(t, "BTC", feed.StateStale, market.KindSuspect)
		b := r.wantBook(t, "BTC", 1) // as it was before
		if got := len(b.Bids()); got != 1 {
			t.Errorf("%d bids, want the one that was there", got)
		}
		if n := r.ear.count("changed") - changed; n != 0 {
			t.Errorf("%d changes were told, want none", n)
		}
		sleep(time.Second)
		if w.tally().unsubscribes != 1 || w.tally().subscribes != 2 || w.tally().dials != 1 {
			t.Errorf("%d unsubscribes, %d subscribes, %d dials; want one new subscription", w.tally().unsubscribes, w.tally().subscribes, w.tally().dials)
		}
	})
}

func TestFeed_resubscriptionsBackOff(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(market.StreamRules{})
		r := start(t, w)
		r.watch(t, "BTC")
		sleep(2 * time.Second)
		began := time.Now()
		w.set(func() { w.mute["BTCUSDT"] = true })
		// Every subscription is answered by another gap.
		for time.Since(began) < 10*time.Minute {
			w.tell(market.StreamEvent{Kind: market.StreamLost, Symbol: "BTCUSDT", Remedy: market.RemedyResubscribe, Err: failure(market.KindMalformed)})
			sleep(100 * time.Millisecond)
		}
		// 0, 1, 2, 4, 8, 16, 32 and then 60 s apart, less up to a half of each.
		if n := w.tally().subscribes - 1; n < 10 || n > 25 {
			t.Errorf("%d subscriptions in 10 min", n)
		}
		w.set(func() { w.mute["BTCUSDT"] = false })
		sleep(2 * time.Minute)
		w.tell(market.StreamEvent{Kind: market.StreamVouch, Symbol: "BTCUSDT"})
		sleep(time.Second)
		r.wantState(t, "BTC", feed.StateLive, market.KindNone)
	})
}

// TestFeed_aNewConnectionIsNoWayRoundTheWaits: a procedure asks for a new connection where resubscribing did not help, and a
// book that goes on being lost there is waited for as long as before. A connection that was cut says nothing against it.
func TestFeed_aNewConnectionIsNoWayRoundTheWaits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(market.StreamRules{})
		r := start(t, w)
		r.watch(t, "BTC")
		sleep(2 * time.Second)
		began, losses := time.Now(), 0
		lost := market.StreamEvent{Kind: market.StreamLost, Symbol: "BTCUSDT", Err: failure(market.KindMalformed)}
		for time.Since(began) < 10*time.Minute {
			if r.state(t, "BTC").State == feed.StateLive {
				lost.Remedy = market.RemedyResubscribe
				if losses++; losses%4 == 0 {
					lost.Remedy = market.RemedyReconnect
				}
				w.tell(lost)
			}
			sleep(100 * time.Millisecond)
		}
		// 0, 1, 2, 4, 8, 16, 32 and then 60 s apart, less up to a half of each; each fourth wait is that for a connection.
		if losses < 10 || losses > 35 {
			t.Errorf("%d subscriptions in 10 min", losses)
		}
		for r.state(t, "BTC").State != feed.StateLive {
			sleep(time.Second)
		}
		w.cut(market.KindUnavailable)
		sleep(40 * time.Second)
		lost.Remedy = market.RemedyResubscribe
		w.tell(lost)
		sleep(100 * time.Millisecond)
		r.wantState(t, "BTC", feed.StateLive, market.KindNone)
	})
}

func TestFeed_aSubscriptionThatComesToNothingIsStartedAnew(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(market.StreamRules{})
		w.mute["BTCUSDT"] = true
		r := start(t, w)
		r.watch(t, "BTC")
		sleep(19 * time.Second)
		r.wantState(t, "BTC", feed.StateSyncing, market.KindNone)
		sleep(4 * time.Second)
		r.wantState(t, "BTC", feed.StateSyncing, market.KindTimeout)
		if w.tally().subscribes != 2 || w.tally().unsubscribes != 1 || w.tally().dials != 1 {
			t.Errorf("%d subscribes, %d unsubscribes, %d dials", w.tally().subscribes, w.tally().unsubscribes, w.tally().dials)
		}
		w.set(func() { w.mute["BTCUSDT"] = false })
		sleep(30 * time.Second)
		r.wantState(t, "BTC", feed.StateLive, market.KindNone)
	})
}

func TestFeed_aRefusedPairIsLeftAlone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(market.StreamRules{})
		w.refusing["BTCUSDT"] = failure(market.KindUnknownSymbol)
		r := start(t, w)
		r.watch(t, "BTC", "ETH")
		sleep(9 * time.Minute)
		r.wantState(t, "BTC", feed.StateStale, market.KindUnknownSymbol)
		if _, _, ok := r.Book(key("BTC")); ok {
			t.Error("there is a book of a pair that was never streamed")
		}
		w.change("ETHUSDT")
		synctest.Wait()
		r.wantState(t, "ETH", feed.StateLive, market.KindNone)
		subscribes := w.tally().subscribes
		w.set(func() { delete(w.refusing, "BTCUSDT") })
		sleep(2 * time.Minute)
		w.change("BTCUSDT")
		synctest.Wait()
		r.wantState(t, "BTC", feed.StateLive, market.KindNone)
		if n := w.tally().subscribes - subscribes; n > 3 {
			t.Errorf("%d subscriptions to ask once more", n)
		}
		if diff := cmp.Diff([]string{"stale unknown_symbol", "live"}, r.ear.heard(key("BTC"))); diff != "" {
			t.Error(diff)
		}
	})
}

func TestFeed_aDecoderThatPanicsCostsItsConnection(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(market.StreamRules{})
		r := start(t, w)
		r.watch(t, "BTC")
		sleep(2 * time.Second)
		w.tell(market.StreamEvent{Kind: panics})
		synctest.Wait()
		r.wantState(t, "BTC", feed.StateStale, market.KindInternal)
		sleep(5 * time.Second)
		r.wantState(t, "BTC", feed.StateLive, market.KindNone)
		w.set(func() { w.tickPanics = true })
		sleep(5 * time.Second)
		r.wantState(t, "BTC", feed.StateLive, market.KindNone)
		if n := w.tally().dials; n != 3 {
			t.Errorf("%d dials, want one for each panic", n)
		}
	})
}

func TestFeed_aSnapshotThatCannotBeTrueLeavesWhatWasGood(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(market.StreamRules{})
		r := start(t, w)
		r.watch(t, "BTC")
		sleep(2 * time.Second)
		w.tell(market.StreamEvent{Kind: market.StreamSnapshot, Symbol: "BTCUSDT", Bids: levels("200", 9), Asks: levels("101", 1), Sequence: market.SequenceOf(9)})
		synctest.Wait()
		states := r.ear.heard(key("BTC"))
		if !slices.Contains(states, "stale suspect") {
			t.Errorf("states %q", states)
		}
		if kept := r.kept.of("BTCUSDT"); len(kept) != 1 || !kept[0].Bids()[0].Size.Equal(market.NewNumber(1, 0)) {
			t.Errorf("kept %v, want the version before", kept)
		}
		sleep(time.Second)
		r.wantState(t, "BTC", feed.StateLive, market.KindNone)
	})
}

func TestFeed_watchRefusals(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(market.StreamRules{})
		r := start(t, w, func(c *feed.Config) { c.MaxBooks = 2 })
		f := func(l market.Listing, want market.Kind) {
			t.Helper()
			if _, err := r.Watch(l, market.StreamBook); market.KindOf(err) != want {
				t.Errorf("%s: %v, want %v", l.Symbol, err, want)
			}
		}
		other := listing("BTC")
		other.Exchange = "elsewhere"
		f(other, market.KindNotSupported)
		f(market.Listing{Exchange: fakeID}, market.KindInvalid)
		r.watch(t, "BTC")
		release := r.watch(t, "ETH")
		f(listing("SOL"), market.KindOverloaded)
		release()
		f(listing("SOL"), market.KindNone) // the one that nobody holds makes room
		if _, _, ok := r.Book(key("ETH")); ok {
			t.Error("a released book is still there")
		}
		sleep(time.Second)
		r.stop()
		f(listing("ETH"), market.KindCanceled)
		var e *market.Error
		if _, err := r.Watch(listing("ETH"), market.StreamBook); !errors.As(err, &e) || e.Op != market.OpStream {
			t.Errorf("%v is no *market.Error of a stream", err)
		}
	})
}
