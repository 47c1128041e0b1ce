package binance

import (
	"net/http"
	"net/url"
	"strings"

	"exchange-gateway/internal/compat"
)

// base is the path of the endpoints that are answered.
const base = "/api/v3/"

func nameOf(path string) string { return strings.TrimPrefix(path, base) }

// venue is where calls belong that are not answered here.
const venue = "https://api.binance.com"

// notHere are Binance's endpoints below /api/v3 that read something: with a key, or public ones that the gateway does not
// pass on. Their sub-paths belong to them. What changes something comes by another method, whatever its path.
var notHere = []string{
	"account", "allOrderList", "allOrders", "historicalTrades", "myAllocations", "myFilters", "myPreventedMatches", "myTrades",
	"openOrderList", "openOrders", "order", "orderList", "rateLimit", "sor", "ticker", "userDataStream", "userListenToken",
}

// maxShown is the most of a path that is shown in an answer.
const maxShown = 200

// elsewhere is the answer about a path or method that is not served: 501 with the exchange's own address for what it has, so
// that a bot which is pointed here for its market data finds where its orders go, and 404 for what it has not.
func elsewhere(method, path string) *compat.Refusal {
	changes := method != http.MethodGet && method != http.MethodHead
	if !strings.HasPrefix(path, "/sapi/") && !(strings.HasPrefix(path, base) && (changes || reads(nameOf(path)))) {
		return refused(http.StatusNotFound, codeUnsupported, "This gateway answers the public market data of Binance spot, below "+
			base+" : there is no such path.")
	}
	shown := (&url.URL{Path: path}).EscapedPath()
	if len(shown) > maxShown {
		shown = shown[:maxShown] + "..."
	}
	return refused(http.StatusNotImplemented, codeUnsupported, "This gateway answers public market data only: it places no orders and "+
		"signs nothing. Send this call to "+venue+shown+" itself.")
}

// reads tells whether Binance has an endpoint of this name that is not answered here.
func reads(name string) bool {
	for _, n := range notHere {
		if name == n || strings.HasPrefix(name, n+"/") {
			return true
		}
	}
	return false
}
