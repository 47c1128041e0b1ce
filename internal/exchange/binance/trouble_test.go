package binance_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/exchange/exchangetest"
	"exchange-gateway/internal/market"
)

// knownTrouble is what users of other clients of Binance ran into, and the test that keeps it from happening here. What
// keepers of connections and books do wrong is tested where those are kept.
var knownTrouble = []struct{ trouble, test string }{
	{"snapshots of many symbols lead to 429, then 418: each says beforehand what it costs", "TestOrderBook_tiers"},
	{"retrying a 429 after 1, 2, 4 s ends in a ban", "TestTrouble_bareLimitWaitsForTheMinute"},
	{"bans of 179 to 720 s are heeded", "TestRefusals_lastAsLongAsTheyShould"},
	{"limits that are written down go stale", "TestListings_statesLimits"},
	{"pages of the CDN crash the JSON decoder; 404 with an empty body; 500 with a page", "TestErrors"},
	{"the firewall's answer is taken for a typed error of the API", "TestTrouble_firewallIsNoKeyError"},
	{"451 with code 0 from a region: code 0 taken for success, each poll logged and repeated", "TestHosts"},
	{"-1021 although the clocks hardly differ", "TestTrouble_skewIsMeasuredAgain"},
	{"signature: not last, of another encoding than what is sent, of an @ or a symbol in Chinese", "TestSign_onTheWire"},
	{"signature of percent-encoded text", "TestSign_vectors"},
	{"a symbol in Chinese characters", "TestSymbols_anyCharacter"},
	{"-2015 from a whitelist, a wrong host or a passing block: an account's trouble, and not after one answer", "TestRefusals_ofAKey"},
	{"an error body decoded as a wallet without money", "TestBalances_refuses"},
	{"receipts of Earn (LD...) added to coins", "TestBalances"},
	{"maintenance ends the process; a status read the wrong way round reports it for ever", "TestStatus"},
	{"delisted symbols whose zero quotes are taken as live", "TestStatistics_forms"},
	{"BREAK taken for delisted, or for trading", "TestListings"},
	{"depths that are no longer an enumeration", "TestOrderBook_tiers"},
	{"amounts printed with an exponent", "TestTrouble_noExponent"},
	{"the list of symbols of a maintenance, in which nothing trades, is still a list", "TestTrouble_maintenanceKeepsTheList"},
	{"microseconds for milliseconds", "TestTime_microseconds"},
	{"a URL with a signature in an error", "TestContract"},
	{"a book that never syncs because its events are thrown away with each snapshot that is too old", "TestStream_snapshotTooOld"},
	{"a snapshot from before the stream: changes lost without a word", "TestStream_firstEvent"},
	{"a first event that straddles the snapshot taken for a gap, or one that starts right after it", "TestStream_firstEvent"},
	{"an event that overlaps taken for a gap", "TestStream_repeatsAndOverlaps"},
	{"an old snapshot that takes back newer changes; minutes without a book at each refresh", "TestStream_refresh"},
	{"the best levels alone taken for changes", "TestStream_ignores"},
	{"a burst of subscriptions that ends in 1008, one message after the other", "TestStream_bounded"},
	{"more than 1,024 streams; a long message that fails without a word", "TestStream_longNames"},
	{"a good connection that is closed because pings came every 3 minutes only", "TestStream_patience"},
}

func TestTrouble_isTested(t *testing.T) {
	files, err := filepath.Glob("*_test.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	var all strings.Builder
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(b)
	}
	for _, k := range knownTrouble {
		if !strings.Contains(all.String(), "func "+k.test+"(t *testing.T)") {
			t.Errorf("%s: there is no test %s", k.trouble, k.test)
		}
	}
}

// TestTrouble_bareLimitWaitsForTheMinute: whenever in a minute the limit is hit, the gate opens in the first two seconds
// of the exchange's next one, at the same wait for the first and for the third time.
func TestTrouble_bareLimitWaitsForTheMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, second := range []int{0, 1, 30, 58, 59} {
			now := time.Now().Truncate(time.Minute).Add(time.Minute + time.Duration(second)*time.Second)
			time.Sleep(time.Until(now))
			for range 3 {
				v, _ := venueOn(t, func(*http.Request, market.Call) exchangetest.Reply {
					p := refusal(429, -1003)
					p.Header = http.Header{"Date": {time.Now().UTC().Format(http.TimeFormat)}}
					return p
				})
				_, err := v.OrderBook(t.Context(), btcusdt, 100)
				at := asError(t, err).Refusal.NotBefore
				if into := at.Sub(now.Truncate(time.Minute)) - time.Minute; into < 0 || into > 2*time.Second {
					t.Errorf("second %d: opens %v into the next minute", second, into)
				}
			}
		}
	})
}

func TestTrouble_firewallIsNoKeyError(t *testing.T) {
	reply := exchangetest.Reply{
		Status: 403, Header: http.Header{"Content-Type": {"text/html"}, "X-Cache": {"Error from cloudfront"}}, Body: htmlBlocked,
	}
	_, err := answerBalances(t, always(reply))
	if e := asError(t, err); e.Kind != market.KindBanned || e.Code != "" || scopeOf(e) != market.ScopeIP {
		t.Errorf("got %v, closes %q", err, scopeOf(e))
	}
}

// TestTrouble_skewIsMeasuredAgain: the exchange's refusal of a time is answered with a new measurement, not with a wider
// window: that never helps a clock that is ahead.
func TestTrouble_skewIsMeasuredAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const drift = 1500 * time.Millisecond
		var theirs time.Duration // their clock less ours
		v, _ := venueOn(t, func(r *http.Request, c market.Call) exchangetest.Reply {
			now := time.Now().Add(theirs)
			if c.Op == market.OpTime {
				return exchangetest.Reply{Body: fmt.Sprintf(`{"serverTime":%d}`, now.UnixMilli())}
			}
			if r.URL.Query().Get("timestamp") > fmt.Sprint(now.Add(time.Second).UnixMilli()) {
				return refusal(400, -1021)
			}
			return good(r, c)
		})
		a := account(t, v, credential(exampleSecret))
		if _, err := a.Balances(t.Context(), market.WalletTrading); err != nil {
			t.Fatal(err)
		}
		theirs = -drift // their clock was set back, so ours is ahead
		_, err := a.Balances(t.Context(), market.WalletTrading)
		same(t, "kind", asError(t, err).Kind, market.KindClockSkew)
		if _, err := a.Balances(t.Context(), market.WalletTrading); err != nil {
			t.Errorf("after a refused time: %v", err)
		}
	})
}

func TestTrouble_noExponent(t *testing.T) {
	v, _ := venueOn(t, body(`{"lastUpdateId":1,"bids":[["8.1e-7","1E3"]],"asks":[["0.00000082","12345678901234567890.5"]]}`))
	book, err := v.OrderBook(t.Context(), btcusdt, 100)
	if err != nil {
		t.Fatal(err)
	}
	got := string(book.AppendAsks(book.AppendBids(nil, 100), 100))
	same(t, "text", got, `[["0.00000081","1000"]][["0.00000082","12345678901234567890.5"]]`)
}

func TestTrouble_maintenanceKeepsTheList(t *testing.T) {
	v, _ := venueOn(t, func(r *http.Request, c market.Call) exchangetest.Reply {
		p := good(r, c)
		p.Body = strings.ReplaceAll(p.Body, `"TRADING"`, `"BREAK"`)
		return p
	})
	list, err := exchangetest.Rows(t.Context(), v)
	if err != nil || len(list) != 11 {
		t.Fatalf("%d listings, %v", len(list), err)
	}
	for _, l := range list {
		if l.Status == market.TradingActive || l.Status == market.TradingDelisted {
			t.Errorf("%s is %s", l.Symbol, l.Status)
		}
	}
}
