package exchangetest

import (
	"net/http"
	"strings"
	"testing"

	"exchange-gateway/internal/market"
)

// checkCached: an answer about an account that says that it came from a cache is no answer, however good its body is. It is
// told apart from one that cannot be read, closes no gate, and is asked for once.
func checkCached(t *testing.T, s Subject, l market.Listing, q question) {
	aged := func(age ...string) Script {
		return func(r *http.Request, c market.Call) Reply {
			p := s.Good(r, c)
			p.Header = http.Header{"Age": age}
			return p
		}
	}
	for says, ages := range map[string][][]string{
		"at least 1s old":      {{"1"}},
		"at least 30s old":     {{"30"}, {" 30 "}, {"0", "30"}},
		"at least 24h0m0s":     {{"86401"}, {"99999999999999999999"}},
		"not say readably how": {{""}, {"-3"}, {"-99999999999999999999"}, {"1.5"}, {"0.0"}, {"30s"}, {"0, 30"}, {"old"}, {"0", "old"}},
	} {
		for _, age := range ages {
			s.check(t, "Age "+strings.Join(age, " and "), l, func(t *testing.T, b *bench) {
				b.fault(q.op, aged(age...))
				v, err := q.ask(t.Context(), b)
				e := q.fails(t, b, v, err, market.KindSuspect)
				if text := e.Error(); !strings.Contains(text, "came from a cache") || !strings.Contains(text, says) {
					t.Errorf("err = %v, want one that says %q", err, says)
				}
				closes(t, q.plan(b), e, "")
				passedOnce(t, b.Trail())
				asked, trail := 0, b.Trail()
				for _, step := range trail {
					if step.What == Sent && signed(step.Request) {
						asked++
					}
				}
				if seen := trail[len(trail)-1].Observation.Err; asked != 1 || seen == nil || seen.Kind != market.KindSuspect {
					t.Errorf("asked %d times, and the door observed %v", asked, seen)
				}
			})
		}
	}
	s.check(t, "Age 0", l, func(t *testing.T, b *bench) {
		b.fault(q.op, aged("0"))
		q.good(t, b)
	})
	s.check(t, "a refusal with an Age", l, func(t *testing.T, b *bench) {
		p := Reply{Status: http.StatusServiceUnavailable, Header: http.Header{"Age": {"30"}}}
		b.fault(q.op, always(p))
		v, err := q.ask(t.Context(), b)
		q.fails(t, b, v, err, market.KindUnavailable)
	})
}
