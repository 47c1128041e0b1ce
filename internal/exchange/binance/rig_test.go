package binance_test

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"testing"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/exchange/binance"
	"exchange-gateway/internal/exchange/exchangetest"
	"exchange-gateway/internal/market"
)

// refusal is an error answer of Binance.
func refusal(status, code int) exchangetest.Reply {
	return exchangetest.Reply{Status: status, Body: fmt.Sprintf(`{"code":%d,"msg":"A message whose wording varies."}`, code)}
}

// always answers every request alike.
func always(r exchangetest.Reply) exchangetest.Script {
	return func(*http.Request, market.Call) exchangetest.Reply { return r }
}

// body answers every request with 200 and the text.
func body(text string) exchangetest.Script { return always(exchangetest.Reply{Body: text}) }

// venueOn makes the adapter with its own hosts on a rig.
func venueOn(t *testing.T, s exchangetest.Script) (*binance.Venue, *exchangetest.Rig) {
	t.Helper()
	rig := exchangetest.NewRig(s)
	return venueWith(t, exchange.Config{Transport: rig, Door: rig}), rig
}

func venueWith(t *testing.T, c exchange.Config) *binance.Venue {
	t.Helper()
	v, err := binance.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// asError is the error of an adapter.
func asError(t *testing.T, err error) *market.Error {
	t.Helper()
	e, ok := errors.AsType[*market.Error](err)
	if !ok {
		t.Fatalf("err = %v, want a *market.Error", err)
	}
	return e
}

// answerBalances asks for balances with an HMAC key, over a rig on which only the exchange's time is answered well.
func answerBalances(t *testing.T, s exchangetest.Script) (*market.Balances, error) {
	t.Helper()
	v, _ := venueOn(t, func(r *http.Request, c market.Call) exchangetest.Reply {
		if c.Op == market.OpTime {
			return good(r, c)
		}
		return s(r, c)
	})
	return account(t, v, credential(exampleSecret)).Balances(t.Context(), market.WalletTrading)
}

// balancesOf asks for balances that are answered with the text.
func balancesOf(t *testing.T, text string) (*market.Balances, error) {
	t.Helper()
	return answerBalances(t, body(text))
}

func account(t *testing.T, v *binance.Venue, c market.Credential) market.VenueAccount {
	t.Helper()
	a, err := v.Account("main", c)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// signedTime is the time that a balance request carries when the exchange's time is answered with the text.
func signedTime(t *testing.T, timeBody string) int64 {
	t.Helper()
	v, rig := venueOn(t, func(r *http.Request, c market.Call) exchangetest.Reply {
		if c.Op == market.OpTime {
			return exchangetest.Reply{Body: timeBody}
		}
		return good(r, c)
	})
	if _, err := account(t, v, credential(exampleSecret)).Balances(t.Context(), market.WalletTrading); err != nil {
		t.Fatal(err)
	}
	sent := rig.Requests()
	at, err := strconv.ParseInt(sent[len(sent)-1].URL.Query().Get("timestamp"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return at
}
