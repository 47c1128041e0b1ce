package exchangesim_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shopspring/decimal"

	"exchange-gateway/internal/exchangesim"
)

// candle is a row of klines.
type candle struct {
	open, close            int64
	o, h, l, c, volume, qv decimal.Decimal
	trades                 int64
}

func (k *candle) UnmarshalJSON(b []byte) error {
	var drop string
	row := []any{&k.open, &k.o, &k.h, &k.l, &k.c, &k.volume, &k.close, &k.qv, &k.trades, &drop, &drop, &drop}
	if err := json.Unmarshal(b, &row); err != nil || len(row) != 12 {
		return fmt.Errorf("%d columns: %w", len(row), err)
	}
	return nil
}

func candles(t *testing.T, c client, query string) []candle {
	t.Helper()
	var rows []candle
	c.get("/api/v3/klines?"+query).decode(t, &rows)
	return rows
}

func TestBinanceKlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)))
		c := inMemory(t, newSim(t, exchangesim.Config{}).Venue("binance"))
		for name, length := range map[string]time.Duration{
			"1s": time.Second, "1m": time.Minute, "3m": 3 * time.Minute, "5m": 5 * time.Minute, "15m": 15 * time.Minute, "30m": 30 * time.Minute,
			"1h": time.Hour, "2h": 2 * time.Hour, "4h": 4 * time.Hour, "6h": 6 * time.Hour, "8h": 8 * time.Hour, "12h": 12 * time.Hour,
			"1d": 24 * time.Hour, "3d": 72 * time.Hour, "1w": 7 * 24 * time.Hour, "1M": 0,
		} {
			rows := candles(t, c, "symbol=BTCUSDT&limit=5&interval="+name)
			if len(rows) != 5 {
				t.Fatalf("%s: %d candles, want 5", name, len(rows))
			}
			if last := rows[4]; last.open > time.Now().UnixMilli() || last.close < time.Now().UnixMilli() {
				t.Errorf("%s: the last candle is from %d to %d, now is %d", name, last.open, last.close, time.Now().UnixMilli())
			}
			for i, k := range rows {
				if k.h.LessThan(decimal.Max(k.o, k.c)) || k.l.GreaterThan(decimal.Min(k.o, k.c)) || !k.volume.IsPositive() || !k.qv.IsPositive() {
					t.Errorf("%s: %+v", name, k)
				}
				if length > 0 && k.close-k.open+1 != length.Milliseconds() {
					t.Errorf("%s: %d ms long", name, k.close-k.open+1)
				}
				if i > 0 && (k.open != rows[i-1].close+1 || !k.o.Equal(rows[i-1].c)) {
					t.Errorf("%s: begins at %d with %s after %d with %s", name, k.open, k.o, rows[i-1].close, rows[i-1].c)
				}
			}
		}
		starts := func(name string, weekday time.Weekday, day, hour int) {
			t.Helper()
			for _, k := range candles(t, c, "symbol=BTCUSDT&limit=30&interval="+name) {
				at := time.UnixMilli(k.open).UTC()
				if weekday >= 0 && at.Weekday() != weekday || day > 0 && at.Day() != day || at.Hour() != hour {
					t.Errorf("%s begins at %v", name, at)
				}
			}
		}
		starts("1w", time.Monday, 0, 0)
		starts("1M", -1, 1, 0)
		starts("1d&timeZone=-3:00", -1, 0, 3)
	})
}

// TestBinanceKlines_spans reads a day by pages in both directions, as clients that load history do: the same candles.
func TestBinanceKlines_spans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(testTime.Add(day)))
		c := inMemory(t, newSim(t, exchangesim.Config{}).Venue("binance"))
		count, next := 0, testTime.UnixMilli()
		for page := 0; page < 4; page++ {
			rows := candles(t, c, fmt.Sprintf("symbol=ETHUSDT&interval=1m&limit=1000&startTime=%d&endTime=%d", next, testTime.Add(day).UnixMilli()-1))
			if count += len(rows); len(rows) == 0 {
				break
			}
			if rows[0].open != next {
				t.Fatalf("a page begins at %d, want %d", rows[0].open, next)
			}
			next = rows[len(rows)-1].close + 1
		}
		if count != 24*60 {
			t.Errorf("%d candles in a day, want 1440", count)
		}
		back := candles(t, c, fmt.Sprintf("symbol=ETHUSDT&interval=1m&limit=7&endTime=%d", testTime.Add(time.Hour).UnixMilli()-1))
		if len(back) != 7 || back[6].close != testTime.Add(time.Hour).UnixMilli()-1 {
			t.Errorf("the last 7 before an hour: %+v", back)
		}
		if between := candles(t, c, fmt.Sprintf("symbol=ETHUSDT&interval=1h&startTime=%d&limit=2", testTime.Add(time.Minute).UnixMilli())); len(between) != 2 ||
			between[0].open != testTime.Add(time.Hour).UnixMilli() {
			t.Errorf("from a minute past: %+v", between)
		}
		for _, empty := range []string{
			"symbol=ETHUSDT&interval=1m&startTime=99999999999999", "symbol=ETHUSDT&interval=1m&startTime=1767225660000&endTime=1767225600000",
			"symbol=GONEUSDT&interval=1m",
		} {
			if rows := candles(t, c, empty); len(rows) != 0 {
				t.Errorf("%s: %d candles", empty, len(rows))
			}
		}
	})
}

const day = 24 * time.Hour

func TestBinanceTrades(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(testTime))
		c := inMemory(t, newSim(t, exchangesim.Config{}).Venue("binance"))
		var plain []struct {
			ID         int64
			Price, Qty decimal.Decimal
			QuoteQty   decimal.Decimal
			Time       int64
		}
		c.get("/api/v3/trades?symbol=BTCUSDT&limit=20").decode(t, &plain)
		type aggregate struct {
			ID    int64           `json:"a"`
			Price decimal.Decimal `json:"p"`
			Time  int64           `json:"T"`
			First int64           `json:"f"`
			Maker bool            `json:"m"`
			Best  bool            `json:"M"`
		}
		ask := func(query string) (rows []aggregate) {
			t.Helper()
			c.get("/api/v3/aggTrades?symbol=BTCUSDT&"+query).decode(t, &rows)
			return rows
		}
		newest := ask("limit=20")
		if len(plain) != 20 || len(newest) != 20 {
			t.Fatalf("%d and %d trades, want 20", len(plain), len(newest))
		}
		for i, p := range plain {
			if a := newest[i]; a.ID != p.ID || !a.Price.Equal(p.Price) || a.Time != p.Time || !p.Price.Mul(p.Qty).Equal(p.QuoteQty) || p.Time > testTime.UnixMilli() {
				t.Errorf("trade %d is %+v and %+v", i, p, a)
			}
			if i > 0 && (p.ID != plain[i-1].ID+1 || p.Time <= plain[i-1].Time) {
				t.Errorf("trade %d at %d after %d at %d", p.ID, p.Time, plain[i-1].ID, plain[i-1].Time)
			}
		}
		if from := ask(fmt.Sprintf("fromId=%d&limit=3", newest[4].ID)); len(from) != 3 || from[0].ID != newest[4].ID {
			t.Errorf("from an id: %+v", from)
		}
		inside := ask(fmt.Sprintf("startTime=%d&endTime=%d", newest[5].Time, newest[9].Time))
		if len(inside) != 5 || inside[0].ID != newest[5].ID || inside[4].ID != newest[9].ID {
			t.Errorf("between two trades, both meant: %+v", inside)
		}
		if rows := ask("fromId=99999999999"); len(rows) != 0 {
			t.Errorf("from an id to come: %+v", rows)
		}
		var average struct {
			Mins  int
			Price decimal.Decimal
		}
		c.get("/api/v3/avgPrice?symbol=BTCUSDT").decode(t, &average)
		if average.Mins != 5 || average.Price.Sub(newest[0].Price).Abs().GreaterThan(newest[0].Price.Shift(-2)) {
			t.Errorf("average %+v, a trade was at %s", average, newest[0].Price)
		}
	})
}

func TestBinanceHistory_refusals(t *testing.T) {
	c := inMemory(t, newSim(t, exchangesim.Config{}).Venue("binance"))
	for path, code := range map[string]string{
		"klines?interval=1m": "-1102", "klines?symbol=BTCUSDT": "-1102", "klines?symbol=BTCUSDT&interval=7m": "-1120",
		"klines?symbol=BTCUSDT&interval=1m&limit=x": "-1100", "klines?symbol=BTCUSDT&interval=1m&startTime=-1": "-1100",
		"klines?symbol=NOPEUSDT&interval=1m": "-1121", "uiKlines?symbol=BTCUSDT&interval=1m&fromId=1": "-1104",
		"klines?symbol=BTCUSDT&interval=1m&timeZone=%2B15:00": "-1130", "klines?symbol=BTCUSDT&interval=1m&timeZone=UTC": "-1100",
		"trades": "-1102", "trades?symbol=btcusdt": "-1100", "trades?symbol=BTCUSDT&limit=0": "-1130",
		"aggTrades?symbol=BTCUSDT&fromId=1&startTime=1": "-1128", "aggTrades?symbol=BTCUSDT&fromId=x": "-1100",
		"avgPrice": "-1102", "avgPrice?symbol=NOPEUSDT": "-1121",
		"exchangeInfo?permissions=SPOT&symbol=BTCUSDT": "-1128", "exchangeInfo?permissions=%5B": "-1100",
	} {
		c.get("/api/v3/"+path).want(t, 400, `"code":`+code+",")
	}
}

func TestBinanceExchangeInfo_permissions(t *testing.T) {
	c := inMemory(t, newSim(t, exchangesim.Config{}).Venue("binance"))
	count := func(permissions string) int {
		var info struct{ Symbols []struct{ QuoteAsset string } }
		c.get("/api/v3/exchangeInfo?permissions="+url.QueryEscape(permissions)).decode(t, &info)
		for _, s := range info.Symbols {
			if permissions == "MARGIN" && s.QuoteAsset != "USDT" {
				t.Errorf("a pair against %s is traded on margin", s.QuoteAsset)
			}
		}
		return len(info.Symbols)
	}
	all, margin := count("SPOT"), count("MARGIN")
	if all != count(`["MARGIN","SPOT"]`) || margin == 0 || margin >= all || count("LEVERAGED") != 0 {
		t.Errorf("%d of SPOT, %d of MARGIN", all, margin)
	}
}
