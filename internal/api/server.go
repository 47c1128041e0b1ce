package api

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"exchange-gateway/docs/openapi"
	"exchange-gateway/internal/api/cork"
	"exchange-gateway/internal/api/quota"
	"exchange-gateway/internal/api/session"
	"exchange-gateway/internal/api/stream"
	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
	"exchange-gateway/internal/swaggerui"
)

// Limits of a connection. A header of more than maxHeader is refused with a problem; net/http cuts off what is so large
// that it is not even parsed.
const (
	readHeaderTimeout = 5 * time.Second   // a header trickles in for no longer: slow-loris
	idleTimeout       = 120 * time.Second // longer than the 60 s after which common clients and proxies hang up first
	slack             = 5 * time.Second   // beyond the request's deadline, to write its answer
	maxHeaderParsed   = 64 << 10
	maxHeader         = 16 << 10
	maxURI            = 8 << 10
	maxBody           = 64 << 10 // ignored up to here: some clients send one with a GET

	// sendBuffer bounds what the kernel holds for a caller that does not read; its own bound is 4 MiB for each, and 10,000
	// readers of events that stopped would take 40 GB. A whole book fits.
	sendBuffer = 256 << 10
)

// balanceShare is the part of the requests in flight that is kept for balances: a fourth. Callers of books that have to wait
// for a slow exchange must not keep out those who ask what they own.
const balanceShare = 4

// clientShare is the part of what all clients share that one of them may have, where nobody says otherwise: a fourth.
const clientShare = 4

// Server answers requests. It opens no listener and starts no goroutine.
type Server struct {
	cfg         Config
	log         *slog.Logger
	catalogue   map[Code]*Entry
	metrics     *metrics
	access      *accessLog
	ids         *requestIDs
	calls       callPool
	packers     packers
	inFlight    inFlight
	operations  inFlight // requests of operators
	sessions    *session.Sessions
	guesses     guesses
	clients     *quota.Clients
	watchers    *watchers
	lives       lives
	draining    atomic.Bool
	base        context.Context // the life of the server, which ends requests that outlast a drain
	stop        context.CancelFunc
	errorsDoc   []byte
	contract    func() ([]byte, error) // of this API, as JSON
	docs        *swaggerui.UI
	exchangeIDs []market.ExchangeID // those that are enabled, in their configured order
	streams     *stream.Streams     // nil without a hub
	public      http.Handler
	admin       http.Handler
}

// New makes a server of valid configuration. It does no I/O.
func New(cfg Config) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	cfg = cfg.withDefaults()
	s := &Server{cfg: cfg, log: cfg.Log, catalogue: index(Catalogue()), access: newAccessLog(cfg.Log), ids: newRequestIDs()}
	s.inFlight.limit, s.operations.limit = int64(cfg.MaxInFlight), maxOperations
	s.inFlight.reserve = s.inFlight.limit / balanceShare
	if s.clients = cfg.Clients; s.clients == nil {
		s.clients = quota.New(quota.Config{Ring: cfg.Keys, Metrics: cfg.Registry, Defaults: quota.Limits{
			InFlight: max(1, cfg.MaxInFlight/clientShare), Streams: max(1, cmp.Or(cfg.MaxStreams, stream.DefaultMaxClients)/clientShare),
		}})
	}
	s.clients.Halve(cfg.MaxInFlight, cmp.Or(cfg.MaxStreams, stream.DefaultMaxClients))
	s.watchers = newWatchers()
	s.base, s.stop = context.WithCancel(context.Background())
	var err error
	if s.sessions, err = session.New(cfg.Keys, cfg.SessionSecret); err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	if s.metrics, err = newMetrics(cfg.Registry, cfg.Version, &s.inFlight, s.watchers.count); err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	s.errorsDoc = errorsDoc()
	s.contract, s.docs = sync.OnceValues(openapi.JSON), swaggerui.New()
	s.exchangeIDs = cfg.Books.Exchanges()
	s.streams = s.newStreams()
	s.public, s.admin = s.front(s.crossOrigin(s.knownFirst(s.publicRoutes())), true), s.front(s.adminRoutes(), false)
	return s, nil
}

// Public is the handler of the public listener.
func (s *Server) Public() http.Handler { return s.public }

// Admin is the handler of the admin listener: the dashboard, what it shows and what operators order, probes, metrics and
// captures.
func (s *Server) Admin() http.Handler { return s.admin }

// Drain makes /readyz answer 503, so that no new work is sent here. Requests are answered as before.
func (s *Server) Drain() { s.draining.Store(true) }

// Stop ends the requests that are still being answered, with `shutting_down`. It is for those that outlast a drain.
func (s *Server) Stop() { s.stop() }

// HTTPServer serves a handler of this server with all of its limits. Whoever calls it opens the listener.
func (s *Server) HTTPServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: readHeaderTimeout,
		// For a body that nobody reads. net/http watches for callers that hang up by reading on, and takes the end of this
		// time for one, so it has to outlast the request.
		ReadTimeout:    s.cfg.Deadline + slack,
		WriteTimeout:   s.cfg.Deadline + slack,
		IdleTimeout:    idleTimeout,
		MaxHeaderBytes: maxHeaderParsed,
		ConnState: func(c net.Conn, state http.ConnState) {
			if state == http.StateNew {
				stream.SetWriteBuffer(c, sendBuffer)
			}
		},
		BaseContext: func(net.Listener) context.Context { return s.base },
		ConnContext: cork.Context,
		ErrorLog:    slog.NewLogLogger(s.log.Handler(), slog.LevelDebug), // broken connections of callers
	}
}

// front is what every request passes: an id, the limits of its size, the router, and at its end the log and the metrics,
// also when its handler panics.
func (s *Server) front(router http.Handler, public bool) http.Handler {
	return s.believing(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := s.calls.get(w, clock.Now())
		c.public, c.proxied = public, s.proxied(r)
		if r.Method == http.MethodGet {
			c.conn = cork.Of(r.Context())
		}
		c.id = s.ids.of(r)
		c.header("X-Request-Id", c.id)
		defer s.finish(c, r)
		if len(r.TransferEncoding) > 0 {
			// RFC 9112 section 6.1: it may have stated a length, too, which net/http has taken away. Whoever went by that in
			// front of us takes another part of what follows for a request.
			c.header("Connection", "close")
		}
		if err := oversized(r); err != nil {
			s.fail(c, r, err)
			return
		}
		router.ServeHTTP(c, r)
	}))
}

// finish ends a request.
func (s *Server) finish(c *call, r *http.Request) {
	if p := recover(); p != nil {
		s.contain(c, r, p)
	}
	now := clock.Now()
	s.metrics.observe(c.route, r.Method, c.status, now.Sub(c.start))
	if !c.route.probe() {
		s.access.write(c, r, now)
	}
	c.endSpan(r, now)
	abort := c.abort
	s.calls.put(c)
	if abort {
		panic(http.ErrAbortHandler)
	}
}

// smallBody reads a body that nobody wants until it is known to be small or not. It is done before the request takes a place
// among those in flight: net/http reads such a body before the answer is written, and one that trickles in would hold that
// place. So it keeps its own connection waiting, for ReadTimeout at most; one that breaks off ends with its connection.
func smallBody(body io.Reader) bool {
	n, _ := io.CopyN(io.Discard, body, maxBody+1)
	return n <= maxBody
}

// oversized refuses a request that is larger than any good one.
func oversized(r *http.Request) error {
	if len(r.RequestURI) > maxURI {
		return &requestError{code: CodeURITooLong, detail: fmt.Sprintf("The request's target has %d bytes; at most %d are allowed.", len(r.RequestURI), maxURI)}
	}
	if r.ContentLength > maxBody {
		return &requestError{code: CodeBodyTooLarge, detail: fmt.Sprintf("The body has %d bytes; at most %d are let pass.", r.ContentLength, maxBody)}
	}
	// What reads a body has a bound of its own; until then nobody may take it away.
	if r.ContentLength != 0 && r.Method != http.MethodPost && !smallBody(r.Body) {
		return &requestError{code: CodeBodyTooLarge, detail: fmt.Sprintf("The body has over %d bytes; no more are let pass.", maxBody)}
	}
	size := 0
	for name, values := range r.Header {
		for _, v := range values {
			size += len(name) + len(v)
		}
	}
	if size > maxHeader {
		return &requestError{code: CodeHeaderTooLarge, detail: fmt.Sprintf("The headers have %d bytes; at most %d are allowed.", size, maxHeader)}
	}
	return nil
}
