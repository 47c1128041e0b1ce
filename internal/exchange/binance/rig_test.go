package binance_test

import (
	"fmt"
	"net/http"
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
