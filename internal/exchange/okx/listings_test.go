package okx_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/exchange/exchangetest"
	"exchange-gateway/internal/market"
)

func listingText(l market.Listing) string {
	return fmt.Sprintf("%s %v %s tick %s lot %s min %s", l.Symbol, l.Pair, l.Status, number(l.PriceTick), number(l.SizeStep), number(l.MinSize))
}

func TestListings_good(t *testing.T) {
	v, rig := newVenue(t, fixtures())
	all, err := exchangetest.Rows(t.Context(), v)
	if err != nil {
		t.Fatal(err)
	}
	if got := rig.Requests()[0].URL.RequestURI(); got != "/api/v5/public/instruments?instType=SPOT" {
		t.Errorf("asked %s", got)
	}
	want := []string{
		"BTC-USDT BTC/USDT trading tick 0.1 lot 0.00000001 min 0.00001",
		"BTC-USD BTC/USD trading tick 0.1 lot 0.00000001 min 0.00001",
		"BTC-USDC BTC/USDC trading tick 0.1 lot 0.00000001 min 0.00001",
		"1INCH-USDT 1INCH/USDT paused tick 0.0001 lot 0.000001 min 1",
		"USDT-SGD USDT/SGD post_only tick 0.0001 lot 0.000001 min 1",
		"NEWCOIN-USDT NEWCOIN/USDT auction tick absent lot absent min absent",
	}
	for i, l := range all {
		if i >= len(want) || listingText(l) != want[i] || l.AliasOf != "" || !l.MinNotional.IsZero() {
			t.Errorf("row %d is %s", i, listingText(l))
		}
	}
	if len(all) != len(want) {
		t.Errorf("%d rows, want %d", len(all), len(want))
	}
}

func row(id, more string) string { return `{"instType":"SPOT","instId":"` + id + `",` + more + `}` }

// TestListing_gone: an instrument that is not named is no word about it, and no trouble of the exchange.
func TestListing_gone(t *testing.T) {
	for _, rows := range []string{data(``)(nil, market.Call{}).Body, `{"code":"51001","msg":"made up","data":[]}`} {
		v, _ := newVenue(t, func(*http.Request, market.Call) exchangetest.Reply { return exchangetest.Reply{Body: rows} })
		_, err := v.Listing(t.Context(), market.Listing{Exchange: "okx", Symbol: "X-Y", Pair: market.Pair{Base: "X", Quote: "Y"}})
		if e := failure(t, err); e.Kind != market.KindUnknownSymbol || e.Refusal != nil {
			t.Errorf("%s: %v", rows, err)
		}
	}
}

func TestListings_rows(t *testing.T) {
	f := func(r, want string) {
		t.Helper()
		var log bytes.Buffer
		good := row("AA-BB", `"state":"live"`) + "," + row("CC-DD", `"state":"live"`)
		v, _ := newVenue(t, data(good+","+r), func(c *exchange.Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
		all, err := exchangetest.Rows(t.Context(), v)
		if err != nil {
			t.Fatalf("%s: %v", r, err)
		}
		got := "left out"
		if len(all) == 3 {
			got = listingText(all[2])
		}
		if got != want {
			t.Errorf("%s: %s, want %s", r, got, want)
		}
		if logged := strings.Contains(log.String(), "skipped=1"); logged != (got == "left out") {
			t.Errorf("%s: log is %q", r, log.String())
		}
	}
	const none = " tick absent lot absent min absent"
	f(row("X-Y", `"state":"live","baseCcy":"X","quoteCcy":"Y"`), "X-Y X/Y trading"+none)
	f(row("X-Y", `"state":"live","baseCcy":"XX","quoteCcy":"YY"`), "X-Y XX/YY trading"+none) // the fields are the truth
	f(row("X-Y", `"state":"live","baseCcy":"X"`), "X-Y X/Y trading"+none)
	f(row("2Z-USDT", `"state":"live"`), "2Z-USDT 2Z/USDT trading"+none)
	f(row("柴犬-USDT", `"state":"live"`), "柴犬-USDT 柴犬/USDT trading"+none)
	for state, want := range map[string]string{
		"live": "trading", "suspend": "paused", "preopen": "paused", "test": "paused", "rebase": "paused", "settling": "paused",
		"post_only": "post_only", "": "trading", "a new word": "paused",
	} {
		f(row("X-Y", `"state":"`+state+`"`), "X-Y X/Y "+want+none)
	}
	f(row("X-Y", `"state":"preopen","openType":"call_auction"`), "X-Y X/Y auction"+none)
	f(row("X-Y", `"state":"live","tickSz":"0.000000000001","lotSz":"1","minSz":"1000000000"`), "X-Y X/Y trading tick 0.000000000001 lot 1 min 1000000000")
	f(row("X-Y", `"state":"live","tickSz":"1E-12"`), "X-Y X/Y trading tick 0.000000000001 lot absent min absent")
	f(row("X-Y", `"state":"live","tickSz":"0"`), "X-Y X/Y trading"+none)
	for _, bad := range []string{
		row("X-Y", `"state":"live","tickSz":"cheap"`), row("X-Y", `"state":"live","minSz":"-1"`), row("BTC-USDT-SWAP", `"state":"live"`),
		row("BTC-USD-220527", `"state":"live"`), row("BTC", `"state":"live"`), row("-BTC", `"state":"live"`), row("btc-usdt", `"state":"live"`),
		row("A B-C", `"state":"live"`), row("A/B-C", `"state":"live"`), row("", `"state":"live"`), row("AA-BB", `"state":"live"`),
		row("X-Y", `"baseCcy":"AA","quoteCcy":"BB"`), row("X-Y", `"baseCcy":"A/A","quoteCcy":"BB"`),
		`{"instType":"MARGIN","instId":"X-Y","state":"live"}`, `{"instType":"SWAP","instId":"X-Y","state":"live"}`, `{"instId":"X-Y"}`, `{}`, `7`, `"X-Y"`, `null`, `[]`,
	} {
		f(bad, "left out")
	}
}

func TestListings_absurd(t *testing.T) {
	for _, rows := range []string{
		``, `{}`, row("BTC-USDT-SWAP", `"state":"live"`), row("X-Y", `"state":"live"`) + `,{}`, row("X-Y", `"state":"live"`) + `,{},{}`,
	} {
		v, _ := newVenue(t, data(rows))
		all, err := exchangetest.Rows(t.Context(), v)
		if e := failure(t, err); e.Kind != market.KindMalformed || all != nil {
			t.Errorf("%s: %v, %v", rows, all, err)
		}
	}
}
