package stream

import (
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/exchangesim"
	"exchange-gateway/internal/market"
)

// The pairs of a quiet exchange: one that does not change while a test lasts, one that changes now and then, and one that
// changes all the time, on whose connection they are.
const (
	still  = "QUI/USDT"
	seldom = "SEL/USDT"
	busy   = "BUS/USDT"
)

// quietStage is a gateway with one exchange, and a client that holds all pairs of it live.
func quietStage(t *testing.T, id market.ExchangeID) (*stage, *client) {
	s := newStage(t, setting{only: []market.ExchangeID{id}, sim: exchangesim.Config{Instruments: map[string][]exchangesim.Instrument{
		string(id): {
			instrument(id, still, 30, 24*time.Hour), // a bubble begins at midnight
			instrument(id, seldom, 30, 10*time.Second),
			instrument(id, busy, 30, time.Second),
		},
	}}})
	cl := s.connect()
	for _, pair := range []string{still, seldom, busy} {
		cl.subscribe(topic{"orderbook", id, pair, 50}, topic{"ticker", id, pair, 0})
	}
	settle(t, cl, 30*time.Second)
	time.Sleep(2 * time.Second) // a connection counts once all is sent that it begins with
	if n := len(s.standing(id).Connections); n != 1 {
		t.Errorf("%d connections: the pairs were meant to share one", n)
	}
	return s, cl
}

// firstStale is when a pair was first told to be stale since a moment, and why.
func (c *client) firstStale(pair string, since time.Time) (after time.Duration, reason string, ok bool) {
	for _, ch := range c.told(pair, since) {
		if ch.status == "stale" {
			return ch.at.Sub(since), ch.reason, true
		}
	}
	return 0, "", false
}

// TestQuiet: a healthy pair that does not change stays live, and that costs the exchange little.
func TestQuiet(t *testing.T) {
	const lasts = 10 * time.Minute
	// Binance and Coinbase are asked by REST at most once in 40 s, from 20 s before the end of a minute on; about every
	// 30 s a random book is compared. OKX repeats itself.
	most := map[market.ExchangeID]int{"binance": 15 + 22, "coinbase": 15 + 22, "okx": 22}
	for _, id := range ids {
		t.Run(string(id), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, cl := quietStage(t, id)
				began := time.Now()
				for time.Since(began) < lasts {
					time.Sleep(time.Second)
					a, err := s.read(id, still, 20)
					if err == nil {
						err = a.check(newTruths(s.venue(id)), 20)
					}
					if err != nil || a.Stale || a.Freshness.Source != "stream" || a.Freshness.AgeMS > vouchFor[id].Milliseconds() {
						t.Fatalf("a book by REST: %v, %+v", err, a)
					}
				}
				if told := cl.told("", began); len(told) > 0 {
					t.Errorf("told %+v", told)
				}
				n := s.taps[id].since(began)
				if n.connects+n.snapshots+n.refused > 0 || n.checks > most[id] {
					t.Errorf("asked %+v, want at most %d checks", n, most[id])
				}
				if id != "okx" && n.checks < 8 {
					t.Errorf("%d checks by REST: who vouched for the quiet book?", n.checks)
				}
				if compared(cl) < 600 {
					t.Errorf("%d comparisons", compared(cl))
				}
				t.Logf("%s: live for %v, asked by REST %d times", id, lasts, n.checks)
				cl.close()
				s.stop()
			})
		})
	}
}

// TestQuiet_restDown: where only REST can vouch for a book that does not change, the book is stale when REST cannot, at the
// end of its time; it is live again when REST is.
func TestQuiet_restDown(t *testing.T) {
	const lasts = 3 * time.Minute
	for _, id := range ids {
		t.Run(string(id), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, cl := quietStage(t, id)
				time.Sleep(25 * time.Second)
				began := time.Now()
				s.inject(id, exchangesim.Fault{Kind: exchangesim.FaultUnavailable, Class: exchangesim.ClassMarketData, For: lasts})
				time.Sleep(lasts - time.Second)
				after, reason, was := cl.firstStale(still, began)
				switch {
				case id == "okx" && was: // its keep-alives come by the stream
					t.Errorf("stale after %v: %s", after, reason)
				case id != "okx" && (!was || after > vouchFor[id] || after < 10*time.Second || reason != "timeout"):
					t.Errorf("stale %v after %v because of %q", was, after, reason)
				}
				// Coinbase's book comes by the stream again, once it is subscribed anew; Binance's needs REST for that.
				if a, err := s.read(id, still, 20); err != nil || a.status != 200 || a.Stale != (id == "binance") {
					t.Errorf("a book by REST: %v, %+v", err, a)
				}
				time.Sleep(time.Second)
				back := settle(t, cl, 65*time.Second)
				for _, pair := range []string{seldom, busy} {
					if told := cl.told(pair, began); len(told) > 0 {
						t.Errorf("%s: %+v", pair, told)
					}
				}
				if n := s.taps[id].since(began); n.connects > 0 {
					t.Errorf("asked %+v", n)
				}
				t.Logf("%s: stale %v after %v, live %v after the end", id, was, after, back)
				cl.close()
				s.stop()
			})
		})
	}
}

// TestFrozen: a pair of which nothing comes while others go on is stale within its exchange's bound, and no other is. REST
// answers for it meanwhile.
func TestFrozen(t *testing.T) {
	const lasts = 2 * time.Minute
	for _, id := range ids {
		t.Run(string(id), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, cl := quietStage(t, id)
				time.Sleep(25 * time.Second)
				began := time.Now()
				s.inject(id, exchangesim.Fault{Kind: exchangesim.FaultFreeze, Symbol: symbolOf(id, seldom), For: lasts})
				for time.Since(began) < lasts-time.Second {
					time.Sleep(time.Second)
					whole := topic{"orderbook", id, seldom, 50}
					stale := cl.status(whole) == "stale"
					a, err := s.read(id, seldom, 20)
					if err == nil {
						err = a.check(newTruths(s.venue(id)), 20)
					}
					if err != nil || a.Stale {
						t.Fatalf("a book by REST after %v: %v, %+v", time.Since(began), err, a)
					}
					if stale && cl.status(whole) == "stale" && a.Freshness.Source == "stream" {
						t.Fatalf("a book by REST after %v: %+v", time.Since(began), a)
					}
				}
				after, reason, was := cl.firstStale(seldom, began)
				if !was || after > vouchFor[id] || reason != "timeout" && reason != "suspect" { // suspect: a comparison found it first
					t.Errorf("stale %v after %v because of %q", was, after, reason)
				}
				time.Sleep(time.Second)
				back := settle(t, cl, 65*time.Second)
				for _, pair := range []string{still, busy} {
					if told := cl.told(pair, began); len(told) > 0 {
						t.Errorf("%s: %+v", pair, told)
					}
				}
				if n := s.taps[id].since(began); n.connects > 0 || n.refused > 0 {
					t.Errorf("asked %+v", n)
				}
				t.Logf("%s: stale after %v, live %v after the end, asked %+v", id, after, back, s.taps[id].since(began))
				cl.close()
				s.stop()
			})
		})
	}
}
