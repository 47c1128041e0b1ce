package binance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/market"
)

// maxSmallBody bounds the answers that are one object of a few hundred bytes.
const maxSmallBody = 64 << 10

// Statistics asks for the figures of the last 24 hours of one symbol.
func (v *Venue) Statistics(ctx context.Context, l market.Listing) (*market.Statistics, error) {
	request := exchange.Request{
		Call: v.Plan(market.OpStatistics, l, 0), Hosts: v.public, MaxBody: maxSmallBody,
		Path: "/api/v3/ticker/24hr", Query: symbolQuery(l),
	}
	var st *market.Statistics
	err := v.get(ctx, request, gates{restricted: scopeExchange}, func(res *exchange.Response) error {
		w, err := decodeStatistics(res.Body, l.Symbol)
		if err != nil {
			return err
		}
		st = w.statistics()
		st.Exchange, st.Pair, st.ConfirmedAt = v.id, l.Pair, res.ConfirmedAt()
		return nil
	})
	if err != nil {
		return nil, err
	}
	return st, nil
}

type wireStatistics struct {
	Symbol             string          `json:"symbol"`
	LastPrice          market.Optional `json:"lastPrice"`
	OpenPrice          market.Optional `json:"openPrice"`
	HighPrice          market.Optional `json:"highPrice"`
	LowPrice           market.Optional `json:"lowPrice"`
	Volume             market.Optional `json:"volume"`
	QuoteVolume        market.Optional `json:"quoteVolume"`
	PriceChange        market.Optional `json:"priceChange"`
	PriceChangePercent market.Optional `json:"priceChangePercent"`
	CloseTime          int64           `json:"closeTime"`
}

var errOtherSymbol = errors.New("the answer is not about the symbol")

// decodeStatistics reads one object, or the row of the symbol in the array that a request for several symbols gets.
func decodeStatistics(body []byte, symbol string) (wireStatistics, error) {
	rows := make([]wireStatistics, 1)
	var err error
	if bytes.HasPrefix(bytes.TrimSpace(body), []byte("[")) {
		err = json.Unmarshal(body, &rows)
	} else {
		err = json.Unmarshal(body, &rows[0])
	}
	if err != nil {
		return wireStatistics{}, fmt.Errorf("read statistics: %w", err)
	}
	for _, w := range rows {
		if w.Symbol == symbol && symbol != "" {
			return w, nil
		}
	}
	return wireStatistics{}, fmt.Errorf("read statistics: %w", errOtherSymbol)
}

// statistics leaves out prices of zero: a symbol that is delisted, halted or without a trade has them for "none".
func (w wireStatistics) statistics() *market.Statistics {
	st := &market.Statistics{
		Last: positive(w.LastPrice), Open: positive(w.OpenPrice), High: positive(w.HighPrice), Low: positive(w.LowPrice),
		BaseVolume: w.Volume, QuoteVolume: w.QuoteVolume, Change: w.PriceChange, ChangePercent: w.PriceChangePercent,
		ExchangeTime: stamp(w.CloseTime),
	}
	if st.Last.IsZero() || st.Open.IsZero() {
		st.Change, st.ChangePercent = market.Optional{}, market.Optional{}
	}
	return st
}

// positive is absent for zero and less.
func positive(o market.Optional) market.Optional {
	if n, ok := o.Get(); ok && n.Sign() > 0 {
		return o
	}
	return market.Optional{}
}
