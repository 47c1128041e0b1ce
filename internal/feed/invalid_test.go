package feed_test

import (
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/feed"
	"exchange-gateway/internal/market"
)

// invalidations are what a feed told of books in doubt.
type invalidations struct {
	t   *testing.T
	r   *rig
	all []market.Kind
	at  time.Time
}

func (i *invalidations) config(c *feed.Config) {
	c.Invalidated = func(k feed.Key, at time.Time, why market.Kind) {
		if k != key("BTC") {
			i.t.Errorf("told of %v", k)
		}
		if n := len(i.r.ear.heard(k)); n != 1 {
			i.t.Errorf("told after %d changes of state, want before the one to stale", n)
		}
		i.all, i.at = append(i.all, why), at
	}
}

// What puts the content of a book in doubt invalidates its copies, once, before anybody sees the book stale, with a time at
// which the last version is confirmed already. The loss of a connection invalidates nothing.
func TestFeed_doubtInvalidatesCopies(t *testing.T) {
	lost := func(err error) market.StreamEvent {
		return market.StreamEvent{Kind: market.StreamLost, Symbol: "BTCUSDT", Remedy: market.RemedyResubscribe, Err: err}
	}
	f := func(name string, w *world, want market.Kind, happens func(w *world, r *rig)) {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				in := &invalidations{t: t}
				r := start(t, w, in.config)
				in.r = r
				r.watch(t, "BTC", "ETH")
				sleep(3 * time.Second)
				w.change("BTCUSDT", "ETHUSDT")
				synctest.Wait()
				happens(w, r)
				synctest.Wait()
				switch {
				case want == market.KindNone && len(in.all) > 0:
					t.Errorf("invalidated because of %v", in.all)
				case want == market.KindNone:
				case len(in.all) != 1 || in.all[0] != want || in.at.After(time.Now()):
					t.Errorf("invalidated because of %v at %v, want once because of %v", in.all, in.at, want)
				}
				for _, b := range r.kept.of("BTCUSDT") {
					if b.ConfirmedAt.After(in.at) && want != market.KindNone {
						t.Errorf("a copy was confirmed at %v, after %v", b.ConfirmedAt, in.at)
					}
				}
			})
		})
	}
	f("gap", likeOKX(), market.KindMalformed, func(w *world, _ *rig) { w.tell(lost(failure(market.KindMalformed))) })
	f("crossed", likeOKX(), market.KindSuspect, func(w *world, _ *rig) {
		w.tell(market.StreamEvent{Kind: market.StreamUpdate, Symbol: "BTCUSDT", Bids: levels("102", 1), Sequence: market.SequenceOf(3)})
	})
	f("given up by an operator", likeOKX(), market.KindSuspect, func(_ *world, r *rig) { r.Resync(fakeID, key("BTC").Pair) })
	f("ahead by REST", likeBinance(), market.KindTimeout, func(w *world, r *rig) {
		w.mu.Lock()
		ahead := w.rest(listing("BTC"), 9)
		w.mu.Unlock()
		r.Seen(ahead)
		w.set(func() { w.frozen["BTCUSDT"] = true })
		sleep(3500 * time.Millisecond)
	})
	f("time ran out", likeOKX(), market.KindTimeout, func(w *world, r *rig) {
		for range 80 {
			sleep(time.Second)
			w.change("ETHUSDT")
			if len(r.ear.heard(key("BTC"))) > 1 {
				break
			}
		}
	})
	f("the connection is lost", likeOKX(), market.KindNone, func(w *world, _ *rig) { w.cut(market.KindUnavailable) })
	f("isolated", likeOKX(), market.KindNone, func(_ *world, r *rig) { r.Cut(fakeID) })
}
