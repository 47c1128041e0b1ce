package resilience_test

import (
	"context"
	"testing"
	"time"

	"exchange-gateway/internal/market"
	"exchange-gateway/internal/resilience"
)

// newest returns the samples of the venue that hold anything, by how many samples ago they began.
func (w *world) newest(t *testing.T) map[int]market.Sample {
	t.Helper()
	all := w.guard.Samples(venueID)
	if len(all) != market.Samples {
		t.Fatalf("%d samples, want %d", len(all), market.Samples)
	}
	held := make(map[int]market.Sample)
	for i, s := range all {
		if i > 0 && s.At.Sub(all[i-1].At) != market.SampleLength {
			t.Fatalf("sample %d begins at %v, the one before at %v", i, s.At, all[i-1].At)
		}
		began := s.At
		if s.At = (time.Time{}); s != (market.Sample{}) {
			s.At = began
			held[len(all)-1-i] = s
		}
	}
	if last := all[len(all)-1].At; time.Since(last) < 0 || time.Since(last) >= market.SampleLength {
		t.Fatalf("the newest began %v ago", time.Since(last))
	}
	return held
}

func wantSample(t *testing.T, got, want market.Sample) {
	t.Helper()
	if got.At = (time.Time{}); got != want {
		t.Fatalf("sample %+v, want %+v", got, want)
	}
}

// slowly answers after a while.
func slowly(d time.Duration, err error) func(context.Context, int) error {
	return func(context.Context, int) error { time.Sleep(d); return err }
}

func TestSamples(t *testing.T) {
	in(t, &venue{}, resilience.Config{}, func(t *testing.T, w *world) {
		if held := w.newest(t); len(held) != 0 {
			t.Fatalf("before the first call: %+v", held)
		}
		for range 98 {
			if err := w.book(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		w.answers(slowly(400*time.Millisecond, nil))
		_ = w.book(t.Context())
		w.answers(always(fails(market.KindMaintenance)))
		_ = w.book(t.Context())
		held := w.newest(t)
		// The 99th of 100 is still in the first bucket: the slow one is the hundredth.
		wantSample(t, held[0], market.Sample{Attempts: 100, Failures: 1, P50: time.Millisecond, P99: time.Millisecond})

		time.Sleep(market.SampleLength)
		w.answers(slowly(400*time.Millisecond, fails(market.KindUnknownSymbol)))
		_ = w.book(t.Context()) // the exchange is well, and says no
		w.answers(slowly(time.Millisecond, nil))
		_ = w.book(t.Context())
		held = w.newest(t)
		wantSample(t, held[1], market.Sample{Attempts: 100, Failures: 1, P50: time.Millisecond, P99: time.Millisecond})
		wantSample(t, held[0], market.Sample{Attempts: 2, P50: time.Millisecond, P99: 437893857 * time.Nanosecond})

		// Two minutes in which nobody asks: a reading moves them on, and the next call finds them moved.
		time.Sleep(2 * time.Minute)
		before := w.newest(t)
		if len(before) != 2 || before[25].Attempts != 100 || before[24].Attempts != 2 {
			t.Fatalf("after two minutes: %+v", before)
		}
		w.answers(nil)
		_ = w.book(t.Context())
		after := w.newest(t)
		if len(after) != 3 || after[25] != before[25] || after[24] != before[24] || after[0].Attempts != 1 {
			t.Fatalf("after one more call: %+v, before it %+v", after, before)
		}
		// An hour later nothing of it is left, whoever looks first.
		time.Sleep(time.Hour)
		if held := w.newest(t); len(held) != 0 {
			t.Fatalf("after an hour: %+v", held)
		}
		_ = w.book(t.Context())
		if held := w.newest(t); len(held) != 1 || held[0].Attempts != 1 {
			t.Fatalf("after an hour and a call: %+v", held)
		}
		if got := w.guard.Samples("nobody"); got != nil {
			t.Fatalf("samples of nobody: %v", got)
		}
	})
}

// Retries are attempts beyond the first; calls that an open circuit, a gate, an isolation or a budget turned away are
// refused, and no attempts. Who only left is neither.
func TestSamples_retriesAndRefusals(t *testing.T) {
	v := &venue{scopes: []market.Scope{ipScope}, limits: []market.Limit{{ID: "r", Capacity: 1000, Window: time.Hour, Burst: 0}}, cost: cost("r", 1)}
	in(t, v, resilience.Config{}, func(t *testing.T, w *world) {
		next := func() { time.Sleep(market.SampleLength) }
		w.answers(always(fails(market.KindUnavailable)))
		_ = w.book(t.Context())
		wantSample(t, w.newest(t)[0], market.Sample{Attempts: 3, Failures: 3, Retries: 2, P50: time.Millisecond, P99: time.Millisecond})
		next()

		left, leave := context.WithCancel(t.Context())
		leave()
		_ = w.book(left)
		if held, ok := w.newest(t)[0]; ok {
			t.Fatalf("a caller that had left: %+v", held)
		}
		_ = w.guard.Isolate(venueID, "", time.Now().Add(time.Second))
		_ = w.book(t.Context())
		_ = w.guard.Peek(w.call(market.OpOrderBook))
		wantSample(t, w.newest(t)[0], market.Sample{Refused: 2})
		next()

		w.answers(always(refusal(market.KindRateLimited, limited)))
		_ = w.book(t.Context()) // waits for the gate, twice
		w.answers(nil)
		first := w.newest(t)[0]
		if first.Failures != 0 || first.Attempts == 0 || first.Attempts != first.Retries+1 {
			t.Fatalf("limited: %+v", first)
		}
		_ = w.book(t.Context())
		if got := w.newest(t)[0]; got.Refused != first.Refused+1 || got.Attempts != first.Attempts {
			t.Fatalf("%+v after %+v, want one refused more", got, first)
		}
		time.Sleep(time.Minute)

		w.trip(t)
		first = w.newest(t)[0]
		_ = w.book(t.Context())
		if got := w.newest(t)[0]; got.Refused != first.Refused+1 || got.Attempts != first.Attempts {
			t.Fatalf("%+v after %+v, want one refused more", got, first)
		}
	})
}

// Seven units are all that the gateway permits itself of ten: the call that finds none left is refused.
func TestSamples_budgetRefuses(t *testing.T) {
	v := &venue{limits: []market.Limit{{ID: "r", Capacity: 10, Window: time.Hour}}, cost: cost("r", 7)}
	in(t, v, resilience.Config{}, func(t *testing.T, w *world) {
		if err := w.book(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantKind(t, w.book(t.Context()), market.KindOverloaded)
		wantSample(t, w.newest(t)[0], market.Sample{Attempts: 1, Refused: 1, P50: time.Millisecond, P99: time.Millisecond})
	})
}
