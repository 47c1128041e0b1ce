package api

import (
	"context"
	"net/http"
	"net/netip"
	"time"

	"github.com/go-chi/chi/v5"

	"exchange-gateway/internal/market"
)

// AppendTime and AppendQuoted are tested against the standard library's own.
var (
	AppendTime   = appendTime
	AppendQuoted = appendQuoted
)

// Within is the context of a request, and what ends it.
func Within(ctx context.Context, at time.Time) (context.Context, func()) {
	d := within(ctx, at)
	return d, d.end
}

// WithinFor is the same on a client's account.
func WithinFor(ctx context.Context, at time.Time, client market.Client) (context.Context, func()) {
	d := within(ctx, at)
	d.client = client
	return d, d.end
}

// Routes are the method and pattern of every route of a listener, as "GET /v1/errors".
func (s *Server) Routes() (public, admin []string) {
	return walked(s.publicRoutes()), walked(s.adminRoutes())
}

func walked(r chi.Routes) (all []string) {
	_ = chi.Walk(r, func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		all = append(all, method+" "+route)
		return nil
	})
	return all
}

// ParseQuery is what the fuzzer feeds.
func ParseQuery(raw string, allowed []string) (names, values []string, err error) {
	q, err := parseQuery(raw, allowed)
	return q.names[:q.n], q.values[:q.n], err
}

// Guesses is the table of addresses with wrong keys.
type Guesses = guesses

// Slowed, Wrong and Held are its questions.
func (g *Guesses) Slowed(a netip.Addr, now time.Time) time.Duration { return g.slowed(network(a), now) }

func (g *Guesses) Wrong(a netip.Addr, now time.Time) time.Duration { return g.wrong(network(a), now) }
func (g *Guesses) Held() int64                                     { return g.held.Load() }

// Lives end what lasts.
type Lives = lives

// Join and Poll are how something lasts.
func (l *Lives) Join(over <-chan struct{}, end func()) func() { return l.join(over, end) }
func (l *Lives) Poll(valid func() bool, end func()) func()    { return l.poll(valid, end) }
func (l *Lives) Wait()                                        { l.running.Wait() }
