package gateway_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

// listNative is an exchange in whose own form the list of pairs can be asked for.
type listNative struct{ *fakeNative }

func (listNative) NativeEndpoints() []market.NativeEndpoint {
	return []market.NativeEndpoint{{Name: "klines"}, {Name: "exchangeInfo", Listings: true}}
}

// fakeWhole keeps what it is given; near is what an earlier process left, and far is in Redis.
type fakeWhole struct {
	mu        sync.Mutex
	kept      []*market.NativeAnswer
	near, far *market.NativeAnswer
	recalls   []bool // by whether Redis was asked
}

func (f *fakeWhole) KeepWhole(_ market.ExchangeID, a *market.NativeAnswer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kept = append(f.kept, a)
	f.near = a
}

func (f *fakeWhole) RecallWhole(_ context.Context, _ market.ExchangeID, shared bool) (*market.NativeAnswer, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.recalls = append(f.recalls, shared)
	if f.near == nil && shared {
		return f.far, f.far != nil
	}
	return f.near, f.near != nil
}

const wholeList1 = `{"symbols":[{"symbol":"BTCUSDT"}]}`

func newWholeHouse(t *testing.T, store *fakeWhole) (*house, *fakeNative) {
	t.Helper()
	n := &fakeNative{}
	h := newHouse(t, func(c *gateway.BooksConfig) {
		c.Venues[0].Native = listNative{n}
		if store != nil {
			c.Whole = store
		}
	})
	h.alpha().set(func(v *fakeVenue) { v.whole = wholeList1 })
	return h, n
}

// info asks for the list and checks what it is.
func (h *house) info(t *testing.T, want string, stale bool, source gateway.Source, age time.Duration) {
	t.Helper()
	a, err := h.Native(t.Context(), native("exchangeInfo", ""))
	if err != nil {
		t.Errorf("%v, want %s", err, want)
		return
	}
	if string(a.Body) != want || a.Freshness.Stale != stale || a.Freshness.Source != source || a.Freshness.Age != age {
		t.Errorf("%.60s, stale %v from %s, %v old, want %s, %v, %s, %v", a.Body, a.Freshness.Stale, a.Freshness.Source, a.Freshness.Age,
			want, stale, source, age)
	}
}

// TestWhole_isTheListInUse: whoever asks for the one asks for both, and the exchange is asked once.
func TestWhole_isTheListInUse(t *testing.T) {
	for _, store := range []*fakeWhole{nil, {}} {
		synctest.Test(t, func(t *testing.T) {
			h, n := newWholeHouse(t, store)
			h.alpha().set(func(v *fakeVenue) { v.listLatency = 100 * time.Millisecond })
			var wait sync.WaitGroup
			began := time.Now()
			for range 20 {
				wait.Go(func() { h.info(t, wholeList1, false, gateway.SourceREST, 100*time.Millisecond) })
				wait.Go(func() { h.ask(t, query()) })
			}
			wait.Wait()
			h.asks(t, 1, 0)
			time.Sleep(time.Minute)
			h.info(t, wholeList1, false, gateway.SourceMemory, time.Since(began))
			h.asks(t, 1, 0)
			if n.count() != 0 {
				t.Errorf("asked in its own form: %v", n.asked)
			}
			// Nobody asks for it for a while, and the list is renewed: it is not held as it came.
			time.Sleep(2 * time.Hour)
			h.listed(t)
			time.Sleep(time.Second)
			h.info(t, wholeList1, false, gateway.SourceMemory, 1100*time.Millisecond)
			h.asks(t, 2, 0)
		})
	}
}

// TestWhole_inAnOutage: the list that the call for the list in use brought is there when the first bot starts.
func TestWhole_inAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &fakeWhole{}
		h, _ := newWholeHouse(t, store)
		h.listed(t)
		h.alpha().set(func(v *fakeVenue) { v.listErr = errNative })
		time.Sleep(23 * time.Hour)
		h.info(t, wholeList1, true, gateway.SourceMemory, 23*time.Hour)
		time.Sleep(2 * time.Hour)
		_, err := h.Native(t.Context(), native("exchangeInfo", ""))
		if e, ok := errors.AsType[*market.Error](err); !ok || e.Kind != market.KindUnavailable || e.Op != market.OpNative || e.RetryAfter != errNative.RetryAfter {
			t.Errorf("got %v, want the exchange's own error", err)
		}
		h.asks(t, 3, 0)
	})
}

// TestWhole_ofAnEarlierProcess is served with its age from the state directory, and from Redis once the exchange has had its
// chance.
func TestWhole_ofAnEarlierProcess(t *testing.T) {
	left := func(age time.Duration, far bool) *market.NativeAnswer {
		a := &market.NativeAnswer{Body: []byte(wholeList1), ConfirmedAt: time.Now().Add(-age)}
		if far {
			a.Anchor = a.ConfirmedAt
		}
		return a
	}
	synctest.Test(t, func(t *testing.T) {
		store := &fakeWhole{near: left(5*time.Hour, false)}
		h, _ := newWholeHouse(t, store)
		h.alpha().set(func(v *fakeVenue) { v.listErr = errNative })
		h.info(t, wholeList1, true, gateway.SourceMemory, 5*time.Hour)
		h.asks(t, 1, 0)
		h.health["alpha"].refuse(market.OpNative, market.KindCircuitOpen)
		h.info(t, wholeList1, true, gateway.SourceMemory, 5*time.Hour)
		h.asks(t, 1, 0)
	})
	synctest.Test(t, func(t *testing.T) {
		store := &fakeWhole{far: left(5*time.Hour, true)}
		h, _ := newWholeHouse(t, store)
		h.alpha().set(func(v *fakeVenue) { v.listErr = errNative })
		h.info(t, wholeList1, true, gateway.SourceRedis, 5*time.Hour)
		h.asks(t, 1, 0)
		if len(store.recalls) != 2 || store.recalls[0] || !store.recalls[1] {
			t.Errorf("recalls %v: Redis is asked after the exchange", store.recalls)
		}
	})
	synctest.Test(t, func(t *testing.T) { // an exchange that hangs is not waited for by who holds a list
		h, _ := newWholeHouse(t, &fakeWhole{near: left(2*time.Hour, false)})
		h.alpha().set(func(v *fakeVenue) { v.listLatency = time.Minute })
		h.info(t, wholeList1, true, gateway.SourceMemory, 2*time.Hour+300*time.Millisecond)
	})
}

// TestWhole_isNotReplacedByOneThatIsNotBelieved, which is still better than none.
func TestWhole_isNotReplacedByOneThatIsNotBelieved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &fakeWhole{}
		h, _ := newWholeHouse(t, store)
		h.info(t, wholeList1, false, gateway.SourceREST, 0)
		h.alpha().set(func(v *fakeVenue) {
			for i := range v.rows {
				v.rows[i].Status = market.TradingPaused
			}
			v.whole = strings.Replace(wholeList1, "BTC", "ETH", 1)
		})
		time.Sleep(2 * time.Hour)
		h.info(t, wholeList1, true, gateway.SourceMemory, 2*time.Hour)
		h.asks(t, 2, 0)
		if len(store.kept) != 1 {
			t.Errorf("%d lists kept, want 1", len(store.kept))
		}
	})
}
