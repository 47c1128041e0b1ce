package gateway_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

// fakeAccount is one credential behind its guard: a call waits for its budget, passes the door, and is answered.
type fakeAccount struct {
	mu       sync.Mutex
	calls    int // reached the account
	sent     int // passed the door
	canceled int
	lane     market.Lane
	budget   time.Duration // wait before sending
	latency  time.Duration // from sending to the answer
	pages    int           // requests of one call, 1 if unset
	err      error
	empty    bool // answers with nothing at all
	refused  bool // never passes the door
}

func (f *fakeAccount) Balances(ctx context.Context, _ market.Wallet) (*market.Balances, error) {
	f.mu.Lock()
	f.calls++
	n, budget, latency, pages := f.calls, f.budget, f.latency, max(f.pages, 1)
	f.lane = market.LaneOf(ctx)
	f.mu.Unlock()
	if !f.pause(ctx, budget) {
		return nil, &market.Error{Op: market.OpBalances, Kind: market.KindCanceled, Err: ctx.Err()}
	}
	if f.turnedAway() {
		return nil, &market.Error{Op: market.OpBalances, Kind: market.KindCircuitOpen, RetryAfter: time.Second}
	}
	for range pages {
		market.Sending(ctx)
		f.mu.Lock()
		f.sent++
		f.mu.Unlock()
		if !f.pause(ctx, latency) {
			return nil, &market.Error{Op: market.OpBalances, Kind: market.KindCanceled, Err: ctx.Err()}
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil || f.empty {
		return nil, f.err
	}
	return &market.Balances{Rows: []market.Balance{{Asset: "BTC", Free: market.NewNumber(int64(n), 0)}}}, nil
}

func (f *fakeAccount) turnedAway() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.refused
}

func (f *fakeAccount) pause(ctx context.Context, d time.Duration) bool {
	if d == 0 {
		return true
	}
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		f.mu.Lock()
		defer f.mu.Unlock()
		f.canceled++
		return false
	}
}

func (f *fakeAccount) set(change func(*fakeAccount)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

func (f *fakeAccount) count(of *int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return *of
}

var spot = gateway.BalanceQuery{Exchange: "alpha", Wallet: market.WalletTrading}

func newAccounts(t *testing.T, named ...gateway.NamedAccount) *gateway.Accounts {
	t.Helper()
	a := gateway.NewAccounts(gateway.AccountsConfig{
		Exchanges: []market.ExchangeID{"alpha", "beta"}, Accounts: named,
	})
	t.Cleanup(func() {
		over, cancel := context.WithCancel(context.Background())
		cancel()
		if err := a.Run(over); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return a
}

func account(name string, f *fakeAccount, w ...market.Wallet) gateway.NamedAccount {
	return gateway.NamedAccount{
		Exchange: "alpha", Name: name, Account: f, Wallets: append([]market.Wallet{market.WalletTrading}, w...),
	}
}

// free is the first row's amount, which counts the calls that reached the account.
func free(t *testing.T, b *gateway.BalanceAnswer, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return b.Rows[0].Free.String()
}

func TestBalances_areNeverServedOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeAccount{}
		a := newAccounts(t, account("main", f))
		b, err := a.Balances(t.Context(), spot)
		if got := free(t, b, err); got != "1" || b.Account != "main" || b.Wallet != market.WalletTrading {
			t.Fatalf("first answer: %+v", b)
		}
		for _, k := range market.Kinds() { // whatever a book would do with them
			f.set(func(f *fakeAccount) {
				f.err = &market.Error{Exchange: "alpha", Op: market.OpBalances, Kind: k, RetryAfter: 3 * time.Second}
			})
			b, err := a.Balances(t.Context(), spot)
			e, ok := errors.AsType[*market.Error](err)
			if b != nil || !ok || e.Kind != k || e.RetryAfter != 3*time.Second {
				t.Errorf("%v: got %+v, %v, want the error with its retry_after and no numbers", k, b, err)
			}
		}
		f.set(func(f *fakeAccount) { f.err, f.empty = nil, true })
		if b, err := a.Balances(t.Context(), spot); b != nil || market.KindOf(err) != market.KindMalformed {
			t.Errorf("got %+v, %v, want malformed: no balances are not an empty account", b, err)
		}
		f.set(func(f *fakeAccount) { f.empty = false })
		calls := f.count(&f.calls)
		b, err = a.Balances(t.Context(), spot)
		if free(t, b, err); f.count(&f.calls) != calls+1 {
			t.Error("an answer that asked nobody")
		}
		if f.lane != market.LaneAccount {
			t.Errorf("lane = %v, want the account lane", f.lane)
		}
	})
}

func TestBalances_shareOnlyWhatIsNotYetSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeAccount{budget: 100 * time.Millisecond, latency: 200 * time.Millisecond}
		a := newAccounts(t, account("main", f))
		var mu sync.Mutex
		got := map[string]int{}
		var wait sync.WaitGroup
		ask := func(n int) {
			for range n {
				wait.Go(func() {
					b, err := a.Balances(t.Context(), spot)
					mu.Lock()
					defer mu.Unlock()
					got[free(t, b, err)]++
				})
			}
			synctest.Wait()
		}
		ask(10)
		time.Sleep(99 * time.Millisecond)
		ask(10) // the call still waits for its budget
		time.Sleep(2 * time.Millisecond)
		ask(5) // it was sent a millisecond ago
		time.Sleep(98 * time.Millisecond)
		ask(5) // the second one waits for its budget
		wait.Wait()
		if f.count(&f.calls) != 2 || f.count(&f.sent) != 2 || got["1"] != 20 || got["2"] != 10 {
			t.Errorf("%d calls, answers %v: want 20 of the first, 10 of the second", f.count(&f.calls), got)
		}
	})
}

func TestBalances_aRefusalIsNotKeptEither(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeAccount{refused: true}
		a := newAccounts(t, account("main", f))
		if _, err := a.Balances(t.Context(), spot); !errors.Is(err, market.ErrCircuitOpen) {
			t.Fatalf("err = %v, want circuit_open", err)
		}
		f.set(func(f *fakeAccount) { f.refused = false })
		b, err := a.Balances(t.Context(), spot)
		if got := free(t, b, err); got != "2" {
			t.Errorf("answer of call %s, want the second", got)
		}
	})
}

func TestBalances_everyLaterPageIsStillTheSameSentCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeAccount{latency: 100 * time.Millisecond, pages: 3}
		a := newAccounts(t, account("main", f))
		var wait sync.WaitGroup
		for range 3 { // one joins before each page is sent, and none may
			wait.Go(func() { _, _ = a.Balances(t.Context(), spot) })
			synctest.Wait()
			time.Sleep(90 * time.Millisecond)
		}
		wait.Wait()
		if n := f.count(&f.calls); n != 3 {
			t.Errorf("%d calls for 3 callers who each came after the last was sent", n)
		}
	})
}

func TestBalances_walletsAndAccountsShareNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := &fakeAccount{budget: time.Second}
		two := &fakeAccount{budget: time.Second}
		a := newAccounts(t, account("one", one, market.WalletFunding), account("two", two))
		var wait sync.WaitGroup
		for _, q := range []gateway.BalanceQuery{
			{Exchange: "alpha", Account: "one", Wallet: market.WalletTrading},
			{Exchange: "alpha", Account: "one", Wallet: market.WalletFunding},
			{Exchange: "alpha", Account: "two", Wallet: market.WalletTrading},
		} {
			wait.Go(func() {
				b, err := a.Balances(t.Context(), q)
				if free(t, b, err); b.Account != q.Account || b.Wallet != q.Wallet {
					t.Errorf("asked for %+v, got %s %s", q, b.Account, b.Wallet)
				}
			})
		}
		wait.Wait()
		if one.count(&one.calls) != 2 || two.count(&two.calls) != 1 {
			t.Errorf("%d and %d calls, want 2 and 1", one.count(&one.calls), two.count(&two.calls))
		}
	})
}

func TestBalances_aCallerWhoLeavesIsLetGoAndTheLastEndsTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeAccount{budget: 10 * time.Second}
		a := newAccounts(t, account("main", f))
		first, leaveFirst := context.WithCancel(t.Context())
		second, leaveSecond := context.WithTimeout(t.Context(), time.Second)
		defer leaveSecond()
		var wait sync.WaitGroup
		start := time.Now()
		wait.Go(func() {
			_, err := a.Balances(first, spot)
			if market.KindOf(err) != market.KindCanceled || time.Since(start) != 0 {
				t.Errorf("first: %v after %v", err, time.Since(start))
			}
		})
		synctest.Wait()
		wait.Go(func() {
			if _, err := a.Balances(second, spot); market.KindOf(err) != market.KindTimeout {
				t.Errorf("second: %v", err)
			}
		})
		synctest.Wait()
		leaveFirst()
		synctest.Wait()
		if f.count(&f.canceled) != 0 {
			t.Error("the call ended although one still waits for it")
		}
		wait.Wait()
		synctest.Wait()
		if f.count(&f.canceled) != 1 || f.count(&f.calls) != 1 {
			t.Errorf("%d of %d calls cancelled, want 1 of 1", f.count(&f.canceled), f.count(&f.calls))
		}
		f.set(func(f *fakeAccount) { f.budget = 0 })
		b, err := a.Balances(t.Context(), spot) // nothing of the cancelled one is left
		free(t, b, err)
		if _, err := a.Balances(first, spot); market.KindOf(err) != market.KindCanceled || f.count(&f.calls) != 2 {
			t.Errorf("%v after %d calls: one who had left before asked the exchange", err, f.count(&f.calls))
		}
	})
}

func TestBalances_endWithTheGateway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeAccount{latency: time.Hour}
		a := newAccounts(t, account("main", f))
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- a.Run(ctx) }()
		answered := make(chan error)
		go func() {
			_, err := a.Balances(t.Context(), spot)
			answered <- err
		}()
		synctest.Wait()
		stop()
		if err := <-answered; market.KindOf(err) != market.KindOverloaded {
			t.Errorf("err = %v, want overloaded: the caller has not left", err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if _, err := a.Balances(t.Context(), spot); market.KindOf(err) != market.KindOverloaded || f.count(&f.calls) != 1 {
			t.Errorf("err = %v after %d calls", err, f.count(&f.calls))
		}
	})
}

func TestBalances_whichAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAccounts(t, account("one", &fakeAccount{}), account("two", &fakeAccount{}, market.WalletFunding))
		f := func(q gateway.BalanceQuery, wantCode gateway.Code, wantKind market.Kind, wantText, wantAccount string) {
			t.Helper()
			b, err := a.Balances(t.Context(), q)
			if wantAccount != "" {
				if free(t, b, err); b.Account != wantAccount {
					t.Errorf("%+v: account %s, want %s", q, b.Account, wantAccount)
				}
				return
			}
			e, _ := errors.AsType[*gateway.Error](err)
			if code(err) != wantCode || wantKind != market.KindNone && market.KindOf(err) != wantKind {
				t.Errorf("%+v: %v", q, err)
			}
			if e != nil && !strings.Contains(e.Detail, wantText) {
				t.Errorf("%+v: detail %q does not say %q", q, e.Detail, wantText)
			}
		}
		f(gateway.BalanceQuery{Exchange: "alpha", Account: "one", Wallet: market.WalletTrading}, "", 0, "", "one")
		f(gateway.BalanceQuery{Exchange: "alpha", Wallet: market.WalletFunding}, "", 0, "", "two")
		f(gateway.BalanceQuery{Exchange: "alpha", Wallet: market.WalletTrading},
			gateway.CodeAccountAmbiguous, 0, "one, two", "")
		f(gateway.BalanceQuery{Exchange: "alpha", Account: "three", Wallet: market.WalletTrading},
			gateway.CodeAccountUnknown, 0, "three", "")
		f(gateway.BalanceQuery{Exchange: "alpha", Account: "one", Wallet: market.WalletFunding},
			"", market.KindNotSupported, "", "")
		f(gateway.BalanceQuery{Exchange: "alpha", Wallet: "margin"}, "", market.KindNotSupported, "", "")
		f(gateway.BalanceQuery{Exchange: "beta", Wallet: market.WalletTrading}, gateway.CodeNoAccounts, 0, "", "")
		f(gateway.BalanceQuery{Exchange: "omega", Wallet: market.WalletTrading},
			gateway.CodeExchangeUnknown, 0, "alpha, beta", "")
		if got := a.Names("alpha", market.WalletTrading); strings.Join(got, " ") != "one two" {
			t.Errorf("names = %v", got)
		}
	})
}

func TestAccountsConfig_saysEverythingThatIsWrong(t *testing.T) {
	f := &fakeAccount{}
	err := gateway.AccountsConfig{
		Exchanges: []market.ExchangeID{"alpha"},
		Accounts: []gateway.NamedAccount{
			account("main", f), account("main", f), account("", f),
			{Exchange: "omega", Name: "x", Account: f, Wallets: []market.Wallet{market.WalletTrading}},
		},
	}.Validate()
	if err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("err = %v, want three problems", err)
	}
}

// panicking is an account whose adapter is broken.
type panicking struct{}

func (panicking) Balances(context.Context, market.Wallet) (*market.Balances, error) { panic(io.EOF) }

func TestBalances_aPanicIsOneFailedCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := account("main", nil)
		n.Account = panicking{}
		a := newAccounts(t, n)
		for range 2 {
			if b, err := a.Balances(t.Context(), spot); b != nil || market.KindOf(err) != market.KindInternal {
				t.Errorf("got %+v, %v, want internal", b, err)
			}
		}
	})
}
