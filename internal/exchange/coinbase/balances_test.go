package coinbase_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/exchange/coinbase"
	"exchange-gateway/internal/market"
)

// balances asks with a key for what the answers give.
func balances(t *testing.T, c market.Credential, a ...answer) (*market.Balances, *fakeCoinbase, error) {
	t.Helper()
	v, f := newVenue(t)
	if len(a) > 0 {
		f.on(portfolioPath, a...).on(profilePath, a...)
	}
	b, err := newAccount(t, v, c).Balances(t.Context(), market.WalletTrading)
	return b, f, err
}

func rows(b *market.Balances) string {
	var s []string
	for _, r := range b.Rows {
		s = append(s, fmt.Sprintf("%s %v+%v=%v", r.Asset, r.Free, r.Used, r.Total))
	}
	return strings.Join(s, " ")
}

// TestPortfolio: only rows that count, two of one currency as one, USD and USDC as two, no zeros, to the last digit.
func TestPortfolio(t *testing.T) {
	b, f, err := balances(t, advancedKey())
	if err != nil {
		t.Fatal(err)
	}
	want := "BTC 1.23456789+0.00500000=1.23956789 USD 10000.50+450.00=10450.50 USDC 12.345678901234567891+0.000000=12.345678901234567891"
	if got := rows(b); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if b.AccountType != "portfolio" || b.Exchange != "coinbase" {
		t.Errorf("got %+v", b)
	}
	if updated := time.Date(2026, 11, 1, 0, 0, 0, 500000000, time.UTC); !b.UpdatedAt.Equal(updated) {
		t.Errorf("updated at %v, want the latest of the rows that count, %v", b.UpdatedAt, updated)
	}
	if got := f.last().URL.String(); got != "https://api.coinbase.com"+portfolioPath+"?limit=250" {
		t.Errorf("asked %s", got)
	}
	if f.asked(profilePath) != 0 {
		t.Error("the other ledger was asked")
	}
}

func TestProfile(t *testing.T) {
	b, f, err := balances(t, exchangeKey())
	if err != nil {
		t.Fatal(err)
	}
	want := "USD 79.2266348066930000+1.0035025000000000=80.2301373066930000 USDC 0.0000000000000001+0.0000000000000000=0.0000000000000001"
	if got := rows(b); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if b.AccountType != "profile" || !b.UpdatedAt.IsZero() || f.asked(profilePath) != 1 || f.asked(portfolioPath) != 0 {
		t.Errorf("got %+v", b)
	}
}

// TestProfile_totalIsTheirs: what the exchange calls the balance is not computed again.
func TestProfile_totalIsTheirs(t *testing.T) {
	b, _, err := balances(t, exchangeKey(), says(200, `[{"id":"1","currency":"BTC","balance":3,"hold":"1e-8","available":"1.50"}]`))
	if err != nil || rows(b) != "BTC 1.50+0.00000001=3" {
		t.Errorf("got %v, %v", b, err)
	}
}

// TestBalances_overdrawn: Coinbase states no debts. What is overdrawn is below zero, and is shown as it is said.
func TestBalances_overdrawn(t *testing.T) {
	f := func(c market.Credential, a answer, want string) {
		t.Helper()
		b, _, err := balances(t, c, a)
		if err != nil || rows(b) != want || !b.Rows[0].Debt.IsZero() {
			t.Errorf("got %v, %v, want %s without a debt", b, err, want)
		}
	}
	f(exchangeKey(), says(200, `[{"id":"1","currency":"USD","balance":"-12.50","hold":"0.00","available":"-12.50"}]`), "USD -12.50+0.00=-12.50")
	f(advancedKey(), accountPage("", accountRow(1, "USD", "-12.50", "0")), "USD -12.50+0=-12.50")
}

func accountRow(id int, currency, free, hold string) string {
	return fmt.Sprintf(`{"uuid":"id-%d","currency":%q,"active":true,"deleted_at":null,"type":"ACCOUNT_TYPE_CRYPTO",`+
		`"available_balance":{"value":%q,"currency":%q},"hold":{"value":%q,"currency":%q}}`, id, currency, free, currency, hold, currency)
}

func accountPage(next string, rows ...string) answer {
	return says(200, fmt.Sprintf(`{"accounts":[%s],"has_next":%t,"cursor":%q,"size":%d}`, strings.Join(rows, ","), next != "", next, len(rows)))
}

// TestPortfolio_allPages: 617 accounts on three pages, each signed with a token of its own, and the call is true from the
// first request to the last answer.
func TestPortfolio_allPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all []string
		for i := range 617 {
			all = append(all, accountRow(i, fmt.Sprintf("C%d", i), "1", "0.5"))
		}
		v, f := newVenue(t)
		f.on(portfolioPath, accountPage("two &=", all[:250]...), accountPage("three", all[250:500]...), accountPage("", all[500:]...))
		a := newAccount(t, v, advancedKey())
		b, err := a.Balances(t.Context(), market.WalletTrading)
		if err != nil || len(b.Rows) != 617 {
			t.Fatalf("%v, %v", b, err)
		}
		var cursors []string
		tokens := make(map[string]bool)
		for _, r := range f.requests {
			if r.URL.Path == portfolioPath {
				cursors = append(cursors, r.URL.Query().Get("cursor"))
				tokens[r.Header.Get("Authorization")] = true
				if r.URL.Query().Get("limit") != "250" {
					t.Errorf("asked %s", r.URL)
				}
			}
		}
		if got := strings.Join(cursors, ","); got != ",two &=,three" || len(tokens) != 3 {
			t.Errorf("cursors %q, %d tokens", got, len(tokens))
		}
		if plan := a.Plan(market.WalletTrading); len(plan.Charges) != 1 || plan.Charges[0] != (market.Charge{Limit: "advanced_private/main", Weight: 3}) {
			t.Errorf("the next call is planned as %+v, want the three pages and no clock", plan.Charges)
		}
	})
}

// aged is an answer out of a cache that says so.
func aged(a answer) answer {
	a.header = map[string]string{"Age": "30"}
	return a
}

// TestPortfolio_allPagesOrNone: a partial balance is a wrong balance.
func TestPortfolio_allPagesOrNone(t *testing.T) {
	first := accountPage("next", accountRow(1, "BTC", "1", "0"))
	endless := make([]answer, 60)
	for i := range endless {
		endless[i] = accountPage(fmt.Sprintf("c%d", i), accountRow(i, "BTC", "1", "0"))
	}
	for name, c := range map[string]struct {
		answers []answer
		want    market.Kind
		asked   int
	}{
		"second page fails":     {[]answer{first, says(500, "")}, market.KindUnavailable, 2},
		"second page limited":   {[]answer{first, says(429, `{"message":"x"}`)}, market.KindRateLimited, 2},
		"second page cut":       {[]answer{first, says(200, `{"accounts":[`)}, market.KindMalformed, 2},
		"second page a message": {[]answer{first, says(200, `{"message":"x"}`)}, market.KindUnavailable, 2},
		"no cursor":             {[]answer{says(200, `{"accounts":[],"has_next":true,"cursor":""}`)}, market.KindMalformed, 1},
		"cursor in a circle":    {[]answer{first, accountPage("b"), accountPage("next")}, market.KindMalformed, 3},
		"no end":                {endless, market.KindMalformed, 40},
		"second page cached":    {[]answer{first, aged(accountPage("", accountRow(2, "BTC", "1", "0")))}, market.KindSuspect, 2},
		"first page cached":     {[]answer{aged(first), accountPage("", accountRow(2, "BTC", "1", "0"))}, market.KindSuspect, 1},
		"moved under our feet":  {[]answer{first, accountPage("", accountRow(1, "BTC", "1", "0"))}, market.KindMalformed, 2},
	} {
		b, f, err := balances(t, advancedKey(), c.answers...)
		if market.KindOf(err) != c.want || b != nil || f.asked(portfolioPath) != c.asked {
			t.Errorf("%s: %v, %v after %d requests, want %v after %d", name, b, err, f.asked(portfolioPath), c.want, c.asked)
		}
	}
}

// TestPortfolio_rowsThatCount: in use, not deleted, coins or cash, in both spellings.
func TestPortfolio_rowsThatCount(t *testing.T) {
	row := func(id, currency, more string) string {
		return `{"uuid":"` + id + `","currency":"` + currency + `","available_balance":{"value":"1"},"hold":{"value":"0"}` + more + `}`
	}
	b, _, err := balances(t, advancedKey(), accountPage("",
		row("1", "A", `,"active":true,"type":"ACCOUNT_TYPE_FIAT","deleted_at":null`),
		row("2", "B", `,"active":true,"type":"CRYPTO"`),
		row("3", "C", `,"type":"FIAT"`),
		row("4", "D", ``),
		row("5", "X", `,"active":false`),
		row("6", "X", `,"active":true,"deleted_at":"2024-01-01T00:00:00Z"`),
		row("7", "X", `,"active":true,"type":"ACCOUNT_TYPE_PERP_FUTURES"`),
		`{"uuid":"8","currency":"X","active":false,"available_balance":{"value":"rubbish"}}`,
	))
	if err != nil || rows(b) != "A 1+0=1 B 1+0=1 C 1+0=1 D 1+0=1" {
		t.Errorf("got %v, %v", b, err)
	}
}

// TestBalances_empty: nothing is a fine answer of a portfolio; a profile always lists its currencies.
func TestBalances_empty(t *testing.T) {
	b, _, err := balances(t, advancedKey(), says(200, `{"accounts":[]}`))
	if err != nil || b.Rows == nil || len(b.Rows) != 0 {
		t.Errorf("got %v, %v", b, err)
	}
	if b, _, err := balances(t, exchangeKey(), says(200, `[]`)); market.KindOf(err) != market.KindMalformed || b != nil {
		t.Errorf("got %v, %v", b, err)
	}
}

func TestBalances_unreadable(t *testing.T) {
	portfolio := func(row string) answer { return says(200, `{"accounts":[`+row+`]}`) }
	for name, c := range map[string]struct {
		key    market.Credential
		answer answer
	}{
		"AT, no available":   {advancedKey(), portfolio(`{"uuid":"1","currency":"BTC","hold":{"value":"1"}}`)},
		"AT, no hold":        {advancedKey(), portfolio(`{"uuid":"1","currency":"BTC","available_balance":{"value":"1"}}`)},
		"AT, null":           {advancedKey(), portfolio(`{"uuid":"1","currency":"BTC","available_balance":{"value":null},"hold":{"value":"1"}}`)},
		"AT, empty":          {advancedKey(), portfolio(`{"uuid":"1","currency":"BTC","available_balance":{"value":""},"hold":{"value":"1"}}`)},
		"AT, word":           {advancedKey(), portfolio(`{"uuid":"1","currency":"BTC","available_balance":{"value":"much"},"hold":{"value":"1"}}`)},
		"AT, a map":          {advancedKey(), portfolio(`{"uuid":"1","currency":"BTC","available_balance":{"value":{}},"hold":{"value":"1"}}`)},
		"AT, two currencies": {advancedKey(), portfolio(`{"uuid":"1","currency":"BTC","available_balance":{"value":"1","currency":"ETH"},"hold":{"value":"1"}}`)},
		"AT, no currency":    {advancedKey(), portfolio(`{"uuid":"1","available_balance":{"value":"1"},"hold":{"value":"1"}}`)},
		"AT, EX's form":      {advancedKey(), says(200, fixture(t, profilePath))},
		"EX, no balance":     {exchangeKey(), says(200, `[{"id":"1","currency":"BTC","hold":"1","available":"1"}]`)},
		"EX, no hold":        {exchangeKey(), says(200, `[{"id":"1","currency":"BTC","balance":"1","available":"1"}]`)},
		"EX, no available":   {exchangeKey(), says(200, `[{"id":"1","currency":"BTC","balance":"1","hold":"1"}]`)},
		"EX, empty":          {exchangeKey(), says(200, `[{"id":"1","currency":"BTC","balance":"1","hold":"1","available":""}]`)},
		"EX, exponent":       {exchangeKey(), says(200, `[{"id":"1","currency":"BTC","balance":"1e999","hold":"1","available":"1"}]`)},
		"EX, no currency":    {exchangeKey(), says(200, `[{"id":"1","balance":"1","hold":"1","available":"1"}]`)},
		"EX, twice":          {exchangeKey(), says(200, `[{"id":"1","currency":"A","balance":"1","hold":"1","available":"1"},{"id":"1","currency":"A","balance":"1","hold":"1","available":"1"}]`)},
		"EX, AT's form":      {exchangeKey(), says(200, fixture(t, portfolioPath))},
		"EX, empty list":     {exchangeKey(), says(200, `[]`)},
	} {
		b, _, err := balances(t, c.key, c.answer)
		if market.KindOf(err) != market.KindMalformed || b != nil {
			t.Errorf("%s: %v, %v", name, b, err)
		}
	}
}

// TestBalances_noFallback: whatever becomes of one ledger, the other is never asked.
func TestBalances_noFallback(t *testing.T) {
	for _, a := range []answer{says(401, ""), says(403, ""), says(404, ""), says(500, ""), says(503, ""), says(451, ""), html(403, "<html>")} {
		_, f, err := balances(t, advancedKey(), a)
		if err == nil || f.asked(profilePath)+f.asked("/time") != 0 {
			t.Errorf("HTTP %d: %v, and Exchange was asked", a.status, err)
		}
		_, f, err = balances(t, exchangeKey(), a)
		if err == nil || f.asked(portfolioPath)+f.asked("/api/v3/brokerage/time") != 0 {
			t.Errorf("HTTP %d: %v, and Advanced Trade was asked", a.status, err)
		}
	}
}

func TestBalances_otherWallet(t *testing.T) {
	v, f := newVenue(t)
	_, err := newAccount(t, v, advancedKey()).Balances(t.Context(), market.WalletFunding)
	if market.KindOf(err) != market.KindNotSupported || len(f.requests) != 0 {
		t.Errorf("%v after %d requests", err, len(f.requests))
	}
}

func FuzzBalances(f *testing.F) {
	f.Add([]byte(accountPage("", accountRow(1, "BTC", "1", "2")).body))
	f.Add([]byte(`[{"id":"1","currency":"BTC","balance":"1","hold":"1e-9","available":"1"}]`))
	f.Add([]byte(`{"accounts":[{"deleted_at":1}],"has_next":true}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		for name, sum := range map[string]func([]byte) ([]market.Balance, error){
			"portfolio": coinbase.SumPortfolio, "profile": coinbase.SumProfile,
		} {
			rows, err := sum(body)
			if err != nil {
				if rows != nil {
					t.Fatalf("%q: %v beside %v", body, rows, err)
				}
				continue
			}
			seen := make(map[string]bool)
			for _, r := range rows {
				if r.Asset == "" || seen[r.Asset] || r.Free.IsZero() && r.Used.IsZero() && r.Total.IsZero() {
					t.Fatalf("%q: row %+v", body, r)
				}
				seen[r.Asset] = true
				if name == "portfolio" && !r.Total.Decimal().Equal(r.Free.Decimal().Add(r.Used.Decimal())) {
					t.Fatalf("%q: %v + %v = %v", body, r.Free, r.Used, r.Total)
				}
			}
		}
	})
}
