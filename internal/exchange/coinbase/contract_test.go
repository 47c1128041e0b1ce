package coinbase_test

import (
	"net/http"
	"os"
	"testing"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/exchange/coinbase"
	"exchange-gateway/internal/exchange/exchangetest"
	"exchange-gateway/internal/market"
)

func TestContract(t *testing.T) {
	html := http.Header{"Content-Type": {"text/html; charset=UTF-8"}}
	exchangetest.Run(t, exchangetest.Subject{
		New: func(transport http.RoundTripper, door market.Door) (market.Venue, error) {
			return coinbase.New(exchange.Config{Transport: transport, Door: door})
		},
		Good:        exchangetest.Files(os.DirFS("testdata"), fixtures()),
		Pair:        market.Pair{Base: "BTC", Quote: "USD"},
		MaxDepth:    1000,
		Credentials: []market.Credential{advancedKey(), ed25519Key(), exchangeKey()},
		BadCredentials: []market.Credential{
			credential(exampleKeyName, "not a key", ""),
			credential(exampleKeyName, exampleEC, "a-passphrase"),
			credential("EXAMPLElegacyKey", "EXAMPLElegacySecretEXAMPLElegacy", ""),
			credential("EXAMPLE\nKEY", exampleExchange, "a-passphrase"),
			credential("EXAMPLEKEY", "c2hvcnQ=", "a-passphrase"),
			credential("EXAMPLEKEY", exampleExchange, ""),
		},
		CrossedBook: book("BTC-USD", `{"price":"100.2","size":"1"}`, `{"price":"100.1","size":"1"}`),
		BadBooks: map[string]string{
			"no such book":  `{"pricebook":null}`,
			"no bids":       `{"pricebook":{"product_id":"BTC-USD","asks":[],"time":"2026-11-29T02:00:00Z"}}`,
			"null asks":     `{"pricebook":{"product_id":"BTC-USD","bids":[],"asks":null}}`,
			"no product":    `{"pricebook":{"bids":[],"asks":[]}}`,
			"another pair":  book("ETH-USD", `{"price":"100.1","size":"1"}`, ""),
			"no size":       book("BTC-USD", `{"price":"100.1"}`, ""),
			"empty price":   book("BTC-USD", `{"price":"","size":"1"}`, ""),
			"a word":        book("BTC-USD", `{"price":"NaN","size":"1"}`, ""),
			"a wrong stamp": `{"pricebook":{"product_id":"BTC-USD","bids":[],"asks":[],"time":"yesterday"}}`,
			"two books":     `{"pricebook":{"product_id":"BTC-USD","bids":[],"asks":[]},"pricebook":{"product_id":"BTC-USD","bids":[],"asks":[]}}`,
			"bids twice":    `{"pricebook":{"product_id":"BTC-USD","bids":[],"asks":[],"bids":[]}}`,
			"an error":      `{"error":"NEW","message":"something else"}`,
		},
		UnknownError: `{"error":"MADE_UP","error_details":"made up","message":"made up"}`,
		BadBalances: map[string]string{
			"no list":         `{"accounts":{},"has_next":false,"cursor":"","size":0}`,
			"null list":       `{"accounts":null}`,
			"no amount":       `{"accounts":[{"uuid":"1","currency":"BTC","active":true,"hold":{"value":"0"}}]}`,
			"empty amount":    `[{"id":"1","currency":"BTC","balance":"1","hold":"","available":"1"}]`,
			"a word":          `{"accounts":[{"uuid":"1","currency":"BTC","active":true,"available_balance":{"value":"many"},"hold":{"value":"0"}}]}`,
			"a bare list":     `[{"id":"1","currency":"BTC","hold":"1","available":"1"}]`,
			"without an id":   `[{"id":"1","currency":"","balance":"1","hold":"0","available":"1"}]`,
			"under a message": `{"message":"something else","accounts":null}`,
		},
		Errors: []exchangetest.ErrorCase{
			{
				Name: "unknown product", Op: market.OpOrderBook, Kind: market.KindUnknownSymbol, Code: "NOT_FOUND",
				Reply: exchangetest.Reply{Status: 404, Body: `{"error":"NOT_FOUND","message":"product not found"}`},
			},
			{
				Name: "451", Op: market.OpOrderBook, Kind: market.KindRestricted, Scope: market.ScopeExchange,
				Reply: exchangetest.Reply{Status: 451},
			},
			{
				Name: "451 to a key", Op: market.OpBalances, Kind: market.KindRestricted, Scope: market.ScopeAccount,
				Reply: exchangetest.Reply{Status: 451},
			},
			{
				Name: "public limit", Op: market.OpOrderBook, Kind: market.KindRateLimited, Code: "rate_limit_exceeded", Scope: market.ScopePublic,
				Reply: exchangetest.Reply{Status: 429, Body: `{"errors":[{"id":"rate_limit_exceeded","message":"Too many requests"}]}`},
			},
			{
				Name: "private limit", Op: market.OpBalances, Credential: 2, Kind: market.KindRateLimited, Scope: market.ScopeAccount,
				Reply: exchangetest.Reply{Status: 429, Body: `{"message":"Private rate limit exceeded"}`},
			},
			{
				Name: "CDN block", Op: market.OpOrderBook, Kind: market.KindBanned, Scope: market.ScopeIP,
				Reply: exchangetest.Reply{Status: 403, Header: html, Body: "<html><title>Access denied</title></html>"},
			},
			{
				Name: "CDN limit", Op: market.OpBalances, Kind: market.KindBanned, Scope: market.ScopeIP,
				Reply: exchangetest.Reply{Status: 429, Header: html, Body: "<html>Error 1015</html>"},
			},
			{
				Name: "unauthorized", Op: market.OpBalances, Kind: market.KindAuth, Scope: market.ScopeAccount,
				Reply: exchangetest.Reply{Status: 401, Body: "Unauthorized"},
			},
			{
				Name: "clock", Op: market.OpBalances, Credential: 2, Kind: market.KindClockSkew,
				Reply: exchangetest.Reply{Status: 401, Body: `{"message":"request timestamp expired"}`},
			},
			{
				Name: "maintenance", Op: market.OpStatistics, Kind: market.KindMaintenance,
				Reply: exchangetest.Reply{Status: 503, Body: `{"message":"down for maintenance"}`},
			},
			{
				Name: "503", Op: market.OpOrderBook, Kind: market.KindUnavailable, Reply: exchangetest.Reply{Status: 503},
			},
			{
				Name: "our request", Op: market.OpListings, Kind: market.KindInvalid, OurFault: true, Code: "INVALID_ARGUMENT",
				Reply: exchangetest.Reply{Status: 400, Body: `{"error":"INVALID_ARGUMENT","message":"unknown product_type"}`},
			},
		},
	})
}

// book is an answer with the bids and asks given.
func book(product, bids, asks string) string {
	return `{"pricebook":{"product_id":"` + product + `","bids":[` + bids + `],"asks":[` + asks + `],"time":"2026-11-29T02:00:00.123456Z"}}`
}
