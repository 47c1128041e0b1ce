package coinbase_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/market"
)

func TestStatistics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, f := newVenue(t)
		got, err := v.Statistics(t.Context(), btcUSD())
		if err != nil {
			t.Fatal(err)
		}
		if show(got.Last) != "64000.01" || show(got.BaseVolume) != "11005.02587005" || show(got.ChangePercent) != "-0.28560028286595" {
			t.Errorf("got %+v", got)
		}
		for name, o := range map[string]market.Optional{
			"open": got.Open, "high": got.High, "low": got.Low, "change": got.Change, "quote volume": got.QuoteVolume,
		} {
			if !o.IsZero() {
				t.Errorf("%s is made up: Coinbase does not send it", name)
			}
		}
		if !got.ExchangeTime.IsZero() || !got.ConfirmedAt.Equal(time.Now()) || got.Pair != btcUSD().Pair || got.Exchange != "coinbase" {
			t.Errorf("got %+v", got)
		}
		if f.last().URL.String() != "https://api.coinbase.com"+productPath || len(f.requests) != 1 {
			t.Errorf("asked %s, %d requests", f.last().URL, len(f.requests))
		}
	})
}

func TestStatistics_missingFigures(t *testing.T) {
	v, f := newVenue(t)
	f.on(productPath, answer{body: `{"product_id":"BTC-USD","price":"","volume_24h":null}`})
	got, err := v.Statistics(t.Context(), btcUSD())
	if err != nil || !got.Last.IsZero() || !got.BaseVolume.IsZero() || !got.ChangePercent.IsZero() {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestStatistics_malformed(t *testing.T) {
	v, f := newVenue(t)
	for _, body := range []string{
		`{"product_id":"ETH-USD","price":"1"}`, `{"product_id":"BTC-USD","price":"much"}`,
		`{"error":"NEW","message":"something"}`, `{"product_id":"BTC-USD",`,
	} {
		f.on(productPath, answer{body: body})
		if got, err := v.Statistics(t.Context(), btcUSD()); market.KindOf(err) != market.KindMalformed || got != nil {
			t.Errorf("%s: %v, %v", body, got, err)
		}
	}
}

// TestStatistics_ofAnAlias: REST answers keep the name that was asked for, but either name is of this product.
func TestStatistics_ofAnAlias(t *testing.T) {
	v, f := newVenue(t)
	f.on(productsPath+"/BTC-USDC", answer{body: fixture(t, productPath)})
	got, err := v.Statistics(t.Context(), btcUSDC())
	if err != nil || got.Pair.Quote != "USDC" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestStatistics_pathIsEscaped(t *testing.T) {
	v, f := newVenue(t)
	l := btcUSD()
	l.Symbol = "../time?x=1"
	if _, err := v.Statistics(t.Context(), l); err == nil {
		t.Error("another path answered")
	}
	if got := f.last().URL.EscapedPath(); !strings.HasPrefix(got, productsPath+"/..%2F") {
		t.Errorf("asked %s", got)
	}
}

func TestStatus_asksNobody(t *testing.T) {
	v, f := newVenue(t)
	st, err := v.Status(t.Context())
	if err != nil || st.State != market.VenueUnknown || st.CheckedAt.IsZero() || len(f.requests)+len(f.admitted) != 0 {
		t.Errorf("got %+v, %v after %d requests", st, err, len(f.requests))
	}
	if call := v.Plan(market.OpStatus, market.Listing{}, 0); len(call.Charges)+len(call.Scopes) != 0 {
		t.Errorf("plan %+v: what sends nothing costs nothing", call)
	}
}
