package okx

import (
	"context"
	"errors"
	"net/url"

	"github.com/shopspring/decimal"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/market"
)

// maxTickerBody bounds the answer about one ticker, which is 400 bytes.
const maxTickerBody = 64 << 10

// Statistics asks for the figures of the last 24 hours. OKX sends no change: it is computed, exactly.
func (v *Venue) Statistics(ctx context.Context, l market.Listing) (*market.Statistics, error) {
	call := v.Plan(market.OpStatistics, l, 0)
	var stats *market.Statistics
	err := v.client.Do(ctx, exchange.Request{
		Call: call, Hosts: v.public, Path: pathTicker, Query: "instId=" + url.QueryEscape(l.Symbol), MaxBody: maxTickerBody,
	}, func(a *exchange.Response) *market.Error {
		row, bad := one[wireTicker](v, call, a)
		if bad != nil {
			return bad
		}
		if string(row.InstID) != l.Symbol || row.InstType != spot {
			return v.malformed(call, a, errOtherTicker)
		}
		stats = row.statistics()
		stats.Exchange, stats.Pair, stats.ConfirmedAt = v.id, l.Pair, a.ConfirmedAt()
		return nil
	})
	if err != nil {
		return nil, err
	}
	return stats, nil
}

var errOtherTicker = errors.New("the ticker is of another instrument than asked for")

// wireTicker is one row of the ticker endpoint. "" is absent: an empty side, a pair that never traded.
type wireTicker struct {
	InstType  text            `json:"instType"`
	InstID    text            `json:"instId"`
	Last      market.Optional `json:"last"`
	LastSize  market.Optional `json:"lastSz"`
	Open      market.Optional `json:"open24h"`
	High      market.Optional `json:"high24h"`
	Low       market.Optional `json:"low24h"`
	BaseVol   market.Optional `json:"vol24h"`    // of a spot pair; of a contract it would count contracts
	QuoteVol  market.Optional `json:"volCcy24h"` // of a spot pair; of a contract it would be in base units
	Timestamp text            `json:"ts"`
}

// statistics converts. A last size of zero says that the pair never traded, so its last price is no price.
func (w wireTicker) statistics() *market.Statistics {
	s := &market.Statistics{
		Last: w.Last, Open: w.Open, High: w.High, Low: w.Low, BaseVolume: w.BaseVol, QuoteVolume: w.QuoteVol,
	}
	if n, ok := w.LastSize.Get(); ok && n.IsZero() {
		s.Last = market.Optional{}
	}
	s.ExchangeTime, _ = w.Timestamp.millis() // a ticker without a time is still a ticker
	s.Change, s.ChangePercent = change(s.Last, s.Open)
	return s
}

// percentDigits are the digits behind the point of a percentage, which as a quotient has no exact decimal.
const percentDigits = 8

// change is last - open, exact, and that in percent of open, rounded half away from zero.
func change(last, open market.Optional) (absolute, percent market.Optional) {
	l, ok := last.Get()
	o, ok2 := open.Get()
	if !ok || !ok2 {
		return absolute, percent
	}
	diff := l.Decimal().Sub(o.Decimal())
	absolute = market.Some(market.NumberOf(diff))
	if o.Sign() > 0 {
		percent = market.Some(market.NumberOf(diff.Mul(decimal.New(100, 0)).DivRound(o.Decimal(), percentDigits)))
	}
	return absolute, percent
}
