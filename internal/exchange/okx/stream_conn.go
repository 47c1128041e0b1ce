package okx

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// link is what a stream needs of its socket.
type link interface {
	Read(ctx context.Context) ([]byte, error)
	Send(ctx context.Context, text []byte) error
	LastFrame() time.Time
	LastByte() time.Time
	Ping() (answers bool)
	Close()
}

// stream is one connection: the socket, the pace of our requests on it, and the state of the books that it carries.
type stream struct {
	venue *Venue
	link  link
	pace  requestPace
	over  chan struct{} // closed when the connection has ended
	end   sync.Once

	mu    sync.Mutex
	books procedure // guarded by mu
}

var _ market.StreamConn = (*stream)(nil)

func (v *Venue) newStream(l link) *stream {
	return &stream{venue: v, link: l, over: make(chan struct{}), books: newProcedure(v)}
}

// Read implements market.StreamConn.
func (s *stream) Read(ctx context.Context) ([]byte, error) {
	raw, err := s.link.Read(ctx)
	if err != nil {
		s.end.Do(func() { close(s.over) })
	}
	return raw, err
}

// LastFrame implements market.StreamConn.
func (s *stream) LastFrame() time.Time { return s.link.LastFrame() }

// LastByte implements market.StreamConn.
func (s *stream) LastByte() time.Time { return s.link.LastByte() }

// Ping implements market.StreamConn.
func (s *stream) Ping() (answers bool) { return s.link.Ping() }

// Close implements market.StreamConn.
func (s *stream) Close() {
	s.end.Do(func() { close(s.over) })
	s.link.Close()
}

// Decode implements market.StreamConn.
func (s *stream) Decode(raw []byte, at time.Time) []market.StreamEvent {
	s.mu.Lock()
	defer s.mu.Unlock()
	events := s.books.decode(raw, at)
	if s.books.tooFrequent {
		s.books.tooFrequent = false
		s.pace.slow(at)
	}
	return events
}

// Load implements market.StreamConn.
func (s *stream) Load(book *market.OrderBook) []market.StreamEvent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.books.loadREST(book, clock.Now())
}

// Distrust implements market.StreamConn.
func (s *stream) Distrust(symbol string, why error) []market.StreamEvent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.books.distrust(symbol, why, clock.Now())
}

// Tick implements market.StreamConn.
func (s *stream) Tick(now time.Time) []market.StreamEvent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.books.tick(now)
}

var (
	errTooManySubs = errors.New("more subscriptions than one request or connection takes")
	errRequest     = errors.New("the request is longer than OKX accepts")
	errPace        = errors.New("the requests that OKX allows on one connection are used up for now")
	errStreamUp    = errors.New("the connection has ended")
)

// Subscribe implements market.StreamConn. When the requests of this connection are used up it waits for the next, or fails
// at once with KindOverloaded if that lies beyond the deadline of ctx.
func (s *stream) Subscribe(ctx context.Context, subs []market.StreamSub) error {
	if len(subs) == 0 {
		return nil
	}
	if err := s.turn(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	id, ok := s.books.subscribe(subs, clock.Now())
	s.mu.Unlock()
	if !ok {
		return s.venue.streamError(market.KindInternal, errTooManySubs)
	}
	err := s.send(ctx, id, "subscribe", subs)
	if err != nil { // OKX may have got it or not; what it sends then is nobody's
		s.mu.Lock()
		s.books.withdraw(id)
		s.mu.Unlock()
	}
	return err
}

// Unsubscribe implements market.StreamConn.
func (s *stream) Unsubscribe(ctx context.Context, subs []market.StreamSub) error {
	if len(subs) == 0 {
		return nil
	}
	s.mu.Lock()
	id := s.books.unsubscribe(subs)
	s.mu.Unlock()
	if err := s.turn(ctx); err != nil {
		return err
	}
	return s.send(ctx, id, "unsubscribe", subs)
}

// request is a message to OKX. Its id comes back in the answers.
type request struct {
	ID   string       `json:"id"`
	Op   string       `json:"op"`
	Args []requestArg `json:"args"`
}

type requestArg struct {
	Channel string `json:"channel"`
	InstID  string `json:"instId"`
}

// maxRequest is the most that OKX takes as one request.
const maxRequest = 64 << 10

func (s *stream) send(ctx context.Context, id, op string, subs []market.StreamSub) error {
	r := request{ID: id, Op: op, Args: make([]requestArg, len(subs))}
	for i, sub := range subs {
		r.Args[i] = requestArg{Channel: channelName(sub.Channel), InstID: sub.Listing.StreamSymbol()}
	}
	text, err := json.Marshal(r)
	if err != nil {
		return s.venue.streamError(market.KindInternal, err)
	}
	if len(subs) > streamBatch || len(text) > maxRequest {
		return s.venue.streamError(market.KindInternal, errRequest)
	}
	return s.link.Send(ctx, text)
}

// turn waits until the next request may be sent.
func (s *stream) turn(ctx context.Context) error {
	now := clock.Now()
	deadline, limited := ctx.Deadline()
	wait, ok := s.pace.reserve(now, deadline, limited)
	if !ok {
		e := s.venue.streamError(market.KindOverloaded, errPace)
		e.RetryAfter = wait
		return e
	}
	if wait <= 0 {
		return nil
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-s.over:
		return s.venue.streamError(market.KindUnavailable, errStreamUp)
	case <-ctx.Done():
		s.pace.giveBack()
		return s.venue.streamError(market.KindOf(ctx.Err()), ctx.Err())
	}
}

// streamError is an error of a stream.
func (v *Venue) streamError(k market.Kind, err error) *market.Error {
	return &market.Error{Exchange: v.id, Op: market.OpStream, Kind: k, Err: err}
}
