package binance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/market"
)

// Listings asks for every symbol, paused ones included. It is the question of a bot that speaks Binance's dialect and starts,
// permission sets included, so that one answer is the list here and there.
func (v *Venue) Listings(ctx context.Context) (*market.Listings, error) {
	request := exchange.Request{
		Call: v.Plan(market.OpListings, market.Listing{}, 0), Hosts: v.public, MaxBody: maxInfoBody, Path: infoPath,
	}
	var list *market.Listings
	err := v.get(ctx, request, gates{restricted: scopeExchange}, func(res *exchange.Response) error {
		w, err := decodeListings(res.Body)
		if err != nil {
			return err
		}
		rows, skipped, err := w.listings(v.id)
		if err != nil {
			return err
		}
		list = &market.Listings{
			Exchange: v.id, Rows: rows, ConfirmedAt: res.ConfirmedAt(),
			Native: &market.NativeAnswer{Body: bytes.Clone(res.Body), ConfirmedAt: res.ConfirmedAt()},
		}
		if skipped > 0 {
			v.log.WarnContext(ctx, "pairs left out of the list: their rows cannot be used", slog.String("exchange", string(v.id)),
				slog.Int("skipped", skipped), slog.Int("kept", len(rows)))
		}
		v.adoptLimits(ctx, w.RateLimits)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

const infoPath = "/api/v3/exchangeInfo"

// Listing asks for one symbol. It weighs as much as all of them and takes a few kilobytes.
func (v *Venue) Listing(ctx context.Context, l market.Listing) (market.Listing, error) {
	request := exchange.Request{
		Call: v.Plan(market.OpListings, l, 0), Hosts: v.public, MaxBody: maxSymbolInfoBody, Path: infoPath, Query: symbolQuery(l),
	}
	var got market.Listing
	err := v.get(ctx, request, gates{restricted: scopeExchange}, func(res *exchange.Response) error {
		w, err := decodeListings(res.Body)
		if err != nil {
			return err
		}
		rows, _, err := w.listings(v.id)
		if err != nil {
			return err
		}
		if len(rows) != 1 || rows[0].Symbol != l.Symbol || rows[0].Pair != l.Pair {
			return errOtherSymbol
		}
		got, got.StatusAt = rows[0], res.ConfirmedAt()
		return nil
	})
	return got, err
}

// maxSymbolInfoBody bounds one symbol with its permission sets and the rate limits: some kilobytes.
const maxSymbolInfoBody = 1 << 20

type wireListings struct {
	Symbols    []json.RawMessage `json:"symbols"`
	RateLimits []wireLimit       `json:"rateLimits"`
}

type wireLimit struct {
	Type     string `json:"rateLimitType"`
	Interval string `json:"interval"`
	Num      int    `json:"intervalNum"`
	Limit    int    `json:"limit"`
}

type wireListing struct {
	Symbol  string       `json:"symbol"`
	Status  string       `json:"status"`
	Base    string       `json:"baseAsset"`
	Quote   string       `json:"quoteAsset"`
	Filters []wireFilter `json:"filters"`
}

type wireFilter struct {
	Type        string          `json:"filterType"`
	TickSize    market.Optional `json:"tickSize"`
	StepSize    market.Optional `json:"stepSize"`
	MinQty      market.Optional `json:"minQty"`
	MinNotional market.Optional `json:"minNotional"`
}

func decodeListings(body []byte) (wireListings, error) {
	var w wireListings
	if err := json.Unmarshal(body, &w); err != nil {
		return w, fmt.Errorf("read symbols: %w", err)
	}
	if len(w.Symbols) == 0 {
		return w, fmt.Errorf("read symbols: %w", errMissing)
	}
	return w, nil
}

var errAbsurd = errors.New("most of its rows cannot be used")

// listings converts the rows. A bad row is left out and counted: one symbol must not take 2,000 others away. A list that
// is mostly bad is not a list.
func (w wireListings) listings(id market.ExchangeID) ([]market.Listing, int, error) {
	list := make([]market.Listing, 0, len(w.Symbols))
	symbols, pairs := make(map[string]bool, len(w.Symbols)), make(map[market.Pair]bool, len(w.Symbols))
	for _, raw := range w.Symbols {
		var row wireListing
		if json.Unmarshal(raw, &row) != nil {
			continue
		}
		l, ok := row.listing(id)
		if !ok || symbols[l.Symbol] || pairs[l.Pair] {
			continue
		}
		symbols[l.Symbol], pairs[l.Pair] = true, true
		list = append(list, l)
	}
	skipped := len(w.Symbols) - len(list)
	if skipped > len(list) {
		return nil, skipped, fmt.Errorf("read symbols: %w: %d of %d", errAbsurd, skipped, len(w.Symbols))
	}
	return list, skipped, nil
}

// maxSymbol bounds a symbol in bytes: 20 characters are documented, and names may be Chinese.
const maxSymbol = 128

// listing is false for a row that names no pair. The pair is made of the assets: a symbol cannot be cut apart by its look,
// as USDT and USDC are bases too and assets contain each other.
func (w wireListing) listing(id market.ExchangeID) (market.Listing, bool) {
	pair, err := market.ParsePair(w.Base + "/" + w.Quote)
	if err != nil || w.Symbol == "" || len(w.Symbol) > maxSymbol {
		return market.Listing{}, false
	}
	l := market.Listing{Exchange: id, Pair: pair, Symbol: w.Symbol, Status: status(w.Status)}
	for _, f := range w.Filters {
		switch f.Type {
		case "PRICE_FILTER":
			l.PriceTick = positive(f.TickSize)
		case "LOT_SIZE":
			l.SizeStep, l.MinSize = positive(f.StepSize), positive(f.MinQty)
		case "NOTIONAL", "MIN_NOTIONAL":
			l.MinNotional = positive(f.MinNotional)
		}
	}
	return l, true
}

// status reads a symbol's status. BREAK is a planned pause and also every delisted symbol (433 of 1,695 in 2021): the list
// cannot tell them apart, so nothing is ever called delisted. HALT, END_OF_DAY and every word to come are a pause.
func status(s string) market.TradingStatus {
	switch s {
	case "TRADING", "":
		return market.TradingActive
	case "CANCEL_ONLY":
		return market.TradingCancelOnly
	}
	return market.TradingPaused
}

// adoptLimits takes over the limits that the list states, as it tells to: they were 1,200 and 61,000 once. A limit that
// is absent, whose window is another than the one that is counted here, or that no book would fit, is left as it was.
func (v *Venue) adoptLimits(ctx context.Context, stated []wireLimit) {
	limits := v.Limits()
	for i, l := range limits {
		at := slices.IndexFunc(stated, func(w wireLimit) bool { return w.limit() == l.ID && w.window() == l.Window })
		if at < 0 || stated[at].Limit < heaviest || stated[at].Limit == l.Capacity {
			continue
		}
		v.log.WarnContext(ctx, "the exchange states another rate limit, which is used from now on", slog.String("exchange", string(v.id)),
			slog.String("limit", string(l.ID)), slog.Int("was", l.Capacity), slog.Int("stated", stated[at].Limit))
		limits[i].Capacity = stated[at].Limit
	}
	v.limits.Store(&limits)
}

func (w wireLimit) limit() market.LimitID {
	switch w.Type {
	case "REQUEST_WEIGHT":
		return limitWeight
	case "RAW_REQUESTS":
		return limitRaw
	}
	return ""
}

func (w wireLimit) window() time.Duration {
	unit := map[string]time.Duration{
		"SECOND": time.Second, "MINUTE": time.Minute, "HOUR": time.Hour, "DAY": 24 * time.Hour,
	}[w.Interval]
	return time.Duration(w.Num) * unit
}
