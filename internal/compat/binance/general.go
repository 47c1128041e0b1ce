package binance

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"exchange-gateway/internal/compat"
	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

// ping is about the way to the gateway, which is what a bot that pings wants to know: whether Binance answers is told by
// every question to it.
func (q question) ping(context.Context) (*compat.Answer, error) {
	return &compat.Answer{Body: []byte("{}")}, nil
}

// time is the gateway's clock. It is for those who measure theirs by it; nothing that is answered here is signed.
func (q question) time(context.Context) (*compat.Answer, error) {
	return &compat.Answer{Body: append(strconv.AppendInt([]byte(`{"serverTime":`), time.Now().UnixMilli(), 10), '}')}, nil
}

// errUnread is why there is no announcement where nothing went wrong.
var errUnread = errors.New("what the exchange announces was not read yet")

// systemStatus is what the platform announces about itself. The gateway reads it of exchanges that somebody uses: for the
// first who asks, the names of the symbols are looked at, which a bot needs next, and then it does.
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
	switch {
	case st.Announced.State == market.VenueOK:
		return &compat.Answer{Body: []byte(`{"status":0,"msg":"normal"}`)}, nil
	case st.Announced.State == market.VenueMaintenance:
		return &compat.Answer{Body: []byte(`{"status":1,"msg":"system_maintenance"}`)}, nil
	case st.AnnouncedError != market.KindNone:
		return nil, &market.Error{Exchange: ID, Op: market.OpStatus, Kind: st.AnnouncedError}
	case unread(st):
		return nil, &market.Error{Exchange: ID, Op: market.OpStatus, Kind: market.KindUnavailable, Err: errUnread}
	}
	return nil, refused(http.StatusNotFound, codeUnsupported, "The exchange announces nothing here.") // its testnet
}

func unread(st *gateway.Status) bool {
	return st.Announced.CheckedAt.IsZero() && st.AnnouncedError == market.KindNone && st.Announced.State != market.VenueOK &&
		st.Announced.State != market.VenueMaintenance
}
