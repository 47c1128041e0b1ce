package gateway_test

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/cache"
	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
	"exchange-gateway/internal/resilience"
)

// wire is an exchange as its adapter sees it, below the real guard: every request passes the door.
type wire struct {
	door  market.Door
	mu    sync.Mutex
	does  func(ctx context.Context) *market.Error // how the exchange answers, nil for well
	sent  map[market.Op]int
	pairs []market.Pair
}

func (w *wire) request(ctx context.Context, op market.Op) error {
	c := w.Plan(op, market.Listing{}, 0)
	if err := w.door.Admit(ctx, c); err != nil {
		return err
	}
	w.mu.Lock()
	w.sent[op]++
	does := w.does
	w.mu.Unlock()
	start := time.Now()
	time.Sleep(30 * time.Millisecond)
	var err *market.Error
	if does != nil {
		if err = does(ctx); err != nil {
			err.Exchange, err.Op = "alpha", op
		}
	}
	w.door.Observe(ctx, c, market.Observation{Err: err, Elapsed: time.Since(start)})
	if err != nil {
		return err
	}
	return nil
}

func (w *wire) answer(does func(context.Context) *market.Error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.does = does
}

func (w *wire) count(op market.Op) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sent[op]
}

func (w *wire) ID() market.ExchangeID    { return "alpha" }
func (w *wire) Limits() []market.Limit   { return nil }
func (w *wire) Wallets() []market.Wallet { return []market.Wallet{market.WalletTrading} }

func (w *wire) Plan(op market.Op, _ market.Listing, _ int) market.Call {
	return market.Call{
		Exchange: "alpha", Op: op, Class: op.Class(), Scopes: []market.Scope{{Kind: market.ScopeIP}},
	}
}

func (w *wire) OrderBook(ctx context.Context, l market.Listing, depth int) (*market.OrderBook, error) {
	sent := time.Now()
	if err := w.request(ctx, market.OpOrderBook); err != nil {
		return nil, err
	}
	return book(l, depth, sent, "64073.00", "64073.10"), nil
}

func (w *wire) Statistics(ctx context.Context, l market.Listing) (*market.Statistics, error) {
	return &market.Statistics{Pair: l.Pair, ConfirmedAt: time.Now()}, w.request(ctx, market.OpStatistics)
}

func (w *wire) Listings(ctx context.Context) (*market.Listings, error) {
	rows := make([]market.Listing, len(w.pairs))
	for i, p := range w.pairs {
		rows[i] = listing("alpha", p)
	}
	return &market.Listings{Exchange: "alpha", Rows: rows, ConfirmedAt: time.Now()}, w.request(ctx, market.OpListings)
}

func (w *wire) Listing(ctx context.Context, l market.Listing) (market.Listing, error) {
	return l, w.request(ctx, market.OpListings)
}

func (w *wire) Status(ctx context.Context) (market.VenueStatus, error) {
	return market.VenueStatus{}, w.request(ctx, market.OpStatus)
}

func (w *wire) Account(string, market.Credential) (market.VenueAccount, error) {
	return wireAccount{w}, nil
}

// wireAccount is one credential at the exchange.
type wireAccount struct{ w *wire }

func (a wireAccount) Plan(market.Wallet) market.Call {
	return a.w.Plan(market.OpBalances, market.Listing{}, 0)
}

func (a wireAccount) Balances(ctx context.Context, _ market.Wallet) (*market.Balances, error) {
	if err := a.w.request(ctx, market.OpBalances); err != nil {
		return nil, err
	}
	return &market.Balances{}, nil
}

// system is the policy over the real guard and the real store.
type system struct {
	wire     *wire
	guard    *resilience.Guard
	books    *gateway.Books
	accounts *gateway.Accounts

	mu     sync.Mutex
	opened time.Time // when the circuit of books first opened
	asked  int       // books that were asked for of the exchange until then
}

type guardHealth struct{ *resilience.Guard }

func (g guardHealth) Circuit(id market.CircuitID) market.CircuitStatus {
	s, _ := g.Guard.Circuit(id)
	return s
}

func newSystem(t *testing.T, pairs ...market.Pair) *system {
	t.Helper()
	s := &system{wire: &wire{sent: map[market.Op]int{}, pairs: pairs}}
	s.guard = resilience.New(resilience.Config{Listener: func(e market.Event) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.opened.IsZero() && e.Circuit.Class == market.ClassMarketData && e.To == market.CircuitOpen {
			s.opened, s.asked = e.At, s.wire.count(market.OpOrderBook)
		}
	}})
	s.wire.door = s.guard.Door("alpha")
	store := cache.New(cache.Config{}, nil, slog.New(slog.DiscardHandler), nil)
	s.books = gateway.NewBooks(gateway.BooksConfig{
		Venues: []gateway.Venue{{
			ID: "alpha", Data: s.guard.MarketData(s.wire), Plan: s.wire.Plan, Health: guardHealth{s.guard},
		}},
		Books: store, Lists: store, Inventory: s.guard,
	})
	s.accounts = gateway.NewAccounts(gateway.AccountsConfig{
		Exchanges: []market.ExchangeID{"alpha"},
		Accounts: []gateway.NamedAccount{{
			Exchange: "alpha", Name: "main", Wallets: s.wire.Wallets(),
			Account: s.guard.Account("alpha", wireAccount{s.wire}),
		}},
	})
	t.Cleanup(func() {
		over, cancel := context.WithCancel(context.Background())
		cancel()
		if err := errors.Join(s.books.Run(over), s.accounts.Run(over), s.guard.Close(context.Background())); err != nil {
			t.Error(err)
		}
	})
	return s
}

func failing(k market.Kind) func(context.Context) *market.Error {
	return func(context.Context) *market.Error { return &market.Error{Kind: k, Err: errors.New("no")} }
}

func hanging(ctx context.Context) *market.Error {
	<-ctx.Done()
	return &market.Error{Kind: market.KindOf(ctx.Err()), Err: ctx.Err()}
}

func TestOutage_aNight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t, btc)
		q := query()
		q.MaxAge = gateway.MaxAge(time.Hour)
		good, err := s.books.OrderBook(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		phases := []func(context.Context) *market.Error{
			failing(market.KindMaintenance), hanging, failing(market.KindUnavailable),
		}
		start := time.Now()
		s.wire.answer(phases[0])
		var wait sync.WaitGroup
		for i := range 18_000 {
			if phase := int(time.Since(start) / (10 * time.Minute)); i%6000 == 0 {
				s.wire.answer(phases[phase])
			}
			wait.Go(func() {
				b, err := s.books.OrderBook(t.Context(), q)
				if err != nil {
					t.Errorf("after %v: %v", time.Since(start), err)
					return
				}
				age := time.Since(good.ConfirmedAt)
				if f := b.Freshness; f.Age > age || f.Age < age-350*time.Millisecond || f.Stale != (f.Age > time.Second) ||
					f.Stale && f.Reason == market.KindNone {
					t.Errorf("after %v: %+v, want the age of %v", time.Since(start), f, age)
				}
			})
			if i%50 == 0 {
				wait.Go(func() {
					b, err := s.accounts.Balances(t.Context(), spot)
					if e, ok := errors.AsType[*market.Error](err); b != nil || !ok || e.RetryAfter < time.Second {
						t.Errorf("after %v: balances %+v, %v, want an error with retry_after", time.Since(start), b, err)
					}
				})
			}
			time.Sleep(100 * time.Millisecond)
		}
		wait.Wait()
		s.mu.Lock()
		after := s.wire.count(market.OpOrderBook) - s.asked
		t.Logf("opened after %v, %d requests since", s.opened.Sub(start), after)
		if s.opened.IsZero() || after > 40 {
			t.Errorf("%d requests after the circuit opened at %v, want at most 40", after, s.opened)
		}
		s.mu.Unlock()

		back := time.Now()
		s.wire.answer(nil)
		for {
			b, err := s.books.OrderBook(t.Context(), q)
			if err == nil && !b.Freshness.Stale {
				break
			}
			if time.Since(back) > time.Minute {
				t.Fatalf("not live %v after the exchange was back: %+v, %v", time.Since(back), b, err)
			}
			time.Sleep(100 * time.Millisecond)
		}
	})
}

func TestOutage_someRandomFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pairs := make([]market.Pair, 10)
		for i := range pairs {
			pairs[i] = market.Pair{Base: string(rune('A' + i)), Quote: "USDT"}
		}
		s := newSystem(t, pairs...)
		q := query()
		for _, q.Pair = range pairs {
			if _, err := s.books.OrderBook(t.Context(), q); err != nil {
				t.Fatal(err)
			}
		}
		dice := rand.New(rand.NewPCG(1, 2))
		s.wire.answer(func(context.Context) *market.Error {
			s.wire.mu.Lock()
			defer s.wire.mu.Unlock()
			if dice.IntN(5) == 0 {
				return &market.Error{Kind: market.KindUnavailable, Status: 503, Err: errors.New("random")}
			}
			return nil
		})
		before := s.wire.count(market.OpOrderBook)
		live, total := 0, 6000
		for i := range total {
			q.Pair = pairs[i%len(pairs)]
			b, err := s.books.OrderBook(t.Context(), q)
			switch {
			case err != nil:
				t.Errorf("%s: %v", q.Pair, err)
			case !b.Freshness.Stale:
				live++
			}
			time.Sleep(100 * time.Millisecond)
		}
		t.Logf("%d of %d live, %d requests", live, total, s.wire.count(market.OpOrderBook)-before)
		if sent := s.wire.count(market.OpOrderBook) - before; live*100 < total*98 || sent*100 > total*135 {
			t.Errorf("%d of %d live with %d requests, want 98%% with at most 1.35 times as many", live, total, sent)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.opened.IsZero() {
			t.Errorf("the circuit opened at %v", s.opened)
		}
	})
}

func TestOutage_nothingIsSentWhileAGateIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t, btc, eth)
		q := query()
		q.MaxAge = gateway.MaxAge(0) // asks whenever it may
		if _, err := s.books.OrderBook(t.Context(), q); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		read := time.Now()
		s.wire.answer(func(context.Context) *market.Error {
			s.wire.answer(nil)
			return &market.Error{Kind: market.KindRateLimited, Status: 429, Refusal: &market.Refusal{
				Scope: market.Scope{Kind: market.ScopeIP}, NotBefore: time.Now().Add(20 * time.Second), Clamp: time.Minute,
			}}
		})
		var wait sync.WaitGroup
		sent := 0
		for i := range 50 {
			wait.Go(func() {
				q := q
				if q.Pair = btc; i%2 == 0 {
					q.Pair = eth
				}
				for time.Since(read) < 19*time.Second {
					_, _ = s.books.OrderBook(t.Context(), q)
					_, _ = s.accounts.Balances(t.Context(), spot)
					time.Sleep(50 * time.Millisecond)
				}
			})
		}
		time.Sleep(100 * time.Millisecond) // those that were sent before the answer was read have arrived
		sent = s.wire.count(market.OpOrderBook) + s.wire.count(market.OpBalances)
		wait.Wait()
		if now := s.wire.count(market.OpOrderBook) + s.wire.count(market.OpBalances); now != sent {
			t.Errorf("%d requests passed a closed gate", now-sent)
		}
		time.Sleep(5 * time.Second)
		if _, err := s.books.OrderBook(t.Context(), q); err != nil {
			t.Errorf("after the gate's end: %v", err)
		}
	})
}

func TestBalances_aRequestThatPassedTheDoorIsNotShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t, btc)
		var wait sync.WaitGroup
		for range 2 {
			for range 5 { // who come together share what is not yet sent, or each send their own: never an older one
				wait.Go(func() {
					if _, err := s.accounts.Balances(t.Context(), spot); err != nil {
						t.Error(err)
					}
				})
			}
			synctest.Wait()
			time.Sleep(10 * time.Millisecond) // the requests take 30
		}
		before := s.wire.count(market.OpBalances)
		wait.Wait()
		if before < 2 {
			t.Errorf("%d requests: callers got the answer of one that was sent before they asked", before)
		}
	})
}
