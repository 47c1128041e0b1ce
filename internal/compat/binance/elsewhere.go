package binance

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"exchange-gateway/internal/compat"
)

// base is the path of the endpoints that are answered.
const base = "/api/v3/"

func nameOf(path string) string { return strings.TrimPrefix(path, base) }

// venue is where calls belong that are not answered here.
const venue = "https://api.binance.com"

// withKey are Binance's endpoints below /api/v3 that read something with a key. Their sub-paths belong to them. What changes
// something comes by another method, whatever its path.
var withKey = []string{
	"account", "allOrderList", "allOrders", "myAllocations", "myFilters", "myPreventedMatches", "myTrades", "openOrderList",
	"openOrders", "order", "orderList", "rateLimit", "sor", "userDataStream", "userListenToken",
}

// notOffered are its public endpoints that the gateway does not pass on: old trades one by one, and figures over windows of the
// caller's choice, which no two callers share.
var notOffered = []string{"historicalTrades", "ticker", "ticker/tradingDay"}

// maxShown is the most of a path that is shown in an answer.
const maxShown = 200

// elsewhere is the answer about a path or method that is not served: 501 with the exchange's own address for what it has, so
// that a bot which is pointed here for its market data finds where its orders go, and 404 for what it has not.
func elsewhere(method, path string) *compat.Refusal {
	changes := method != http.MethodGet && method != http.MethodHead
	public := !changes && strings.HasPrefix(path, base) && slices.Contains(notOffered, nameOf(path))
	if !public && !strings.HasPrefix(path, "/sapi/") && !(strings.HasPrefix(path, base) && (changes || reads(nameOf(path)))) {
		return refused(http.StatusNotFound, codeUnsupported, "This gateway answers the public market data of Binance spot, below "+
			base+" : there is no such path.")
	}
	shown := (&url.URL{Path: path}).EscapedPath()
	if len(shown) > maxShown {
		shown = shown[:maxShown] + "..."
	}
	if public {
		return refused(http.StatusNotImplemented, codeUnsupported, "This gateway does not offer this public endpoint. Send this call to "+
			venue+shown+" itself.")
	}
	return refused(http.StatusNotImplemented, codeUnsupported, "This gateway answers public market data only: it places no orders and "+
		"signs nothing. Send this call to "+venue+shown+" itself.")
}

// reads tells whether Binance has an endpoint of this name that it answers to a key.
func reads(name string) bool {
	for _, n := range withKey {
		if name == n || strings.HasPrefix(name, n+"/") {
			return true
		}
	}
	return false
}
