// Package binance speaks the dialect of Binance spot: order books, 24 hour statistics, the list of symbols, the announced
// status of the platform, and the spot wallet of an account by REST, and the changes of order books by streams.
//
// It sends what it is asked for, once, through the door of package exchange, and says what the answer means. It keeps no
// answers, repeats no request, and counts for no circuit: the layers above do. It places no orders, and it knows nothing of
// futures, which use the same symbols for other books.
package binance

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/market"
)

// ID is the exchange's name.
const ID market.ExchangeID = "binance"

// publicHosts answer the public requests, in order of preference. api1 to api4 are left out: the documentation calls them
// faster and less stable.
var publicHosts = []string{"https://api.binance.com", "https://api-gcp.binance.com", "https://" + dataHost}

// dataHost has market data only: no account and no platform status.
const dataHost = "data-api.binance.vision"

// accountHosts answer signed requests and the platform's status.
var accountHosts = []string{"https://api.binance.com", "https://api-gcp.binance.com"}

// demoHosts answer the keys of Binance's demo mode (since 2026-01-29).
var demoHosts = []string{"https://demo-api.binance.com"}

// Venue is Binance spot. Safe for concurrent use.
type Venue struct {
	id     market.ExchangeID
	client *exchange.Client
	log    *slog.Logger

	public *exchange.Hosts
	live   *accountAPI // of ordinary keys
	demo   *accountAPI // of demo keys

	streams *exchange.Hosts
	batch   batch

	limits atomic.Pointer[[]market.Limit] // as stated last by the exchange
}

var _ market.Venue = (*Venue)(nil)

// New makes the adapter. It does no I/O.
func New(c exchange.Config) (*Venue, error) {
	if c.Door == nil {
		return nil, errors.New("binance: no door")
	}
	if c.Region != "" {
		return nil, fmt.Errorf("binance: region %q: Binance has no regions, leave it empty", c.Region)
	}
	public, err := exchange.BaseURLs(c.Hosts, publicHosts)
	if err != nil {
		return nil, fmt.Errorf("binance: hosts: %w", err)
	}
	account, err := exchange.BaseURLs(c.AccountHosts, signable(c.Hosts, public))
	if err != nil {
		return nil, fmt.Errorf("binance: account hosts: %w", err)
	}
	streams, err := exchange.StreamURLs(c.StreamHosts, streamHosts)
	if err != nil {
		return nil, fmt.Errorf("binance: stream hosts: %w", err)
	}
	if c.ID == "" {
		c.ID = ID
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	v := &Venue{
		id: c.ID, client: exchange.NewClient(c, own), log: c.Log,
		public: exchange.NewHosts(public), streams: exchange.NewHosts(streams),
	}
	v.limits.Store(&documentedLimits)
	v.live = v.newAccountAPI("account_hosts", account, public)
	v.demo = v.live
	if len(c.AccountHosts) == 0 && len(c.Hosts) == 0 {
		v.demo = v.newAccountAPI("demo_hosts", demoHosts, public)
	}
	return v, nil
}

// signable is where signed requests go when no account hosts are configured: the configured hosts that serve accounts,
// or Binance's own.
func signable(configured, public []string) []string {
	if len(configured) == 0 {
		return accountHosts
	}
	able := slices.DeleteFunc(slices.Clone(public), func(h string) bool { return strings.HasSuffix(h, "//"+dataHost) })
	if len(able) == 0 {
		return accountHosts
	}
	return able
}

// ID is the exchange's name.
func (v *Venue) ID() market.ExchangeID { return v.id }

// Wallets are the wallets that can be read: the spot wallet. Funding, margin and Earn are other APIs of other weights.
func (v *Venue) Wallets() []market.Wallet { return []market.Wallet{market.WalletTrading} }

// get sends one request and decodes its answer. What is no success is classified; what cannot be decoded is malformed, or
// suspect if the decoder says so, and closes the gate hold if there is one.
func (v *Venue) get(ctx context.Context, r exchange.Request, g gates, decode func(*exchange.Response) error) error {
	r.TooLong = g.hold
	return v.client.Do(ctx, r, func(res *exchange.Response) *market.Error {
		readUsage(res)
		if res.Status < 200 || res.Status > 299 {
			return v.refused(res, g)
		}
		err := decode(res)
		if err == nil {
			return nil
		}
		if said, ok := readEnvelope(res.Body); ok {
			return v.meaning(res, said, g)
		}
		e := &market.Error{Kind: market.KindMalformed, Refusal: g.hold, Err: err}
		if errors.Is(err, market.ErrSuspect) {
			e.Kind = market.KindSuspect
		}
		return e
	})
}

// symbolQuery is the query of a request about one symbol. Since October 2025 symbols may hold any Unicode.
func symbolQuery(l market.Listing) string { return "symbol=" + url.QueryEscape(l.Symbol) }
