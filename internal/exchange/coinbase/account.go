package coinbase

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/market"
)

// ledger is one of the two systems in which Coinbase keeps money, as a place to ask with a key.
type ledger struct {
	family string
	hosts  *exchange.Hosts
	clock  *systemClock
}

func (v *Venue) newLedger(family string, hosts []string) *ledger {
	l := &ledger{family: family, hosts: exchange.NewHosts(hosts)}
	l.clock = v.newClock(family, l.hosts)
	return l
}

// account is one key of one ledger. It has no way to ask the other ledger.
type account struct {
	venue  *Venue
	name   string
	ledger *ledger
	limit  market.LimitID
	sign   signer
	fetch  func(context.Context, *account) (*market.Balances, error)
	pages  atomic.Int64 // that the last answer had, to plan the next call
}

var _ market.VenueAccount = (*account)(nil)

// signer adds to a request what proves the key, at a time of the exchange's clock.
type signer func(r *http.Request, at time.Time) error

// errAccountName: the name keys the account's gate.
var errAccountName = errors.New("coinbase: an account needs a name")

// Account binds a credential. The shape of the credential decides which system it belongs to, see identify.
func (v *Venue) Account(name string, c market.Credential) (market.VenueAccount, error) {
	if name == "" {
		return nil, errAccountName
	}
	id, err := identify(c)
	if err != nil {
		return nil, err
	}
	a := &account{venue: v, name: name, sign: id.sign}
	a.pages.Store(1)
	switch {
	case id.family == familyAdvanced:
		a.ledger, a.fetch = v.advanced, fetchPortfolio
	case !c.Demo:
		a.ledger, a.fetch = v.exchange, fetchProfile
	case v.sandbox != nil:
		a.ledger, a.fetch = v.sandbox, fetchProfile
	default:
		return nil, errNoSandbox
	}
	a.limit = v.private.of(id.family, name, id.owner)
	return a, nil
}

var errNoSandbox = errors.New("coinbase: the EU entity documents no sandbox for REST, so a demo key needs account hosts to be set")

// maxPlanned bounds what is reserved for pages: more than a share of the limit can hold would never be granted. Pages
// past it draw on the limit as they come.
const maxPlanned = 10

// Plan states what a balance call touches: as many requests as the last answer had pages, and the clock if it has not
// been read.
func (a *account) Plan(market.Wallet) market.Call {
	call := a.venue.signed(a.ledger.family, a.name, a.limit, min(int(a.pages.Load()), maxPlanned))
	if !a.ledger.clock.measured() {
		call.Charges = append(call.Charges, a.venue.keyless(market.OpTime, a.ledger.family).Charges...)
	}
	return call
}

// Balances asks for everything that the key can see.
func (a *account) Balances(ctx context.Context, w market.Wallet) (*market.Balances, error) {
	if w != market.WalletTrading {
		return nil, &market.Error{
			Exchange: a.venue.id, Op: market.OpBalances, Kind: market.KindNotSupported,
			Err: errors.New("a key of Coinbase reads one ledger, which is called the trading wallet here"),
		}
	}
	a.ledger.clock.settle(ctx)
	if err := ctx.Err(); err != nil {
		return nil, &market.Error{Exchange: a.venue.id, Op: market.OpBalances, Kind: market.KindOf(err), Err: err}
	}
	b, err := a.fetch(ctx, a)
	if market.KindOf(err) == market.KindClockSkew {
		a.ledger.clock.doubt()
	}
	if err != nil {
		return nil, err
	}
	return b, nil
}

// request is one signed GET. Each is signed when it is sent.
func (a *account) request(path, query string) exchange.Request {
	return exchange.Request{
		Call: a.venue.signed(a.ledger.family, a.name, a.limit, 1), Hosts: a.ledger.hosts, Path: path, Query: query,
		Header: http.Header{"Accept": {"application/json"}},
		Sign:   func(r *http.Request) error { return a.sign(r, a.ledger.clock.now()) },
	}
}

func (a *account) question() question {
	return question{op: market.OpBalances, family: a.ledger.family, account: a.name}
}

// suspectClock doubts our clock if the answer to a refused token shows another one: Advanced Trade has one text for all
// that can be wrong with a token.
func (a *account) suspectClock(r *exchange.Response) {
	const dateStep = time.Second // Date has whole seconds
	theirs := r.ServerTime()
	if theirs.IsZero() || r.Status != http.StatusUnauthorized {
		return
	}
	ours := a.ledger.clock.now().Add(r.SentAt.Sub(r.ReceivedAt))
	if theirs.Sub(ours).Abs() > clockTolerance+dateStep+r.ReceivedAt.Sub(r.SentAt) {
		a.ledger.clock.doubt()
	}
}
