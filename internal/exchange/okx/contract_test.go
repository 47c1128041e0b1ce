package okx_test

import (
	"net/http"
	"os"
	"testing"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/exchange/exchangetest"
	"exchange-gateway/internal/exchange/okx"
	"exchange-gateway/internal/market"
)

// fixtures are answers in the documented formats, by path.
func fixtures() exchangetest.Script {
	return exchangetest.Files(os.DirFS("testdata"), map[string]string{
		"/api/v5/market/books":                                     "http_get_books.json",
		"/api/v5/market/ticker":                                    "http_get_ticker.json",
		"/api/v5/public/instruments":                               "http_get_instruments.json",
		"/api/v5/public/instruments?instId=BTC-USDT&instType=SPOT": "http_get_instruments_one.json",
		"/api/v5/public/time":                                      "http_get_time.json",
		"/api/v5/system/status":                                    "http_get_status.json",
		"/api/v5/account/balance":                                  "http_get_account_balance.json",
		"/api/v5/asset/balances":                                   "http_get_asset_balances.json",
	})
}

// fakeCredential is well-formed and visibly nobody's.
func fakeCredential(demo bool) market.Credential {
	return market.Credential{
		Key:    market.NewSecret("00000000-0000-4000-8000-00000000e001"),
		Secret: market.NewSecret("EXAMPLE0EXAMPLE0EXAMPLE0EXAMPLE0"), Passphrase: market.NewSecret("Example-passphrase-1"),
		Demo: demo,
	}
}

func without(change func(*market.Credential)) market.Credential {
	c := fakeCredential(false)
	change(&c)
	return c
}

func TestContract(t *testing.T) {
	body := func(status int, b string) exchangetest.Reply { return exchangetest.Reply{Status: status, Body: b} }
	code := func(status int, c string) exchangetest.Reply {
		return body(status, `{"code":"`+c+`","data":[],"msg":"made up"}`)
	}
	exchangetest.Run(t, exchangetest.Subject{
		New: func(rt http.RoundTripper, d market.Door) (market.Venue, error) {
			return okx.New(exchange.Config{Transport: rt, Door: d})
		},
		Good:        fixtures(),
		Pair:        market.Pair{Base: "BTC", Quote: "USDT"},
		MaxDepth:    400,
		Credentials: []market.Credential{fakeCredential(false), fakeCredential(true)},
		BadCredentials: []market.Credential{
			without(func(c *market.Credential) { c.Passphrase = market.Secret{} }),
			without(func(c *market.Credential) { c.Key = market.NewSecret("organizations/00000000/apiKeys/00000000") }),
			without(func(c *market.Credential) {
				c.Secret = market.NewSecret("-----BEGIN EC PRIVATE KEY-----\nZmFrZQ==\n-----END EC PRIVATE KEY-----")
			}),
			without(func(c *market.Credential) { c.Secret = market.NewSecret("two words that are none") }),
			without(func(c *market.Credential) { c.Passphrase = market.NewSecret("with a line\nbreak in it") }),
		},
		CrossedBook: `{"code":"0","msg":"","data":[{"asks":[["64073.1","1","0","1"]],"bids":[["64073.2","1","0","1"]],"ts":"1796000000123","seqId":1}]}`,
		BadBooks: map[string]string{
			"no book":            `{"code":"0","msg":"","data":[]}`,
			"no data":            `{"code":"0","msg":""}`,
			"null data":          `{"code":"0","msg":"","data":null}`,
			"two books":          `{"code":"0","msg":"","data":[{"asks":[],"bids":[],"ts":"1"},{"asks":[],"bids":[],"ts":"1"}]}`,
			"no bids":            `{"code":"0","msg":"","data":[{"asks":[["2","1","0","1"]],"ts":"1796000000123"}]}`,
			"no asks":            `{"code":"0","msg":"","data":[{"bids":[["2","1","0","1"]],"ts":"1796000000123"}]}`,
			"null asks":          `{"code":"0","msg":"","data":[{"asks":null,"bids":[["2","1","0","1"]],"ts":"1796000000123"}]}`,
			"a price too few":    `{"code":"0","msg":"","data":[{"asks":[],"bids":[["2"]],"ts":"1796000000123"}]}`,
			"an empty price":     `{"code":"0","msg":"","data":[{"asks":[],"bids":[["","1","0","1"]],"ts":"1796000000123"}]}`,
			"a time in words":    `{"code":"0","msg":"","data":[{"asks":[],"bids":[],"ts":"now"}]}`,
			"a time in µs":       `{"code":"0","msg":"","data":[{"asks":[],"bids":[],"ts":"1796000000123000"}]}`,
			"a broken sequence":  `{"code":"0","msg":"","data":[{"asks":[],"bids":[],"ts":"1796000000123","seqId":1.5}]}`,
			"no code":            `{"msg":"","data":[{"asks":[],"bids":[],"ts":"1796000000123"}]}`,
			"a book in no array": `{"code":"0","msg":"","data":{"asks":[],"bids":[],"ts":"1796000000123"}}`,
		},
		UnknownError: `{"code":"59998","data":[],"msg":"made up"}`,
		BadBalances: map[string]string{
			"no data":             `{"code":"0","msg":""}`,
			"null data":           `{"code":"0","msg":"","data":null}`,
			"no list":             `{"code":"0","msg":"","data":[{"totalEq":"0","uTime":"1796000000600"}]}`,
			"a missing amount":    `{"code":"0","msg":"","data":[{"ccy":"BTC","frozenBal":"0","bal":"1","details":[{"ccy":"BTC","frozenBal":"0"}]}]}`,
			"an empty amount":     `{"code":"0","msg":"","data":[{"ccy":"BTC","availBal":"","availEq":"","frozenBal":"0","bal":"1","details":[{"ccy":"BTC","availBal":"","availEq":"","frozenBal":"0"}]}]}`,
			"a word as amount":    `{"code":"0","msg":"","data":[{"ccy":"BTC","availBal":"lots","frozenBal":"0","bal":"1","details":[{"ccy":"BTC","availBal":"lots","frozenBal":"0"}]}]}`,
			"frozen is missing":   `{"code":"0","msg":"","data":[{"ccy":"BTC","availBal":"1","bal":"1","details":[{"ccy":"BTC","availBal":"1"}]}]}`,
			"a row without asset": `{"code":"0","msg":"","data":[{"availBal":"1","frozenBal":"0","bal":"1","details":[{"availBal":"1","frozenBal":"0"}]}]}`,
			"a row of text":       `{"code":"0","msg":"","data":["BTC"]}`,
		},
		Errors: []exchangetest.ErrorCase{
			{Name: "unknown instrument", Op: market.OpOrderBook, Reply: code(200, "51001"), Kind: market.KindUnknownSymbol, Code: "51001"},
			{Name: "unknown instrument, ticker", Op: market.OpStatistics, Reply: code(200, "51001"), Kind: market.KindUnknownSymbol, Code: "51001"},
			{Name: "delisted", Op: market.OpOrderBook, Reply: code(200, "51012"), Kind: market.KindDelisted, Code: "51012"},
			{Name: "parameter", Op: market.OpOrderBook, Reply: code(400, "51000"), Kind: market.KindInvalid, Code: "51000", OurFault: true},
			{Name: "limit, 429", Op: market.OpOrderBook, Reply: body(429, `{"msg":"Too Many Requests","code":"50011"}`), Kind: market.KindRateLimited, Code: "50011", Scope: market.ScopeEndpoint},
			{Name: "limit, 200", Op: market.OpStatistics, Reply: body(200, `{"msg":"Too Many Requests","code":50011}`), Kind: market.KindRateLimited, Code: "50011", Scope: market.ScopeEndpoint},
			{Name: "limit, listings", Op: market.OpListings, Reply: code(429, "50011"), Kind: market.KindRateLimited, Code: "50011", Scope: market.ScopeEndpoint},
			{Name: "limit, account", Op: market.OpBalances, Reply: code(429, "50011"), Kind: market.KindRateLimited, Code: "50011", Scope: market.ScopeAccount},
			{Name: "limit, nothing said", Op: market.OpOrderBook, Reply: body(429, ""), Kind: market.KindRateLimited, Scope: market.ScopeEndpoint},
			{Name: "overload", Op: market.OpOrderBook, Reply: code(429, "50013"), Kind: market.KindUnavailable, Code: "50013"},
			{Name: "limit, plain text", Op: market.OpOrderBook, Reply: body(429, "Too Many Requests"), Kind: market.KindRateLimited, Scope: market.ScopeEndpoint},
			{Name: "block page", Op: market.OpOrderBook, Reply: body(403, "<html>blocked</html>"), Kind: market.KindBanned, Scope: market.ScopeIP},
			{Name: "block page, signed", Op: market.OpBalances, Reply: body(403, "error code: 1020"), Kind: market.KindBanned, Scope: market.ScopeIP},
			{Name: "geography", Op: market.OpOrderBook, Reply: code(200, "50121"), Kind: market.KindRestricted, Code: "50121", Scope: market.ScopeExchange},
			{Name: "geography, 451", Op: market.OpOrderBook, Reply: body(451, "<html>no</html>"), Kind: market.KindRestricted, Scope: market.ScopeExchange},
			{Name: "maintenance", Op: market.OpOrderBook, Reply: code(503, "50001"), Kind: market.KindMaintenance, Code: "50001"},
			{Name: "maintenance, account", Op: market.OpBalances, Reply: code(503, "50001"), Kind: market.KindMaintenance, Code: "50001"},
			{Name: "system error", Op: market.OpListings, Reply: code(500, "50026"), Kind: market.KindUnavailable, Code: "50026"},
			{Name: "timeout inside", Op: market.OpOrderBook, Reply: code(400, "50004"), Kind: market.KindTimeout, Code: "50004"},
			{Name: "key of elsewhere", Op: market.OpBalances, Reply: code(401, "50119"), Kind: market.KindAuth, Code: "50119", Scope: market.ScopeAccount},
			{Name: "signature", Op: market.OpBalances, Credential: 1, Reply: code(401, "50113"), Kind: market.KindAuth, Code: "50113", Scope: market.ScopeAccount},
			{Name: "clock", Op: market.OpBalances, Reply: code(401, "50102"), Kind: market.KindClockSkew, Code: "50102"},
			{Name: "identity", Op: market.OpBalances, Reply: code(200, "50060"), Kind: market.KindRestricted, Code: "50060", Scope: market.ScopeAccount},
			{Name: "redirect", Op: market.OpBalances, Reply: body(301, ""), Kind: market.KindUnavailable},
			{Name: "something new", Op: market.OpOrderBook, Reply: code(200, "50999"), Kind: market.KindMalformed, Code: "50999", Scope: market.ScopeSymbol},
			{Name: "a ticker of another pair", Op: market.OpStatistics, Reply: body(200, `{"code":"0","msg":"","data":[{"instType":"SPOT","instId":"ETH-USDT","last":"1","ts":"1796000000464"}]}`), Kind: market.KindMalformed},
			{Name: "an empty list", Op: market.OpListings, Reply: body(200, `{"code":"0","msg":"","data":[]}`), Kind: market.KindMalformed},
			{Name: "a list of contracts", Op: market.OpListings, Reply: body(200, `{"code":"0","msg":"","data":[{"instType":"SWAP","instId":"BTC-USDT-SWAP"}]}`), Kind: market.KindMalformed},
		},
	})
}
