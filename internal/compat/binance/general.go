package binance

import (
	"context"
	"strconv"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/compat"
)

// ping is about the way to the gateway, which is what a bot that pings wants to know: whether Binance answers is told by
// every question to it.
func (q question) ping(context.Context) (*compat.Answer, error) {
	return &compat.Answer{Body: []byte("{}")}, nil
}

// time is the gateway's clock. It is for those who measure theirs by it; nothing that is answered here is signed.
func (q question) time(context.Context) (*compat.Answer, error) {
	return &compat.Answer{Body: append(strconv.AppendInt([]byte(`{"serverTime":`), clock.WallNow().UnixMilli(), 10), '}')}, nil
}
