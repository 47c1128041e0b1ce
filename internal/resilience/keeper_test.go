package resilience_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"exchange-gateway/internal/market"
	"exchange-gateway/internal/resilience"
)

// keeper keeps gates in memory, and can be slow or broken.
type keeper struct {
	delay time.Duration
	err   error

	mu    sync.Mutex
	saves int
	kept  map[market.Scope]market.GateRecord
}

func (k *keeper) Load(ctx context.Context) ([]market.GateRecord, error) {
	if err := k.wait(ctx); err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	var out []market.GateRecord
	for _, r := range k.kept {
		out = append(out, r)
	}
	return out, nil
}

func (k *keeper) Save(ctx context.Context, r market.GateRecord) error {
	if err := k.wait(ctx); err != nil {
		return err
	}
	k.keep(r)
	return nil
}

func (k *keeper) keep(r market.GateRecord) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.saves++
	if k.kept == nil {
		k.kept = make(map[market.Scope]market.GateRecord)
	}
	if old := k.kept[r.Scope]; r.Until.After(old.Until) {
		k.kept[r.Scope] = r
	}
}

func (k *keeper) wait(ctx context.Context) error {
	if k.delay > 0 {
		timer := time.NewTimer(k.delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return k.err
}

// Ten kills and restarts in a ban of 120 s: nothing is sent, and what had grown is still grown afterwards.
func TestKeeper_restartsInABan(t *testing.T) {
	k := &keeper{}
	ban := market.Refusal{Scope: ipScope, First: 2 * time.Minute, Max: 72 * time.Hour}
	in(t, &venue{scopes: []market.Scope{ipScope}}, resilience.Config{Keeper: k}, func(t *testing.T, w *world) {
		w.answers(always(refusal(market.KindBanned, ban)))
		wantKind(t, w.book(t.Context()), market.KindBanned)
		for range 10 {
			time.Sleep(11 * time.Second)
			again := newWorld(t, &venue{scopes: []market.Scope{ipScope}}, resilience.Config{Keeper: k})
			wantKind(t, again.book(t.Context()), market.KindBanned)
			_, err := again.acc.Balances(t.Context(), market.WalletTrading)
			wantKind(t, err, market.KindBanned)
			if again.sent() != 0 {
				t.Fatal("a restart passed the gate")
			}
			again.close(t)
		}
		time.Sleep(12 * time.Second)
		v := &venue{scopes: []market.Scope{ipScope}, answer: always(refusal(market.KindBanned, ban))}
		last := newWorld(t, v, resilience.Config{Keeper: k})
		defer last.close(t)
		wantKind(t, last.book(t.Context()), market.KindBanned)
		if got := time.Until(last.gate(t).Until); last.sent() != 1 || got != 4*time.Minute {
			t.Fatalf("after the ban: %d requests, next hold %v, want 1 and 4 min", last.sent(), got)
		}
	})
}

// A dead key was found dead in an earlier life: the first answer of the new one closes the gate again.
func TestKeeper_strikesSurvive(t *testing.T) {
	k := &keeper{}
	in(t, &venue{}, resilience.Config{Keeper: k}, func(t *testing.T, w *world) {
		w.answers(always(refusal(market.KindAuth, deadKey)))
		for range 3 {
			_, _ = w.acc.Balances(t.Context(), market.WalletTrading)
		}
		w.open(t)
		again := newWorld(t, &venue{answer: always(refusal(market.KindAuth, deadKey))}, resilience.Config{Keeper: k})
		defer again.close(t)
		time.Sleep(2 * time.Second)
		_, _ = again.acc.Balances(t.Context(), market.WalletTrading)
		if got := time.Until(again.gate(t).Until); got != time.Minute {
			t.Fatalf("hold = %v, want the second, 1 min", got)
		}
	})
}

// The refused answer is returned after the gate is written down; 50 of them write once.
func TestKeeper_writtenBeforeTheAnswerReturns(t *testing.T) {
	k := &keeper{delay: 100 * time.Millisecond}
	in(t, &venue{scopes: []market.Scope{ipScope}}, resilience.Config{Keeper: k}, func(t *testing.T, w *world) {
		w.answers(func(_ context.Context, n int) error {
			time.Sleep(time.Duration(50+n) * time.Millisecond)
			return in20s()
		})
		began := time.Now()
		var calls sync.WaitGroup
		for range 50 {
			calls.Go(func() {
				_ = w.book(t.Context())
				k.mu.Lock()
				defer k.mu.Unlock()
				if k.saves == 0 {
					t.Error("returned before the gate was written down")
				}
			})
		}
		calls.Wait()
		if got := time.Since(began); got > 250*time.Millisecond {
			t.Fatalf("took %v", got)
		}
		if k.saves != 1 {
			t.Fatalf("saves = %d, want 1", k.saves)
		}
	})
}

func TestKeeper_slowOrBroken(t *testing.T) {
	for name, k := range map[string]*keeper{
		"hanging": {delay: time.Hour},
		"broken":  {err: errors.New("disk full")},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, &venue{scopes: []market.Scope{ipScope}}, resilience.Config{Keeper: k}, func(t *testing.T, w *world) {
				began := time.Now()
				if err := w.guard.Open(t.Context()); err == nil || time.Since(began) > 250*time.Millisecond {
					t.Fatalf("open: %v after %v", err, time.Since(began))
				}
				if err := w.book(t.Context()); err != nil {
					t.Fatalf("live answers do not need a keeper: %v", err)
				}
				w.answers(func(context.Context, int) error { return in20s() })
				began = time.Now()
				wantKind(t, w.book(t.Context()), market.KindRateLimited)
				if got := time.Since(began); got > 250*time.Millisecond {
					t.Fatalf("waited %v for the keeper", got)
				}
				before := w.sent()
				wantKind(t, w.book(t.Context()), market.KindRateLimited)
				if w.sent() != before {
					t.Fatal("a gate that could not be written down let a request pass")
				}
			})
		})
	}
}

// A load that comes late still closes the gates.
func TestKeeper_lateLoad(t *testing.T) {
	k := &keeper{delay: time.Second}
	in(t, &venue{}, resilience.Config{Keeper: k}, func(t *testing.T, w *world) {
		k.keep(market.GateRecord{
			Exchange: venueID, Scope: ipScope, Kind: market.KindBanned, Step: 1,
			Until: time.Now().Add(time.Hour), UpdatedAt: time.Now(),
		})
		if err := w.book(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		wantKind(t, w.book(t.Context()), market.KindBanned)
	})
}

func TestKeeper_nothingPassesBeforeOpen(t *testing.T) {
	v := &venue{}
	g := resilience.New(resilience.Config{Keeper: &keeper{}})
	v.door = g.Door(venueID)
	_, err := g.MarketData(v).OrderBook(t.Context(), market.Listing{}, 1)
	wantKind(t, err, market.KindInternal)
	if v.sent() != 0 {
		t.Fatal("a request was sent before the gates were known")
	}
	if err := g.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Records of nobody's, of the past, and of the far future.
func TestGuard_adopt(t *testing.T) {
	in(t, &venue{}, resilience.Config{}, func(t *testing.T, w *world) {
		now := time.Now()
		w.guard.Adopt(
			market.GateRecord{Exchange: "elsewhere", Scope: ipScope, Kind: market.KindBanned, Until: now.Add(time.Hour), UpdatedAt: now},
			market.GateRecord{Exchange: venueID, Scope: market.Scope{Kind: market.ScopeAccount, Name: "old"}, Kind: market.KindAuth, Until: now.Add(-time.Hour), UpdatedAt: now.Add(-2 * time.Hour)},
			market.GateRecord{Exchange: venueID, Scope: ipScope, Kind: market.KindBanned, Until: now.Add(1e6 * time.Hour), UpdatedAt: now},
		)
		if got := time.Until(w.gate(t).Until); got != 72*time.Hour {
			t.Fatalf("closed for %v, want the longest ban there is", got)
		}
		w.guard.Adopt(market.GateRecord{Exchange: venueID, Scope: ipScope, Kind: market.KindRateLimited, Until: now.Add(time.Minute), UpdatedAt: now})
		if g := w.gate(t); g.Kind != market.KindBanned || time.Until(g.Until) != 72*time.Hour {
			t.Fatalf("%+v: a record shortened it", g)
		}
	})
}
