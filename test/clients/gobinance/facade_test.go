package gobinance_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/adshao/go-binance/v2"
	"github.com/adshao/go-binance/v2/common"
	"github.com/shopspring/decimal"
)

// client is go-binance's, with its base URL changed and nothing else.
func client(g *gateway) *binance.Client {
	c := binance.NewClient("", "")
	c.BaseURL = g.Public + "/compat/binance"
	return c
}

func equal(a, b string) bool {
	x, err := decimal.NewFromString(a)
	y, err2 := decimal.NewFromString(b)
	return err == nil && err2 == nil && x.Equal(y)
}

// checked reads a book and compares it with the simulator's of that number.
func checked(t *testing.T, g *gateway, c *binance.Client, symbol string, depth int) (book, error) {
	t.Helper()
	got, err := c.NewDepthService().Symbol(symbol).Limit(depth).Do(t.Context())
	if err != nil {
		return book{}, err
	}
	want := g.truth(symbol, got.LastUpdateID, depth)
	if len(got.Bids) != len(want.Bids) || len(got.Asks) != len(want.Asks) {
		t.Fatalf("%s: %d bids and %d asks, want %d and %d", symbol, len(got.Bids), len(got.Asks), len(want.Bids), len(want.Asks))
	}
	for i, l := range got.Bids {
		if !equal(l.Price, want.Bids[i].Price) || !equal(l.Quantity, want.Bids[i].Size) {
			t.Fatalf("%s, bid %d: %+v, want %+v", symbol, i, l, want.Bids[i])
		}
	}
	for i, l := range got.Asks {
		if !equal(l.Price, want.Asks[i].Price) || !equal(l.Quantity, want.Asks[i].Size) {
			t.Fatalf("%s, ask %d: %+v, want %+v", symbol, i, l, want.Asks[i])
		}
	}
	return want, nil
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestMarketData(t *testing.T) {
	g := start(t)
	c, ctx := client(g), t.Context()

	if err := c.NewPingService().Do(ctx); err != nil {
		t.Error(err)
	}
	if at := must[int64](t)(c.NewServerTimeService().Do(ctx)); time.Since(time.UnixMilli(at)).Abs() > 10*time.Second {
		t.Errorf("time %d", at)
	}

	info := must[*binance.ExchangeInfo](t)(c.NewExchangeInfoService().Do(ctx))
	for _, s := range info.Symbols {
		if s.PriceFilter() == nil || s.LotSizeFilter() == nil || s.NotionalFilter() == nil || s.MarketLotSizeFilter() == nil ||
			len(s.OrderTypes) == 0 || len(s.PermissionSets) == 0 {
			t.Errorf("%s has not all that a bot needs: %+v", s.Symbol, s)
		}
		if s.Status != "TRADING" {
			continue
		}
		for _, depth := range []int{5, 100} {
			if _, err := checked(t, g, c, s.Symbol, depth); err != nil {
				t.Errorf("%s: %v", s.Symbol, err)
			}
		}
	}
	if n := len(info.Symbols); n < 15 {
		t.Errorf("%d symbols", n)
	}
	if one := must[*binance.ExchangeInfo](t)(c.NewExchangeInfoService().Symbols("ETHBTC", "BTCUSDT").Do(ctx)); len(one.Symbols) != 2 {
		t.Errorf("%d symbols of two", len(one.Symbols))
	}
	if margin := must[*binance.ExchangeInfo](t)(c.NewExchangeInfoService().Permissions("MARGIN", "LEVERAGED").Do(ctx)); len(margin.Symbols) == 0 ||
		len(margin.Symbols) >= len(info.Symbols) {
		t.Errorf("%d symbols on margin of %d", len(margin.Symbols), len(info.Symbols))
	}

	quotes := must[[]*binance.BookTicker](t)(c.NewListBookTickersService().Symbol("BTCUSDT").Do(ctx))
	if len(quotes) != 1 || quotes[0].Symbol != "BTCUSDT" || quotes[0].BidPrice == "" {
		t.Errorf("quotes %+v", quotes)
	}
	if all := must[[]*binance.BookTicker](t)(c.NewListBookTickersService().Do(ctx)); len(all) != len(info.Symbols) {
		t.Errorf("%d quotes", len(all))
	}
	if prices := must[[]*binance.SymbolPrice](t)(c.NewListPricesService().Symbols([]string{"BTCUSDT", "ETHUSDT"}).Do(ctx)); len(prices) != 2 {
		t.Errorf("prices %+v", prices)
	}
	for symbol, n := range map[string]int{"BTCUSDT": 1, "": len(info.Symbols)} {
		s := c.NewListPriceChangeStatsService()
		if symbol != "" {
			s = s.Symbol(symbol)
		}
		if stats := must[[]*binance.PriceChangeStats](t)(s.Do(ctx)); len(stats) != n || stats[0].LastPrice == "" || stats[0].BidPrice == "" {
			t.Errorf("figures of %q: %d", symbol, len(stats))
		}
	}

	since := time.Now().Add(-3 * time.Hour).Truncate(time.Hour)
	klines := must[[]*binance.Kline](t)(c.NewKlinesService().Symbol("BTCUSDT").Interval("1m").StartTime(since.UnixMilli()).Limit(60).Do(ctx))
	for i, k := range klines {
		if want := since.Add(time.Duration(i) * time.Minute).UnixMilli(); k.OpenTime != want || k.CloseTime != want+59_999 {
			t.Errorf("candle %d from %d to %d, want from %d", i, k.OpenTime, k.CloseTime, want)
		}
	}
	if len(klines) != 60 {
		t.Errorf("%d candles, want 60", len(klines))
	}
	// Its service of recent trades asks below /api/v1, which Binance took away in March 2026.
	if _, err := c.NewRecentTradesService().Symbol("BTCUSDT").Do(ctx); code(t, err) != -1020 {
		t.Errorf("a path that Binance no longer has: %v", err)
	}
	trades := must[[]*binance.AggTrade](t)(c.NewAggTradesService().Symbol("BTCUSDT").StartTime(since.UnixMilli()).EndTime(since.Add(time.Minute).UnixMilli()).Do(ctx))
	if n := len(trades); n < 50 || n > 70 {
		t.Errorf("%d trades in a minute", n)
	}
	if a := must[*binance.AvgPrice](t)(c.NewAveragePriceService().Symbol("BTCUSDT").Do(ctx)); a.Price == "" {
		t.Errorf("average %+v", a)
	}
}

// code is Binance's code of an error.
func code(t *testing.T, err error) int64 {
	t.Helper()
	var e *common.APIError
	if !errors.As(err, &e) {
		t.Fatalf("err = %v, want an error of the API", err)
	}
	return e.Code
}

func TestRefusals(t *testing.T) {
	g := start(t)
	c, ctx := client(g), t.Context()
	_, err := c.NewDepthService().Symbol("NOPEUSDT").Do(ctx)
	if code(t, err) != -1121 {
		t.Errorf("no such symbol: %v", err)
	}
	if _, err = c.NewKlinesService().Symbol("BTCUSDT").Interval("7m").Do(ctx); code(t, err) != -1120 {
		t.Errorf("no such interval: %v", err)
	}
	trader := binance.NewClient("EXAMPLE-NOT-A-KEY", "EXAMPLE-NOT-A-SECRET")
	trader.BaseURL = c.BaseURL
	_, account := trader.NewGetAccountService().Do(ctx)
	_, order := trader.NewCreateOrderService().Symbol("BTCUSDT").Side(binance.SideTypeBuy).Type(binance.OrderTypeMarket).Quantity("1").Do(ctx)
	for path, err := range map[string]error{"account": account, "order": order} {
		if code(t, err) != -1020 || !strings.Contains(err.Error(), "https://api.binance.com/api/v3/"+path) || strings.Contains(err.Error(), "signature") {
			t.Errorf("%s: %v, want the exchange's own address", path, err)
		}
	}
}

// TestOutage: while the exchange is down there is an error or a book of before, young enough to be live; never an old one.
func TestOutage(t *testing.T) {
	g := start(t)
	c := client(g)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if _, err := checked(t, g, c, "ETHUSDT", 20); err != nil {
		t.Fatal(err)
	}
	g.tell("POST", "/v1/faults/binance", `{"kind":"unavailable","for":"100s"}`, nil)
	refused := 0
	for range 25 {
		asked := time.Now()
		b, err := checked(t, g, c, "ETHUSDT", 20)
		switch {
		case err == nil && asked.Sub(b.Time) > 3*time.Second:
			t.Errorf("a book of %v ago was answered", asked.Sub(b.Time))
		case err != nil:
			if refused++; code(t, err) != 0 && code(t, err) != -1007 {
				t.Errorf("refused with %v", err)
			}
		}
		time.Sleep(200 * time.Millisecond)
	}
	if refused == 0 {
		t.Error("nothing was refused in an outage of 5 s")
	}
	g.tell("DELETE", "/v1/faults/binance", "", nil)
	for {
		if _, err := checked(t, g, c, "ETHUSDT", 20); err == nil {
			break
		}
		select {
		case <-ctx.Done():
			t.Fatal("no book after the outage")
		case <-time.After(200 * time.Millisecond):
		}
	}
}
