package night

import (
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/cmd/gateway/config"
	"exchange-gateway/internal/exchangesim"
	"exchange-gateway/internal/market"
)

// second is another account at each exchange, whose key is well.
var seconds = map[market.ExchangeID]string{"binance": "binance-second", "okx": "okx-demo", "coinbase": "coinbase-ed25519"}

// withSeconds configures them.
func withSeconds(t testing.TB) func(*config.Config) {
	return func(c *config.Config) {
		for id, name := range seconds {
			c.Exchanges[id].Accounts["second"] = credential(t, name)
		}
	}
}

// TestDeadKey: balances are errors, the exchange is asked once per hold, and neither books nor another account notice.
func TestDeadKey(t *testing.T) {
	for _, id := range ids {
		t.Run(string(id), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { deadKey(t, id) })
		})
	}
}

func deadKey(t *testing.T, id market.ExchangeID) {
	s := newStage(t, setting{conf: withSeconds(t)})
	pair := s.pairs(id, 1)[0]
	decode[book](t, s.book(id, pair))
	decode[map[string]any](t, s.balance(id))
	s.inject(id, exchangesim.Fault{Kind: exchangesim.FaultDeadKey, Credential: credentials[id]})
	before := s.taps[id].total()

	errors := map[string]int{}
	for i := range 1200 { // 10 minutes at 2 a second
		if p := problemOf(t, s.balance(id)); p.Code != "exchange_auth_failed" || p.Exchange != string(id) {
			t.Fatalf("balance: %+v", p)
		} else {
			errors[p.Code]++
		}
		if i%4 == 0 {
			if b, ok := decode[book](t, s.book(id, pair)); ok && b.Stale {
				t.Errorf("book: %+v", b.Freshness)
			}
		}
		if i%40 == 0 {
			other := s.get("/v1/exchanges/"+string(id)+"/balance?account=second", "Authorization", "Bearer "+s.key)
			decode[map[string]any](t, other)
		}
		time.Sleep(500 * time.Millisecond)
	}

	var refused []time.Time
	for _, c := range s.taps[id].from(before) {
		if c.class == market.ClassAccount && c.status == 401 {
			refused = append(refused, c.at)
		}
	}
	// After the third, each waits for its hold: 30 s doubling to 10 min.
	hold := 30 * time.Second
	for i := 3; i < len(refused); i++ {
		if gap := refused[i].Sub(refused[i-1]); gap < hold {
			t.Errorf("signed request %d came %v after the one before: want a hold of %v", i+1, gap, hold)
		}
		hold = min(2*hold, 10*time.Minute)
	}
	t.Logf("%s: %d balance requests refused, %d signed requests in 10 min, %d of them after the third", id, errors["exchange_auth_failed"], len(refused), len(refused)-3)
	if len(refused) < 4 {
		t.Errorf("%d signed requests: the key is never tried again", len(refused))
	}
	if changes := s.transitions(id); len(changes) > 0 {
		t.Errorf("circuits changed: %+v", changes)
	}

	s.venue(id).ClearFaults()
	time.Sleep(10*time.Minute + time.Second)
	decode[map[string]any](t, s.balance(id))
}
