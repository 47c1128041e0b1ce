package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"exchange-gateway/internal/market"
)

// AccountsConfig is what Accounts needs.
type AccountsConfig struct {
	Exchanges  []market.ExchangeID // those that are enabled, with accounts or without
	Accounts   []NamedAccount
	MaxFlights int      // 256 calls under way per exchange; beyond it KindOverloaded
	Withheld   Withheld // nil: nothing is; asked about exchanges as a whole
	// ClosedUntil is the known end of the maintenance that an exchange is under: Books.ClosedUntil; nil knows of none.
	ClosedUntil func(market.ExchangeID) (until time.Time, ok bool)

	Log     *slog.Logger          // nil discards
	Metrics prometheus.Registerer // nil counts nothing
}

// NamedAccount is one configured account. Account ends every call by itself, within the deadline of its class, and its
// door calls market.Sending before it sends.
type NamedAccount struct {
	Exchange market.ExchangeID
	Name     string
	Wallets  []market.Wallet
	Account  market.Account
}

// Accounts answers balance questions. It has no store, so it cannot be stale: an answer is what the exchange said after
// the question was put, or an error. It is safe for concurrent use.
type Accounts struct {
	order    []market.ExchangeID
	accounts map[accountKey]*account
	crews    map[market.ExchangeID]*crew
	metrics  map[market.ExchangeID]*venueMetrics
	rule     Rule
	tallies  map[market.ExchangeID]*tally
	withheld Withheld
	closed   func(market.ExchangeID) (time.Time, bool)
}

type accountKey struct {
	exchange market.ExchangeID
	name     string
}

// account holds the questions that wait to be sent, by wallet. There is no answer in it.
type account struct {
	NamedAccount
	mu      sync.Mutex
	pending map[market.Wallet]*errand
}

// Validate returns everything that is wrong, at once.
func (c AccountsConfig) Validate() error {
	var errs []error
	seen := map[accountKey]bool{}
	for _, a := range c.Accounts {
		k := accountKey{a.Exchange, a.Name}
		switch {
		case a.Name == "" || a.Account == nil || len(a.Wallets) == 0:
			errs = append(errs, fmt.Errorf("account %q of %s needs a name, wallets and a port", a.Name, a.Exchange))
		case !slices.Contains(c.Exchanges, a.Exchange):
			errs = append(errs, fmt.Errorf("account %q: %s is not enabled", a.Name, a.Exchange))
		case seen[k]:
			errs = append(errs, fmt.Errorf("account %q of %s appears twice", a.Name, a.Exchange))
		}
		seen[k] = true
	}
	return errors.Join(errs...)
}

// NewAccounts does no I/O and starts nothing. It panics if cfg is not valid: Validate says why.
func NewAccounts(cfg AccountsConfig) *Accounts {
	if err := cfg.Validate(); err != nil {
		panic(fmt.Errorf("gateway: %w", err))
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.MaxFlights <= 0 {
		cfg.MaxFlights = 256
	}
	a := &Accounts{
		order:    slices.Clone(cfg.Exchanges),
		accounts: make(map[accountKey]*account, len(cfg.Accounts)),
		crews:    make(map[market.ExchangeID]*crew, len(cfg.Exchanges)),
		metrics:  make(map[market.ExchangeID]*venueMetrics, len(cfg.Exchanges)),
		rule:     DefaultPolicy().Balances,
		tallies:  make(map[market.ExchangeID]*tally, len(cfg.Exchanges)),
		withheld: cfg.Withheld, closed: cfg.ClosedUntil,
	}
	m := newMetrics(cfg.Metrics)
	for _, id := range cfg.Exchanges {
		a.crews[id] = newCrew(id, cfg.MaxFlights, cfg.Log)
		a.crews[id].parts = 2 // balances are most of what a client is here for, and nothing else is kept waiting by them
		a.tallies[id] = &tally{}
		a.metrics[id] = m.counters(id, QuestionBalances)
	}
	for _, n := range cfg.Accounts {
		a.accounts[accountKey{n.Exchange, n.Name}] = &account{
			NamedAccount: n, pending: make(map[market.Wallet]*errand, len(n.Wallets)),
		}
	}
	return a
}

// Run waits until ctx ends, then ends every call that is still under way and returns when all have ended. It returns nil.
func (a *Accounts) Run(ctx context.Context) error {
	<-ctx.Done()
	var wait sync.WaitGroup
	for _, c := range a.crews {
		wait.Go(c.close)
	}
	wait.Wait()
	return nil
}

// Names lists the configured accounts of an exchange that have the wallet, sorted.
func (a *Accounts) Names(exchange market.ExchangeID, wallet market.Wallet) []string {
	return a.names(exchange, func(n *account) bool { return slices.Contains(n.Wallets, wallet) })
}

func (a *Accounts) names(exchange market.ExchangeID, fits func(*account) bool) []string {
	var names []string
	for k, n := range a.accounts {
		if k.exchange == exchange && fits(n) {
			names = append(names, k.name)
		}
	}
	slices.Sort(names)
	return names
}

// pick finds the account that a question is about, or says what may be asked.
func (a *Accounts) pick(q BalanceQuery) (*account, error) {
	if !slices.Contains(a.order, q.Exchange) {
		return nil, unknownExchange(q.Exchange, a.order)
	}
	all := a.names(q.Exchange, func(*account) bool { return true })
	if len(all) == 0 {
		return nil, &Error{
			Code: CodeNoAccounts, Exchange: q.Exchange, Detail: "no account of this exchange is configured",
		}
	}
	name := q.Account
	if name == "" {
		fit := a.Names(q.Exchange, q.Wallet)
		switch len(fit) {
		case 0:
			return nil, noWallet(q)
		case 1:
			name = fit[0]
		default:
			return nil, &Error{
				Code: CodeAccountAmbiguous, Exchange: q.Exchange,
				Detail: "name one of the accounts: " + strings.Join(fit, ", "),
			}
		}
	}
	n := a.accounts[accountKey{q.Exchange, name}]
	switch {
	case n == nil:
		return nil, &Error{
			Code: CodeAccountUnknown, Exchange: q.Exchange, Detail: fmt.Sprintf("no account %.40q is configured", name),
		}
	case !slices.Contains(n.Wallets, q.Wallet):
		return nil, noWallet(q)
	}
	return n, nil
}

func noWallet(q BalanceQuery) error {
	return &market.Error{
		Exchange: q.Exchange, Op: market.OpBalances, Kind: market.KindNotSupported,
		Err: fmt.Errorf("there is no wallet %.40q", string(q.Wallet)),
	}
}
