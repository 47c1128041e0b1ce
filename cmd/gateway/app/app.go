package app

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/redis/go-redis/v9"

	"exchange-gateway/cmd/gateway/config"
	"exchange-gateway/internal/api"
	"exchange-gateway/internal/api/keys"
	"exchange-gateway/internal/api/quota"
	"exchange-gateway/internal/cache"
	"exchange-gateway/internal/dial"
	"exchange-gateway/internal/feed"
	"exchange-gateway/internal/feed/hub"
	"exchange-gateway/internal/fleet"
	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
	"exchange-gateway/internal/notify"
	"exchange-gateway/internal/resilience"
)

// Options are what does not come from configuration.
type Options struct {
	Log     *slog.Logger
	Version string
	Program string // how the gateway is called in a shell, for hints; "" is gateway
	// Load reads the configuration anew, for Reload. Nil: it cannot be reloaded.
	Load func() (config.Config, error)
	// Level is what Log is filtered by, for Reload. Nil: the level stays.
	Level    *slog.LevelVar
	Tracer   market.Tracer      // traces requests; nil traces nothing
	Listener func(market.Event) // gets every change of a circuit or gate, in order; may be nil
	// Transport replaces the transport to an exchange: tests run without sockets. Nil dials.
	Transport func(market.ExchangeID) http.RoundTripper
}

// App is the gateway, built and not yet started.
type App struct {
	conf       config.Config
	log        *slog.Logger
	redis      redis.UniversalClient // nil without Redis
	secretLost bool                  // the secret of sign-ins could not be kept
	shortage   *dial.Shortage        // of what connections need
	keys       *keys.Ring
	guard      *resilience.Guard
	gates      *fleet.Gates
	store      *cache.Store
	whole      *cache.Whole
	hub        *hub.Hub
	feed       *feed.Feed
	warmer     *warmer
	books      *gateway.Books
	accounts   *gateway.Accounts
	api        *api.Server
	registry   *prometheus.Registry
	metrics    *metrics

	certificate *certificate // nil without TLS
	clients     *quota.Clients

	operations operations
	webhook    *notify.Webhook
	load       func() (config.Config, error)
	program    string
	level      *slog.LevelVar
	reloading  sync.Mutex
	inForce    config.Config                  // conf with what reloads changed; covered by reloading
	ids        []market.ExchangeID            // enabled exchanges, sorted
	families   map[market.ExchangeID][]string // API families with circuits of their own, "" among them
}

// New builds the gateway. It opens no socket; the only files that it reads are those that the configuration names. All
// problems are in one error.
func New(conf config.Config, o Options) (*App, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if err := Check(conf, nil, o.Program); err != nil {
		return nil, err
	}
	windows, err := windows(conf)
	if err != nil {
		return nil, err
	}
	a := &App{conf: conf, inForce: conf, log: o.Log, load: o.Load, program: o.Program, level: o.Level, registry: prometheus.NewRegistry()}
	a.shortage = new(dial.Shortage)
	a.metrics = newMetrics(a.registry, a.degraded)
	a.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	a.certificate = newCertificate(conf.TLSCertFile, conf.TLSKeyFile, o.Log, a.registry)
	if a.keys, err = keys.Open(conf.KeysFile, o.Log); err != nil {
		// Market data on loopback needs no key, and the file is tried again: this is no reason not to start.
		a.log.Error("keys file not read, every key is refused until it can be", slog.Any("err", err))
	}
	a.clients = quota.New(quota.Config{Ring: a.keys, Defaults: quotas(conf), Metrics: a.registry})
	a.redis = newRedis(conf.Redis, a.shortage, o.Log)
	a.gates = newGates(conf, a.redis, o.Log)
	if err := a.beginOperations(); err != nil {
		return nil, err
	}
	if err := a.newGuard(o); err != nil {
		return nil, err
	}
	venues, err := newVenues(conf, a.guard, a.shortage, o)
	if err != nil {
		return nil, err
	}
	a.ids, a.families = venues.ids(), venues.families
	a.store = cache.New(cache.Config{
		FreshFor: conf.FreshFor, BookTTL: conf.StaleMaxAge, Prefix: conf.Redis.KeyPrefix, Exchanges: a.ids,
	}, a.redis, o.Log, a.registry)
	a.whole = cache.NewWhole(cache.Config{Prefix: conf.Redis.KeyPrefix}, conf.StateDir, a.redis, o.Log)
	a.newFeed(venues)
	a.warmer = newWarmer(a.ids, o.Log)
	a.warmer.watch = a.warmPair
	for _, id := range a.ids {
		a.warmer.set(id, conf.Exchanges[id].Warm)
	}
	a.books = gateway.NewBooks(a.booksConfig(venues, windows))
	a.accounts = gateway.NewAccounts(gateway.AccountsConfig{
		Exchanges: a.ids, Accounts: venues.accounts, Withheld: a.operations.overrides, ClosedUntil: a.books.ClosedUntil,
		Log: o.Log, Metrics: a.registry,
	})
	a.finishOperations(o.Version)
	c, err := a.apiConfig(o)
	if err != nil {
		return nil, err
	}
	a.api, err = api.New(c)
	return a, err
}

func (a *App) newGuard(o Options) error {
	c := resilience.Config{
		Exchanges: policies(a.conf), Keeper: a.gates, Listener: a.happened(o.Listener), Logger: a.log, Registerer: a.registry,
	}
	if err := c.Validate(); err != nil {
		return err
	}
	a.guard = resilience.New(c)
	return nil
}

// Public is the handler of the public listener.
func (a *App) Public() http.Handler { return a.api.Public() }

// Admin is the handler of the admin listener.
func (a *App) Admin() http.Handler { return a.api.Admin() }

// Guard is what stands between the gateway and the exchanges.
func (a *App) Guard() *resilience.Guard { return a.guard }

// Start takes over what earlier lives left behind: the ends of bans, what operators put in force, the history. It must be
// called before the first request and takes little over a second at most.
func (a *App) Start(ctx context.Context) {
	if err := a.guard.Open(ctx); err != nil {
		a.log.WarnContext(ctx, "gates of earlier runs may be missing", slog.Any("err", err))
	}
	if err := a.operations.desk.Restore(ctx); err != nil {
		a.log.WarnContext(ctx, "overrides and history of earlier runs may be missing", slog.Any("err", err))
	}
}

// Background does what goes on beside requests until ctx ends: refreshing lists, writing copies to Redis, watching the
// keys file, keeping books from streams. It returns when all of it has ended.
func (a *App) Background(ctx context.Context) error {
	gates := func(ctx context.Context) error { return a.gates.Run(ctx, a.guard.Adopt) }
	o := &a.operations
	adopt := func(ctx context.Context) error {
		return o.keeper.Run(ctx, func([]market.Override) { o.desk.Adopt() })
	}
	return Together(ctx, a.books.Run, a.accounts.Run, a.store.Run, a.whole.Run, gates, a.keys.Run, a.certificate.run, a.feed.Run, a.warmer.run,
		adopt, o.journal.Run, o.desk.Run, o.board.Run, a.webhook.Run)
}

// Close ends what Start and the requests began. It is called once, after the last request, and keeps to ctx.
func (a *App) Close(ctx context.Context) error {
	err := errors.Join(a.guard.Close(ctx), a.operations.keeper.Close(ctx))
	if a.redis != nil {
		err = errors.Join(err, a.redis.Close())
	}
	return err
}

// closeTimeout bounds the end of the work in the background, which may send last messages for 2 s, and Close.
const closeTimeout = 4 * time.Second

func policies(conf config.Config) map[market.ExchangeID]resilience.Policy {
	all := make(map[market.ExchangeID]resilience.Policy, len(conf.Exchanges))
	for id, e := range conf.Exchanges {
		if e.On() {
			all[id] = resilience.Policy{BudgetShare: e.BudgetShare, Classes: map[market.Class]resilience.ClassPolicy{
				market.ClassMarketData: classPolicy(e.MarketData),
				market.ClassReference:  classPolicy(e.Reference),
				market.ClassAccount:    classPolicy(e.Account),
				market.ClassStream:     classPolicy(e.Stream),
			}}
		}
	}
	return all
}

func classPolicy(c config.Class) resilience.ClassPolicy {
	return resilience.ClassPolicy{
		Timeout: c.Timeout, Deadline: c.Deadline, Consecutive: c.Consecutive, Rate: c.Rate, Window: c.Window,
		OpenMin: c.OpenMin, OpenMax: c.OpenMax,
	}
}
