package okx_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"exchange-gateway/internal/market"
)

func balancesText(b *market.Balances) string {
	var s []string
	for _, r := range b.Rows {
		row := fmt.Sprintf("%s %v+%v=%v", r.Asset, r.Free, r.Used, r.Total)
		if debt, owed := r.Debt.Get(); owed {
			row += fmt.Sprintf(" owed %v", debt)
		}
		s = append(s, row)
	}
	return strings.Join(s, ", ")
}

func TestBalances_wallets(t *testing.T) {
	v, _ := newVenue(t, fixtures())
	a := newAccount(t, v, "main", false)
	f := func(w market.Wallet, kind, want string, updated int64) {
		t.Helper()
		b, err := a.Balances(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		if got := balancesText(b); got != want || b.AccountType != kind || b.Exchange != "okx" {
			t.Errorf("%s: %s of %s, want %s", w, got, b.AccountType, want)
		}
		if b.UpdatedAt.IsZero() != (updated == 0) || updated != 0 && b.UpdatedAt.UnixMilli() != updated {
			t.Errorf("%s: updated at %v", w, b.UpdatedAt)
		}
	}
	f(market.WalletTrading, "trading", "BTC 1.25+0.25=1.50, USDT 0.6612664522199999+0.4=1.0612664522199999", 1795000000001)
	f(market.WalletFunding, "funding", "ETH 36.5+0.61827078=37.11827078, TUSD 100+0=100", 0)
}

func TestBalances_rows(t *testing.T) {
	f := func(w market.Wallet, rows, want string) {
		t.Helper()
		if w == market.WalletTrading {
			rows = `{"totalEq":"9","details":[` + rows + `]}`
		}
		v, _ := newVenue(t, data(rows))
		b, err := newAccount(t, v, "main", false).Balances(t.Context(), w)
		got := ""
		if err != nil {
			if e := failure(t, err); e.Kind != market.KindMalformed || b != nil || e.Refusal != nil {
				t.Fatalf("%s: %v, %v", rows, b, err)
			}
			got = "error"
		} else {
			got = balancesText(b)
		}
		if got != want {
			t.Errorf("%s: %s, want %s", rows, got, want)
		}
	}
	trading, funding := market.WalletTrading, market.WalletFunding
	f(trading, ``, "")
	f(trading, `{"ccy":"A","availBal":"1","frozenBal":"2","cashBal":"7","eq":"8"}`, "A 1+2=3")
	f(trading, `{"ccy":"A","availBal":"","availEq":"5","frozenBal":"2"}`, "A 5+2=7") // as recorded in 2021
	f(trading, `{"ccy":"A","availBal":"1","availEq":"","frozenBal":"0"}`, "A 1+0=1") // spot mode
	f(trading, `{"ccy":"A","availBal":"0","frozenBal":"0.00"}`, "")
	f(trading, `{"ccy":"A","availBal":"0","frozenBal":"1"}`, "A 0+1=1")
	f(trading, `{"ccy":"A","availBal":"-1","frozenBal":"0"}`, "A -1+0=-1") // borrowed
	f(trading, `{"ccy":"A","availBal":1.10,"frozenBal":0}`, "A 1.10+0=1.10")
	f(trading, `{"ccy":"A","availBal":"123456789012345678.123456789","frozenBal":"0.000000000000000001"}`,
		"A 123456789012345678.123456789+0.000000000000000001=123456789012345678.123456789000000001")
	// Debts. A row is left out only if there is nothing of it at all; where something is owed the equity is the total.
	row := func(amounts string) string { return `{"ccy":"A","availBal":"0","frozenBal":"0",` + amounts + `}` }
	f(trading, row(`"eq":"-0.25","cashBal":"-0.25","liab":"0.25","interest":"0.00001"`), "A 0+0=-0.25 owed 0.25")
	f(trading, row(`"eq":"-0.250","cashBal":"-0.25","liab":"-0.2500"`), "A 0+0=-0.250 owed 0.2500") // has come with either sign
	f(trading, `{"ccy":"A","availBal":"60","frozenBal":"5","eq":"25","cashBal":"65","liab":"40","interest":"0"}`, "A 60+5=25 owed 40")
	f(trading, row(`"eq":"-1","cashBal":"0","liab":"0"`), "A 0+0=-1") // a loss that is not settled
	f(trading, row(`"eq":"-1","cashBal":"0","liab":""`), "A 0+0=-1")
	f(trading, row(`"eq":"0","cashBal":"-1"`), "A 0+0=0")
	f(trading, row(`"eq":"1","cashBal":"0"`), "A 0+0=0")
	f(trading, row(`"eq":"0","cashBal":"0","interest":"0.00001"`), "A 0+0=0")
	f(trading, row(`"eq":"0","cashBal":"0","liab":"0","interest":"0"`), "")
	f(trading, row(`"eq":"","cashBal":"","liab":"","interest":""`), "")
	f(trading, row(`"eq":null,"cashBal":null,"liab":null`), "")
	for _, bad := range []string{
		row(`"eq":"x"`), row(`"cashBal":"1,5"`), row(`"liab":"NaN"`), row(`"interest":"1e99"`),
		row(`"liab":"0.25"`), row(`"liab":"0.25","eq":""`), // owed, and no total
	} {
		f(trading, bad, "error")
	}
	for _, bad := range []string{
		`{"ccy":"A","availBal":"","frozenBal":"0"}`, `{"ccy":"A","availBal":"","availEq":"","frozenBal":"0"}`,
		`{"ccy":"A","availBal":null,"frozenBal":"0"}`, `{"ccy":"A","availBal":"1","frozenBal":""}`, `{"ccy":"A","availBal":"1"}`,
		`{"ccy":"A","availBal":"1e99","frozenBal":"0"}`, `{"ccy":"A","availBal":"NaN","frozenBal":"0"}`, `{"ccy":"A","availBal":"1,5","frozenBal":"0"}`,
		`{"ccy":"","availBal":"1","frozenBal":"0"}`, `{"ccy":"A/B","availBal":"1","frozenBal":"0"}`, `{"availBal":"1","frozenBal":"0"}`,
		`{"ccy":"A","availBal":"1","frozenBal":"0"},{"ccy":"A","availBal":"1","frozenBal":"0"}`, `7`, `null`,
		`{"ccy":"Z","availBal":"0","frozenBal":"x"}`, // a row of zero is read like any other
	} {
		f(trading, bad, "error")
	}
	f(funding, ``, "")
	f(funding, `{"ccy":"A","bal":"7","availBal":"1","frozenBal":"2"}`, "A 1+2=7") // the venue's total is the total
	f(funding, `{"ccy":"A","bal":"0","availBal":"0","frozenBal":"0"}`, "")
	for _, bad := range []string{
		`{"ccy":"A","bal":"","availBal":"1","frozenBal":"2"}`, `{"ccy":"A","availBal":"1","frozenBal":"2"}`, `{"ccy":"A","bal":"3","availBal":"","frozenBal":"2"}`,
		`{"ccy":"A","bal":"3","availBal":"1","frozenBal":"x"}`, `{"bal":"3","availBal":"1","frozenBal":"2"}`, `[]`,
	} {
		f(funding, bad, "error")
	}
}

// TestBalances_oneObject: the trading account is exactly one row with a list.
func TestBalances_oneObject(t *testing.T) {
	for _, rows := range []string{``, `{}`, `{"details":null}`, `{"details":{}}`, `{"details":[]},{"details":[]}`, `[]`} {
		v, _ := newVenue(t, data(rows))
		b, err := newAccount(t, v, "main", false).Balances(t.Context(), market.WalletTrading)
		if e := failure(t, err); e.Kind != market.KindMalformed || b != nil {
			t.Errorf("%s: %v, %v", rows, b, err)
		}
	}
}

// TestBalances_errorsHoldNoAmounts: what an account holds does not belong into a log.
func TestBalances_errorsHoldNoAmounts(t *testing.T) {
	for _, rows := range []string{
		`{"details":[{"ccy":"A","availBal":"123456.78x","frozenBal":"0"}]}`, `{"details":[{"ccy":"A","availBal":123456.78,"frozenBal":["0"]}]}`,
		`{"details":123456.78}`, `123456.78`, `"123456.78"`,
	} {
		v, _ := newVenue(t, data(rows))
		_, err := newAccount(t, v, "main", false).Balances(t.Context(), market.WalletTrading)
		if err == nil || strings.Contains(err.Error(), "123456") {
			t.Errorf("%s: %v", rows, err)
		}
	}
}

// TestBalances_neverKept: each answer is the exchange's, and a failure after a success is a failure.
func TestBalances_neverKept(t *testing.T) {
	v, rig := newVenue(t, fixtures())
	a := newAccount(t, v, "main", false)
	before := time.Now()
	b, err := a.Balances(t.Context(), market.WalletTrading)
	if err != nil || b.RequestedAt.Before(before) || b.ReceivedAt.Before(b.RequestedAt) {
		t.Fatalf("%+v, %v", b, err)
	}
	rig.Answer(says(`{"code":"50026","msg":"System error","data":[]}`))
	if b, err := a.Balances(t.Context(), market.WalletTrading); err == nil || b != nil {
		t.Errorf("got %v, %v", b, err)
	}
	if n := len(sentOf(rig, "/api/v5/account/balance")); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
}
