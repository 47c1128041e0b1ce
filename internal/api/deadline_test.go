package api_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/api"
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
