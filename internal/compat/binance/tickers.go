package binance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"exchange-gateway/internal/compat"
	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

// price is the last price of one, several or all symbols.
func (q question) price(ctx context.Context) (*compat.Answer, error) { return q.tickers(ctx) }

// day is the figures of the last 24 hours. Those of one symbol have the best bid and ask of the gateway's own book, where it
// holds a live one: a bot that looks at both sees one market.
func (q question) day(ctx context.Context) (*compat.Answer, error) {
	kind, err := q.oneOf("type", "FULL", "FULL", "MINI")
	if err != nil {
		return nil, err
	}
	if kind == "FULL" {
		delete(q.params, "type") // the same question
	}
	a, err := q.tickers(ctx)
	if err != nil || kind == "MINI" || !q.has("symbol") {
		return a, err
	}
	pair, err := q.pairOf(ctx, q.params["symbol"])
	if err != nil {
		return nil, err
	}
	book, ok := q.books.Live(ID, pair)
	if !ok {
		return a, nil // the answer has the exchange's own
	}
	if a.Body, err = replace(a.Body, topOf(book)); err != nil {
		return nil, err
	}
	return a, nil
}

// tickers passes a question about one, several or all symbols on.
func (q question) tickers(ctx context.Context) (*compat.Answer, error) {
	if err := q.apart("symbol", "symbols"); err != nil {
		return nil, err
	}
	if _, err := q.status(); err != nil {
		return nil, err
	}
	pairs, err := q.named(ctx)
	if err != nil {
		return nil, err
	}
	return q.ask(ctx, pairs)
}

// named are the pairs that a question is about, nil if it is about all.
func (q question) named(ctx context.Context) ([]market.Pair, error) {
	var symbols []string
	var err error
	switch {
	case q.has("symbol"):
		symbols = []string{q.params["symbol"]}
	case !q.has("symbols"):
		return nil, nil
	default:
		if symbols, err = q.symbols(); err != nil {
			return nil, err
		}
	}
	return q.pairsOf(ctx, symbols)
}

// ask puts the question to the exchange through the gateway, in its own form.
func (q question) ask(ctx context.Context, pairs []market.Pair) (*compat.Answer, error) {
	a, err := q.books.Native(ctx, gateway.NativeQuestion{
		Exchange: ID, NativeQuery: market.NativeQuery{Endpoint: q.endpoint, Query: q.encode()}, Pairs: pairs, MaxAge: q.maxAge,
	})
	if err != nil {
		return nil, err
	}
	return q.answerOf(a.Body, &a.Freshness), nil
}

// replace gives a copy of a JSON object with other texts in the place of some of its values, and everything else as it was.
func replace(object []byte, fields [4]field) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(object))
	if _, err := d.Token(); err != nil {
		return nil, malformed(err)
	}
	out, from := make([]byte, 0, len(object)+64), 0
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, malformed(err)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, malformed(err)
		}
		for _, f := range fields {
			if key == f.name {
				end := int(d.InputOffset())
				out = append(out, object[from:end-len(value)]...)
				out = append(append(append(out, '"'), f.text...), '"')
				from = end
			}
		}
	}
	return append(out, object[from:]...), nil
}

// malformed is an answer of the exchange's that cannot be read.
func malformed(err error) error {
	return &market.Error{Exchange: ID, Op: market.OpNative, Kind: market.KindMalformed, Err: fmt.Errorf("read the answer: %w", err)}
}
