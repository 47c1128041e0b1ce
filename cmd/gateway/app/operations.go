package app

import (
	"context"
	"log/slog"
	"net"
	"time"

	"exchange-gateway/cmd/gateway/config"
	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/dashboard"
	"exchange-gateway/internal/feed"
	"exchange-gateway/internal/fleet"
	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
	"exchange-gateway/internal/notify"
	"exchange-gateway/internal/ops"
)

// operations is what operators see and do: made in two steps, since the guard tells its events to the journal and the desk
// acts on the guard.
type operations struct {
	keeper    *fleet.Operations
	overrides *ops.Overrides
	journal   *ops.Journal
	desk      *ops.Desk
	board     *ops.Board
}

// beginOperations makes what the guard and the policy need.
func (a *App) beginOperations() error {
	o := &a.operations
	o.keeper = fleet.NewOperations(fleet.OperationsConfig{
		StateDir: a.conf.StateDir, Redis: a.redis, Prefix: a.conf.Redis.KeyPrefix, Instance: a.conf.Instance, Log: a.log,
	})
	o.overrides = new(ops.Overrides)
	o.journal = ops.NewJournal(ops.JournalConfig{Keeper: kept{o.keeper}, Logger: a.log, Registerer: a.registry})
	var err error
	a.webhook, err = notify.New(notify.Config{
		URL: a.conf.Webhook.URL, Instance: a.instance(), Dashboard: a.conf.ExternalURL, Log: a.log, Metrics: a.registry,
	})
	return err
}

// finishOperations makes what needs everything else.
func (a *App) finishOperations(version string) {
	o := &a.operations
	streams := opsFeed{a.feed, a.hub}
	told := answers{a.books, a.accounts}
	o.desk = ops.NewDesk(ops.DeskConfig{
		Exchanges: a.ids, Guard: a.guard, Overrides: o.overrides, Journal: o.journal, Copies: a.books,
		Answers: told, Keeper: kept{o.keeper}, Feed: streams, Reloader: a, Remind: a.remind,
		Logger: a.log, Registerer: a.registry,
	})
	o.board = ops.NewBoard(ops.BoardConfig{
		Instance: a.instance(), Version: version, StartedAt: clock.Now(), Exchanges: a.ids, Guard: a.guard,
		Answers: told, Feed: streams, Overrides: o.overrides, Journal: o.journal, Degraded: a.degraded,
		Clients:    clientsUse{a.clients},
		Thresholds: a.thresholds, FreshFor: a.conf.FreshFor, StaleMax: a.conf.StaleMaxAge,
		Logger: a.log, Registerer: a.registry,
	})
}

// instance is the gateway's name; a configuration that was not loaded from anywhere has none.
func (a *App) instance() string {
	if a.conf.Instance == "" {
		return "gateway"
	}
	return a.conf.Instance
}

// happened passes an event of the guard on. It is called for one at a time, in order, and must not wait.
func (a *App) happened(also func(market.Event)) func(market.Event) {
	return func(ev market.Event) {
		a.operations.journal.Listen(ev)
		a.webhook.Notify(ev)
		if also != nil {
			also(ev)
		}
	}
}

// remind tells people that an isolation is about to end.
func (a *App) remind(o market.Override) {
	a.log.Info("isolation ends soon", slog.String("exchange", string(o.Exchange)), slog.String("class", string(o.Class)),
		slog.String("actor", o.Actor), slog.Time("until", o.Until))
	a.webhook.Note(o.Ending())
}

// maintained tells of a maintenance window as of any other event.
func (a *App) maintained(m market.Maintenance, _ bool) {
	a.guard.Tell(market.Event{Type: market.EventMaintenance, Exchange: m.Exchange, Maintenance: m, Until: m.Until})
}

// thresholds are the settings of a class that are in force.
func (a *App) thresholds(id market.ExchangeID, class market.Class) ops.Thresholds {
	p := a.guard.Thresholds(id, class)
	return ops.Thresholds{
		Consecutive: p.Consecutive, MinSpanMS: p.MinSpan.Milliseconds(), Rate: p.Rate, SlowShare: p.SlowShare,
		SlowMS: time.Duration(p.SlowFactor * float64(p.Timeout)).Milliseconds(), MinSettled: p.MinSettled,
		WindowMS: p.Window.Milliseconds(), TimeoutMS: p.Timeout.Milliseconds(), DeadlineMS: p.Deadline.Milliseconds(),
		OpenMinMS: p.OpenMin.Milliseconds(), OpenMaxMS: p.OpenMax.Milliseconds(),
	}
}

// newDashboard is the page of the admin listener.
func (a *App) newDashboard() dashboard.Config {
	return dashboard.Config{Overview: a.operations.board.Overview, PublicURL: publicURL(a.conf)}
}

// publicURL is the public listener as somebody on this machine reaches it, "" if that is not known before it is open.
func publicURL(c config.Config) string {
	host, port, err := net.SplitHostPort(c.Listen)
	if err != nil || port == "0" {
		return ""
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	scheme := "http://"
	if c.TLSCertFile != "" {
		scheme = "https://"
	}
	return scheme + net.JoinHostPort(host, port)
}

// kept is the fleet's store as the desk and the journal see it.
type kept struct{ *fleet.Operations }

// Load implements ops.Keeper.
func (k kept) Load(ctx context.Context) (ops.Kept, error) {
	all, err := k.Operations.Load(ctx)
	return ops.Kept(all), err
}

// answers are what the policy tells the desk and the board.
type answers struct {
	*gateway.Books
	accounts *gateway.Accounts
}

var (
	_ ops.Answers      = answers{}
	_ gateway.Withheld = (*ops.Overrides)(nil)
)

// Served implements ops.Answers: public data and balances together.
func (s answers) Served(id market.ExchangeID) ops.Served {
	public, balances := s.Books.Served(id), s.accounts.Served(id)
	out := ops.Served{Live: public.Live + balances.Live, Stale: public.Stale, Refused: public.Refused + balances.Refused}
	if public.Live+public.Stale > 0 {
		ms := public.Oldest.Milliseconds()
		out.OldestMS = &ms
	}
	return out
}

// Lately implements ops.Answers: public data and balances together.
func (s answers) Lately(id market.ExchangeID, streamed []ops.Book) ops.Lately {
	public, balances := s.Books.Lately(id, streamedPairs(streamed)), s.accounts.Lately(id)
	out := ops.Lately{
		Live: public.Live + balances.Live, Stale: public.Stale, Errors: public.Errors + balances.Errors, Wanted: public.Wanted + balances.Wanted,
		Pairs: ops.PairOutlook(public.Pairs), AskedAt: public.AskedAt, Balances: balances.Balances,
	}
	if balances.AskedAt.After(out.AskedAt) {
		out.AskedAt = balances.AskedAt
	}
	return out
}

// streamedPairs are streamed books as the policy sees them.
func streamedPairs(books []ops.Book) []gateway.StreamedPair {
	out := make([]gateway.StreamedPair, 0, len(books))
	for i := range books {
		b := &books[i]
		pair, err := market.ParsePair(b.Symbol)
		if err != nil {
			continue // it came from a pair
		}
		out = append(out, gateway.StreamedPair{
			Pair: pair, Live: b.Status == string(feed.StateLive), Held: b.ConfirmedAt != nil, Failing: b.Reason != "", Watched: b.Watched,
		})
	}
	return out
}

// Ask implements ops.Answers.
func (s answers) Ask(ctx context.Context, id market.ExchangeID, class market.Class) error {
	if class == market.ClassAccount {
		return s.accounts.Ask(ctx, id)
	}
	return s.Books.Ask(ctx, id, class)
}
