package exchangetest

import (
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"exchange-gateway/internal/market"
)

// checkAccount: a balance is live, whole and of the right account, or an error.
func checkAccount(t *testing.T, s Subject, l market.Listing, all []question) {
	for _, q := range all {
		if q.op != market.OpBalances {
			continue
		}
		s.check(t, q.name+"/good", l, func(t *testing.T, b *bench) { goodBalances(t, b, q) })
		for name, body := range s.BadBalances {
			s.check(t, q.name+"/"+name, l, func(t *testing.T, b *bench) {
				b.fault(market.OpBalances, always(Reply{Body: body}))
				v, err := q.ask(t.Context(), b)
				q.fails(t, b, v, err, market.KindMalformed)
			})
		}
		checkCached(t, s, l, q)
	}
	s.check(t, "credentials that cannot work", l, func(t *testing.T, b *bench) {
		for i, c := range append([]market.Credential{{}}, s.BadCredentials...) {
			a, err := b.venue.Account("x", c)
			if err == nil {
				t.Errorf("bad credential %d made account %v", i, a)
			}
			other := *b
			other.subject.Credentials = []market.Credential{c}
			other.discreet(t, err)
		}
		if n := len(b.Trail()); n != 0 {
			t.Errorf("binding a credential did %d things", n)
		}
	})
	s.check(t, "each account has a gate of its own", l, func(t *testing.T, b *bench) {
		gates := make(map[market.Scope]bool)
		for i, a := range b.accounts {
			for _, w := range b.venue.Wallets() {
				call := a.Plan(w)
				at := slices.IndexFunc(call.Scopes, func(s market.Scope) bool { return s.Kind == market.ScopeAccount })
				if at < 0 || call.Class != market.ClassAccount || call.Op != market.OpBalances {
					t.Fatalf("account %d: plan %+v", i, call)
				}
				gates[call.Scopes[at]] = true
			}
		}
		if len(gates) != len(b.accounts) {
			t.Errorf("%d accounts have %d gates", len(b.accounts), len(gates))
		}
	})
	s.check(t, "a wallet that the exchange does not have", l, func(t *testing.T, b *bench) {
		for _, a := range b.accounts {
			got, err := a.Balances(t.Context(), "no-such-wallet")
			if !errors.Is(err, market.ErrNotSupported) && market.KindOf(err) != market.KindNotSupported || got != nil {
				t.Errorf("got %v, %v, want not supported", got, err)
			}
		}
		if n := b.Count(Sent); n != 0 {
			t.Errorf("%d requests were sent", n)
		}
	})
	s.check(t, "public requests carry no key", l, func(t *testing.T, b *bench) {
		for _, q := range all {
			if q.op != market.OpBalances {
				q.good(t, b)
			}
		}
		for _, r := range b.Requests() {
			if signed(r) {
				t.Errorf("%s carries %v %s", r.URL.Path, r.Header, r.URL.RawQuery)
			}
		}
	})
}

func goodBalances(t *testing.T, b *bench, q question) {
	b.Answer(func(r *http.Request, c market.Call) Reply {
		p := b.subject.Good(r, c)
		p.Delay = 30 * time.Millisecond
		return p
	})
	got, ok := q.good(t, b).(*market.Balances)
	if !ok || got == nil || got.Exchange != b.venue.ID() || got.AccountType == "" || len(got.Rows) == 0 {
		t.Fatalf("got %+v: a good answer has rows of this exchange and says what ledger it is", got)
	}
	seen := make(map[string]bool)
	for _, row := range got.Rows {
		if row.Asset == "" || seen[row.Asset] {
			t.Errorf("asset %q is there twice or has no name", row.Asset)
		}
		seen[row.Asset] = true
		if row.IsZero() {
			t.Errorf("%s is zero: only other rows are shown", row.Asset)
		}
	}
	var first, last time.Time
	for _, step := range b.Trail() {
		if step.What == Sent && signed(step.Request) {
			if first.IsZero() {
				first = step.At
			}
			last = step.At.Add(30 * time.Millisecond)
		}
	}
	if !got.RequestedAt.Equal(first) || !got.ReceivedAt.Equal(last) {
		t.Errorf("true between %v and %v, was asked from %v to %v", got.RequestedAt, got.ReceivedAt, first, last)
	}
}
