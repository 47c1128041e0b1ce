package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"exchange-gateway/internal/api/keys"
	"exchange-gateway/internal/api/quota"
	"exchange-gateway/internal/api/stream"
	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/feed"
	"exchange-gateway/internal/feed/hub"
	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

// Feed tells of the books that are kept from streams. Nothing of it does I/O or waits.
type Feed interface {
	Streams(exchange market.ExchangeID) bool
	Status(exchange market.ExchangeID) feed.Status
	Capture(k feed.Key) (*feed.Capture, bool)
}

var _ Feed = (*feed.Feed)(nil)

// newStreams makes the clients' streams of a gateway that has a hub.
func (s *Server) newStreams() *stream.Streams {
	if s.cfg.Hub == nil {
		return nil
	}
	return stream.New(stream.Config{
		Hub: s.cfg.Hub, Listing: s.cfg.Books.Listing, Describe: s.describe, Exchanges: s.exchangeIDs,
		Origins: s.cfg.CORSOrigins, MaxClients: s.cfg.MaxStreams, Log: s.log, Metrics: s.cfg.Registry,
	})
}

// CloseStreams ends every stream and every watch of circuits with a reason and waits for that, or cuts them off at the end
// of ctx.
func (s *Server) CloseStreams(ctx context.Context) error {
	if s.cfg.Board != nil {
		s.watchers.announce(s.cfg.Board)
	}
	var err error
	if s.streams != nil {
		err = s.streams.Close(ctx)
	}
	err = errors.Join(err, s.watchers.close(ctx))
	s.lives.running.Wait() // nothing is open any more
	return err
}

// describe puts an error about a subscription into the words of a problem.
func (s *Server) describe(err error) stream.Problem {
	if _, ours := errors.AsType[*requestError](err); !ours {
		err = s.streamError(err)
	}
	p, ok := s.problemOf(new(http.Request), err)
	if !ok {
		p = s.problem(CodeShuttingDown)
		p.detail = p.Meaning
	}
	out := stream.Problem{Code: string(p.Code), Detail: p.detail}
	if p.retryable {
		out.RetryAfter = time.Duration(p.retryAfter) * time.Second
	}
	return out
}

// streamError gives what package stream refuses the code that a request would get.
func (s *Server) streamError(err error) error {
	switch {
	case errors.Is(err, stream.ErrNoHandshake):
		return errUpgrade
	case errors.Is(err, stream.ErrForeignOrigin):
		return errOrigin
	case errors.Is(err, stream.ErrKeyNeeded):
		return s.unnamed(wrongFirst)
	case errors.Is(err, stream.ErrFull):
		return &requestError{code: CodeOverloaded, detail: "Too many stream clients are connected."}
	case errors.Is(err, stream.ErrCrowded):
		return &requestError{code: CodeOverloaded, detail: "Too many stream clients of this address have yet to send their key."}
	case errors.Is(err, stream.ErrStopping), errors.Is(err, hub.ErrClosing):
		return &requestError{code: CodeShuttingDown, detail: s.catalogue[CodeShuttingDown].Meaning}
	case errors.Is(err, hub.ErrTooMany):
		return &requestError{code: CodeInvalidParameter, parameter: "symbols", detail: sentence(err.Error())}
	case errors.Is(err, hub.ErrSubscribed):
		return &requestError{code: CodeInvalidParameter, parameter: "symbols", detail: "This connection is subscribed to it already."}
	case errors.Is(err, market.ErrNotSupported):
		return notStreamed(err)
	}
	return err
}

// notStreamed tells what the feed does not stream in other words than what an exchange does not have: most often it has been
// switched off here.
func notStreamed(err error) error {
	e, ok := errors.AsType[*market.Error](err)
	if !ok || e.Op != market.OpStream {
		return err
	}
	return &requestError{code: CodeNotSupported, exchange: e.Exchange, detail: "Books of this exchange are not streamed by this gateway: " +
		"see the setting exchanges." + string(e.Exchange) + ".streams. Its order book by request is GET /v1/exchanges/" + string(e.Exchange) + "/orderbook."}
}

var (
	errUpgrade = &requestError{code: CodeUpgradeRequired, detail: "This route speaks WebSocket. " +
		"For server-sent events of one book use GET /v1/stream/orderbook?exchange=okx&symbol=BTC/USDT."}
	errOrigin = &requestError{code: CodeForbidden, detail: "Streams are not for web pages of another origin: the header Origin " +
		"names another host than this gateway's. It is no matter of the key; programs send no Origin."}
)

// serveStream is what the routes of streams pass: the key, its client's quota, and the parameters. They have bounds of their
// own instead of the requests' deadline and number.
func (s *Server) serveStream(e endpoint) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c := w.(*call)
		c.route = e.route
		s.keyless(c, r)
		err := s.authorize(c, r, e.access)
		if err == nil {
			err = s.open(&e, c, r)
		}
		if err == nil || c.wrote {
			return // it is too late for a problem
		}
		s.fail(c, r, s.streamError(err))
	}
}

func (s *Server) open(e *endpoint, c *call, r *http.Request) error {
	q, err := parseQuery(r.URL.RawQuery, e.params)
	if err != nil {
		return err
	}
	return e.handle(r.Context(), c, r, &q)
}

// errStreams refuses a client its next stream.
var errStreams = &requestError{code: CodeClientRateLimited, wait: streamsWait, detail: "The client of this key has as many streams open as it may have."}

// streamsWait is after how long it is worth trying again: streams last.
const streamsWait = 10 * time.Second

// admission is what a key, or none, opens on a stream: its client's account and one of its client's streams, until Leave.
func (s *Server) admission(k *keys.Key, client *quota.Client, from netip.Addr) (stream.Admission, error) {
	if !client.OpenStream() {
		if k == nil {
			return stream.Admission{}, errKeylessStreams
		}
		return stream.Admission{}, errStreams
	}
	a := stream.Admission{Client: client, Holder: client.Holder(), Leave: client.CloseStream}
	if k != nil {
		a.Watch = s.holding(k, from)
	}
	return a, nil
}

// admit checks the key of a first message, as that of a header is checked.
func (s *Server) admit(from netip.Addr, needed bool) func(text string) (stream.Admission, error) {
	return func(text string) (stream.Admission, error) {
		now := clock.Now()
		k, err := s.identify(text, from, now)
		if e, ok := errors.AsType[*requestError](err); ok && e.code == CodeUnauthenticated {
			err = s.unnamed(wrongFirst)
		}
		if err != nil {
			return stream.Admission{}, err
		}
		client := s.clients.Of(k)
		if err := limited(client.Request(now)); err != nil {
			return stream.Admission{}, err
		}
		if needed && !k.Scopes.Has(keys.MarketRead) {
			return stream.Admission{}, forbidden(keys.MarketRead)
		}
		return s.admission(k, client, from)
	}
}

// webSocket answers GET /v1/stream.
func (s *Server) webSocket(_ context.Context, c *call, r *http.Request, _ *query) error {
	if s.draining.Load() {
		return stream.ErrStopping
	}
	needed := s.marketNeedsKey(c)
	e := stream.Entry{NeedsKey: needed && c.key == nil, From: network(address(r))}
	if c.key == nil {
		e.Admit = s.admit(address(r), needed)
	}
	if !e.NeedsKey { // or it is nobody's until its key has come, and one of few
		var err error
		if e.Admission, err = s.admission(c.key, c.client, address(r)); err != nil {
			return err
		}
	}
	c.tellQuota(clock.Now())
	upgraded, err := s.streams.WebSocket(c.ResponseWriter, r, e)
	if upgraded {
		c.status, c.wrote = http.StatusSwitchingProtocols, true
		if err != nil {
			c.status = statusClientClosed
		}
	}
	return err
}

// events answers GET /v1/stream/orderbook.
func (s *Server) events(_ context.Context, c *call, r *http.Request, q *query) error {
	if s.draining.Load() {
		return stream.ErrStopping
	}
	name, ok := q.get("exchange")
	if !ok || !slices.Contains(s.exchangeIDs, market.ExchangeID(name)) {
		return invalid("exchange", "is missing or unknown", names(s.exchangeIDs))
	}
	pair, err := q.pair()
	if err != nil {
		return err
	}
	depth, err := q.streamDepth()
	if err != nil {
		return err
	}
	c.note.exchange, c.note.pair = market.ExchangeID(name), pair
	t := hub.Topic{Key: feed.Key{Exchange: market.ExchangeID(name), Pair: pair}, Channel: hub.ChannelOrderBook, Depth: depth}
	a, err := s.admission(c.key, c.client, address(r))
	if err != nil {
		return err
	}
	c.tellQuota(clock.Now())
	return s.streams.Events(c, r, t, clip(r.Header.Get("Last-Event-Id")), a)
}

func names(ids []market.ExchangeID) []string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = string(id)
	}
	return out
}

// streamDepth reads `depth`, which for streams is one of a few, so that clients share what is encoded.
func (q *query) streamDepth() (int, error) {
	v, ok := q.get("depth")
	if !ok {
		return stream.DefaultDepth, nil
	}
	allowed := make([]string, 0, len(hub.Depths()))
	for _, d := range hub.Depths() {
		allowed = append(allowed, strconv.Itoa(d))
	}
	if i := slices.Index(allowed, v); i >= 0 {
		return hub.Depths()[i], nil
	}
	return 0, invalid("depth", "is not offered for streams", allowed)
}

// capture answers GET /admin/v1/captures/{exchange}: the last raw frames of one streamed book with the book before them.
func (s *Server) capture(_ context.Context, c *call, r *http.Request, q *query) error {
	exchange, err := s.exchange(c, r)
	if err != nil {
		return err
	}
	pair, err := q.pair()
	if err != nil {
		return err
	}
	var captured *feed.Capture
	ok := false
	if s.cfg.Feed != nil {
		captured, ok = s.cfg.Feed.Capture(feed.Key{Exchange: exchange, Pair: pair})
	}
	if !ok {
		return &requestError{code: Code(gateway.CodeBookNotHeld), exchange: exchange, detail: "No book of " + pair.String() + " is streamed from this exchange now."}
	}
	text, err := json.Marshal(captured)
	if err != nil {
		return err
	}
	c.doc.b = append(c.doc.b, text...)
	c.send(http.StatusOK, jsonType)
	return nil
}

// streamed tells whether an exchange's books can be streamed.
func (s *Server) streamed(exchange market.ExchangeID) bool {
	return s.cfg.Feed != nil && s.cfg.Feed.Streams(exchange)
}

// appendStreams writes how the streams of an exchange stand: its connections, its books by state, and how far those are
// that were asked for.
func (s *Server) appendStreams(d *doc, exchange market.ExchangeID, now time.Time) {
	if !s.streamed(exchange) {
		d.null("streams")
		return
	}
	st := s.cfg.Feed.Status(exchange)
	d.object("streams")
	d.array("connections")
	for i := range st.Connections {
		c := &st.Connections[i]
		d.open('{')
		d.time("since", c.Since)
		d.int("last_frame_age_ms", millis(max(0, now.Sub(c.LastFrame))))
		d.int("books", int64(c.Books))
		d.bool("retiring", c.Retiring)
		d.close('}')
	}
	d.close(']')
	d.object("books")
	d.int("live", int64(st.Live))
	d.int("syncing", int64(st.Syncing))
	d.int("stale", int64(st.Stale))
	d.close('}')
	d.object("warm_up")
	d.int("wanted", int64(st.WarmUp.Wanted))
	d.int("synced", int64(st.WarmUp.Synced))
	d.int("queued", int64(st.WarmUp.Queued))
	if st.WarmUp.ETA > 0 {
		d.int("eta_ms", millis(st.WarmUp.ETA))
	} else {
		d.null("eta_ms")
	}
	d.close('}')
	d.close('}')
}
