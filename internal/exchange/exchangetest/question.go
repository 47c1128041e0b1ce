package exchangetest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"

	"exchange-gateway/internal/market"
)

// bench is one venue on its rig.
type bench struct {
	*Rig
	t        *testing.T
	subject  Subject
	venue    market.Venue
	listing  market.Listing
	accounts []market.VenueAccount // by credential
}

const askedDepth = 20

// question is one call of the port.
type question struct {
	name string
	op   market.Op
	cred int // for balances
	ask  func(context.Context, *bench) (any, error)
	plan func(*bench) market.Call
}

func named(name string, q question) question {
	q.name = name
	return q
}

// questions are all calls of the ports: public ones, those in the exchange's own form, and each wallet of each credential.
func (s Subject) questions(wallets []market.Wallet) []question {
	public := func(op market.Op, ask func(context.Context, *bench) (any, error)) question {
		return question{name: string(op), op: op, ask: ask, plan: func(b *bench) market.Call {
			return b.venue.Plan(op, b.listing, askedDepth)
		}}
	}
	all := []question{
		public(market.OpOrderBook, func(ctx context.Context, b *bench) (any, error) {
			return b.venue.OrderBook(ctx, b.listing, askedDepth)
		}),
		public(market.OpStatistics, func(ctx context.Context, b *bench) (any, error) { return b.venue.Statistics(ctx, b.listing) }),
		public(market.OpListings, func(ctx context.Context, b *bench) (any, error) {
			all, err := b.venue.Listings(ctx)
			if all == nil {
				return nil, err
			}
			return all, err
		}),
		named("listing", public(market.OpListings, func(ctx context.Context, b *bench) (any, error) {
			l, err := b.venue.Listing(ctx, b.listing)
			if err != nil {
				return nil, err
			}
			return &l, nil
		})),
		public(market.OpStatus, func(ctx context.Context, b *bench) (any, error) { return b.venue.Status(ctx) }),
	}
	for _, n := range s.Natives {
		all = append(all, question{
			name: string(market.OpNative) + "/" + n.Endpoint, op: market.OpNative,
			ask: func(ctx context.Context, b *bench) (any, error) { return b.native().Native(ctx, n) },
			plan: func(b *bench) market.Call {
				call, err := b.native().NativePlan(n)
				if err != nil {
					b.t.Errorf("NativePlan of %+v: %v", n, err)
				}
				return call
			},
		})
	}
	for i := range s.Credentials {
		for _, w := range wallets {
			all = append(all, question{
				name: fmt.Sprintf("%s/%d/%s", market.OpBalances, i, w), op: market.OpBalances, cred: i,
				ask:  func(ctx context.Context, b *bench) (any, error) { return b.accounts[i].Balances(ctx, w) },
				plan: func(b *bench) market.Call { return b.accounts[i].Plan(w) },
			})
		}
	}
	return all
}

// start makes a venue with all its accounts on a rig that answers well.
func (s Subject) start(t *testing.T, l market.Listing) *bench {
	t.Helper()
	b := &bench{Rig: NewRig(s.Good), t: t, subject: s, listing: l}
	var err error
	if b.venue, err = s.New(b.Rig, b.Rig); err != nil {
		t.Fatalf("New: %v", err)
	}
	for i, c := range s.Credentials {
		a, err := b.venue.Account(fmt.Sprintf("account-%d", i), c)
		if err != nil {
			t.Fatalf("Account with credential %d: %v", i, err)
		}
		b.accounts = append(b.accounts, a)
	}
	if n := len(b.Trail()); n != 0 {
		t.Fatalf("making the venue and its accounts did %d things: New and Account do no I/O", n)
	}
	return b
}

// native is the port for questions in the exchange's own form.
func (b *bench) native() market.Native {
	n, ok := b.venue.(market.Native)
	if !ok {
		b.t.Fatal("the subject has Natives and its venue no such port")
	}
	return n
}

// fault makes the requests of one operation meet the fault, and all others a good answer.
func (b *bench) fault(op market.Op, s Script) {
	b.Answer(func(r *http.Request, c market.Call) Reply {
		if c.Op == op {
			return s(r, c)
		}
		return b.subject.Good(r, c)
	})
}

// always is the script of one reply.
func always(p Reply) Script { return func(*http.Request, market.Call) Reply { return p } }

// good asks the question with good answers.
func (q question) good(t *testing.T, b *bench) any {
	t.Helper()
	v, err := q.ask(t.Context(), b)
	if err != nil {
		t.Fatalf("with good answers: %v", err)
	}
	return v
}

// silentStatus tells that an exchange announces nothing: its adapter answers "unknown" without a request.
func (q question) silentStatus(b *bench) bool {
	return q.op == market.OpStatus && b.Count(Admitted) == 0 && b.Count(Sent) == 0
}

// fails checks an answer that must be an error of one of the kinds. A status that could not be read may be "unknown"
// instead: an announcement that is missing is no trouble.
func (q question) fails(t *testing.T, b *bench, v any, err error, kinds ...market.Kind) *market.Error {
	t.Helper()
	if st, ok := v.(market.VenueStatus); ok && err == nil && st.State == market.VenueUnknown {
		return nil
	}
	b.discreet(t, err)
	e, ok := errors.AsType[*market.Error](err)
	if !ok {
		t.Fatalf("err = %v (%T), want a *market.Error of kind %v", err, err, kinds)
	}
	if !slices.Contains(kinds, e.Kind) {
		t.Fatalf("err = %v: kind %v, want %v", err, e.Kind, kinds)
	}
	if e.Exchange != b.venue.ID() || e.Op == "" {
		t.Errorf("err = %v: exchange %q, op %q", err, e.Exchange, e.Op)
	}
	if !nothing(v) {
		t.Errorf("an error came with a value: %v", v)
	}
	return e
}

// nothing tells whether a result is empty, as it must be beside an error.
func nothing(v any) bool {
	switch v := v.(type) {
	case *market.OrderBook:
		return v == nil
	case *market.Statistics:
		return v == nil
	case *market.NativeAnswer:
		return v == nil
	case *market.Balances:
		return v == nil
	case []market.Listing:
		return v == nil
	case market.VenueStatus:
		return v.State == "" || v.State == market.VenueUnknown
	}
	return v == nil
}

// check runs one check in a bubble of its own, where time is false and a goroutine left behind is a failure.
func (s Subject) check(t *testing.T, name string, l market.Listing, f func(*testing.T, *bench)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { f(t, s.start(t, l)) })
	})
}
