package binance_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/exchange/binance"
	"exchange-gateway/internal/exchange/exchangetest"
	"exchange-gateway/internal/market"
)

var btcusdt = market.Listing{
	Exchange: binance.ID, Pair: market.Pair{Base: "BTC", Quote: "USDT"}, Symbol: "BTCUSDT", Status: market.TradingActive,
}

var good = exchangetest.Files(os.DirFS("testdata"), map[string]string{
	"/api/v3/depth":                       "http_get_depth.json",
	"/api/v3/ticker/24hr":                 "http_get_ticker_24hr.json",
	"/api/v3/ticker/price":                "http_get_ticker_price.json",
	"/api/v3/exchangeInfo":                "http_get_exchange_info.json",
	"/api/v3/exchangeInfo?symbol=BTCUSDT": "http_get_exchange_info_symbol.json",
	"/api/v3/time":                        "http_get_time.json",
	"/api/v3/account":                     "http_get_account.json",
	"/sapi/v1/system/status":              "http_get_system_status.json",
})

// exampleKey and exampleSecret have the form of Binance's and are no one's.
var (
	exampleKey    = strings.Repeat("EXAMPLExKEYxNOTxREALx", 4)[:64]
	exampleSecret = strings.Repeat("EXAMPLExSECRETxNOTxREALx", 4)[:64]
)

func credential(secret string) market.Credential {
	return market.Credential{Key: market.NewSecret(exampleKey), Secret: market.NewSecret(secret)}
}

func pkcs8(key any) string {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		panic(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// exampleEd25519 is made of the seed 0x01..0x20.
func exampleEd25519() ed25519.PrivateKey {
	seed := make([]byte, ed25519.SeedSize)
	for i := range seed {
		seed[i] = byte(i + 1)
	}
	return ed25519.NewKeyFromSeed(seed)
}

var exampleRSA = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

func TestContract(t *testing.T) {
	exchangetest.Run(t, exchangetest.Subject{
		New: func(transport http.RoundTripper, door market.Door) (market.Venue, error) {
			return binance.New(exchange.Config{Transport: transport, Door: door})
		},
		Good:        good,
		Pair:        btcusdt.Pair,
		MaxDepth:    5000,
		Credentials: []market.Credential{credential(exampleSecret), credential(pkcs8(exampleEd25519())), credential(pkcs8(exampleRSA()))},
		BadCredentials: []market.Credential{
			credential(""),
			{Secret: market.NewSecret(exampleSecret)},
			credential("with a space in the middle of it"),
			credential("-----BEGIN PRIVATE KEY-----\nbm90IGEga2V5\n-----END PRIVATE KEY-----\n"),
		},
		CrossedBook: `{"lastUpdateId":1,"bids":[["101.00","1"]],"asks":[["100.00","1"]]}`,
		BadBooks: map[string]string{
			"no bids":        `{"lastUpdateId":1,"asks":[["100.00","1"]]}`,
			"no asks":        `{"lastUpdateId":1,"bids":[["100.00","1"]]}`,
			"null bids":      `{"lastUpdateId":1,"bids":null,"asks":[["100.00","1"]]}`,
			"no id":          `{"bids":[["99.00","1"]],"asks":[["100.00","1"]]}`,
			"bids twice":     `{"lastUpdateId":1,"bids":[["99","1"]],"bids":[["98","1"]],"asks":[]}`,
			"a price NaN":    `{"lastUpdateId":1,"bids":[["NaN","1"]],"asks":[]}`,
			"a size missing": `{"lastUpdateId":1,"bids":[["99"]],"asks":[]}`,
		},
		UnknownError: `{"code":-9998,"msg":"Made up."}`,
		BadBalances: map[string]string{
			"no list":          `{"accountType":"SPOT","updateTime":1}`,
			"null":             `{"balances":null}`,
			"free is empty":    `{"balances":[{"asset":"BTC","free":"","locked":"0"}]}`,
			"free is missing":  `{"balances":[{"asset":"BTC","locked":"0"}]}`,
			"locked is null":   `{"balances":[{"asset":"BTC","free":"1","locked":null}]}`,
			"locked is a word": `{"balances":[{"asset":"BTC","free":"1","locked":"none"}]}`,
			"no asset":         `{"balances":[{"free":"1","locked":"0"}]}`,
			"an asset twice":   `{"balances":[{"asset":"BTC","free":"1","locked":"0"},{"asset":"BTC","free":"2","locked":"0"}]}`,
			"rows are text":    `{"balances":["BTC"]}`,
		},
		Natives: []market.NativeQuery{{Endpoint: "ticker/price", Query: "symbol=BTCUSDT"}, {Endpoint: "exchangeInfo"}},
		Errors:  contractErrors,
	})
}

// contractErrors is the part of the error table that the contract needs; errors_test.go has all of it.
var contractErrors = []exchangetest.ErrorCase{
	{
		Name: "unknown symbol", Op: market.OpOrderBook, Reply: refusal(400, -1121), Kind: market.KindUnknownSymbol, Code: "-1121",
	},
	{
		Name: "illegal characters", Op: market.OpStatistics, Reply: refusal(400, -1100), Kind: market.KindInvalid, Code: "-1100",
		OurFault: true,
	},
	{
		Name: "unknown symbol in a question of its own form", Op: market.OpNative, Reply: refusal(400, -1121),
		Kind: market.KindUnknownSymbol, Code: "-1121",
	},
	{
		Name: "a caller's own illegal characters", Op: market.OpNative, Reply: refusal(400, -1100), Kind: market.KindInvalid,
		Code: "-1100",
	},
	{
		Name: "limit of a question of its own form", Op: market.OpNative, Reply: refusal(429, -1003),
		Kind: market.KindRateLimited, Code: "-1003", Scope: market.ScopeIP,
	},
	{
		Name: "dead key", Op: market.OpBalances, Reply: refusal(401, -2015), Kind: market.KindAuth, Code: "-2015",
		Scope: market.ScopeAccount,
	},
	{
		Name: "skewed clock", Op: market.OpBalances, Credential: 1, Reply: refusal(400, -1021), Kind: market.KindClockSkew,
		Code: "-1021",
	},
	{
		Name: "geography", Op: market.OpListings, Reply: refusal(451, 0), Kind: market.KindRestricted, Code: "0",
		Scope: market.ScopeExchange,
	},
	{
		Name: "geography of the account hosts", Op: market.OpBalances, Reply: refusal(451, 0), Kind: market.KindRestricted,
		Code: "0", Scope: market.ScopeEndpoint,
	},
	{
		Name: "geography of the status", Op: market.OpStatus, Reply: refusal(451, 0), Kind: market.KindRestricted,
		Code: "0", Scope: market.ScopeEndpoint,
	},
	{
		Name: "limit", Op: market.OpOrderBook, Reply: refusal(429, -1003), Kind: market.KindRateLimited, Code: "-1003",
		Scope: market.ScopeIP,
	},
	{
		Name: "limit of an account call", Op: market.OpBalances, Reply: refusal(429, -1003), Kind: market.KindRateLimited,
		Code: "-1003", Scope: market.ScopeIP,
	},
	{
		Name: "limit of the status", Op: market.OpStatus, Reply: refusal(429, -1003), Kind: market.KindRateLimited,
		Code: "-1003", Scope: market.ScopeIP,
	},
	{
		Name: "ban", Op: market.OpOrderBook, Reply: refusal(418, -1003), Kind: market.KindBanned, Code: "-1003",
		Scope: market.ScopeIP,
	},
	{
		Name: "firewall", Op: market.OpListings, Reply: exchangetest.Reply{Status: 403, Body: "<html>Request blocked.</html>"},
		Kind: market.KindBanned, Scope: market.ScopeIP,
	},
	{
		Name: "overloaded", Op: market.OpOrderBook, Reply: refusal(503, -1008), Kind: market.KindUnavailable, Code: "-1008",
	},
	{
		Name: "shut down", Op: market.OpBalances, Reply: refusal(503, -1016), Kind: market.KindMaintenance, Code: "-1016",
	},
}
