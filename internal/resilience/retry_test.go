package resilience_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"exchange-gateway/internal/market"
	"exchange-gateway/internal/resilience"
)

// How often a call that always fails alike is sent, by kind.
func TestRetry_attempts(t *testing.T) {
	want := map[market.Kind]int{
		market.KindTimeout: 3, market.KindUnavailable: 3, market.KindMalformed: 2, market.KindClockSkew: 2,
		market.KindRateLimited: 3, market.KindRestricted: 3, // without a gate that closed
		market.KindCanceled: 3, // nobody cancelled: judged as unavailable
	}
	for _, kind := range market.Kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			in(t, &venue{}, resilience.Config{}, func(t *testing.T, w *world) {
				w.answers(always(fails(kind)))
				began := time.Now()
				err := w.book(t.Context())
				if kind == market.KindCanceled {
					wantKind(t, err, market.KindUnavailable)
				} else {
					wantKind(t, err, kind)
				}
				if !errors.Is(err, errTest) {
					t.Errorf("%v lost its cause", err)
				}
				_ = retryAfter(t, err)
				if got := w.sent(); got != max(want[kind], 1) {
					t.Errorf("sent %d times, want %d", got, max(want[kind], 1))
				}
				longest := 300 * time.Millisecond
				if kind == market.KindRateLimited {
					longest = 2400 * time.Millisecond // a second each, whatever the backoff says
				}
				if got := time.Since(began); got > longest {
					t.Errorf("took %v, want at most %v of pauses", got, longest)
				}
			})
		})
	}
}

func TestRetry_neverPastTheDeadline(t *testing.T) {
	in(t, &venue{}, resilience.Config{}, func(t *testing.T, w *world) {
		w.answers(func(context.Context, int) error {
			time.Sleep(1450 * time.Millisecond)
			return fails(market.KindUnavailable)
		})
		began := time.Now()
		wantKind(t, w.book(t.Context()), market.KindUnavailable)
		if got := time.Since(began); got > 3*time.Second || w.sent() != 2 {
			t.Fatalf("took %v and %d attempts, want 2 within the deadline", got, w.sent())
		}
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		began, before := time.Now(), w.sent()
		wantKind(t, w.book(ctx), market.KindUnavailable)
		if got := time.Since(began); got != 1450*time.Millisecond || w.sent() != before+1 {
			t.Fatalf("took %v: the caller's own deadline leaves no time for a second attempt", got)
		}
	})
}

// In an outage retries end with the budget: 20 in all, then each call is one attempt.
func TestRetry_budget(t *testing.T) {
	never := resilience.ClassPolicy{Consecutive: 1 << 20, MinSettled: 1 << 20}
	policy := resilience.Policy{Classes: map[market.Class]resilience.ClassPolicy{market.ClassMarketData: never}}
	in(t, &venue{}, resilience.Config{Exchanges: map[market.ExchangeID]resilience.Policy{venueID: policy}}, func(t *testing.T, w *world) {
		w.answers(always(fails(market.KindUnavailable)))
		for range 100 {
			_ = w.book(t.Context())
		}
		if got := w.sent(); got != 120 {
			t.Fatalf("sent = %d for 100 calls, want 20 retries", got)
		}
		w.answers(nil)
		for range 40 { // earns 12
			_ = w.book(t.Context())
		}
		before := w.sent()
		w.answers(always(fails(market.KindUnavailable)))
		for range 100 {
			_ = w.book(t.Context())
		}
		if got := w.sent() - before; got != 112 {
			t.Fatalf("sent = %d for 100 calls after 40 successes, want 12 retries", got)
		}
		// Classes have budgets of their own.
		before = w.sent()
		_, _ = w.data.Statistics(t.Context(), market.Listing{})
		if got := w.sent() - before; got != 3 {
			t.Fatalf("sent = %d, want the other class to retry", got)
		}
	})
}

// 20 % random failures: nearly every call is answered, at little more than the traffic itself, and the circuit holds.
func TestRetry_randomFailures(t *testing.T) {
	in(t, &venue{}, resilience.Config{Random: rand.New(rand.NewPCG(1, 2)).Uint64}, func(t *testing.T, w *world) {
		r := rand.New(rand.NewPCG(7, 7))
		w.answers(func(context.Context, int) error {
			if r.IntN(5) == 0 {
				return fails(market.KindUnavailable)
			}
			return nil
		})
		failed := 0
		for range 6000 { // 10 minutes
			if w.book(t.Context()) != nil {
				failed++
			}
			time.Sleep(100 * time.Millisecond)
		}
		if failed > 120 || w.sent() > 6000*135/100 {
			t.Fatalf("failed %d of 6,000 with %d requests", failed, w.sent())
		}
		if got := len(w.guard.Events(0)); got != 0 {
			t.Fatalf("%d changes of the circuit", got)
		}
	})
}

// An attempt was made, so its kind is told, not the circuit that opened behind it.
func TestRetry_theAttemptsKindIsTold(t *testing.T) {
	in(t, &venue{}, resilience.Config{}, func(t *testing.T, w *world) {
		w.answers(always(fails(market.KindMaintenance)))
		for range 9 {
			_ = w.book(t.Context())
		}
		w.answers(always(fails(market.KindUnavailable)))
		before, began := w.sent(), time.Now()
		err := w.book(t.Context()) // the tenth failure opens it, and a retry would be due
		wantKind(t, err, market.KindUnavailable)
		if got := time.Since(began); got != 0 {
			t.Fatalf("paused %v for a retry that cannot pass", got)
		}
		w.wantState(t, market.CircuitOpen)
		if w.sent() != before+1 {
			t.Fatalf("%d requests: an open circuit was retried", w.sent()-before)
		}
		if got := retryAfter(t, err); got < 4*time.Second {
			t.Fatalf("retry after %v, want the open time", got)
		}
		wantKind(t, w.book(t.Context()), market.KindCircuitOpen)
	})
}

func TestRetry_stopsWhenTheCallerLeaves(t *testing.T) {
	in(t, &venue{}, resilience.Config{}, func(t *testing.T, w *world) {
		ctx, cancel := context.WithCancel(t.Context())
		w.answers(func(context.Context, int) error { cancel(); return fails(market.KindMaintenance) })
		_ = w.book(ctx)
		began := time.Now()
		wantKind(t, w.book(ctx), market.KindCanceled)
		if w.sent() != 1 || time.Since(began) != 0 {
			t.Fatalf("sent = %d", w.sent())
		}
	})
}

// A caller that goes away ends its call at once, and what the adapter makes of the broken connection is overruled.
func TestOutcome_whoEndedIt(t *testing.T) {
	in(t, &venue{}, resilience.Config{}, func(t *testing.T, w *world) {
		w.answers(func(ctx context.Context, _ int) error { <-ctx.Done(); return fails(market.KindUnavailable) })
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(20*time.Millisecond, cancel)
		began := time.Now()
		wantKind(t, w.book(ctx), market.KindCanceled)
		if got := time.Since(began); got != 20*time.Millisecond {
			t.Fatalf("ended after %v", got)
		}
		began = time.Now()
		wantKind(t, w.book(t.Context()), market.KindTimeout)
		if got := time.Since(began); got > 3*time.Second {
			t.Fatalf("ended after %v", got)
		}
		answered := fails(market.KindUnavailable)
		answered.Status = 503
		ctx, cancel = context.WithCancel(t.Context())
		w.answers(func(context.Context, int) error { cancel(); return answered })
		wantKind(t, w.book(ctx), market.KindUnavailable) // what the exchange said stands
	})
}

// Errors that no adapter classified, and errors that were wrapped on the way.
func TestOutcome_foreignErrors(t *testing.T) {
	in(t, &venue{}, resilience.Config{}, func(t *testing.T, w *world) {
		w.answers(always(errTest))
		err := w.book(t.Context())
		wantKind(t, err, market.KindUnavailable)
		e, ok := errors.AsType[*market.Error](err)
		if !ok || e.Exchange != venueID || e.Op != market.OpOrderBook || !errors.Is(err, errTest) {
			t.Fatalf("%#v", err)
		}
		shared := fails(market.KindMaintenance)
		shared.Exchange = "" // as a sentinel of an adapter might be
		w.answers(always(errors.Join(errors.New("read book"), shared)))
		wantKind(t, w.book(t.Context()), market.KindMaintenance)
		if shared.Exchange != "" || shared.RetryAfter != 0 {
			t.Fatal("the adapter's error was changed")
		}
	})
}

// A panicking adapter is an internal error of that call; the process and the circuit live on.
func TestOutcome_panic(t *testing.T) {
	in(t, &venue{}, resilience.Config{}, func(t *testing.T, w *world) {
		w.answers(func(context.Context, int) error { panic("api_key=example") })
		err := w.book(t.Context())
		wantKind(t, err, market.KindInternal)
		if got := err.Error(); got != "testex: order_book: internal: the adapter did not return" {
			t.Fatalf("error = %q", got)
		}
		w.answers(nil)
		if err := w.book(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}
