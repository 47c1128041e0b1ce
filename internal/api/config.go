package api

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"exchange-gateway/internal/api/keys"
	"exchange-gateway/internal/api/quota"
	"exchange-gateway/internal/api/session"
	"exchange-gateway/internal/compat"
	"exchange-gateway/internal/feed/hub"
	"exchange-gateway/internal/market"
)

// Config is what the server needs. A zero number or duration means the default beside it.
type Config struct {
	Books    Books          // needed
	Accounts Accounts       // needed
	Keys     *keys.Ring     // needed; may be empty
	Clients  *quota.Clients // what each client may do; nil: the defaults of package quota, and a quarter of what is bounded below
	Hub      *hub.Hub       // fans streamed books out; nil: the routes of streams are not there
	Feed     Feed           // tells of them; nil tells nothing
	Board    Board          // shows circuits; nil: its routes are not there
	Desk     Desk           // carries out what operators order; needed with a board, and of no use without

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
	// PublicOnLoopback says that the public listener is on loopback: the same is asked there of those who look at circuits, and
	// of those who read market data while that needs no key.
	PublicOnLoopback bool

	// AllowOpen says that somebody else guards the listeners: what a key is needed for beyond this machine needs none. It is
	// asked for requests that come through a trusted proxy; for the listeners themselves the two above have it in them.
	AllowOpen bool

	// TrustedProxies are the networks whose X-Forwarded-For and X-Forwarded-Proto are believed. What comes from one of their
	// addresses came through a proxy and is not from this machine, whatever the listener. Empty: the headers are not believed.
	TrustedProxies []netip.Prefix
	// CORSOrigins are the origins whose pages may read the public listener and open its streams, exactly as browsers write
	// them: scheme, host and port. Empty: none but the gateway's own.
	CORSOrigins []string
	// AllowedHosts are names beside localhost and addresses by which whoever has no key may ask, without a port. It concerns
	// listeners on loopback and those that need no key.
	AllowedHosts []string
	// Dialects are the facades of the public listener, each under /compat/ and its exchange.
	Dialects []compat.Dialect

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
	errs = append(errs, c.proxies(), c.origins(), c.facades())
	if d := c.withDefaults(); d.DefaultDepth < 1 || d.DefaultDepth > d.MaxDepth || d.MaxInFlight < 1 {
		errs = append(errs, fmt.Errorf("depth %d of at most %d, and %d requests in flight make no sense", d.DefaultDepth, d.MaxDepth, d.MaxInFlight))
	}
	return errors.Join(errs...)
}

// proxies refuses networks that would never match: addresses are compared after IPv4 in IPv6 is folded.
func (c Config) proxies() error {
	if i := slices.IndexFunc(c.TrustedProxies, func(p netip.Prefix) bool { return !p.IsValid() || p.Addr().Is4In6() }); i >= 0 {
		return fmt.Errorf("trusted proxy %v is no network of IPv4 or IPv6", c.TrustedProxies[i])
	}
	return nil
}

// origins refuses patterns: a page is let in by its whole name.
func (c Config) origins() error {
	for _, o := range c.CORSOrigins {
		u, err := url.Parse(o)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || o != u.Scheme+"://"+u.Host || strings.Contains(o, "*") {
			return fmt.Errorf("%q is no origin: scheme, host and port, as https://desk.example.com", o)
		}
	}
	return nil
}

func (c Config) facades() error {
	seen := make(map[market.ExchangeID]bool, len(c.Dialects))
	for _, d := range c.Dialects {
		if d == nil || !plainName(string(d.Exchange())) || seen[d.Exchange()] {
			return errors.New("a facade is missing, has no name, or is there twice")
		}
		seen[d.Exchange()] = true
	}
	return nil
}
