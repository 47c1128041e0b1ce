package binance_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/exchange/exchangetest"
	"exchange-gateway/internal/market"
)

func TestListings(t *testing.T) {
	v, rig := venueOn(t, good)
	list, err := exchangetest.Rows(t.Context(), v)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "query", rig.Requests()[0].URL.RawQuery, "") // that of a bot that starts, so that one answer serves both
	var got []string
	for _, l := range list {
		got = append(got, fmt.Sprintf("%s %v %s %s/%s/%s/%s", l.Symbol, l.Pair, l.Status,
			optional(l.PriceTick), optional(l.SizeStep), optional(l.MinSize), optional(l.MinNotional)))
	}
	want := []string{
		"BTCUSDT BTC/USDT trading 0.01000000/0.00001000/0.00001000/5.00000000",
		"ETHBTC ETH/BTC trading 0.00001000/0.00010000/0.00010000/0.00010000",     // the old name of the filter, and another order
		"USDTTRY USDT/TRY trading 0.01000000/1.00000000/1.00000000/100.00000000", // a quote that is a base
		"BUSDUSDT BUSD/USDT paused 0.00010000/1.00000000/1.00000000/5.00000000",  // BREAK: paused or delisted, no one can tell
		"1000SATSUSDT 1000SATS/USDT paused 0.00000001/1.00000000/1.00000000/5.00000000",
		"BTCIDR BTC/IDR trading 10.00000000/0.00001000/0.00001000/20000.00000000", // a tick of ten
		"DOGEEUR DOGE/EUR cancel_only 0.00001000/1.00000000/1.00000000/5.00000000",
		"GASBTC GAS/BTC paused 0.00000010/0.10000000/0.10000000/0.00010000",
		"XRPBRL XRP/BRL paused ///",    // a status that is not known, and no filters
		"NKNUSDT NKN/USDT trading ///", // zero turns a rule off
		"测试币USDT 测试币/USDT trading 0.00010000/0.10000000/0.10000000/5.00000000",
	}
	same(t, "listings", strings.Join(got, "\n"), strings.Join(want, "\n"))
}

// TestListings_noWord: a row that does not say whether its pair trades is no word that it does not.
func TestListings_noWord(t *testing.T) {
	v, _ := venueOn(t, body(`{"symbols":[{"symbol":"AB","baseAsset":"A","quoteAsset":"B"},{"symbol":"CD","status":"END_OF_DAY","baseAsset":"C","quoteAsset":"D"}]}`))
	list, err := exchangetest.Rows(t.Context(), v)
	if err != nil || len(list) != 2 || list[0].Status != market.TradingActive || list[1].Status != market.TradingPaused {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestListings_badRows: one row that cannot be used takes no other away, and is counted in the log.
func TestListings_badRows(t *testing.T) {
	const row = `{"symbol":"%s","status":"TRADING","baseAsset":"%s","quoteAsset":"%s","filters":[]}`
	rows := []string{
		fmt.Sprintf(row, "AB", "A", "B"), fmt.Sprintf(row, "CD", "C", "D"), fmt.Sprintf(row, "EF", "E", "F"), fmt.Sprintf(row, "GH", "G", "H"),
		fmt.Sprintf(row, "IJ", "I", "J"), fmt.Sprintf(row, "KL", "K", "L"), fmt.Sprintf(row, "MN", "M", "N"), fmt.Sprintf(row, "OP", "O", "P"),
		fmt.Sprintf(row, "AB", "X", "Y"),  // a symbol twice
		fmt.Sprintf(row, "AB2", "A", "B"), // a pair twice
		fmt.Sprintf(row, "", "Q", "R"),
		fmt.Sprintf(row, "S/T", "S/", "T"),
		`{"symbol":"UV","status":7,"baseAsset":"U","quoteAsset":"V"}`,
		`{"symbol":"WX","baseAsset":"W","quoteAsset":"X","filters":[{"filterType":"PRICE_FILTER","tickSize":"a tick"}]}`,
		`null`, `"text"`,
	}
	rig := exchangetest.NewRig(body(`{"symbols":[` + strings.Join(rows, ",") + `]}`))
	var log bytes.Buffer
	v := venueWith(t, exchange.Config{Transport: rig, Door: rig, Log: slog.New(slog.NewTextHandler(&log, nil))})
	list, err := exchangetest.Rows(t.Context(), v)
	if err != nil || len(list) != 8 {
		t.Fatalf("%d listings, %v, want 8", len(list), err)
	}
	if !strings.Contains(log.String(), "skipped=8 kept=8") {
		t.Errorf("log: %s", log.String())
	}
	rig.Answer(body(`{"symbols":[` + strings.Join(append(rows, `0`), ",") + `]}`))
	if list, err := exchangetest.Rows(t.Context(), v); list != nil || asError(t, err).Kind != market.KindMalformed {
		t.Errorf("a list that is mostly rubbish: %d listings, %v", len(list), err)
	}
}

func TestListings_refuses(t *testing.T) {
	for _, text := range []string{
		`{"timezone":"UTC","rateLimits":[]}`, `{"symbols":null}`, `{"symbols":[]}`, `{"symbols":{}}`, `{"symbols":[{}]}`,
	} {
		v, _ := venueOn(t, body(text))
		list, err := exchangetest.Rows(t.Context(), v)
		if e := asError(t, err); list != nil || e.Kind != market.KindMalformed || e.Refusal != nil {
			t.Errorf("%s: %v, %v", text, list, err)
		}
	}
}

// TestListings_statesLimits: limits that are written down go stale (1,200 became 6,000 and 61,000 became 300,000): what
// the list states holds. What it leaves out, counts otherwise, or could not mean is not taken over.
func TestListings_statesLimits(t *testing.T) {
	const list = `{"rateLimits":[%s],"symbols":[{"symbol":"AB","status":"TRADING","baseAsset":"A","quoteAsset":"B"}]}`
	const limit = `{"rateLimitType":"%s","interval":"%s","intervalNum":%d,"limit":%d}`
	for stated, want := range map[string]string{
		fmt.Sprintf(limit, "REQUEST_WEIGHT", "MINUTE", 1, 1200):  "1200 300000 12000",
		fmt.Sprintf(limit, "RAW_REQUESTS", "MINUTE", 5, 61_000):  "6000 61000 12000",
		fmt.Sprintf(limit, "REQUEST_WEIGHT", "HOUR", 1, 9000):    "6000 300000 12000",
		fmt.Sprintf(limit, "REQUEST_WEIGHT", "FORTNIGHT", 1, 10): "6000 300000 12000",
		fmt.Sprintf(limit, "REQUEST_WEIGHT", "MINUTE", 1, 0):     "6000 300000 12000",
		fmt.Sprintf(limit, "REQUEST_WEIGHT", "MINUTE", 1, 20):    "6000 300000 12000",
		fmt.Sprintf(limit, "ORDERS", "SECOND", 10, 100):          "6000 300000 12000",
		``: "6000 300000 12000",
	} {
		v, _ := venueOn(t, body(fmt.Sprintf(list, stated)))
		if _, err := exchangetest.Rows(t.Context(), v); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, l := range v.Limits() {
			got = append(got, fmt.Sprint(l.Capacity))
		}
		same(t, stated, strings.Join(got, " "), want+" 300") // connections of streams are in no list
	}
}

func TestStatistics(t *testing.T) {
	v, rig := venueOn(t, good)
	st, err := v.Statistics(t.Context(), btcusdt)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "query", rig.Requests()[0].URL.RawQuery, "symbol=BTCUSDT")
	same(t, "exchange time", st.ExchangeTime.UnixMilli(), 1796004000123)
	same(t, "figures", figures(st), "91234.51000000 91746.81000000 92480.00000000 90611.15000000 18250.40127000 "+
		"1669934020.91255100 -512.30000000 -0.558")
}

func figures(st *market.Statistics) string {
	var all []string
	for _, o := range []market.Optional{
		st.Last, st.Open, st.High, st.Low, st.BaseVolume, st.QuoteVolume, st.Change, st.ChangePercent,
	} {
		all = append(all, optional(o))
	}
	return strings.Join(all, " ")
}

func TestStatistics_forms(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		v, _ := venueOn(t, body(text))
		st, err := v.Statistics(t.Context(), btcusdt)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			return
		}
		same(t, text, figures(st), want)
	}
	// Several symbols were asked for: an array.
	f(`[{"symbol":"ETHUSDT","lastPrice":"1"},{"symbol":"BTCUSDT","lastPrice":"2.50"}]`, "2.50       ")
	// The short form leaves out the change.
	f(`{"symbol":"BTCUSDT","openPrice":"1","highPrice":"3","lowPrice":"1","lastPrice":"2","volume":"5","quoteVolume":"9"}`, "2 1 3 1 5 9  ")
	// A symbol that is delisted, halted or without a trade has zeros for "none". A volume of zero is a figure.
	f(`{"symbol":"BTCUSDT","lastPrice":"0.00000000","openPrice":"0.00000000","highPrice":"0.00000000","lowPrice":"0.00000000",`+
		`"volume":"0.00000000","quoteVolume":"0.00000000","priceChange":"0.00000000","priceChangePercent":"0.000","firstId":-1,"lastId":-1,"count":0}`,
		"    0.00000000 0.00000000  ")
	f(`{"symbol":"BTCUSDT","lastPrice":"","openPrice":null}`, "       ")
}

func TestStatistics_refuses(t *testing.T) {
	for _, text := range []string{
		`{"symbol":"ETHUSDT","lastPrice":"1"}`, `{"lastPrice":"1"}`, `[{"symbol":"ETHUSDT"}]`, `{"symbol":"BTCUSDT","lastPrice":"a lot"}`,
		`{"symbol":"BTCUSDT","closeTime":"noon"}`,
	} {
		v, _ := venueOn(t, body(text))
		st, err := v.Statistics(t.Context(), btcusdt)
		if st != nil || asError(t, err).Kind != market.KindMalformed {
			t.Errorf("%s: %v, %v", text, st, err)
		}
	}
}

// TestStatus: 0 is normal and 1 is maintenance. Read the other way round it has reported a maintenance that never ended.
func TestStatus(t *testing.T) {
	long := strings.Repeat("维", 100)
	for text, want := range map[string]market.VenueStatus{
		`{"status":0,"msg":"normal"}`:              {State: market.VenueOK, Message: "normal"},
		`{"status":1,"msg":"system_maintenance"}`:  {State: market.VenueMaintenance, Message: "system_maintenance"},
		`{"status":1,"msg":"System maintenance."}`: {State: market.VenueMaintenance, Message: "System maintenance."},
		`{"status":1}`:                       {State: market.VenueMaintenance},
		`{"status":7,"msg":"something new"}`: {State: market.VenueUnknown, Message: "something new"},
		`{"status":0,"msg":"` + long + `"}`:  {State: market.VenueOK, Message: strings.Repeat("维", 66)},
	} {
		v, _ := venueOn(t, body(text))
		st, err := v.Status(t.Context())
		st.CheckedAt = want.CheckedAt
		if err != nil || !reflect.DeepEqual(st, want) {
			t.Errorf("%s: %+v, %v, want %+v", text, st, err, want)
		}
	}
	// Testnet has no such endpoint: that is no trouble.
	for _, status := range []int{404, 405, 410} {
		v, rig := venueOn(t, always(exchangetest.Reply{Status: status, Body: "<html><body><h2>404 Not found</h2></body></html>"}))
		st, err := v.Status(t.Context())
		if err != nil || st.State != market.VenueUnknown || st.CheckedAt.IsZero() {
			t.Errorf("%d: %+v, %v", status, st, err)
		}
		same(t, "requests", rig.Count(exchangetest.Sent), 1)
	}
	for _, text := range []string{`{"status":0.5,"msg":"normal"}`, `{"status":"0"}`, `{"status":null}`} {
		v, _ := venueOn(t, body(text))
		if st, err := v.Status(t.Context()); st.State != market.VenueUnknown || asError(t, err).Kind != market.KindMalformed {
			t.Errorf("%s: %+v, %v", text, st, err)
		}
	}
}

func FuzzListings(f *testing.F) {
	f.Add(`{"rateLimits":[{"rateLimitType":"RAW_REQUESTS","interval":"MINUTE","intervalNum":5,"limit":300000}],"symbols":[]}`)
	f.Add(`{"symbols":[{"symbol":"AB","status":"BREAK","baseAsset":"A","quoteAsset":"B","filters":[{"filterType":"LOT_SIZE","stepSize":"1"}]}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		v, _ := venueOn(t, body(text))
		list, err := exchangetest.Rows(t.Context(), v)
		if err != nil {
			if asError(t, err); list != nil {
				t.Fatalf("%q: %v, %v", text, list, err)
			}
			return
		}
		if len(list) == 0 || !json.Valid([]byte(text)) {
			t.Fatalf("%q: %v", text, list)
		}
		for _, l := range list {
			if p, err := market.ParsePair(l.Pair.String()); err != nil || p != l.Pair || l.Symbol == "" {
				t.Fatalf("%q: %+v, %v", text, l, err)
			}
		}
	})
}

func FuzzStatistics(f *testing.F) {
	f.Add(`{"symbol":"BTCUSDT","lastPrice":"1","closeTime":1499869899040}`)
	f.Add(`[{"symbol":"BTCUSDT","lastPrice":""}]`)
	f.Fuzz(func(t *testing.T, text string) {
		v, _ := venueOn(t, body(text))
		st, err := v.Statistics(t.Context(), btcusdt)
		if err != nil {
			if asError(t, err); st != nil {
				t.Fatalf("%q: %v, %v", text, st, err)
			}
			return
		}
		if last, ok := st.Last.Get(); st.Pair != btcusdt.Pair || ok && last.Sign() <= 0 {
			t.Fatalf("%q: %+v", text, st)
		}
	})
}
