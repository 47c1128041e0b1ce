package api

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"exchange-gateway/internal/api/keys"
	"exchange-gateway/internal/api/session"
	"exchange-gateway/internal/feed/hub"
	"exchange-gateway/internal/market"
)

// Config is what the server needs. A zero number or duration means the default beside it.
type Config struct {
	Books    Books      // needed
	Accounts Accounts   // needed
	Keys     *keys.Ring // needed; may be empty
	Hub      *hub.Hub   // fans streamed books out; nil: the routes of streams are not there
	Feed     Feed       // tells of them; nil tells nothing
	Board    Board      // shows circuits; nil: its routes are not there
	Desk     Desk       // carries out what operators order; needed with a board, and of no use without

	// Dashboard is the page on the admin listener: / and everything under /ui. Nil: there is none.
	Dashboard http.Handler

	// Circuit reads the worst circuit of an exchange's class, for problems; it does no I/O. Nil shows none.
	Circuit func(market.ExchangeID, market.Class) market.CircuitState
	// Degraded lists in words what does not work as configured: Redis, the state directory. It does no I/O. Nil is nothing.
	Degraded func() []string

	MarketNeedsKey bool // market data needs a key with market:read; right for every listener beyond loopback
	OpsNeedsKey    bool // the admin listener needs a key with ops:read for all that it shows; right for every one beyond loopback

	// AdminOnLoopback says that the admin listener is on loopback: while no key has ops:write, whoever works on this machine
	// may act. Whoever has no valid key has to ask by a name of this machine for anything but the probes.
	AdminOnLoopback bool
	// PublicOnLoopback says that the public listener is on loopback: the same is asked of those who look at circuits there.
	PublicOnLoopback bool

	// SessionSecret signs the sessions of browsers: at least session.SecretSize random bytes, kept from one start to the
	// next. Empty: a new one, and sessions end with the process.
	SessionSecret []byte

	FreshFor     time.Duration // 1 s, as the policy's: Cache-Status counts from it
	DefaultDepth int           // 100 levels a side
	MaxDepth     int           // 1,000
	MaxInFlight  int           // 1,000 requests; beyond it `overloaded`
	MaxStreams   int           // 10,000 clients of streams; beyond it `overloaded`
	Deadline     time.Duration // 25 s for one request; above the longest deadline of a call, 20 s

	// Tracer traces requests. Nil: nothing is traced.
	Tracer market.Tracer

	Version  string
	Log      *slog.Logger         // nil discards
	Registry *prometheus.Registry // needed; /metrics shows it
}

func (c Config) withDefaults() Config {
	if c.FreshFor == 0 {
		c.FreshFor = time.Second
	}
	if c.DefaultDepth == 0 {
		c.DefaultDepth = 100
	}
	if c.MaxDepth == 0 {
		c.MaxDepth = 1000
	}
	if c.MaxInFlight == 0 {
		c.MaxInFlight = 1000
	}
	if c.Deadline == 0 {
		c.Deadline = 25 * time.Second
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// Validate returns everything that is wrong, at once.
func (c Config) Validate() error {
	var errs []error
	if c.Books == nil || c.Accounts == nil || c.Keys == nil || c.Registry == nil {
		errs = append(errs, errors.New("books, accounts, keys and a registry are needed"))
	}
	if (c.Board == nil) != (c.Desk == nil) {
		errs = append(errs, errors.New("a board and a desk are needed together"))
	}
	if n := len(c.SessionSecret); n > 0 && n < session.SecretSize {
		errs = append(errs, fmt.Errorf("the secret of sessions has %d bytes; at least %d are needed", n, session.SecretSize))
	}
	if c.FreshFor < 0 || c.Deadline < 0 {
		errs = append(errs, errors.New("durations cannot be negative"))
	}
	if d := c.withDefaults(); d.DefaultDepth < 1 || d.DefaultDepth > d.MaxDepth || d.MaxInFlight < 1 {
		errs = append(errs, fmt.Errorf("depth %d of at most %d, and %d requests in flight make no sense", d.DefaultDepth, d.MaxDepth, d.MaxInFlight))
	}
	return errors.Join(errs...)
}
