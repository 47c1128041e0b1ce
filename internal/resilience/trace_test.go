package resilience_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"exchange-gateway/internal/market"
	"exchange-gateway/internal/resilience"
)

// traced is a span that keeps what it is told.
type traced struct {
	mu  sync.Mutex
	all []market.Attempted
}

func (s *traced) Attempt(a market.Attempted) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, a)
}

// got is what was told so far. Instants become what they are apart.
func (s *traced) got() (all []market.Attempted, took []time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.all {
		took = append(took, a.Ended.Sub(a.Began))
		a.Began, a.Ended = time.Time{}, time.Time{}
		all = append(all, a)
	}
	return all, took
}

func TestTrace_everyAttemptOfACall(t *testing.T) {
	in(t, &venue{}, resilience.Config{}, func(t *testing.T, w *world) {
		w.answers(func(_ context.Context, n int) error {
			time.Sleep(100 * time.Millisecond)
			if n == 1 {
				e := fails(market.KindUnavailable)
				e.Status = 502
				return e
			}
			return nil
		})
		s := new(traced)
		if err := w.book(market.WithSpan(t.Context(), s)); err != nil {
			t.Fatal(err)
		}
		if err := w.book(t.Context()); err != nil { // a call without a span is in nobody's
			t.Fatal(err)
		}
		got, took := s.got()
		a := market.Attempted{Exchange: venueID, Op: market.OpOrderBook, Class: market.ClassMarketData, Number: 2}
		first := a
		first.Number, first.Kind, first.Status = 1, market.KindUnavailable, 502
		if diff := cmp.Diff([]market.Attempted{first, a}, got); diff != "" {
			t.Errorf("attempts (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]time.Duration{100 * time.Millisecond, 100 * time.Millisecond}, took); diff != "" {
			t.Errorf("durations (-want +got):\n%s", diff)
		}
	})
}

// A refusal is no attempt; a probe is, and belongs to the caller that came just then, also when that one did not wait.
func TestTrace_probeOfACallerThatLeft(t *testing.T) {
	in(t, &venue{}, resilience.Config{}, func(t *testing.T, w *world) {
		w.trip(t)
		s := new(traced)
		ctx := market.WithSpan(t.Context(), s)
		wantKind(t, w.book(ctx), market.KindCircuitOpen)
		if got, _ := s.got(); len(got) > 0 {
			t.Errorf("a refused call is in the trace: %+v", got)
		}
		w.untilProbe(t)
		w.answers(func(context.Context, int) error { time.Sleep(time.Second); return nil })
		short, cancel := context.WithTimeout(ctx, 400*time.Millisecond)
		defer cancel()
		wantKind(t, w.book(short), market.KindTimeout)
		time.Sleep(time.Second)
		got, _ := s.got()
		want := []market.Attempted{{Exchange: venueID, Op: market.OpOrderBook, Class: market.ClassMarketData, Number: 1, Probe: true}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("attempts (-want +got):\n%s", diff)
		}
	})
}
