// Package okx speaks OKX's v5 dialect. By REST: spot order books, 24 h statistics, instruments, announcements, and the
// balances of the trading and the funding account. By WebSocket: books, and the best bid and ask, as they change.
//
// It sends GET requests and public subscriptions only and talks to one region only: a key of one region is unknown in every other, so it never
// falls back across regions. It retries nothing, caches nothing, follows no redirect and places no orders.
package okx

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/market"
)

// defaultID is the name of the exchange unless configuration gives another.
const defaultID market.ExchangeID = "okx"

// maxAccounts bounds the accounts of one Venue, and with them the rate limits and metric labels that they add. Past it
// Account returns an error.
const maxAccounts = 100

// Venue is OKX, unguarded. Safe for concurrent use.
type Venue struct {
	id     market.ExchangeID
	region string // "global", "eea" or "us": where all requests go
	client *exchange.Client
	log    *slog.Logger
	clock  *exchange.Clock
	public *exchange.Hosts
	signed *exchange.Hosts
	stream *exchange.Hosts

	mu       sync.Mutex
	accounts []*Account // in the order of their making, one per name, at most maxAccounts
}

var (
	_ market.Venue        = (*Venue)(nil)
	_ market.VenueAccount = (*Account)(nil)
	_ market.Streamer     = (*Venue)(nil)
)

// New makes the adapter. It does no I/O. An unknown region, hosts of two regions, or a host that is no URL is an error
// that says what is allowed.
func New(c exchange.Config) (*Venue, error) {
	if c.ID == "" {
		c.ID = defaultID
	}
	if c.Door == nil {
		return nil, fmt.Errorf("%s: %w", c.ID, errNoDoor)
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	place, err := placeOf(c)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.ID, err)
	}
	v := &Venue{
		id: c.ID, region: place.region, client: exchange.NewClient(c, own), log: c.Log,
		public: exchange.NewHosts(place.hosts), signed: exchange.NewHosts(place.accountHosts),
		stream: exchange.NewHosts(place.streamHosts),
	}
	v.clock = exchange.NewClock(v.time)
	return v, nil
}

var errNoDoor = errors.New("a door is needed: every request passes it")

// ID is the exchange's name.
func (v *Venue) ID() market.ExchangeID { return v.id }

// Wallets are the trading and the funding account. OKX keeps them apart and so do we.
func (v *Venue) Wallets() []market.Wallet {
	return []market.Wallet{market.WalletTrading, market.WalletFunding}
}

// onlyDemo tells whether every account that was bound belongs to the demo environment, and there is one.
func (v *Venue) onlyDemo() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, a := range v.accounts {
		if !a.credential.Demo {
			return false
		}
	}
	return len(v.accounts) > 0
}
