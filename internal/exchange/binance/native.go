package binance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/market"
)

var _ market.Native = (*Venue)(nil)

// native is an endpoint of /api/v3 that questions are passed to.
type native struct {
	name   string
	params []string
	weight int   // but for tickers, whose weight depends on how many symbols are asked about: see nativeWeight
	body   int64 // the most bytes of an answer that are read
	check  func(body []byte, q url.Values) error
}

// The most bytes that are read of an answer: several times the largest that is known or can be.
const (
	// maxInfoBody is for exchangeInfo with its permission sets: 3.3 MB are on record for 2,183 symbols, and hundreds of names
	// a symbol have come since. A longer one is malformed: the list before it stays in use.
	maxInfoBody = 48 << 20
	// maxTickersBody is for a row for every symbol: 560 bytes each of ticker/24hr are 1.8 MB for 3,200 symbols.
	maxTickersBody = 8 << 20
	// maxRowsBody is for 1,000 rows of klines or trades of some 200 bytes each.
	maxRowsBody = 2 << 20
)

// natives is the closed list, with the weights of the documentation of 2026-07-21. None of them takes a key: the older trades
// of historicalTrades do, so they are not in it.
var natives = []native{
	{"ticker/price", []string{"symbol", "symbols", "symbolStatus"}, 2, maxTickersBody, checkTickers},
	{"ticker/24hr", []string{"symbol", "symbols", "type", "symbolStatus"}, weightStatistics, maxTickersBody, checkTickers},
	{"ticker/bookTicker", []string{"symbol", "symbols", "symbolStatus"}, 2, maxTickersBody, checkTickers},
	{
		"exchangeInfo",
		[]string{"symbol", "symbols", "permissions", "showPermissionSets", "symbolStatus"},
		weightListings, maxInfoBody, checkInfo,
	},
	{"klines", klineParams, 2, maxRowsBody, checkRows('[')},
	{"uiKlines", klineParams, 2, maxRowsBody, checkRows('[')},
	{"trades", []string{"symbol", "limit"}, 25, maxRowsBody, checkRows('{')},
	{"aggTrades", []string{"symbol", "fromId", "startTime", "endTime", "limit"}, 4, maxRowsBody, checkRows('{')},
	{"avgPrice", []string{"symbol"}, 2, maxSmallBody, checkAverage},
}

var klineParams = []string{"symbol", "interval", "startTime", "endTime", "timeZone", "limit"}

// maxNativeQuery bounds a question in bytes: 500 symbols by name.
const maxNativeQuery = 8 << 10

// NativeEndpoints are the endpoints of /api/v3 that may be asked.
func (v *Venue) NativeEndpoints() []market.NativeEndpoint {
	all := make([]market.NativeEndpoint, len(natives))
	for i, n := range natives {
		all[i] = market.NativeEndpoint{Name: n.name, Params: slices.Clone(n.params), Listings: n.name == "exchangeInfo"}
	}
	return all
}

// NativePlan states what a question touches: the gates of the exchange and of our address.
func (v *Venue) NativePlan(q market.NativeQuery) (market.Call, error) {
	n, values, err := v.readNative(q)
	if err != nil {
		return market.Call{}, err
	}
	weight, err := nativeWeight(n, values)
	if err != nil {
		return market.Call{}, v.nativeError(market.KindInvalid, err)
	}
	return v.call(market.OpNative, limitWeight, weight), nil
}

// Native asks.
func (v *Venue) Native(ctx context.Context, q market.NativeQuery) (*market.NativeAnswer, error) {
	call, err := v.NativePlan(q)
	if err != nil {
		return nil, err
	}
	n, values, err := v.readNative(q)
	if err != nil {
		return nil, err
	}
	request := exchange.Request{
		Call: call, Hosts: v.public, MaxBody: n.body, Path: "/api/v3/" + n.name, Query: values.Encode(),
	}
	var answer *market.NativeAnswer
	err = v.get(ctx, request, gates{restricted: scopeExchange, passed: true}, func(res *exchange.Response) error {
		if err := n.check(res.Body, values); err != nil {
			return fmt.Errorf("read %s: %w", n.name, err)
		}
		answer = &market.NativeAnswer{Body: bytes.Clone(res.Body), ConfirmedAt: res.ConfirmedAt()}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return answer, nil
}

func (v *Venue) nativeError(k market.Kind, err error) *market.Error {
	return &market.Error{Exchange: v.id, Op: market.OpNative, Kind: k, Err: err}
}

// readNative finds the endpoint and takes the question apart. What Binance would refuse without reading on, a parameter that
// the endpoint does not have or one that comes twice, is refused here: it costs weight there.
func (v *Venue) readNative(q market.NativeQuery) (native, url.Values, error) {
	at := slices.IndexFunc(natives, func(n native) bool { return n.name == q.Endpoint })
	if at < 0 {
		return native{}, nil, v.nativeError(market.KindNotSupported, errors.New("this endpoint is not offered"))
	}
	if len(q.Query) > maxNativeQuery {
		return native{}, nil, v.nativeError(market.KindInvalid, fmt.Errorf("a question over %d bytes", maxNativeQuery))
	}
	values, err := url.ParseQuery(q.Query)
	if err != nil {
		return native{}, nil, v.nativeError(market.KindInvalid, errors.New("a query that cannot be read"))
	}
	for name, all := range values {
		switch {
		case !slices.Contains(natives[at].params, name):
			return native{}, nil, v.nativeError(market.KindInvalid, errors.New("a parameter that the endpoint does not have"))
		case len(all) > 1 || all[0] == "":
			return native{}, nil, v.nativeError(market.KindInvalid, fmt.Errorf("the parameter %s is empty or comes twice", name))
		}
	}
	return natives[at], values, nil
}

// The weights of questions about several symbols.
const (
	weightQuotes  = 4  // ticker/price and ticker/bookTicker of more than one
	weightDaySome = 40 // ticker/24hr of 21 to 100
	weightDayAll  = 80 // ticker/24hr of more, or of all
	fewSymbols    = 20
	manySymbols   = 100
)

// nativeWeight is what a question costs. A list of symbols that cannot be counted cannot be charged for.
func nativeWeight(n native, q url.Values) (int, error) {
	var names []string
	several := q.Has("symbols")
	if several && json.Unmarshal([]byte(q.Get("symbols")), &names) != nil {
		return 0, errors.New("symbols is not a list of names")
	}
	switch {
	case !strings.HasPrefix(n.name, "ticker/"), q.Has("symbol") && !several:
		return n.weight, nil
	case n.name != "ticker/24hr":
		return weightQuotes, nil
	case several && len(names) <= fewSymbols:
		return n.weight, nil
	case several && len(names) <= manySymbols:
		return weightDaySome, nil
	}
	return weightDayAll, nil
}
