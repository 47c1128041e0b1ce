package coinbase_test

import (
	"fmt"
	"maps"
	"testing"

	"exchange-gateway/internal/market"
)

// TestPlan: what calls touch and cost.
func TestPlan(t *testing.T) {
	v, _ := newVenue(t)
	public := "exchange ip public:advanced"
	for op, want := range map[market.Op]string{
		market.OpOrderBook:  "coinbase/market_data " + public + " symbol:BTC-USD advanced_public=1",
		market.OpStatistics: "coinbase/reference " + public + " advanced_public=1",
		market.OpListings:   "coinbase/reference " + public + " advanced_public=1",
	} {
		if got := describe(v.Plan(op, btcUSD(), 1000)); got != want {
			t.Errorf("%s: got %s, want %s", op, got, want)
		}
	}
	for name, want := range map[string]string{
		"advanced": "coinbase/account/advanced exchange ip account:main advanced_private/main=1 advanced_public=1",
		"exchange": "coinbase/account/exchange exchange ip account:main exchange_private/main=1 exchange_public=1",
	} {
		c := advancedKey()
		if name == "exchange" {
			c = exchangeKey()
		}
		a := newAccount(t, v, c)
		if got := describe(a.Plan(market.WalletTrading)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if _, err := a.Balances(t.Context(), market.WalletTrading); err != nil {
			t.Fatal(err)
		}
		if got := len(a.Plan(market.WalletTrading).Charges); got != 1 {
			t.Errorf("%s: %d charges with a known clock", name, got)
		}
	}
}

func describe(c market.Call) string {
	s := c.Circuit().String()
	for _, scope := range c.Scopes {
		s += " " + string(scope.Kind)
		if scope.Name != "" {
			s += ":" + scope.Name
		}
	}
	for _, charge := range c.Charges {
		s += fmt.Sprintf(" %s=%d", charge.Limit, charge.Weight)
	}
	return s
}

// TestPlan_manyPages: never more than a share of the limit can grant.
func TestPlan_manyPages(t *testing.T) {
	v, f := newVenue(t)
	pages := make([]answer, 39)
	for i := range pages {
		pages[i] = accountPage(fmt.Sprintf("c%d", i), accountRow(i, "BTC", "1", "0"))
	}
	f.on(portfolioPath, append(pages, accountPage(""))...)
	a := newAccount(t, v, advancedKey())
	b, err := a.Balances(t.Context(), market.WalletTrading)
	if err != nil || rows(b) != "BTC 39+0=39" {
		t.Fatal(b, err)
	}
	if w := a.Plan(market.WalletTrading).Charges[0].Weight; w != 10 {
		t.Errorf("%d requests are reserved", w)
	}
}

func TestLimits(t *testing.T) {
	v, _ := newVenue(t)
	other := credential("organizations/another/apiKeys/one", exampleEC, "")
	for name, c := range map[string]market.Credential{
		"bare": ed25519Key(), "desk": exchangeKey(), "desk-2": exchangeKey(), "other": other, "main": advancedKey(),
	} {
		if _, err := v.Account(name, c); err != nil {
			t.Fatal(err)
		}
	}
	// A second key of an organization shares its limit, and an account that is made again keeps its own.
	for _, name := range []string{"main-2", "main"} {
		a, err := v.Account(name, advancedKey())
		if err != nil {
			t.Fatal(err)
		}
		if got := a.Plan(market.WalletTrading).Charges[0].Limit; got != "advanced_private/main" {
			t.Errorf("%s is charged to %s", name, got)
		}
	}
	if a := newAccount(t, v, exchangeKey()); a.Plan(market.WalletTrading).Charges[0].Limit != "exchange_private/main" {
		t.Errorf("plan %+v", a.Plan(market.WalletTrading))
	}
	got := make(map[market.LimitID]string)
	for _, l := range v.Limits() {
		if got[l.ID] != "" || l.Reported || l.Aligned {
			t.Errorf("%+v: once, and nothing is reported", l)
		}
		got[l.ID] = fmt.Sprintf("%d per %v burst %d", l.Capacity, l.Window, l.Burst)
	}
	want := map[market.LimitID]string{
		"advanced_public": "10 per 1s burst 0", "exchange_public": "10 per 1s burst 15",
		"stream_connects": "8 per 1s burst 1", "stream_messages": "8 per 1s burst 1",
		"advanced_private/main": "30 per 1s burst 0", "advanced_private/bare": "30 per 1s burst 0", "advanced_private/other": "30 per 1s burst 0",
		"exchange_private/desk": "15 per 1s burst 30", "exchange_private/desk-2": "15 per 1s burst 30", "exchange_private/main": "15 per 1s burst 30",
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
