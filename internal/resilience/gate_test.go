package resilience_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"exchange-gateway/internal/market"
	"exchange-gateway/internal/resilience"
)

// refusal is an answer that closes a gate.
func refusal(k market.Kind, r market.Refusal) *market.Error {
	e := fails(k)
	e.Status = 429
	e.Refusal = &r
	return e
}

var (
	ipScope = market.Scope{Kind: market.ScopeIP}
	limited = market.Refusal{Scope: ipScope, Clamp: time.Minute, First: 2 * time.Second, Max: 30 * time.Second}
)

// in20s asks for a gate that opens 20 s after the answer.
func in20s() error {
	r := limited
	r.NotBefore = time.Now().Add(20 * time.Second)
	return refusal(market.KindRateLimited, r)
}

// gate returns the end of the only closed gate.
func (w *world) gate(t *testing.T) market.GateStatus {
	t.Helper()
	all := w.guard.Gates()
	if len(all) != 1 {
		t.Fatalf("closed gates = %+v, want one", all)
	}
	return all[0]
}

// open sleeps until no gate is closed.
func (w *world) open(t *testing.T) {
	t.Helper()
	for _, g := range w.guard.Gates() {
		time.Sleep(time.Until(g.Until))
	}
	if all := w.guard.Gates(); len(all) != 0 {
		t.Fatalf("still closed: %+v", all)
	}
}

// 50 callers run into one 429: nothing is sent until its end, of no class, and the circuit stays closed.
func TestGate_zeroRequestsUntilItsEnd(t *testing.T) {
	in(t, &venue{scopes: []market.Scope{ipScope}}, resilience.Config{}, func(t *testing.T, w *world) {
		w.answers(func(context.Context, int) error { time.Sleep(100 * time.Millisecond); return in20s() })
		var calls sync.WaitGroup
		for range 50 {
			calls.Go(func() { wantKindOnly(t, w.book(t.Context()), market.KindRateLimited) })
		}
		calls.Wait()
		first, closed := w.sent(), time.Now()
		for time.Since(closed) < 20*time.Second-time.Millisecond {
			err := w.book(t.Context())
			wantKind(t, err, market.KindRateLimited)
			left := 20*time.Second - time.Since(closed)
			if got := retryAfter(t, err); got < left || got > max(left, time.Second)*6/5 {
				t.Fatalf("retry after %v with %v left", got, left)
			}
			_, err = w.acc.Balances(t.Context(), market.WalletTrading)
			wantKind(t, err, market.KindRateLimited)
			_, err = w.data.Listings(t.Context())
			wantKind(t, err, market.KindRateLimited)
			time.Sleep(333 * time.Millisecond)
		}
		if w.sent() != first {
			t.Fatalf("%d requests passed a closed gate", w.sent()-first)
		}
		w.wantState(t, market.CircuitClosed)
		w.open(t)
		w.answers(nil)
		if err := w.book(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

func TestGate_scopesDoNotTouchEachOther(t *testing.T) {
	public := market.Scope{Kind: market.ScopePublic, Name: "advanced"}
	in(t, &venue{}, resilience.Config{}, func(t *testing.T, w *world) {
		r := limited
		r.Scope = public
		w.venue.scopes = []market.Scope{public}
		w.answers(always(refusal(market.KindRateLimited, r)))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wantKind(t, w.book(ctx), market.KindRateLimited)
		w.venue.scopes = nil // a private call names no public gate
		w.answers(nil)
		if _, err := w.acc.Balances(t.Context(), market.WalletTrading); err != nil {
			t.Fatalf("the account stands behind the public gate: %v", err)
		}
		if _, err := w.guard.Account(venueID, &account{venue: w.venue, name: "other"}).Balances(t.Context(), market.WalletTrading); err != nil {
			t.Fatal(err)
		}
	})
}

// Without a time of the exchange the hold doubles; 50 answers in flight are one refusal; a healthy spell resets it.
func TestGate_growth(t *testing.T) {
	in(t, &venue{scopes: []market.Scope{ipScope}}, resilience.Config{}, func(t *testing.T, w *world) {
		refuse := always(refusal(market.KindBanned, limited))
		hit := func() time.Duration {
			w.answers(refuse)
			var calls sync.WaitGroup
			for range 50 {
				calls.Go(func() { wantKindOnly(t, w.book(t.Context()), market.KindBanned) })
			}
			calls.Wait()
			return time.Until(w.gate(t).Until)
		}
		for i, want := range []time.Duration{2, 4, 8, 16, 30, 30} {
			if got := hit(); got != want*time.Second {
				t.Fatalf("hold %d = %v, want %v s", i, got, want)
			}
			w.open(t)
			// One good answer in between is no recovery.
			w.answers(nil)
			if err := w.book(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		if err := w.book(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := hit(); got != 2*time.Second {
			t.Fatalf("hold after a healthy spell = %v, want 2 s", got)
		}
	})
}

// A long ban is not forgotten after a minute of health: the spell has to last as long as the ban did.
func TestGate_longBanNeedsALongSpell(t *testing.T) {
	ban := market.Refusal{Scope: ipScope, First: 2 * time.Minute, Max: 72 * time.Hour}
	in(t, &venue{scopes: []market.Scope{ipScope}}, resilience.Config{}, func(t *testing.T, w *world) {
		for _, want := range []time.Duration{2, 4, 8} {
			w.answers(always(refusal(market.KindBanned, ban)))
			_ = w.book(t.Context())
			if got := time.Until(w.gate(t).Until); got != want*time.Minute {
				t.Fatalf("ban = %v, want %v min", got, want)
			}
			w.open(t)
			time.Sleep(want*time.Minute - 30*time.Second)
			w.answers(nil)
			_ = w.book(t.Context())
		}
	})
}

func TestGate_onlyExtends(t *testing.T) {
	in(t, &venue{scopes: []market.Scope{ipScope}}, resilience.Config{}, func(t *testing.T, w *world) {
		door := w.guard.Door(venueID)
		call := w.call(market.OpTime)
		observe := func(k market.Kind, in, elapsed time.Duration) {
			r := limited
			if in != 0 {
				r.NotBefore = time.Now().Add(in)
			}
			door.Observe(t.Context(), call, market.Observation{Err: refusal(k, r), Elapsed: elapsed})
		}
		observe(market.KindBanned, 40*time.Second, 0)
		end := w.gate(t).Until
		time.Sleep(time.Second)
		observe(market.KindRateLimited, 5*time.Second, 2*time.Second) // sent before, and knows of less
		observe(market.KindRateLimited, 0, 2*time.Second)
		door.Observe(t.Context(), call, market.Observation{Elapsed: 3 * time.Second}) // a good answer to an older request
		if g := w.gate(t); !g.Until.Equal(end) || g.Kind != market.KindBanned {
			t.Fatalf("%+v, want it untouched until %v", g, end)
		}
		observe(market.KindRateLimited, 55*time.Second, 2*time.Second)
		if g := w.gate(t); time.Until(g.Until) != 55*time.Second {
			t.Fatalf("%+v, want the later end", g)
		}
		// A good answer that was on its way for all that time does not take the growth back.
		w.open(t)
		time.Sleep(2 * time.Minute)
		door.Observe(t.Context(), call, market.Observation{Elapsed: 4 * time.Minute})
		observe(market.KindRateLimited, 0, 0)
		if g := w.gate(t); time.Until(g.Until) != 4*time.Second {
			t.Fatalf("%+v, want the second hold", g)
		}
	})
}

func TestGate_clampsWhatTheExchangeSays(t *testing.T) {
	for name, test := range map[string]struct{ says, clamp, want time.Duration }{
		"a year":           {365 * 24 * time.Hour, time.Minute, time.Minute},
		"a year, of a ban": {365 * 24 * time.Hour, 72 * time.Hour, 72 * time.Hour},
		"beyond any clamp": {365 * 24 * time.Hour, 365 * 24 * time.Hour, 72 * time.Hour},
		"no clamp":         {time.Hour, 0, time.Minute},
		"now":              {0, time.Minute, time.Second},
		"the past":         {-time.Hour, time.Minute, time.Second},
		"in between":       {7 * time.Second, time.Minute, 7 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, &venue{scopes: []market.Scope{ipScope}}, resilience.Config{}, func(t *testing.T, w *world) {
				w.answers(always(refusal(market.KindBanned, market.Refusal{
					Scope: ipScope, NotBefore: time.Now().Add(test.says), Clamp: test.clamp,
				})))
				_ = w.book(t.Context())
				if got := time.Until(w.gate(t).Until); got != test.want {
					t.Fatalf("closed for %v, want %v", got, test.want)
				}
			})
		})
	}
}

var deadKey = market.Refusal{
	Scope: market.Scope{Kind: market.ScopeAccount, Name: "main"}, First: 30 * time.Second, Max: 10 * time.Minute, After: 3,
}

// Three auth answers in a row close the account's gate; then one signed request a hold. A good answer starts over.
func TestGate_threeStrikes(t *testing.T) {
	in(t, &venue{}, resilience.Config{}, func(t *testing.T, w *world) {
		balances := func(want market.Kind) {
			t.Helper()
			_, err := w.acc.Balances(t.Context(), market.WalletTrading)
			wantKind(t, err, want)
		}
		dead := always(refusal(market.KindAuth, deadKey))
		w.answers(dead)
		balances(market.KindAuth)
		balances(market.KindAuth)
		w.answers(nil)
		balances(market.KindNone)
		w.answers(dead)
		for range 3 {
			balances(market.KindAuth)
		}
		for _, want := range []time.Duration{30, 60, 120, 240, 480, 600, 600} {
			if got := time.Until(w.gate(t).Until); got != want*time.Second {
				t.Fatalf("hold = %v, want %v s", got, want)
			}
			before := w.sent()
			for range 10 {
				balances(market.KindAuth)
			}
			w.open(t)
			balances(market.KindAuth)
			if got := w.sent() - before; got != 1 {
				t.Fatalf("%d signed requests in a hold, want 1", got)
			}
		}
		if err := w.book(t.Context()); market.KindOf(err) != market.KindAuth && err != nil {
			t.Fatalf("books: %v", err)
		}
		if st := w.circuit(t, market.ClassAccount); st.State != market.CircuitClosed {
			t.Fatalf("a dead key is no outage: %+v", st)
		}
	})
}

// An adapter may ask for one late retry of an auth answer; not on the call that ends a hold.
func TestGate_lateRetryOfAuth(t *testing.T) {
	in(t, &venue{}, resilience.Config{}, func(t *testing.T, w *world) {
		answer := refusal(market.KindAuth, deadKey)
		answer.RetryOnceAfter = time.Second
		balances := func() error {
			_, err := w.acc.Balances(t.Context(), market.WalletTrading)
			return err
		}
		w.answers(func(_ context.Context, n int) error {
			if n == 1 {
				return answer
			}
			return nil
		})
		began := time.Now()
		if err := balances(); err != nil || time.Since(began) != time.Second || w.sent() != 2 {
			t.Fatalf("err = %v after %v and %d requests, want the second to pass after 1 s", err, time.Since(began), w.sent())
		}
		w.answers(func(context.Context, int) error { e := *answer; r := deadKey; e.Refusal = &r; return &e })
		wantKind(t, balances(), market.KindAuth)
		wantKind(t, balances(), market.KindAuth)
		if w.sent() != 5 {
			t.Fatalf("requests = %d, want 2 and then 1: the third strike", w.sent()-2)
		}
		w.open(t)
		wantKind(t, balances(), market.KindAuth)
		if w.sent() != 6 {
			t.Fatalf("requests = %d on the call that ends a hold, want 1", w.sent()-5)
		}
	})
}

// The late retry is one, also where no gate is asked for.
func TestGate_lateRetryIsOne(t *testing.T) {
	in(t, &venue{}, resilience.Config{}, func(t *testing.T, w *world) {
		answer := fails(market.KindAuth)
		answer.RetryOnceAfter = time.Second
		w.answers(always(answer))
		_, err := w.acc.Balances(t.Context(), market.WalletTrading)
		wantKind(t, err, market.KindAuth)
		if w.sent() != 2 {
			t.Fatalf("requests = %d, want 2", w.sent())
		}
	})
}

func symbolRefusal(k market.Kind, symbol string) error {
	e := refusal(k, market.Refusal{
		Scope: market.Scope{Kind: market.ScopeSymbol, Name: symbol}, First: time.Second, Max: 30 * time.Second,
	})
	e.Status = 200
	return e
}

// One symbol that answers rubbish has a gate of its own and hides no other; two at once are the exchange's trouble.
func TestGate_brokenSymbols(t *testing.T) {
	for _, kind := range []market.Kind{market.KindSuspect, market.KindMalformed} {
		t.Run(kind.String(), func(t *testing.T) {
			in(t, &venue{}, resilience.Config{}, func(t *testing.T, w *world) {
				bad := map[string]bool{"BAD": true}
				ask := func(symbol string) error {
					w.answers(always(nil))
					if bad[symbol] {
						w.answers(always(symbolRefusal(kind, symbol)))
					}
					return w.bookOf(t.Context(), symbol)
				}
				before := w.sent()
				for range 300 {
					wantKind(t, ask("BAD"), kind)
					if err := ask("GOOD"); err != nil {
						t.Fatalf("a healthy book is hidden: %v", err)
					}
					if st := w.circuit(t, market.ClassMarketData); st.Window.Failures != 0 {
						t.Fatalf("%+v: one broken book counts against the exchange", st.Window)
					}
					time.Sleep(time.Second)
				}
				// 1+2+4+8+16+30... in 300 s: about 13 holds, a malformed one asked twice at most.
				if got := w.sent() - before - 300; got > 20 {
					t.Fatalf("the broken symbol was asked %d times in 5 minutes", got)
				}
				w.wantState(t, market.CircuitClosed)
				bad["WORSE"] = true
				for range 400 {
					_ = ask("BAD")
					_ = ask("WORSE")
					if w.circuit(t, market.ClassMarketData).State == market.CircuitOpen {
						return
					}
					time.Sleep(time.Second)
				}
				t.Fatalf("two broken symbols did not open the circuit: %+v", w.circuit(t, market.ClassMarketData))
			})
		})
	}
}

func TestGate_symbolsAreBounded(t *testing.T) {
	in(t, &venue{}, resilience.Config{}, func(t *testing.T, w *world) {
		door := w.guard.Door(venueID)
		for i := range 3000 {
			e, _ := errors.AsType[*market.Error](symbolRefusal(market.KindSuspect, fmt.Sprint("S", i)))
			door.Observe(t.Context(), w.call(market.OpOrderBook), market.Observation{Err: e})
		}
		if got := len(w.guard.Gates()); got != 1024 {
			t.Fatalf("gates = %d, want the bound", got)
		}
		// All of them answer well again, but not yet for long: a further broken one has no gate and counts at once.
		time.Sleep(2 * time.Second)
		for i := range 1024 {
			c := w.Plan(market.OpOrderBook, market.Listing{Symbol: fmt.Sprint("S", i)}, 1)
			door.Observe(t.Context(), c, market.Observation{})
		}
		w.answers(always(symbolRefusal(market.KindSuspect, "FULL")))
		wantKind(t, w.bookOf(t.Context(), "FULL"), market.KindSuspect)
		if st := w.circuit(t, market.ClassMarketData); st.Window.Failures != 1 {
			t.Fatalf("%+v, want one failure", st.Window)
		}
		time.Sleep(2 * time.Minute) // healthy ones make room
		e, _ := errors.AsType[*market.Error](symbolRefusal(market.KindSuspect, "NEW"))
		door.Observe(t.Context(), w.call(market.OpOrderBook), market.Observation{Err: e})
		if g := w.gate(t); g.Scope.Name != "NEW" {
			t.Fatalf("%+v", g)
		}
	})
}

// A retry waits for the gate only if that opens before the deadline.
func TestGate_retryAtItsEnd(t *testing.T) {
	in(t, &venue{scopes: []market.Scope{ipScope}}, resilience.Config{}, func(t *testing.T, w *world) {
		once := func(hold time.Duration) func(context.Context, int) error {
			asked := 0
			return func(context.Context, int) error {
				if asked++; asked == 1 {
					r := limited
					r.NotBefore = time.Now().Add(hold)
					return refusal(market.KindRateLimited, r)
				}
				return nil
			}
		}
		w.answers(once(2 * time.Second))
		began := time.Now()
		if err := w.book(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := time.Since(began); got < 2*time.Second || got > 2200*time.Millisecond || w.sent() != 2 {
			t.Fatalf("answered after %v and %d requests", got, w.sent())
		}
		w.answers(once(4 * time.Second)) // past the deadline of 3 s
		began = time.Now()
		err := w.book(t.Context())
		wantKind(t, err, market.KindRateLimited)
		if time.Since(began) != 0 || retryAfter(t, err) < 4*time.Second {
			t.Fatalf("after %v: %v", time.Since(began), err)
		}
	})
}
