package exchange_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"exchange-gateway/internal/exchange/exchangetest"
	"exchange-gateway/internal/market"
)

func TestResponse_age(t *testing.T) {
	for age, want := range map[string]time.Duration{
		"": 0, "0": 0, "1": time.Second, " 7 ": 7 * time.Second, "86401": 24 * time.Hour, "99999999999999999999": 24 * time.Hour, "-3": 0,
		"-99999999999999999999": 0, "1.5": 0, "old": 0,
	} {
		if got := answer(map[string]string{"Age": age}, "").Age(); got != want {
			t.Errorf("Age %q is %v, want %v", age, got, want)
		}
	}
}

// TestDo_live: of all that is asked, only an account needs an answer that was given just now.
func TestDo_live(t *testing.T) {
	script := func(*http.Request, market.Call) exchangetest.Reply {
		return exchangetest.Reply{Header: http.Header{"Age": {"30"}}, Body: "{}"}
	}
	for _, class := range market.Classes() {
		x := newSetup(script)
		r := x.request()
		r.Call.Class = class
		err := x.client.Do(t.Context(), r, accept)
		if class != market.ClassAccount {
			if err != nil {
				t.Errorf("%s: %v", class, err)
			}
			continue
		}
		e := asError(t, err)
		if e.Kind != market.KindSuspect || e.Exchange != "x" || e.Op != r.Call.Op || e.Status != 200 || e.Refusal != nil {
			t.Errorf("%+v", e)
		}
		if text := e.Error(); !strings.Contains(text, "the answer came from a cache and is at least 30s old") {
			t.Errorf("says %q", text)
		}
		if x.asked() != "a" {
			t.Errorf("asked %q: another host is no way round a cache that answered", x.asked())
		}
	}
}

// TestDo_refusedInACache: what the adapter says of an error stays, wherever it lay: a limit is a limit.
func TestDo_refusedInACache(t *testing.T) {
	x := newSetup(func(*http.Request, market.Call) exchangetest.Reply {
		return exchangetest.Reply{Status: http.StatusTeapot, Header: http.Header{"Age": {"30"}}}
	})
	r := x.request()
	r.Call.Class = market.ClassAccount
	if e := asError(t, x.client.Do(t.Context(), r, accept)); e.Kind != market.KindBanned || e.Refusal == nil {
		t.Errorf("%+v", e)
	}
}
