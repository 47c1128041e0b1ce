package binance

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"exchange-gateway/internal/compat"
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

// systemStatus is what the platform announces about itself.
func (q question) systemStatus(ctx context.Context) (*compat.Answer, error) {
	st, err := q.books.Status(ctx, ID)
	if err != nil {
		return nil, err
	}
	switch {
	case st.Announced.State == market.VenueOK:
		return &compat.Answer{Body: []byte(`{"status":0,"msg":"normal"}`)}, nil
	case st.Announced.State == market.VenueMaintenance:
		return &compat.Answer{Body: []byte(`{"status":1,"msg":"system_maintenance"}`)}, nil
	case st.AnnouncedError != market.KindNone:
		return nil, &market.Error{Exchange: ID, Op: market.OpStatus, Kind: st.AnnouncedError}
	}
	return nil, refused(http.StatusNotFound, codeUnsupported, "The exchange announces nothing here.") // its testnet
}
