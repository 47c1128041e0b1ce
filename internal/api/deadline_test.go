package api_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/api"
	"exchange-gateway/internal/api/keys"
	"exchange-gateway/internal/api/quota"
	"exchange-gateway/internal/market"
)

func TestWithin_endsAtItsInstant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		ctx, end := api.Within(t.Context(), began.Add(3*time.Second))
		defer end()
		if at, ok := ctx.Deadline(); !ok || !at.Equal(began.Add(3*time.Second)) || ctx.Err() != nil {
			t.Fatalf("deadline %v %v, err %v", at, ok, ctx.Err())
		}
		child, cancel := context.WithCancel(ctx)
		defer cancel()
		<-child.Done()
		if took := time.Since(began); took != 3*time.Second || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			t.Errorf("ended after %v with %v", took, ctx.Err())
		}
	})
}

func TestWithin_endsWithTheRequestAndWithTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent, leave := context.WithCancel(t.Context())
		ctx, end := api.Within(parent, time.Now().Add(time.Hour))
		leave()
		if <-ctx.Done(); !errors.Is(ctx.Err(), context.Canceled) {
			t.Errorf("the caller left: %v", ctx.Err())
		}
		end()

		for _, waited := range []bool{true, false} {
			ctx, end = api.Within(t.Context(), time.Now().Add(time.Hour))
			if waited && ctx.Err() != nil {
				t.Fatal(ctx.Err())
			}
			end()
			if <-ctx.Done(); ctx.Err() == nil {
				t.Error("still open after the answer")
			}
		}
		synctest.Wait() // nothing is left behind: the bubble would not end
	})
}

// TestWithin_childrenNeedNoGoroutine: a context that is made of one that waits hears of its end directly.
func TestWithin_childrenNeedNoGoroutine(t *testing.T) {
	ctx, end := api.Within(t.Context(), time.Now().Add(time.Hour))
	defer end()
	_ = ctx.Done()
	before := runtime.NumGoroutine()
	for range 100 {
		_, cancel := context.WithCancel(ctx)
		defer cancel()
	}
	if n := runtime.NumGoroutine() - before; n >= 100 {
		t.Errorf("%d goroutines for 100 contexts", n)
	}
}

// TestWithin_answersForItsClient, to whoever made a context of it, before anybody waits and afterwards; and for nobody where it
// has none.
func TestWithin_answersForItsClient(t *testing.T) {
	type other struct{}
	parent := context.WithValue(t.Context(), other{}, "kept")
	client := quota.New(quota.Config{Ring: keys.NewRing()}).Keyless()
	ctx, end := api.WithinFor(parent, time.Now().Add(time.Hour), client)
	nobody, endNobody := api.Within(parent, time.Now().Add(time.Hour))
	defer endNobody()
	for range 2 {
		child, cancel := context.WithCancel(context.WithoutCancel(ctx))
		if market.ClientOf(ctx) != market.Client(client) || market.ClientName(child) != market.Keyless {
			t.Errorf("%v, %q", market.ClientOf(ctx), market.ClientName(child))
		}
		if got := ctx.Value(other{}); got != "kept" {
			t.Errorf("another value: %v", got)
		}
		if got := market.ClientOf(nobody); got != nil {
			t.Errorf("nobody is %v", got)
		}
		cancel()
		_ = ctx.Done() // from now on it is armed
		_ = nobody.Done()
	}
	end()
	if market.ClientName(ctx) != market.Keyless {
		t.Error("a call that outlives the request is nobody's")
	}
	if n := testing.AllocsPerRun(100, func() { _ = market.ClientOf(ctx) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
