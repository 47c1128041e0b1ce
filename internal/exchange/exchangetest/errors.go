package exchangetest

import (
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"exchange-gateway/internal/market"
)

// checkErrors: each answer of the exchange's error table has its kind, and closes the gate that it should and no other.
func checkErrors(t *testing.T, s Subject, l market.Listing, all []question) {
	for _, c := range s.Errors {
		at := slices.IndexFunc(all, func(q question) bool { return q.op == c.Op && q.cred == c.Credential })
		if at < 0 {
			t.Fatalf("%s: there is no question %s of credential %d", c.Name, c.Op, c.Credential)
		}
		q := all[at]
		s.check(t, c.Name, l, func(t *testing.T, b *bench) {
			b.fault(q.op, always(c.Reply))
			v, err := q.ask(t.Context(), b)
			e := q.fails(t, b, v, err, c.Kind)
			if e == nil {
				t.Fatal("no error")
			}
			if e.Code != c.Code || e.OurFault != c.OurFault {
				t.Errorf("code %q, our fault %t, want %q, %t", e.Code, e.OurFault, c.Code, c.OurFault)
			}
			if c.Reply.Status != 0 && e.Status != c.Reply.Status {
				t.Errorf("status %d, want %d", e.Status, c.Reply.Status)
			}
			closes(t, q.plan(b), e, c.Scope)
			trail := b.Trail()
			if seen := trail[len(trail)-1].Observation.Err; seen == nil || seen.Kind != e.Kind || (seen.Refusal == nil) != (c.Scope == "") {
				t.Errorf("the door observed %+v", seen)
			}
		})
		if c.Kind == market.KindRateLimited || c.Kind == market.KindBanned {
			s.check(t, c.Name+", with Retry-After", l, func(t *testing.T, b *bench) { heedsRetryAfter(t, b, q, c) })
		}
	}
}

// closes checks the refusal of an error: of the scope wanted, one that the call said it passes, and with an end.
func closes(t *testing.T, plan market.Call, e *market.Error, want market.ScopeKind) {
	t.Helper()
	if want == "" {
		if e.Refusal != nil {
			t.Errorf("closes %+v, want no gate", *e.Refusal)
		}
		return
	}
	if e.Refusal == nil || e.Refusal.Scope.Kind != want {
		t.Fatalf("closes %+v, want a gate of scope %s", e.Refusal, want)
	}
	if !slices.Contains(plan.Scopes, e.Refusal.Scope) {
		t.Errorf("closes %+v, which the call itself does not pass: %+v", e.Refusal.Scope, plan.Scopes)
	}
	told := !e.Refusal.NotBefore.IsZero() && e.Refusal.Clamp > 0
	if grows := e.Refusal.First > 0 && e.Refusal.Max >= e.Refusal.First; !told && !grows {
		t.Errorf("refusal %+v has no end", *e.Refusal)
	}
}

// heedsRetryAfter checks that the exchange's own time holds, as seconds and as a date by a clock that is not ours.
func heedsRetryAfter(t *testing.T, b *bench, q question, c ErrorCase) {
	theirs := time.Date(2031, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, header := range []http.Header{
		{"Retry-After": {"7"}},
		{"Retry-After": {theirs.Add(7 * time.Second).Format(http.TimeFormat)}, "Date": {theirs.Format(http.TimeFormat)}},
	} {
		reply := c.Reply
		reply.Delay = 10 * time.Millisecond
		reply.Header = c.Reply.Header.Clone()
		if reply.Header == nil {
			reply.Header = make(http.Header)
		}
		for k, v := range header {
			reply.Header[k] = v
		}
		b.fault(q.op, always(reply))
		v, err := q.ask(t.Context(), b)
		e := q.fails(t, b, v, err, c.Kind)
		earliest := time.Now().Add(7 * time.Second)
		if e.Refusal == nil || e.Refusal.NotBefore.Before(earliest) || e.Refusal.Clamp < 7*time.Second {
			t.Errorf("%v: refusal %+v lets a request pass before %v", header, e.Refusal, earliest)
		}
	}
}

// checkConcurrent: everything may be asked at once.
func checkConcurrent(t *testing.T, b *bench, all []question) {
	var wg sync.WaitGroup
	for range 4 {
		for _, q := range all {
			wg.Go(func() {
				if _, err := q.ask(t.Context(), b); err != nil {
					t.Errorf("%s: %v", q.name, err)
				}
			})
		}
	}
	wg.Wait()
	if a, s, o := b.Count(Admitted), b.Count(Sent), b.Count(Observed); a != s || s != o || s < 4*(len(all)-1) {
		t.Errorf("admitted %d, sent %d, observed %d", a, s, o)
	}
}
