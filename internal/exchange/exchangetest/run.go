package exchangetest

import (
	"testing"

	"exchange-gateway/internal/market"
)

// Run holds the subject to the contract. Each check is a subtest.
func Run(t *testing.T, s Subject) {
	t.Helper()
	s.complete(t)
	listing, wallets := s.listing(t)
	questions := s.questions(wallets)
	for _, group := range []struct {
		name string
		run  func(*testing.T, Subject, market.Listing, question)
	}{
		{"door", checkDoor},
		{"time", checkTime},
		{"transport", checkTransport},
		{"answer", checkAnswer},
		{"foreign", checkForeign},
		{"unknown", checkUnknown},
	} {
		for _, q := range questions {
			t.Run(group.name+"/"+q.name, func(t *testing.T) { group.run(t, s, listing, q) })
		}
	}
	t.Run("book", func(t *testing.T) { checkBook(t, s, listing) })
	t.Run("listings", func(t *testing.T) { checkListings(t, s, listing) })
	t.Run("account", func(t *testing.T) { checkAccount(t, s, listing, questions) })
	t.Run("errors", func(t *testing.T) { checkErrors(t, s, listing, questions) })
	s.check(t, "concurrent", listing, func(t *testing.T, b *bench) { checkConcurrent(t, b, questions) })
}

// complete refuses a subject with something left out: a check that has nothing to check would pass.
func (s Subject) complete(t *testing.T) {
	t.Helper()
	switch {
	case s.New == nil, s.Good == nil, s.Pair.IsZero(), s.MaxDepth == 0:
		t.Fatal("the subject needs New, Good, Pair and MaxDepth")
	case len(s.Credentials) == 0, len(s.BadCredentials) == 0, len(s.BadBalances) == 0:
		t.Fatal("the subject needs Credentials, BadCredentials and BadBalances")
	case s.CrossedBook == "", len(s.BadBooks) == 0, s.UnknownError == "":
		t.Fatal("the subject needs CrossedBook, BadBooks and UnknownError")
	}
	covered := make(map[market.Kind]bool)
	for _, c := range s.Errors {
		covered[c.Kind] = true
	}
	for _, k := range neededKinds {
		if !covered[k] {
			t.Errorf("no error case of kind %v", k)
		}
	}
}

// listing asks the subject once, with good answers, for the listing of its pair.
func (s Subject) listing(t *testing.T) (market.Listing, []market.Wallet) {
	t.Helper()
	b := s.start(t, market.Listing{})
	all, err := Rows(t.Context(), b.venue)
	if err != nil {
		t.Fatalf("Listings with good answers: %v", err)
	}
	if _, ok := b.venue.(market.Native); ok && len(s.Natives) == 0 {
		t.Fatal("the venue has the port for questions in its own form: the subject needs Natives")
	}
	for _, l := range all {
		if l.Pair == s.Pair {
			return l, b.venue.Wallets()
		}
	}
	t.Fatalf("%v is not among the %d good listings", s.Pair, len(all))
	return market.Listing{}, nil
}
