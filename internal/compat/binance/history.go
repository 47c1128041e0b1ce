package binance

import (
	"context"
	"net/http"
	"regexp"
	"slices"

	"exchange-gateway/internal/compat"
)

// Candles and trades pass through as they are. What Binance would refuse is refused here where its documentation leaves no
// doubt: asked there it costs weight of all who share this gateway.

// intervals are the lengths of candles. Capital M is a month.
var intervals = []string{"1s", "1m", "3m", "5m", "15m", "30m", "1h", "2h", "4h", "6h", "8h", "12h", "1d", "3d", "1w", "1M"}

// zone is the form of timeZone: "0", "-1:00", "05:45". Which of them there are is the exchange's to say.
var zone = regexp.MustCompile(`^[+-]?[0-9]{1,2}(:[0-9]{2})?$`)

func (q question) klines(ctx context.Context) (*compat.Answer, error) {
	if err := q.need("symbol", "interval"); err != nil {
		return nil, err
	}
	if !slices.Contains(intervals, q.params["interval"]) {
		return nil, refused(http.StatusBadRequest, codeInterval, "Invalid interval.")
	}
	if q.has("timeZone") && !zone.MatchString(q.params["timeZone"]) {
		return nil, illegal("timeZone", zone.String())
	}
	return q.rows(ctx, "startTime", "endTime", "limit")
}

func (q question) trades(ctx context.Context) (*compat.Answer, error) { return q.rows(ctx, "limit") }

func (q question) aggTrades(ctx context.Context) (*compat.Answer, error) {
	if err := q.apart("fromId", "startTime", "endTime"); err != nil {
		return nil, err
	}
	return q.rows(ctx, "fromId", "startTime", "endTime", "limit")
}

func (q question) averagePrice(ctx context.Context) (*compat.Answer, error) { return q.rows(ctx) }

// rows passes on a question about one symbol whose other parameters are whole numbers.
func (q question) rows(ctx context.Context, numbers ...string) (*compat.Answer, error) {
	if err := q.need("symbol"); err != nil {
		return nil, err
	}
	if err := q.params.whole(numbers...); err != nil {
		return nil, err
	}
	pairs, err := q.named(ctx)
	if err != nil {
		return nil, err
	}
	a, err := q.ask(ctx, pairs)
	if err != nil {
		return nil, err
	}
	a.FreshFor = 0 // it is not kept
	return a, nil
}
