package okx_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/exchange/exchangetest"
	"exchange-gateway/internal/exchange/okx"
	"exchange-gateway/internal/exchangesim"
	"exchange-gateway/internal/market"
)

// openDoor admits everything.
type openDoor struct{}

func (openDoor) Admit(context.Context, market.Call) error                 { return nil }
func (openDoor) Observe(context.Context, market.Call, market.Observation) {}

// simulated is the adapter before a simulated OKX on a real socket, which checks signatures with code of its own.
func simulated(t *testing.T, cfg exchangesim.Config, region string) (*exchangesim.Venue, *okx.Venue) {
	t.Helper()
	cfg.OKXRegion = region
	sim, err := exchangesim.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sim.Close)
	server, err := sim.Start(t.Context(), sim.Venue("okx"), "127.0.0.1:0", exchangesim.StartOptions{})
	if err != nil {
		t.Fatal(err)
	}
	transport := exchange.NewTransport(nil, nil)
	t.Cleanup(func() {
		if c, ok := transport.(interface{ CloseIdleConnections() }); ok {
			c.CloseIdleConnections()
		}
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	v, err := okx.New(exchange.Config{Hosts: []string{server.URL()}, Region: region, Transport: transport, Door: openDoor{}})
	if err != nil {
		t.Fatal(err)
	}
	return sim.Venue("okx"), v
}

// simulatedAccount binds one of the simulator's example keys.
func simulatedAccount(t *testing.T, v *okx.Venue, name string, demo bool) market.VenueAccount {
	t.Helper()
	for _, c := range exchangesim.ExampleCredentials() {
		if c.Name != name {
			continue
		}
		a, err := v.Account(name, market.Credential{
			Key: market.NewSecret(c.Key), Secret: market.NewSecret(c.Secret), Passphrase: market.NewSecret(c.Passphrase), Demo: demo,
		})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	t.Fatalf("no example key %q", name)
	return nil
}

func TestSimulated_good(t *testing.T) {
	_, v := simulated(t, exchangesim.Config{Unlimited: true}, "") // pacing is the gates' work
	all, err := exchangetest.Rows(t.Context(), v)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range all[:3] {
		book, err := v.OrderBook(t.Context(), l, 20)
		if err != nil || len(book.Bids()) != 20 || book.ExchangeTime.IsZero() || !book.Sequence.Known {
			t.Errorf("%s: %v, %v", l.Symbol, book, err)
		}
		if s, err := v.Statistics(t.Context(), l); err != nil || s.Last.IsZero() || s.ExchangeTime.IsZero() {
			t.Errorf("%s: %+v, %v", l.Symbol, s, err)
		}
	}
	if s, err := v.Status(t.Context()); err != nil || s.State != market.VenueOK {
		t.Errorf("%+v, %v", s, err)
	}
	for name, demo := range map[string]bool{"okx": false, "okx-demo": true} {
		for _, w := range v.Wallets() {
			if b, err := simulatedAccount(t, v, name, demo).Balances(t.Context(), w); err != nil || len(b.Rows) == 0 {
				t.Errorf("%s, %s: %v, %v", name, w, b, err)
			}
		}
	}
}

// TestSimulated_debts: an account that is short, and one that borrowed part of what it holds.
func TestSimulated_debts(t *testing.T) {
	_, v := simulated(t, exchangesim.Config{Unlimited: true}, "")
	b, err := simulatedAccount(t, v, "okx-margin", false).Balances(t.Context(), market.WalletTrading)
	if want := "BTC 0+0=-0.25 owed 0.25, USDT 30000+0=30000, USDC 100+0=60 owed 40"; err != nil || balancesText(b) != want {
		t.Errorf("%v, %v, want %s", balancesText(b), err, want)
	}
}

func TestSimulated_keys(t *testing.T) {
	f := func(region, name string, demo bool, kind market.Kind, code string) {
		t.Helper()
		_, v := simulated(t, exchangesim.Config{}, region)
		_, err := simulatedAccount(t, v, name, demo).Balances(t.Context(), market.WalletTrading)
		if kind == market.KindNone {
			if err != nil {
				t.Error(err)
			}
			return
		}
		if e := failure(t, err); e.Kind != kind || e.Code != code {
			t.Errorf("region %q, key %s, demo %t: %v, want %v code %s", region, name, demo, e, kind, code)
		}
	}
	f("eea", "okx-eea", false, market.KindNone, "")
	f("global", "okx-eea", false, market.KindAuth, "50119")
	f("eea", "okx", false, market.KindAuth, "50119")
	f("global", "okx-demo", false, market.KindAuth, "50101")
	f("global", "okx", true, market.KindAuth, "50101")
}

func TestSimulated_faults(t *testing.T) {
	sim, v := simulated(t, exchangesim.Config{Unlimited: true}, "")
	a := simulatedAccount(t, v, "okx", false)
	if _, err := a.Balances(t.Context(), market.WalletTrading); err != nil {
		t.Fatal(err)
	}
	f := func(fault exchangesim.Fault, book, balance market.Kind) {
		t.Helper()
		sim.ClearFaults()
		if _, err := sim.Inject(fault); err != nil {
			t.Fatal(err)
		}
		_, err := v.OrderBook(t.Context(), btc, 20)
		if got := market.KindOf(err); got != book {
			t.Errorf("%s: book: %v, want %v", fault.Kind, err, book)
		}
		_, err = a.Balances(t.Context(), market.WalletTrading)
		if got := market.KindOf(err); got != balance {
			t.Errorf("%s: balance: %v, want %v", fault.Kind, err, balance)
		}
	}
	both := func(kind exchangesim.FaultKind, want market.Kind) {
		t.Helper()
		f(exchangesim.Fault{Kind: kind}, want, want)
	}
	both(exchangesim.FaultReset, market.KindUnavailable)
	both(exchangesim.FaultResetBody, market.KindUnavailable)
	both(exchangesim.FaultClose, market.KindUnavailable)
	both(exchangesim.FaultTruncate, market.KindUnavailable)
	both(exchangesim.FaultCutJSON, market.KindMalformed)
	both(exchangesim.FaultWrongJSON, market.KindUnavailable)
	both(exchangesim.FaultEmpty, market.KindUnavailable)
	both(exchangesim.FaultUnavailable, market.KindUnavailable)
	both(exchangesim.FaultMaintenance, market.KindMaintenance)
	both(exchangesim.FaultRateLimit, market.KindRateLimited)
	both(exchangesim.FaultBan, market.KindBanned)
	both(exchangesim.FaultGeoBlock, market.KindRestricted)
	f(exchangesim.Fault{Kind: exchangesim.FaultDeadKey}, market.KindNone, market.KindAuth)
	f(exchangesim.Fault{Kind: exchangesim.FaultCrossed}, market.KindSuspect, market.KindNone)
	f(exchangesim.Fault{Kind: exchangesim.FaultNegative}, market.KindSuspect, market.KindNone)
	f(exchangesim.Fault{Kind: exchangesim.FaultCached, Age: 30 * time.Second}, market.KindNone, market.KindSuspect)
	f(exchangesim.Fault{Kind: exchangesim.FaultCached, Age: time.Millisecond}, market.KindNone, market.KindNone)
	f(exchangesim.Fault{Kind: exchangesim.FaultOlder, Age: 30 * time.Second}, market.KindNone, market.KindNone)
	f(exchangesim.Fault{Kind: exchangesim.FaultZero}, market.KindNone, market.KindNone)
	f(exchangesim.Fault{Kind: exchangesim.FaultOneSided}, market.KindNone, market.KindNone)
	f(exchangesim.Fault{Kind: exchangesim.FaultNoLevels}, market.KindNone, market.KindNone)
	f(exchangesim.Fault{Kind: exchangesim.FaultStatus, Status: http.StatusUnavailableForLegalReasons}, market.KindRestricted, market.KindRestricted)
	for _, page := range exchangesim.Pages() {
		sim.ClearFaults()
		if _, err := sim.Inject(exchangesim.Fault{Kind: exchangesim.FaultHTML, Page: page}); err != nil {
			t.Fatal(err)
		}
		_, err := v.OrderBook(t.Context(), btc, 20)
		// Every other kind is wrong here.
		//exhaustive:ignore
		switch e := failure(t, err); e.Kind {
		case market.KindBanned, market.KindUnavailable, market.KindRestricted:
		default:
			t.Errorf("page %s: %v", page, e)
		}
	}
	sim.ClearFaults()
	if _, err := v.OrderBook(t.Context(), market.Listing{Symbol: "NO-SUCHPAIR"}, 20); !errors.Is(err, market.ErrUnknownSymbol) {
		t.Errorf("err = %v", err)
	}
}

// TestSimulated_clock: a clock that is a minute off is corrected by one refusal.
func TestSimulated_clock(t *testing.T) {
	sim, v := simulated(t, exchangesim.Config{Unlimited: true}, "")
	a := simulatedAccount(t, v, "okx", false)
	if _, err := a.Balances(t.Context(), market.WalletTrading); err != nil {
		t.Fatal(err)
	}
	if _, err := sim.Inject(exchangesim.Fault{Kind: exchangesim.FaultSkew, Skew: time.Minute}); err != nil {
		t.Fatal(err)
	}
	_, err := a.Balances(t.Context(), market.WalletTrading)
	if e := failure(t, err); e.Kind != market.KindClockSkew || e.Code != "50102" {
		t.Fatalf("%v", e)
	}
	if _, err := a.Balances(t.Context(), market.WalletTrading); err != nil {
		t.Errorf("after measuring again: %v", err)
	}
}

// TestSimulated_maintenance: the announcement is read while it lasts.
func TestSimulated_maintenance(t *testing.T) {
	sim, v := simulated(t, exchangesim.Config{Unlimited: true}, "")
	now := time.Now()
	sim.Announce(now.Add(-time.Hour), now.Add(-time.Minute))
	sim.Announce(now.Add(time.Hour), now.Add(2*time.Hour))
	if s, err := v.Status(t.Context()); err != nil || s.State != market.VenueOK {
		t.Errorf("%+v, %v", s, err)
	}
	sim.Announce(now.Add(-time.Minute), now.Add(time.Hour))
	s, err := v.Status(t.Context())
	if err != nil || s.State != market.VenueMaintenance || s.Message == "" || s.Ends.UnixMilli() != now.Add(time.Hour).UnixMilli() {
		t.Errorf("%+v, %v", s, err)
	}
}
