package api

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"

	"exchange-gateway/internal/market"
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
	RouteOpenAPI
	RouteDocs
	RouteStream
	RouteStreamOrderBook
	RouteCircuits
	RouteCircuitEvents
	RouteAction
	RouteSession
	RouteMe
	RouteDashboard
	RouteCompat
	RouteCapture
	RouteLive
	RouteReady
	RouteMetrics
	routeCount
)

var routeNames = [routeCount]string{
	RouteOther: "other", RouteExchanges: "exchanges", RouteOrderBook: "orderbook", RouteTicker: "ticker", RouteTickers: "tickers",
	RouteMarkets: "markets", RouteStatus: "status", RouteBalance: "balance", RouteOrderBooks: "orderbooks", RoutePrice: "price",
	RouteErrors: "errors", RouteOpenAPI: "openapi", RouteDocs: "docs", RouteStream: "stream", RouteStreamOrderBook: "stream_orderbook",
	RouteCircuits: "circuits", RouteCircuitEvents: "circuit_events", RouteAction: "action", RouteSession: "session", RouteMe: "me",
	RouteDashboard: "dashboard", RouteCompat: "compat", RouteCapture: "capture", RouteLive: "livez", RouteReady: "readyz", RouteMetrics: "metrics",
}

// String is the stable name.
func (r Route) String() string { return routeNames[r] }

// probe tells whether machines ask so often that no line is logged.
func (r Route) probe() bool { return r == RouteLive || r == RouteReady || r == RouteMetrics }

// lasts tells whether an answer goes on for as long as its caller stays, so that its length is no measure of speed.
func (r Route) lasts() bool { return r == RouteStreamOrderBook || r == RouteCircuitEvents }

// method is the one that requests of a route have, apart from HEAD.
func (r Route) method() string {
	if r == RouteAction || r == RouteSession {
		return http.MethodPost
	}
	return http.MethodGet
}

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
		{RouteOrderBook, exchange + "/orderbook", accessMarket, []string{"symbol", "depth", "max_age_ms", "require", "format", "accept_stale"}, s.orderBook},
		{RouteTicker, exchange + "/ticker", accessMarket, []string{"symbol", "max_age_ms", "require", "format", "accept_stale"}, s.ticker},
		{RouteTickers, exchange + "/tickers", accessMarket, []string{"symbols"}, s.tickers},
		{RouteMarkets, exchange + "/markets", accessMarket, nil, s.markets},
		{RouteStatus, exchange + "/status", accessMarket, nil, s.status},
		{RouteBalance, exchange + "/balance", accessAccount, []string{"account", "wallet", "format"}, s.balance},
		{RouteOrderBooks, "/v1/orderbooks", accessMarket, []string{"symbol", "depth", "max_age_ms"}, s.orderBooks},
		{RoutePrice, "/v1/price", accessMarket, []string{"symbol", "exchanges", "max_age_ms"}, s.price},
		{RouteErrors, problemsPath, accessFree, nil, s.errorCatalogue},
	}
}

// streamEndpoints are the routes whose answers go on.
func (s *Server) streamEndpoints() []endpoint {
	return []endpoint{
		{RouteStream, "/v1/stream", accessStream, nil, s.webSocket},
		{RouteStreamOrderBook, "/v1/stream/orderbook", accessMarket, []string{"exchange", "symbol", "depth"}, s.events},
	}
}

// boardRoutes are what operators see, on either listener.
func (s *Server) boardRoutes(m chi.Router, need access, slots *inFlight) {
	if s.cfg.Board == nil {
		return
	}
	h := s.serveWithin(slots, endpoint{RouteCircuits, "/v1/circuits", need, nil, s.circuits})
	m.Get("/v1/circuits", h)
	m.Head("/v1/circuits", h)
	m.Get("/v1/circuits/events", s.serveStream(endpoint{RouteCircuitEvents, "/v1/circuits/events", need, nil, s.circuitEvents}))
}

func (s *Server) publicRoutes() *chi.Mux {
	m := s.router()
	if s.streams != nil {
		for _, e := range s.streamEndpoints() {
			m.Get(e.path, s.serveStream(e))
		}
	}
	s.boardRoutes(m, accessCircuits, &s.inFlight)
	for _, e := range slices.Concat(s.endpoints(), s.docsEndpoints()) {
		h := s.serve(e)
		m.Get(e.path, h)
		m.Head(e.path, h)
	}
	for _, d := range s.cfg.Dialects {
		m.Handle(facadePath(d)+"/*", s.serveFacade(d))
	}
	s.probes(m)
	return m
}

// knownRoute is a route of one enabled exchange.
type knownRoute struct {
	exchange market.ExchangeID
	handle   http.HandlerFunc
}

// knownFirst finds the routes of the enabled exchanges by their whole path, which are nearly all that is asked for, and leaves
// everything else to the router. That takes a copy of the request, a context and a map to say which exchange it found.
func (s *Server) knownFirst(router http.Handler) http.Handler {
	known := make(map[string]knownRoute)
	for _, e := range s.endpoints() {
		for _, id := range s.exchangeIDs {
			if path := strings.Replace(e.path, "{exchange}", string(id), 1); path != e.path {
				known[path] = knownRoute{id, s.serve(e)}
			}
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if (r.Method == http.MethodGet || r.Method == http.MethodHead) && r.URL.RawPath == "" {
			if k, ok := known[r.URL.Path]; ok {
				w.(*call).exchange = k.exchange
				k.handle(w, r)
				return
			}
		}
		router.ServeHTTP(w, r)
	})
}

func (s *Server) router() *chi.Mux {
	m := chi.NewMux()
	m.NotFound(func(w http.ResponseWriter, r *http.Request) { s.fail(w.(*call), r, errNotFound) })
	m.MethodNotAllowed(func(w http.ResponseWriter, r *http.Request) {
		// chi comes here for every method that it does not know, whatever the path.
		var allowed []string
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost} {
			if m.Match(chi.NewRouteContext(), method, r.URL.Path) {
				allowed = append(allowed, method)
			}
		}
		if allowed == nil {
			s.fail(w.(*call), r, errNotFound)
			return
		}
		s.fail(w.(*call), r, &requestError{
			code: CodeMethodNotAllowed, allowed: allowed, detail: "This route answers " + strings.Join(allowed, " and ") + " only.",
		})
	})
	return m
}

var (
	errNotFound   = &requestError{code: CodeNotFound, detail: "There is no such route. The public listener shows them all at /docs, and the errors at /v1/errors."}
	errOverloaded = &requestError{code: CodeOverloaded, detail: "Too many requests are being answered right now."}
	errShare      = &requestError{code: CodeClientRateLimited, detail: "The client of this key has as many requests being answered right now as it may have."}
)

// serve is what every route of the API passes: the bound of requests in flight, the deadline, the key and its client's quota,
// the parameters.
func (s *Server) serve(e endpoint) http.HandlerFunc { return s.serveWithin(&s.inFlight, e) }

func (s *Server) serveWithin(slots *inFlight, e endpoint) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c := w.(*call)
		c.route = e.route
		s.within(slots, &e, c, r, func(ctx context.Context) error {
			q, err := parseQuery(r.URL.RawQuery, e.params)
			if err != nil {
				return err
			}
			return e.handle(ctx, c, r, &q)
		})
	}
}

// within answers a request by handle, which runs for a caller that may ask, within all bounds, until the deadline.
func (s *Server) within(slots *inFlight, e *endpoint, c *call, r *http.Request, handle func(context.Context) error) {
	traced := s.trace(c, r)
	s.keyless(c, r)
	free := c.client // nil where a key was sent: its client is known when it is checked
	if !free.Enter() {
		s.fail(c, r, errKeyless)
		return
	}
	defer free.Leave()
	reserved := e.access == accessAccount
	if !slots.enter(reserved) {
		s.fail(c, r, errOverloaded)
		return
	}
	defer slots.leave(reserved)
	ctx := within(traced, c.start.Add(s.cfg.Deadline))
	defer ctx.end()
	err := s.authorize(c, r, e.access)
	if err == nil {
		err = s.answer(ctx, c, handle)
	}
	if err != nil {
		s.fail(c, r, err)
	}
}

// answer runs handle on the account of the caller's client, if it has room for one more. Those without a key have entered
// before all else, or many of them who are refused would take places that are not theirs meanwhile.
func (s *Server) answer(ctx *deadline, c *call, handle func(context.Context) error) error {
	if c.client == nil {
		return handle(ctx)
	}
	ctx.client = c.client
	if c.key == nil {
		return handle(ctx)
	}
	if !c.client.Enter() {
		return errShare
	}
	defer c.client.Leave()
	return handle(ctx)
}
