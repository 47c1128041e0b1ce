package okx_test

import (
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/market"
)

func TestStatistics_good(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, rig := newVenue(t, fixtures())
		s, err := v.Statistics(t.Context(), btc)
		if err != nil {
			t.Fatal(err)
		}
		if got := rig.Requests()[0].URL.RequestURI(); got != "/api/v5/market/ticker?instId=BTC-USDT" {
			t.Errorf("asked %s", got)
		}
		for name, c := range map[string]struct {
			got  market.Optional
			want string
		}{
			"last": {s.Last, "64073.1"}, "open": {s.Open, "64324"}, "high": {s.High, "64496.9"}, "low": {s.Low, "63237.6"},
			"base volume": {s.BaseVolume, "5874.19398956"}, "quote volume": {s.QuoteVolume, "374703695.177360964"},
			"change": {s.Change, "-250.9"}, "change in percent": {s.ChangePercent, "-0.39005659"},
		} {
			if got := number(c.got); got != c.want {
				t.Errorf("%s = %s, want %s", name, got, c.want)
			}
		}
		if !s.ExchangeTime.Equal(time.UnixMilli(1796000000464)) || !s.ConfirmedAt.Equal(time.Now()) || s.Pair != btc.Pair || s.Exchange != "okx" {
			t.Errorf("got %+v", s)
		}
	})
}

func TestStatistics_absent(t *testing.T) {
	f := func(fields, last, change, percent string) {
		t.Helper()
		v, _ := newVenue(t, data(`{"instType":"SPOT","instId":"BTC-USDT",`+fields+`}`))
		s, err := v.Statistics(t.Context(), btc)
		if err != nil {
			t.Fatalf("%s: %v", fields, err)
		}
		if number(s.Last) != last || number(s.Change) != change || number(s.ChangePercent) != percent {
			t.Errorf("%s: last %s, change %s, percent %s", fields, number(s.Last), number(s.Change), number(s.ChangePercent))
		}
	}
	f(`"last":"","open24h":"","askPx":"","bidPx":""`, "absent", "absent", "absent") // a side was empty on record in 2022
	f(`"askPx":"1"`, "absent", "absent", "absent")
	f(`"last":"5","open24h":""`, "5", "absent", "absent")
	f(`"last":"5","open24h":"0"`, "5", "5", "absent")
	f(`"last":"5","open24h":"4","lastSz":"0"`, "absent", "absent", "absent") // never traded
	f(`"last":"5","open24h":"4","lastSz":"1"`, "5", "1", "25.00000000")
	f(`"last":"0.000000001","open24h":"0.000000003"`, "0.000000001", "-0.000000002", "-66.66666667")
	f(`"last":"5","open24h":null,"ts":""`, "5", "absent", "absent")
}

func TestStatistics_malformed(t *testing.T) {
	for _, rows := range []string{
		``, `{}`, `{"instType":"SPOT","instId":"BTC-USDC","last":"1"}`, `{"instType":"SWAP","instId":"BTC-USDT","last":"1"}`,
		`{"instType":"SPOT","instId":"BTC-USDT","last":"NaN"}`, `{"instType":"SPOT","instId":"BTC-USDT","last":{}}`,
		`{"instType":"SPOT","instId":"BTC-USDT"},{"instType":"SPOT","instId":"BTC-USDT"}`, `["BTC-USDT"]`, `null`,
	} {
		v, _ := newVenue(t, data(rows))
		s, err := v.Statistics(t.Context(), btc)
		if e := failure(t, err); e.Kind != market.KindMalformed || e.Refusal != nil || s != nil {
			t.Errorf("%s: %v, %v with refusal %+v", rows, s, e, e.Refusal)
		}
	}
}
