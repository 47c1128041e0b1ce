package resilience_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"exchange-gateway/internal/market"
	"exchange-gateway/internal/resilience"
)

func TestFailures(t *testing.T) {
	in(t, &venue{}, resilience.Config{}, func(t *testing.T, w *world) {
		if got := w.guard.Failures(venueID); len(got) != 0 || !w.guard.LastSuccess(venueID).IsZero() {
			t.Fatalf("before the first call: %+v, success %v", got, w.guard.LastSuccess(venueID))
		}
		w.answers(nil)
		succeeded := time.Now()
		if err := w.book(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)

		said := fails(market.KindUnknownSymbol)
		said.Status, said.Code = 400, "-1121"
		w.answers(slowly(70*time.Millisecond, said))
		_ = w.bookOf(t.Context(), "NOPE")
		w.answers(hang)
		_, _ = w.acc.Balances(t.Context(), market.WalletTrading) // 3 s and what is left of 5 s
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		leaving, leave := context.WithCancel(ctx)
		time.AfterFunc(100*time.Millisecond, leave)
		_ = w.book(leaving) // nobody's failure
		_ = w.guard.Isolate(venueID, "", time.Now().Add(time.Minute))
		_ = w.book(t.Context()) // our own refusal

		got := w.guard.Failures(venueID)
		if len(got) < 2 || len(got) > 3 {
			t.Fatalf("%d failures: %+v", len(got), got)
		}
		for i, f := range got[:len(got)-1] {
			if f.Op != market.OpBalances || f.Kind != market.KindTimeout || f.Exchange != venueID || f.Elapsed <= 0 || f.At.Before(got[i+1].At) {
				t.Fatalf("failure %d: %+v", i, f)
			}
		}
		first := got[len(got)-1]
		want := market.Failure{
			At: first.At, Exchange: venueID, Op: market.OpOrderBook, Kind: market.KindUnknownSymbol, Status: 400, Code: "-1121",
			Elapsed: 70 * time.Millisecond,
		}
		if first != want {
			t.Fatalf("got %+v, want %+v", first, want)
		}
		if at := succeeded.Add(time.Minute + 70*time.Millisecond); first.At.Sub(at).Abs() > time.Microsecond {
			t.Fatalf("it was at %v, want %v", first.At, at)
		}
		if got := w.guard.LastSuccess(venueID); got.Sub(succeeded).Abs() > time.Millisecond {
			t.Fatalf("last success %v, want %v", got, succeeded)
		}
		if got := w.guard.Failures("nobody"); got != nil || !w.guard.LastSuccess("nobody").IsZero() {
			t.Fatalf("failures of nobody: %v", got)
		}
	})
}

// The last 20 are kept, newest first, whatever an exchange calls its errors.
func TestFailures_bounded(t *testing.T) {
	in(t, &venue{}, resilience.Config{}, func(t *testing.T, w *world) {
		codes := []string{"line\nbreak\x00", "Überlast", strings.Repeat("x", 100), "<script>"}
		for n := range 50 {
			e := fails(market.KindInvalid)
			e.Code = strconv.Itoa(n)
			if n >= 46 {
				e.Code = codes[n-46]
			}
			w.answers(always(e))
			_ = w.book(t.Context())
			time.Sleep(time.Second)
		}
		got := w.guard.Failures(venueID)
		if len(got) != 20 {
			t.Fatalf("%d kept, want 20", len(got))
		}
		want := []string{"<script>", strings.Repeat("x", 40), "??berlast", "line?break?", "45", "44"}
		for i, code := range want {
			if got[i].Code != code {
				t.Errorf("code %d = %q, want %q", i, got[i].Code, code)
			}
		}
		if got[19].Code != "30" {
			t.Errorf("the oldest is %q, want 30", got[19].Code)
		}
		// An error that nobody classified has no code, and is listed all the same.
		w.answers(always(errors.New("out of order")))
		_ = w.book(t.Context())
		if f := w.guard.Failures(venueID)[0]; f.Kind != market.KindUnavailable || f.Code != "" || f.Status != 0 {
			t.Errorf("unclassified: %+v", f)
		}
	})
}
