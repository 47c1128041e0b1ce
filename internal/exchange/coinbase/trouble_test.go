package coinbase_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/exchange/coinbase"
	"exchange-gateway/internal/market"
)

// trouble is something that went wrong for others in the field: the test that it is not so here, or why it cannot be.
type trouble struct {
	where string
	not   string // why it is none of this adapter's
	test  func(*testing.T)
}

// troubles are the known ones, by their number in the venue's reference.
var troubles = map[int]trouble{
	1:  {where: "ccxt/ccxt#19844, #23896, #21399, #8033: only the first page of balances", test: TestPortfolio_allPages},
	2:  {where: "ccxt/ccxt#20044: USD or USDC missing", test: TestPortfolio},
	3:  {where: "ccxt/ccxt#16944: the limit of accounts is found by trial", test: TestPortfolio_allPagesOrNone},
	4:  {where: "ccxt/ccxt#22114: BTC/USDC hangs, its data is called BTC-USD", test: TestOrderBook_ofAnAlias},
	5:  {where: "ccxt/ccxt#26465, #30567: a USDC book is labelled USD", test: TestOrderBook_ofAnAlias},
	6:  {where: "ccxt/ccxt#23597: frame larger than the limit", test: TestStream_large},
	7:  {where: "barrywood78/Coinbase.AdvancedTrade#12: buffer too small", test: TestStream_large},
	8:  {where: "hummingbot/hummingbot#7220: oversized frame", test: TestStream_large},
	9:  {where: "hummingbot/hummingbot#6887: failed subscription", test: TestStream_late},
	10: {where: "hummingbot/hummingbot#6458: duplicate heartbeats", test: TestStream_sequence},
	11: {where: "JKorf/Coinbase.Net#19: too many L2 streams", test: TestStream_errors},
	12: {where: "coinbase/coinbase-advanced-py#132: 401 for valid tokens now and then", test: TestFreshToken},
	13: {where: "coinbase/coinbase-advanced-py#60: throttled with 401", test: throttledWith401},
	14: {where: "coinbase/coinbase-advanced-py#19: authentication failure that comes and goes", test: TestStream_errors},
	15: {where: "ccxt/ccxt#22182: escaped line breaks in the PEM", test: TestToken_knownVectors},
	16: {where: "ccxt/ccxt#25481, rotki/rotki#11039: Ed25519 keys", test: TestToken_ofARequest},
	17: {where: "coinbase-samples/exchange-scripts-py#16, #18: a key of one system used on the other", test: TestBalances_noFallback},
	18: {where: "bmoscon/cryptofeed#990: level2 began to need a key", test: TestStream_errors},
	19: {where: "ccxt/ccxt#19636: a 502 page with a captcha for /products", test: captchaPage},
	20: {where: "coinbase/coinbase-node#55, coinbase/coinbase-ruby#16: a 504 page of 197,830 bytes", test: longPage},
	21: {where: "askmike/gekko#2702: a retired host answers with a page of the CDN", test: retiredHost},
	22: {where: "ccxt/ccxt#848, pashky/restclient.el#202: 400 without a User-Agent", test: everyRequestNamesUs},
	23: {where: "bennycode/coinbase-pro-node#354: NaN as time, 400 request timeout", test: TestExchangeRequest_isSigned},
	24: {where: "danpaquin/coinbasepro-python#453: expired although NTP was on", test: TestClock_readOnce},
	25: {where: "ccxt/ccxt#6448: 429 taken for something else", test: TestGates},
	26: {where: "ccxt/ccxt#22892: quiet books time out", test: TestStream_silence},
	27: {where: "danpaquin/coinbasepro-python#89: silent after hours", test: TestStream_silence},
	28: {where: "danpaquin/coinbasepro-python#276: quiet channel closed", test: TestStream_silence},
	29: {where: "bmoscon/cryptostore#28: code 1006", test: TestStream_dial},
	30: {where: "coinbase/coinbase-pro-node#183: zero compared with the text \"0\"", test: TestOrderBook_numbers},
	31: {where: "coinbase/coinbase-pro-node#372: crossed books", test: TestOrderBook_suspect},
	32: {where: "coinbase/coinbase-pro-node#227: heartbeats taken for gaps", test: TestStream_sequence},
	33: {where: "knowm/XChange#3554: a hole in the matches", not: "trades are not served"},
	34: {where: "bennycode/coinbase-pro-node#102: reconnect without subscribing", test: newConnection},
	35: {where: "ccxt/ccxt#27606: only the first trade of a frame", not: "trades are not served"},
	36: {where: "danpaquin/coinbasepro-python#347, celo-org/celo-oracle#109: limit-only taken for an outage", test: TestListings_states},
	37: {where: "coinbase/coinbase-pro-node#272: the same cached answer for minutes", test: cachedBook},
	38: {where: "sefbkn/gdax.netcore#13: a line break inside the key", test: TestAccount_refusesWhatCannotWork},
}

func TestKnownTrouble(t *testing.T) {
	const known = 38
	for n := 1; n <= known; n++ {
		c, ok := troubles[n]
		if !ok || (c.test == nil) == (c.not == "") {
			t.Errorf("%d: neither a test nor a reason, or both", n)
			continue
		}
		if c.test != nil {
			t.Run(c.where, c.test)
		}
	}
}

// throttledWith401: three in a row hold the account for a while, whatever was meant, and the books go on.
func throttledWith401(t *testing.T) {
	e, _ := ask(t, "advanced", plain(401, "Unauthorized"))
	if r := e.Refusal; r == nil || r.After != 3 || r.First != 30*time.Second || r.Scope.Kind != market.ScopeAccount {
		t.Errorf("refusal %+v", r)
	}
}

func captchaPage(t *testing.T) {
	e, _ := ask(t, "list", html(502, `<!DOCTYPE html><title>Coinbase Error</title><div id="captcha-placeholder"></div>`))
	if e.Kind != market.KindUnavailable || e.Refusal != nil {
		t.Errorf("%v closes %+v", e, e.Refusal)
	}
}

func longPage(t *testing.T) {
	e, _ := ask(t, "book", html(504, "<html>"+strings.Repeat("a", 197_830)))
	if e.Kind != market.KindUnavailable || len(e.Error()) > 200 {
		t.Errorf("%v", e)
	}
}

// newConnection: it knows no book until one is subscribed on it, and none has anything to show before its snapshot.
func newConnection(t *testing.T) {
	s := newStream(t)
	s.want(s.frame("l2_data", event("snapshot", "A-USD", "bid 1 1")))
	s.subscribe("A-USD")
	s.want(s.frame("l2_data", event("update", "A-USD", "bid 1 2")), "lost A-USD resubscribe suspect")
}

// retiredHost: it is our configuration that is wrong, so the error asks for it.
func retiredHost(t *testing.T) {
	e, _ := ask(t, "book", html(409, "<html>Error 1018 Could not find host</html>"))
	if e.Kind != market.KindUnavailable || e.Host == "" || !strings.Contains(e.Error(), "`hosts`") {
		t.Errorf("%v", e)
	}
}

func everyRequestNamesUs(t *testing.T) {
	v, f := newVenue(t)
	for _, c := range []market.Credential{advancedKey(), exchangeKey()} {
		if _, err := newAccount(t, v, c).Balances(t.Context(), market.WalletTrading); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := v.OrderBook(t.Context(), btcUSD(), 1); err != nil {
		t.Fatal(err)
	}
	for _, r := range f.requests {
		if r.Header.Get("User-Agent") == "" || r.Method != http.MethodGet {
			t.Errorf("%s %s %v", r.Method, r.URL.Path, r.Header)
		}
	}
}

// cachedBook: a copy out of a cache is as old as it says, and its stamp tells it from the book after it.
func cachedBook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, f := newVenue(t)
		old := says(200, book("BTC-USD", `{"price":"1","size":"1"}`, ""))
		old.header = map[string]string{"Age": "180", "Cf-Cache-Status": "HIT"}
		newer := says(200, strings.Replace(old.body, "02:00:00.123456", "02:03:00", 1))
		f.on(bookPath, newer, old)
		first, err := v.OrderBook(t.Context(), btcUSD(), 1)
		if err != nil {
			t.Fatal(err)
		}
		second, err := v.OrderBook(t.Context(), btcUSD(), 1)
		if err != nil {
			t.Fatal(err)
		}
		if age, ok := second.Age(time.Now()); !ok || age != 3*time.Minute || second.Compare(first) != -1 {
			t.Errorf("age %v, compares %d", age, second.Compare(first))
		}
	})
}

// TestRestricted_clock: hosts of Exchange serve us nothing but its accounts, so a 451 to their keyless /time shuts no book.
func TestRestricted_clock(t *testing.T) {
	v, f := newVenue(t)
	f.on("/time", says(451, ""))
	if _, err := newAccount(t, v, exchangeKey()).Balances(t.Context(), market.WalletTrading); err != nil {
		t.Fatal(err)
	}
	want := market.Scope{Kind: market.ScopePublic, Name: "exchange"}
	if e := f.observed[0].Err; e == nil || e.Kind != market.KindRestricted || e.Refusal == nil || e.Refusal.Scope != want {
		t.Errorf("the door was told %v", e)
	}
}

func TestNew_refusesBadConfiguration(t *testing.T) {
	door := &fakeCoinbase{t: t, script: make(map[string][]answer)}
	for name, cfg := range map[string]exchange.Config{
		"no door":       {},
		"region":        {Door: door, Region: "mars"},
		"host":          {Door: door, Hosts: []string{"api.coinbase.com"}},
		"account host":  {Door: door, AccountHosts: []string{"ftp://x.example"}},
		"stream host":   {Door: door, StreamHosts: []string{"stream.example"}},
		"host and user": {Door: door, Hosts: []string{"https://me:secret@x.example"}},
	} {
		if v, err := coinbase.New(cfg); err == nil || v != nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, %v", name, v, err)
		}
	}
	v, err := coinbase.New(exchange.Config{ID: "other", Door: door, Region: "global"})
	if err != nil || v.ID() != "other" || v.Plan(market.OpListings, market.Listing{}, 0).Exchange != "other" {
		t.Errorf("%v, %v", v, err)
	}
}

// TestHosts_giveWay: a place on earth that one host refuses, another may serve; only the last one shuts the exchange.
func TestHosts_giveWay(t *testing.T) {
	v, f := newVenueAt(t, exchange.Config{Hosts: []string{"https://one.example", "https://two.example"}})
	f.on(bookPath, says(451, ""), says(451, ""))
	_, err := v.OrderBook(t.Context(), btcUSD(), 1)
	if e := asError(t, err); e.Kind != market.KindRestricted || e.Refusal == nil || f.asked(bookPath) != 2 {
		t.Errorf("%v after %d requests", err, f.asked(bookPath))
	}
	if f.observed[0].Err.Refusal != nil || f.observed[1].Err.Refusal == nil {
		t.Error("the exchange is shut by its last host, not by its first")
	}
}
