package binance

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/compat"
	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

// heardFor is how old an announcement may be that is given. Package gateway reads that of an exchange in use once a minute,
// and for whoever asks once it is two minutes old, for which it waits a second. What is older could not be read.
const heardFor = 2*time.Minute + time.Second

// errUnread is why there is no announcement where nothing went wrong.
var errUnread = errors.New("what the exchange announces was not read, or not lately")

// systemStatus is what the platform announces about itself. The gateway reads it of exchanges that somebody uses: where it is
// not known, or old, the names of the symbols are looked at, which a bot needs next and which is a use, and then it does.
// An announcement that cannot be read now is not given as if it were the exchange's word of today.
func (q question) systemStatus(ctx context.Context) (*compat.Answer, error) {
	st, err := q.books.Status(ctx, ID)
	if err != nil {
		return nil, err
	}
	if unread(st) {
		if _, err := q.look(ctx); err != nil && ctx.Err() != nil {
			return nil, err
		}
		if st, err = q.books.Status(ctx, ID); err != nil {
			return nil, err
		}
	}
	if closed(st) {
		return &compat.Answer{Body: []byte(`{"status":1,"msg":"system_maintenance"}`)}, nil
	}
	if err := unheard(st); err != nil {
		return nil, err
	}
	switch st.Announced.State {
	case market.VenueOK:
		return &compat.Answer{Body: []byte(`{"status":0,"msg":"normal"}`)}, nil
	case market.VenueMaintenance:
		return &compat.Answer{Body: []byte(`{"status":1,"msg":"system_maintenance"}`)}, nil
	case market.VenueUnknown: // its testnet
	}
	return nil, refused(http.StatusNotFound, codeUnsupported, "The exchange announces nothing here.")
}

// unread tells whether there is no announcement that may be given, and nothing went wrong.
func unread(st *gateway.Status) bool {
	return st.AnnouncedError == market.KindNone && clock.Since(st.Announced.CheckedAt) > heardFor
}

// closed tells whether the exchange is under maintenance: a window of the operator's, or an announced one that still holds,
// which is package gateway's to say.
func closed(st *gateway.Status) bool {
	now := clock.WallNow()
	return slices.ContainsFunc(st.Maintenance, func(m market.Maintenance) bool { return m.Active(now) })
}

// unheard is why an announcement may not be given: it could not be read anew, it is old, or it is from before a trouble of
// the exchange's that lasts, in which it would not be read either.
func unheard(st *gateway.Status) error {
	now := clock.WallNow()
	fail := func(kind market.Kind, until time.Time, why error) error {
		return &market.Error{Exchange: ID, Op: market.OpStatus, Kind: kind, RetryAfter: max(0, until.Sub(now)), Err: why}
	}
	for i := range st.Gates {
		g := &st.Gates[i]
		if wide := g.Scope.Kind == market.ScopeExchange || g.Scope.Kind == market.ScopeIP; wide && g.Until.After(now) {
			return fail(g.Kind, g.Until, nil)
		}
	}
	for i := range st.Circuits {
		c := &st.Circuits[i]
		switch {
		case c.ID.Class != market.ClassMarketData && c.ID.Class != market.ClassReference:
		case c.Isolated:
			return fail(market.KindIsolated, time.Time{}, nil)
		case c.State != market.CircuitClosed && !clock.Wall(st.Announced.CheckedAt).After(c.Since):
			return fail(market.KindCircuitOpen, c.OpenUntil, nil)
		}
	}
	switch {
	case st.AnnouncedError != market.KindNone:
		return fail(st.AnnouncedError, time.Time{}, nil)
	case unread(st):
		return fail(market.KindUnavailable, time.Time{}, errUnread)
	}
	return nil
}
