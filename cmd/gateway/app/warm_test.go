package app

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/market"
)

// watched counts who is streamed.
type watched struct {
	mu      sync.Mutex
	held    map[string]int
	asked   map[string]int
	missing map[string]bool
}

func (w *watched) watch(_ context.Context, _ market.ExchangeID, name string) (func(), error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked[name]++
	if w.missing[name] {
		return nil, errors.New("not listed")
	}
	w.held[name]++
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.held[name]--; w.held[name] == 0 {
			delete(w.held, name)
		}
	}, nil
}

func (w *watched) names() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.held))
}

// TestWarmer_followsTheConfiguration: pairs that stay are not touched, those that go are released, those that come are
// watched, and one that is not listed yet is looked for again, less and less often.
func TestWarmer_followsTheConfiguration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &watched{held: map[string]int{}, asked: map[string]int{}, missing: map[string]bool{"NEW/USDT": true}}
		w := newWarmer([]market.ExchangeID{"okx"}, slog.New(slog.DiscardHandler))
		w.watch = v.watch
		w.set("okx", []string{"BTC/USDT", "ETH/USDT", "NEW/USDT"})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.run(ctx) }()
		synctest.Wait()
		if got := v.names(); !slices.Equal(got, []string{"BTC/USDT", "ETH/USDT"}) {
			t.Errorf("at the start %v are held", got)
		}
		time.Sleep(36 * time.Second) // looked for at 0, 5, 15, 35
		synctest.Wait()
		if v.asked["NEW/USDT"] != 4 || v.asked["BTC/USDT"] != 1 {
			t.Errorf("asked %v", v.asked)
		}
		v.mu.Lock()
		v.missing = nil
		v.mu.Unlock()
		w.set("okx", []string{"ETH/USDT", "NEW/USDT"})
		synctest.Wait()
		if got := v.names(); !slices.Equal(got, []string{"ETH/USDT", "NEW/USDT"}) || v.asked["ETH/USDT"] != 1 {
			t.Errorf("after the change %v are held, asked %v", got, v.asked)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if got := v.names(); len(got) > 0 {
			t.Errorf("at the end %v are held", got)
		}
	})
}
