package api

import (
	"context"
	"net/http"

	"github.com/go-chi/chi/v5"
)

// Route names what a request asked for. It is a metric label and a log field, so a path that is not one of ours is
// "other".
type Route uint8

// The closed set of routes.
const (
	RouteOther Route = iota
	RouteExchanges
	RouteOrderBook
	RouteTicker
	RouteTickers
	RouteMarkets
	RouteStatus
	RouteBalance
	RouteOrderBooks
	RoutePrice
	RouteErrors
	RouteStream
	RouteStreamOrderBook
	RouteCapture
	RouteLive
	RouteReady
	RouteMetrics
	routeCount
)

var routeNames = [routeCount]string{
	RouteOther: "other", RouteExchanges: "exchanges", RouteOrderBook: "orderbook", RouteTicker: "ticker", RouteTickers: "tickers",
	RouteMarkets: "markets", RouteStatus: "status", RouteBalance: "balance", RouteOrderBooks: "orderbooks", RoutePrice: "price",
	RouteErrors: "errors", RouteStream: "stream", RouteStreamOrderBook: "stream_orderbook", RouteCapture: "capture", RouteLive: "livez", RouteReady: "readyz", RouteMetrics: "metrics",
}

// String is the stable name.
func (r Route) String() string { return routeNames[r] }

// probe tells whether machines ask so often that no line is logged.
func (r Route) probe() bool { return r == RouteLive || r == RouteReady || r == RouteMetrics }

// lasts tells whether an answer goes on for as long as its caller stays, so that its length is no measure of speed.
func (r Route) lasts() bool { return r == RouteStreamOrderBook }

func routes() []Route {
	all := make([]Route, 0, routeCount)
	for r := range routeCount {
		all = append(all, r)
	}
	return all
}

// handler answers one request or returns why not. ctx ends at the request's deadline.
type handler func(ctx context.Context, c *call, r *http.Request, q *query) error

// endpoint is one row of the routing table.
type endpoint struct {
	route  Route
	path   string
	access access
	params []string // every query parameter that it has; others are refused
	handle handler
}

func (s *Server) endpoints() []endpoint {
	const exchange = "/v1/exchanges/{exchange}"
	return []endpoint{
		{RouteExchanges, "/v1/exchanges", accessMarket, nil, s.exchanges},
		{RouteOrderBook, exchange + "/orderbook", accessMarket, []string{"symbol", "depth", "max_age_ms", "require"}, s.orderBook},
		{RouteTicker, exchange + "/ticker", accessMarket, []string{"symbol", "max_age_ms", "require"}, s.ticker},
		{RouteTickers, exchange + "/tickers", accessMarket, []string{"symbols"}, s.tickers},
		{RouteMarkets, exchange + "/markets", accessMarket, nil, s.markets},
		{RouteStatus, exchange + "/status", accessMarket, nil, s.status},
		{RouteBalance, exchange + "/balance", accessAccount, []string{"account", "wallet"}, s.balance},
		{RouteOrderBooks, "/v1/orderbooks", accessMarket, []string{"symbol", "depth", "max_age_ms"}, s.orderBooks},
		{RoutePrice, "/v1/price", accessMarket, []string{"symbol", "exchanges", "max_age_ms"}, s.price},
		{RouteErrors, problemsPath, accessFree, nil, s.errorCatalogue},
	}
}

// streamEndpoints are the routes whose answers go on.
func (s *Server) streamEndpoints() []endpoint {
	return []endpoint{
		{RouteStream, "/v1/stream", accessMarket, nil, s.webSocket},
		{RouteStreamOrderBook, "/v1/stream/orderbook", accessMarket, []string{"exchange", "symbol", "depth"}, s.events},
	}
}

func (s *Server) publicRoutes() http.Handler {
	m := s.router()
	if s.streams != nil {
		for _, e := range s.streamEndpoints() {
			m.HandleFunc(e.path, func(w http.ResponseWriter, r *http.Request) { s.fail(w.(*call), r, errGetOnly) })
			m.Get(e.path, s.serveStream(e))
		}
	}
	for _, e := range s.endpoints() {
		h := s.serve(e)
		m.Get(e.path, h)
		m.Head(e.path, h)
	}
	s.probes(m)
	return m
}

func (s *Server) router() *chi.Mux {
	m := chi.NewMux()
	m.NotFound(func(w http.ResponseWriter, r *http.Request) { s.fail(w.(*call), r, errNotFound) })
	m.MethodNotAllowed(func(w http.ResponseWriter, r *http.Request) {
		// chi comes here for every method that it does not know, whatever the path.
		if !m.Match(chi.NewRouteContext(), http.MethodGet, r.URL.Path) {
			s.fail(w.(*call), r, errNotFound)
			return
		}
		s.fail(w.(*call), r, errMethod)
	})
	return m
}

var (
	errNotFound   = &requestError{code: CodeNotFound, detail: "There is no such route. The README lists them all; errors are at /v1/errors."}
	errMethod     = &requestError{code: CodeMethodNotAllowed, detail: "This route answers GET and HEAD only.", allowed: []string{http.MethodGet, http.MethodHead}}
	errOverloaded = &requestError{code: CodeOverloaded, detail: "Too many requests are being answered right now."}
)

// serve is what every route of the API passes: the bound of requests in flight, the deadline, the key, the parameters.
func (s *Server) serve(e endpoint) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c := w.(*call)
		c.route = e.route
		if !s.inFlight.enter() {
			s.fail(c, r, errOverloaded)
			return
		}
		defer s.inFlight.leave()
		ctx := within(r.Context(), c.start.Add(s.cfg.Deadline))
		defer ctx.end()
		if err := s.answer(ctx, &e, c, r); err != nil {
			s.fail(c, r, err)
		}
	}
}

func (s *Server) answer(ctx context.Context, e *endpoint, c *call, r *http.Request) error {
	if err := s.authorize(c, r, e.access); err != nil {
		return err
	}
	q, err := parseQuery(r.URL.RawQuery, e.params)
	if err != nil {
		return err
	}
	return e.handle(ctx, c, r, &q)
}
