package app

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"slices"

	"exchange-gateway/cmd/gateway/config"
	"exchange-gateway/internal/dial"
	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/feed"
	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
	"exchange-gateway/internal/resilience"
)

// venues are the enabled exchanges, guarded.
type venues struct {
	public   []gateway.Venue // sorted by id
	streamed []feed.Venue
	accounts []gateway.NamedAccount
	families map[market.ExchangeID][]string
}

// newVenues makes the adapters of the enabled exchanges and their accounts, all behind the guard.
func newVenues(conf config.Config, guard *resilience.Guard, shortage *dial.Shortage, o Options) (venues, error) {
	all := venues{families: map[market.ExchangeID][]string{}}
	var errs []error
	for _, id := range slices.Sorted(maps.Keys(conf.Exchanges)) {
		e := conf.Exchanges[id]
		if !e.On() {
			continue
		}
		if err := all.add(id, e, guard, shortage, o); err != nil {
			errs = append(errs, err)
		}
	}
	if len(all.public) == 0 && len(errs) == 0 {
		errs = append(errs, errors.New("no exchange is enabled"))
	}
	return all, errors.Join(errs...)
}

func (v *venues) add(
	id market.ExchangeID, e config.Exchange, guard *resilience.Guard, shortage *dial.Shortage, o Options,
) error {
	var errs []error
	transport, streams, err := transportsTo(id, e, shortage, o)
	if err != nil {
		errs = append(errs, err)
	}
	c := exchange.Config{
		ID: id, Hosts: e.Hosts, AccountHosts: e.AccountHosts, StreamHosts: e.StreamHosts, Region: e.Region,
		Door: guard.Door(id), Transport: transport, Streams: streams, Log: o.Log,
		Shortage: shortage,
	}
	venue, err := exchanges()[id](c)
	if err != nil {
		errs = append(errs, fmt.Errorf("exchanges.%s: %w", id, err))
		// The accounts are wrong or right all the same.
		c.Hosts, c.AccountHosts, c.StreamHosts, c.Region = nil, nil, nil, ""
		if venue, err = exchanges()[id](c); err != nil {
			return errors.Join(errs...)
		}
	}
	// Accounts first: some exchanges limit each account, and a venue states the limits of the accounts that it has.
	families := []string{""}
	for _, name := range slices.Sorted(maps.Keys(e.Accounts)) {
		account, err := venue.Account(name, e.Accounts[name].Credential())
		if err != nil {
			errs = append(errs, fmt.Errorf("exchanges.%s.accounts.%s: %w", id, name, err))
			continue
		}
		if family := account.Plan(venue.Wallets()[0]).Family; !slices.Contains(families, family) {
			families = append(families, family)
		}
		v.accounts = append(v.accounts, gateway.NamedAccount{
			Exchange: id, Name: name, Account: guard.Account(id, account), Wallets: venue.Wallets(),
		})
	}
	v.families[id] = families
	data := guard.MarketData(venue)
	public := gateway.Venue{ID: id, Data: data, Plan: venue.Plan, Health: health{guard}}
	if n, ok := venue.(market.Native); ok {
		public.Native = guard.Native(id, n)
	}
	v.public = append(v.public, public)
	streamer, ok := venue.(market.Streamer)
	switch {
	case ok && e.Streaming():
		v.streamed = append(v.streamed, feed.Venue{ID: id, Streamer: streamer, Data: data, Do: guard.Do, Failing: failing(guard, id), Refused: refused(guard, id)})
	case ok && e.Streams == nil:
		o.Log.Info("nothing is streamed: hosts is set and stream_hosts is not", slog.String("exchange", string(id)))
	}
	return errors.Join(errs...)
}

// failing tells whether the circuit of an exchange's order books is not closed.
func failing(guard *resilience.Guard, id market.ExchangeID) func() bool {
	books := market.CircuitID{Exchange: id, Class: market.ClassMarketData}
	return func() bool {
		c, ok := guard.Circuit(books)
		return ok && c.State != market.CircuitClosed
	}
}

// refused closes the hold that an answer on an open stream asks for.
func refused(guard *resilience.Guard, id market.ExchangeID) func(context.Context, market.Call, *market.Error) {
	door := guard.Door(id)
	return func(ctx context.Context, c market.Call, e *market.Error) {
		door.Observe(ctx, c, market.Observation{Err: e})
	}
}

// transportsTo are the ways to an exchange, of requests and of streams: what a test gives, or sockets.
func transportsTo(
	id market.ExchangeID, e config.Exchange, shortage *dial.Shortage, o Options,
) (requests, streams http.RoundTripper, err error) {
	if o.Transport != nil {
		return o.Transport(id), o.Transport(id), nil
	}
	trusted, err := trust(id, e)
	if err != nil {
		return nil, nil, err
	}
	dialer := exchange.NewDialer()
	dialer.Log, dialer.Shortage = o.Log.With(slog.String("exchange", string(id))), shortage
	return exchange.NewTransport(trusted, dialer), exchange.NewStreamTransport(trusted, dialer), nil
}

// trust is whose certificates are believed, nil for those that the system trusts.
func trust(id market.ExchangeID, e config.Exchange) (*tls.Config, error) {
	if e.CAFile == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(e.CAFile)
	if err != nil {
		return nil, fmt.Errorf("exchanges.%s.ca_file: %w", id, err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool() // a machine without certificates trusts the file alone
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("exchanges.%s.ca_file: %w", id, cmp.Or(config.PEM(e.CAFile), fmt.Errorf("%s holds no certificate in PEM", e.CAFile)))
	}
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, nil
}

// health is the guard as the policy sees it.
type health struct{ guard *resilience.Guard }

// Circuit implements gateway.Health. Every circuit that the policy asks for exists.
func (h health) Circuit(id market.CircuitID) market.CircuitStatus {
	s, _ := h.guard.Circuit(id)
	return s
}

// Peek implements gateway.Health.
func (h health) Peek(c market.Call) error { return h.guard.Peek(c) }

func (v venues) ids() []market.ExchangeID {
	ids := make([]market.ExchangeID, len(v.public))
	for i, p := range v.public {
		ids[i] = p.ID
	}
	return ids
}
