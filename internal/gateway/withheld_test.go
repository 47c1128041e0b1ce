package gateway_test

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

// fakeWithheld is what an operator withholds.
type fakeWithheld struct {
	mu    sync.Mutex
	until map[string]time.Time
}

func (f *fakeWithheld) Withheld(e market.ExchangeID, p market.Pair) (time.Time, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	until := f.until[string(e)]
	if !p.IsZero() && f.until[name(e, p)].After(until) {
		until = f.until[name(e, p)]
	}
	return until, time.Now().Before(until)
}

// begin withholds a pair for d, or with a zero pair the exchange.
func (f *fakeWithheld) begin(e market.ExchangeID, p market.Pair, d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.until == nil {
		f.until = map[string]time.Time{}
	}
	k := string(e)
	if !p.IsZero() {
		k = name(e, p)
	}
	f.until[k] = time.Now().Add(d)
}

func newWithheldHouse(t *testing.T, ids ...market.ExchangeID) (*house, *fakeWithheld) {
	t.Helper()
	w := &fakeWithheld{}
	return newHouse(t, func(c *gateway.BooksConfig) { c.Withheld = w }, ids...), w
}

// withheld checks a refusal.
func withheld(t *testing.T, what string, err error, least, most time.Duration) {
	t.Helper()
	e, ok := errors.AsType[*market.Error](err)
	if !ok || e.Kind != market.KindWithheld || e.RetryAfter < least || e.RetryAfter > most {
		t.Errorf("%s: %v, want withheld for %v to %v", what, err, least, most)
	}
}

// asked is every call that reached an exchange.
func (f *fakeVenue) asked() int { return f.count(&f.books) + f.count(&f.stats) + f.count(&f.lists) }

func TestWithheld_pairIsAnsweredNowhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, w := newWithheldHouse(t, "alpha", "beta")
		h.ask(t, query()) // there is a fresh copy
		h.ask(t, gateway.BookQuery{Exchange: "beta", Pair: btc, Depth: 100})
		w.begin("alpha", btc, time.Hour)
		before, recalls := h.alpha().asked(), h.store.recalled()
		hour := func(what string, err error) {
			t.Helper()
			withheld(t, what, err, time.Hour, time.Hour)
		}

		for _, q := range []gateway.BookQuery{
			query(), {Exchange: "alpha", Pair: btc, MaxAge: gateway.MaxAge(time.Hour)}, {Exchange: "alpha", Pair: btc, RequireLive: true},
		} {
			_, err := h.OrderBook(t.Context(), q)
			hour("order book", err)
			_, err = h.Ticker(t.Context(), q)
			hour("ticker", err)
		}
		rows, err := h.Tickers(t.Context(), "alpha", []market.Pair{btc})
		if err != nil || rows[0].Ticker != nil {
			t.Errorf("tickers: %+v, %v", rows, err)
		}
		hour("tickers", rows[0].Err)
		if after := h.alpha().asked(); after != before || h.store.recalled() != recalls {
			t.Errorf("asked the exchange %d times and the shared store %d times", after-before, h.store.recalled()-recalls)
		}

		all, err := h.OrderBooks(t.Context(), btc, 5, gateway.Age{})
		if err != nil || all.Books[0].Book != nil || all.Books[1].Book == nil || all.BestBid.Exchange != "beta" {
			t.Fatalf("order books: %+v, %v", all, err)
		}
		hour("order books", all.Books[0].Err)
		for _, age := range []gateway.Age{{}, gateway.MaxAge(time.Hour)} {
			p, err := h.Price(t.Context(), btc, nil, age)
			if err != nil || p.Book.Exchange != "beta" || !p.Fallback || len(p.Passed) != 1 {
				t.Fatalf("price: %+v, %v", p, err)
			}
			hour("price", p.Passed[0].Err)
			_, err = h.Price(t.Context(), btc, []market.ExchangeID{"alpha"}, age)
			if code(err) != gateway.CodePriceUnavailable {
				t.Errorf("price of alpha alone: %v", err)
			}
		}
		if after := h.alpha().asked(); after != before || h.store.recalled() != recalls {
			t.Errorf("asked the exchange %d times and the shared store %d times", after-before, h.store.recalled()-recalls)
		}

		time.Sleep(time.Hour)
		is(t, h.ask(t, query()).Freshness, false, gateway.SourceREST, market.KindNone)
	})
}

// The same questions about everything else are answered as they were, by as many calls.
func TestWithheld_changesNothingElse(t *testing.T) {
	calls := func(t *testing.T, withhold bool) (alpha, beta int) {
		h, w := newWithheldHouse(t, "alpha", "beta")
		h.listed(t)
		if withhold {
			w.begin("alpha", btc, time.Hour)
		}
		for range 5 {
			for _, q := range []gateway.BookQuery{
				{Exchange: "alpha", Pair: eth}, {Exchange: "beta", Pair: btc}, {Exchange: "beta", Pair: eth},
			} {
				h.ask(t, q)
				if _, err := h.Ticker(t.Context(), q); err != nil {
					t.Errorf("ticker of %s at %s: %v", q.Pair, q.Exchange, err)
				}
			}
			if _, err := h.Markets(t.Context(), "alpha"); err != nil {
				t.Errorf("markets: %v", err)
			}
			if s, err := h.Status(t.Context(), "alpha"); err != nil || s.Pairs != 2 {
				t.Errorf("status: %+v, %v", s, err)
			}
			if l, err := h.Listing(t.Context(), "alpha", btc); err != nil || l.Pair != btc {
				t.Errorf("listing: %+v, %v", l, err)
			}
			time.Sleep(2 * time.Second)
		}
		return h.alpha().asked(), h.venues["beta"].asked()
	}
	synctest.Test(t, func(t *testing.T) {
		alpha, beta := calls(t, false)
		if a, b := calls(t, true); a != alpha || b != beta || a == 0 {
			t.Errorf("asked %d and %d times, want %d and %d as without a withholding", a, b, alpha, beta)
		}
	})
}

func TestWithheld_exchange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, w := newWithheldHouse(t, "alpha", "beta")
		h.ask(t, query())
		w.begin("alpha", market.Pair{}, time.Hour)
		for _, p := range []market.Pair{btc, eth, {Base: "NOSUCH", Quote: "USDT"}} {
			_, err := h.OrderBook(t.Context(), gateway.BookQuery{Exchange: "alpha", Pair: p})
			withheld(t, p.String(), err, time.Hour, time.Hour)
			h.ask(t, gateway.BookQuery{Exchange: "beta", Pair: btc})
		}
		if _, err := h.Markets(t.Context(), "alpha"); err != nil {
			t.Errorf("markets: %v", err)
		}
		if _, err := h.Status(t.Context(), "alpha"); err != nil {
			t.Errorf("status: %v", err)
		}
		w.begin("beta", market.Pair{}, time.Minute)
		_, err := h.OrderBooks(t.Context(), btc, 5, gateway.Age{})
		if e, ok := errors.AsType[*gateway.Error](err); !ok || e.Code != gateway.CodeBooksUnavailable || e.RetryAfter != market.OperatorWait {
			t.Errorf("order books: %v, want unavailable for as long as a caller is told to wait for an operator", err)
		}
	})
}

func TestWithheld_endsAlsoWhatIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, w := newWithheldHouse(t, "alpha", "beta")
		h.listed(t)
		slow := func(f *fakeVenue) { f.latency, f.statLatency = 500*time.Millisecond, 800*time.Millisecond }
		for what, question := range map[string]func() error{
			"order book": func() error { _, err := h.OrderBook(t.Context(), query()); return err },
			"ticker":     func() error { _, err := h.Ticker(t.Context(), query()); return err },
			"order books": func() error {
				all, err := h.OrderBooks(t.Context(), btc, 5, gateway.Age{})
				if err != nil {
					return err
				}
				if all.BestBid == nil || all.BestBid.Exchange != "beta" {
					t.Errorf("the best bid is %+v", all.BestBid)
				}
				return all.Books[0].Err
			},
			"price": func() error {
				_, err := h.Price(t.Context(), btc, []market.ExchangeID{"alpha"}, gateway.Age{})
				e, ok := errors.AsType[*gateway.Error](err)
				if !ok || e.Code != gateway.CodePriceUnavailable {
					t.Fatalf("price: %v", err)
				}
				return e.Venues[0].Err
			},
		} {
			h.alpha().set(slow)
			answered := make(chan error)
			go func() { answered <- question() }()
			time.Sleep(100 * time.Millisecond)
			w.begin("alpha", btc, 2*time.Second)
			withheld(t, what, <-answered, time.Second, 2*time.Second)
			time.Sleep(5 * time.Second)
		}
	})
}

// A ticker whose book was there before the withholding, and whose figures came after it.
func TestWithheld_tickerThatWaitsForItsFigures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, w := newWithheldHouse(t)
		h.ask(t, query())
		h.alpha().set(func(f *fakeVenue) { f.statLatency = 500 * time.Millisecond })
		answered := make(chan error)
		go func() {
			_, err := h.Ticker(t.Context(), query())
			answered <- err
		}()
		time.Sleep(100 * time.Millisecond)
		w.begin("alpha", btc, time.Minute)
		withheld(t, "ticker", <-answered, 59*time.Second, time.Minute)
	})
}

func TestWithheld_balances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &fakeWithheld{}
		f := &fakeAccount{latency: time.Second}
		a := gateway.NewAccounts(gateway.AccountsConfig{
			Exchanges: []market.ExchangeID{"alpha"}, Withheld: w,
			Accounts: []gateway.NamedAccount{
				{Exchange: "alpha", Name: "main", Wallets: []market.Wallet{market.WalletTrading}, Account: f},
			},
		})
		q := gateway.BalanceQuery{Exchange: "alpha", Wallet: market.WalletTrading}
		w.begin("alpha", btc, time.Hour) // a pair is no reason
		if _, err := a.Balances(t.Context(), q); err != nil {
			t.Errorf("a withheld pair: %v", err)
		}
		answered := make(chan error)
		go func() {
			b, err := a.Balances(t.Context(), q)
			if b != nil {
				t.Errorf("balances beside %v", err)
			}
			answered <- err
		}()
		time.Sleep(500 * time.Millisecond)
		w.begin("alpha", market.Pair{}, time.Hour)
		withheld(t, "under way", <-answered, time.Hour-time.Second, time.Hour)
		before := f.calls
		_, err := a.Balances(t.Context(), q)
		withheld(t, "afterwards", err, time.Hour-time.Second, time.Hour)
		if f.calls != before {
			t.Error("the account was asked")
		}
		if err := a.Ask(t.Context(), "alpha"); err != nil || f.calls != before+1 {
			t.Errorf("a probe: %v, %d calls", err, f.calls-before)
		}
		if got := a.Served("alpha"); got.Live != 1 || got.Refused != 2 || got.Stale != 0 {
			t.Errorf("served %+v, want one balance and two refusals", got)
		}
	})
}
