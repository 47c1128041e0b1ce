package binance_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"exchange-gateway/internal/compat"
	"exchange-gateway/internal/compat/binance"
	"exchange-gateway/internal/exchange/exchangetest"
	"exchange-gateway/internal/gateway"
)

// infoText is a list in the form of 2026, and one of its rows in that of before April 2024.
const infoText = `{"timezone":"UTC","serverTime":1565246363776,"rateLimits":[{"rateLimitType":"REQUEST_WEIGHT","limit":6000}],"exchangeFilters":[],
"symbols":[
{"symbol":"BTCUSDT","status":"TRADING","baseAsset":"BTC","filters":[{"filterType":"PRICE_FILTER","tickSize":"0.01000000"}],"permissions":[],"permissionSets":[["SPOT","MARGIN","TRD_GRP_004"]],"more":[1]},
{"permissionSets" : [["SPOT"]] , "symbol":"ETHBTC","status":"BREAK","permissions":[]},
{"symbol":"OLDUSDT","status":"HALT","permissions":["SPOT","LEVERAGED"]}],"sors":[{"baseAsset":"BTC"}]}`

// list is a facade that is given the text as its list of symbols, the same bytes each time.
func list(t *testing.T, text string) (*binance.Facade, *fake) {
	t.Helper()
	f, gw := stage(t)
	answer := native(text)
	gw.native = func(gateway.NativeQuestion) (*gateway.NativeAnswer, error) { return answer, nil }
	return f, gw
}

// infoAnswer is what clients read.
type infoAnswer struct {
	Timezone   string
	ServerTime int64
	RateLimits []any
	Symbols    []struct {
		Symbol         string
		Filters        []struct{ TickSize string }
		PermissionSets [][]string
		More           []int
	}
	Sors []any
}

func symbolsOf(a infoAnswer) string {
	var all []string
	for _, s := range a.Symbols {
		all = append(all, s.Symbol)
	}
	return strings.Join(all, " ")
}

func TestExchangeInfo_filtersTheWholeList(t *testing.T) {
	f, gw := list(t, infoText)
	for query, want := range map[string]string{
		"symbol=ETHBTC": "ETHBTC", `symbols=["OLDUSDT","BTCUSDT"]`: "OLDUSDT BTCUSDT", "symbolStatus=TRADING": "BTCUSDT", "symbolStatus=BREAK": "ETHBTC",
		"permissions=SPOT": "BTCUSDT ETHBTC OLDUSDT", "permissions=MARGIN": "BTCUSDT", `permissions=["MARGIN","LEVERAGED"]`: "BTCUSDT OLDUSDT",
		"permissions=TRD_GRP_004": "BTCUSDT", "permissions=TRD_GRP_00": "", "permissions=MARGIN&symbolStatus=HALT": "",
		"showPermissionSets=false": "BTCUSDT ETHBTC OLDUSDT", "showPermissionSets=true": "BTCUSDT ETHBTC OLDUSDT", "": "BTCUSDT ETHBTC OLDUSDT",
	} {
		target := "/api/v3/exchangeInfo"
		if name, value, ok := strings.Cut(query, "="); ok && strings.HasPrefix(value, "[") {
			query = name + "=" + url.QueryEscape(value)
		}
		if query != "" {
			target += "?" + query
		}
		gw.natives = nil
		a := get(t, f, target)
		var got infoAnswer
		decode(t, a.Body, &got)
		if symbolsOf(got) != want {
			t.Errorf("%s: %q, want %q", query, symbolsOf(got), want)
		}
		if got.Timezone != "UTC" || got.ServerTime != 1565246363776 || len(got.RateLimits) != 1 || len(got.Sors) != 1 {
			t.Errorf("%s: lost what is beside the symbols: %.300s", query, a.Body)
		}
		for _, s := range got.Symbols {
			if bare := strings.Contains(query, "=false"); s.Symbol != "OLDUSDT" && (len(s.PermissionSets) == 0) != bare {
				t.Errorf("%s: %s has the permission sets %v", query, s.Symbol, s.PermissionSets)
			}
			if s.Symbol == "BTCUSDT" && (len(s.Filters) != 1 || s.Filters[0].TickSize != "0.01000000" || len(s.More) != 1) {
				t.Errorf("%s: lost what a symbol has: %+v", query, s)
			}
		}
		if q := passed(t, gw); q.Endpoint != "exchangeInfo" || q.Query != "" || q.Pairs != nil || q.MaxAge.Set {
			t.Errorf("%s: asked as %+v, want the whole list, which the gateway keeps", query, q)
		}
		if a.FreshFor != time.Hour || a.Freshness == nil {
			t.Errorf("%s: fresh for %v, %+v", query, a.FreshFor, a.Freshness)
		}
	}
	if a := get(t, f, "/api/v3/exchangeInfo"); string(a.Body) != infoText {
		t.Error("the whole list does not come as it is")
	}
}

func TestExchangeInfo_refusals(t *testing.T) {
	f, _ := list(t, infoText)
	for query, code := range map[string]string{
		"symbol=NOPE": "-1121", "symbols=%5B%22NOPE%22%5D": "-1121", "symbol=btcusdt": "-1100", "symbols=BTCUSDT": "-1100", "symbols=%5B%5D": "-1100",
		"symbols=%5B%22BTCUSDT%22%2C%20%22ETHBTC%22%5D": "-1100", "symbols=%5B%22BTCUSDT%22%2C%22BTCUSDT%22%5D": "-1151",
		"symbol=BTCUSDT&symbols=%5B%22BTCUSDT%22%5D": "-1128", "symbol=BTCUSDT&permissions=SPOT": "-1128", "symbol=BTCUSDT&symbolStatus=BREAK": "-1128",
		"permissions=spot": "-1100", "permissions=%5B%5D": "-1100", "symbolStatus=OPEN": "-1122", "showPermissionSets=no": "-1130", "symbole=BTCUSDT": "-1104",
	} {
		if r := refusal(t, f, request("/api/v3/exchangeInfo?"+query)); r.Code != code || r.Status != 400 {
			t.Errorf("%s: %v, want %s", query, r, code)
		}
	}
}

// TestExchangeInfo_keepsWhatItWrites: the same filter gives the same bytes while the list is the same, for many at once, and
// the new list's as soon as there is one.
func TestExchangeInfo_keepsWhatItWrites(t *testing.T) {
	f, gw := list(t, infoText)
	bodies := make([][]byte, 20)
	var wg sync.WaitGroup
	for i := range bodies {
		wg.Go(func() {
			if a, err := f.Answer(t.Context(), request("/api/v3/exchangeInfo?showPermissionSets=false")); err == nil {
				bodies[i] = a.Body
			}
		})
	}
	wg.Wait()
	for _, b := range bodies {
		if len(b) == 0 || &b[0] != &bodies[0][0] {
			t.Fatal("the list was written anew for a caller with the same filter")
		}
	}
	for i := range 40 {
		get(t, f, fmt.Sprintf("/api/v3/exchangeInfo?permissions=G%d", i))
	}
	if n := f.Variants(); n < 1 || n > 4 {
		t.Errorf("%d lists are kept after 40 filters, want at most 4", n)
	}
	newer := native(strings.Replace(infoText, "BTCUSDT", "NEWUSDT", 1))
	gw.native = func(gateway.NativeQuestion) (*gateway.NativeAnswer, error) { return newer, nil }
	var got infoAnswer
	decode(t, get(t, f, "/api/v3/exchangeInfo?showPermissionSets=false").Body, &got)
	if symbolsOf(got) != "NEWUSDT ETHBTC OLDUSDT" {
		t.Errorf("after a new list: %s", symbolsOf(got))
	}
}

func TestExchangeInfo_ofAnotherShape(t *testing.T) {
	for _, text := range []string{`{}`, `[]`, `{"symbols":null}`, `{"symbols":[1]}`, `{"symbols":`, ``} {
		f, _ := list(t, text)
		a, err := f.Answer(t.Context(), request("/api/v3/exchangeInfo?symbol=BTCUSDT"))
		if err == nil || a != nil {
			t.Errorf("%q: %v, %v", text, a, err)
		}
	}
}

// TestExchangeInfo_recorded takes a recorded list apart and puts it together again.
func TestExchangeInfo_recorded(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(exchangetest.Recorded(t, "binance"), "rest", "exchangeInfo_25symbols_2025.json"))
	if err != nil {
		t.Fatal(err)
	}
	f, _ := list(t, string(text))
	var whole, spot, bare infoAnswer
	decode(t, text, &whole)
	decode(t, get(t, f, "/api/v3/exchangeInfo?permissions=SPOT").Body, &spot)
	a := get(t, f, "/api/v3/exchangeInfo?showPermissionSets=false")
	decode(t, a.Body, &bare)
	if symbolsOf(whole) != symbolsOf(bare) || len(bare.Symbols) != 25 || strings.Contains(string(a.Body), "TRD_GRP") {
		t.Errorf("%d symbols without permission sets, %d bytes", len(bare.Symbols), len(a.Body))
	}
	for _, s := range whole.Symbols {
		can := slices.ContainsFunc(s.PermissionSets, func(set []string) bool { return slices.Contains(set, "SPOT") })
		shown := strings.Contains(" "+symbolsOf(spot)+" ", " "+s.Symbol+" ")
		if can != shown {
			t.Errorf("%s has the permission SPOT: %t, shown: %t", s.Symbol, can, shown)
		}
	}
}

var _ compat.Dialect = (*binance.Facade)(nil)
