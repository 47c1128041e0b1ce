// Package coinbase speaks the dialects of Coinbase: Advanced Trade, by REST and as streams, for everything public, and for
// balances the one of Advanced Trade and Coinbase Exchange that the credential belongs to.
//
// The two are different systems with one matching engine: other hosts, other keys, other rate limits, other ledgers. The
// package never falls back from one to the other. A balance from the wrong ledger would be wrong, not old; a book from
// Exchange would come as the whole book of some 40,000 levels, or as its top alone. USD and USDC share a book at
// Coinbase, but they are two quotes here: a product that shows another one's book says so in Listing.AliasOf.
//
// It places no orders, caches nothing and retries nothing.
package coinbase

import (
	"errors"
	"fmt"
	"log/slog"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/market"
)

// ID is the name under which the exchange is known unless configuration says otherwise.
const ID market.ExchangeID = "coinbase"

// Hosts by default. Clients of the EU entity must use hosts of their own for Coinbase Exchange (its changelog of
// 2025-12-11); Advanced Trade is one host for the world. Only Exchange has a sandbox with live answers.
const (
	advancedHost   = "https://api.coinbase.com"
	exchangeHost   = "https://api.exchange.coinbase.com"
	exchangeHostEU = "https://api-us.dma.prime.coinbase.com"
	sandboxHost    = "https://api-public.sandbox.exchange.coinbase.com"
)

// Venue is Coinbase, unguarded. Safe for concurrent use.
type Venue struct {
	id     market.ExchangeID
	client *exchange.Client
	log    *slog.Logger
	door   market.Door
	public *exchange.Hosts // Advanced Trade, keyless
	// streams of Advanced Trade, keyless
	streams *exchange.Hosts

	advanced *ledger
	exchange *ledger
	sandbox  *ledger // of Exchange; nil in a region without one
	private  limitBook
}

var _ market.Venue = (*Venue)(nil)

// New makes the adapter. It does no I/O. Config.Region is "" or "global", or "eu" for clients of the EU entity.
// Config.Hosts are asked for public data, and for signed requests of both systems as well where Config.AccountHosts is
// empty: they have to serve all that is used of the two.
func New(cfg exchange.Config) (*Venue, error) {
	if cfg.ID == "" {
		cfg.ID = ID
	}
	if cfg.Door == nil {
		return nil, errors.New("coinbase: a door is needed")
	}
	if cfg.Region != "" && cfg.Region != "global" && cfg.Region != "eu" {
		return nil, fmt.Errorf("coinbase: region %.20q is not known: it is global or eu", cfg.Region)
	}
	public, err := exchange.BaseURLs(cfg.Hosts, []string{advancedHost})
	if err != nil {
		return nil, fmt.Errorf("coinbase: hosts: %w", err)
	}
	streams, err := exchange.StreamURLs(cfg.StreamHosts, []string{streamHost})
	if err != nil {
		return nil, fmt.Errorf("coinbase: stream hosts: %w", err)
	}
	if len(cfg.AccountHosts) == 0 {
		cfg.AccountHosts = cfg.Hosts
	}
	advanced, err := exchange.BaseURLs(cfg.AccountHosts, []string{advancedHost})
	if err != nil {
		return nil, fmt.Errorf("coinbase: account hosts: %w", err)
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	v := &Venue{
		id: cfg.ID, client: exchange.NewClient(cfg, own), log: cfg.Log, door: cfg.Door,
		public: exchange.NewHosts(public), streams: exchange.NewHosts(streams),
	}
	v.advanced = v.newLedger(familyAdvanced, advanced)
	switch {
	case len(cfg.AccountHosts) > 0:
		v.exchange = v.newLedger(familyExchange, advanced)
		v.sandbox = v.exchange
	case cfg.Region == "eu":
		v.exchange = v.newLedger(familyExchange, []string{exchangeHostEU})
	default:
		v.exchange = v.newLedger(familyExchange, []string{exchangeHost})
		v.sandbox = v.newLedger(familyExchange, []string{sandboxHost})
	}
	return v, nil
}

// ID is the exchange's name.
func (v *Venue) ID() market.ExchangeID { return v.id }

// Wallets are the wallets that an account can read: a key sees one portfolio, or one profile, and nothing else.
func (v *Venue) Wallets() []market.Wallet { return []market.Wallet{market.WalletTrading} }
