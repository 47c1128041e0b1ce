package recorded

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/exchange/binance"
	"exchange-gateway/internal/market"
)

// ofBinance is the dialect of combined streams.
func ofBinance() *dialect {
	return &dialect{
		id:         binance.ID,
		make:       func(c exchange.Config) (streaming, error) { return binance.New(c) },
		symbol:     func(base, quote string) string { return base + quote },
		streamPath: "/stream", restPath: "/api/v3/depth", restKey: "symbol", ranges: true, cut: 1000,
		channel: func(symbol string, ch market.StreamChannel) string {
			if ch == market.StreamBest {
				return strings.ToLower(symbol) + "@bookTicker"
			}
			return strings.ToLower(symbol) + "@depth@100ms"
		},
		read: readBinance,
		request: func(text []byte) (request, error) {
			var w struct {
				Method string
				Params []string
				ID     json.RawMessage
			}
			err := json.Unmarshal(text, &w)
			if err == nil && w.Method != "SUBSCRIBE" && w.Method != "UNSUBSCRIBE" {
				err = fmt.Errorf("method %q", w.Method)
			}
			return request{id: string(w.ID), starts: w.Method == "SUBSCRIBE", channels: w.Params}, err
		},
		answer: func(r request) []string { return []string{`{"result":null,"id":` + r.id + `}`} },
	}
}

// readBinance reads changes of books, in an envelope or without; all else says nothing about a book.
func readBinance(line []byte) (message, error) {
	raw, err := unwrap(line)
	if err != nil || raw["e"] == nil || string(raw["e"]) != `"depthUpdate"` {
		return message{}, err
	}
	var m message
	var bids, asks [][]string
	for key, into := range map[string]any{"s": &m.symbol, "U": &m.first, "u": &m.sequence, "E": &m.at, "b": &bids, "a": &asks} {
		if err = json.Unmarshal(raw[key], into); err != nil {
			return message{}, fmt.Errorf("%s: %w", key, err)
		}
	}
	if m.bids, err = rows(bids); err == nil {
		m.asks, err = rows(asks)
	}
	return m, err
}

// unwrap are the fields of what a message holds. Keys keep their case: u and U are two things.
func unwrap(line []byte) (map[string]json.RawMessage, error) {
	var outer map[string]json.RawMessage
	if err := json.Unmarshal(line, &outer); err != nil {
		return nil, err
	}
	if outer["data"] == nil || outer["stream"] == nil {
		return outer, nil
	}
	var inner map[string]json.RawMessage
	err := json.Unmarshal(outer["data"], &inner)
	return inner, err
}

// bookOfBinance reads an answer of REST.
func bookOfBinance(t *testing.T, text []byte) *book {
	t.Helper()
	var w struct {
		LastUpdateID int64
		Bids, Asks   [][]string
	}
	if err := json.Unmarshal(text, &w); err != nil {
		t.Fatal(err)
	}
	bids, err := rows(w.Bids)
	if err != nil {
		t.Fatal(err)
	}
	asks, err := rows(w.Asks)
	if err != nil {
		t.Fatal(err)
	}
	b := newBook()
	b.set(bids, asks)
	b.sequence = w.LastUpdateID
	return b
}

// restOfBinance writes one, as deep as the exchange has it for the limit that is asked for.
func restOfBinance(b *book) string {
	half := func(levels []level) string {
		var s strings.Builder
		for i, l := range levels[:min(len(levels), 1000)] {
			if i > 0 {
				s.WriteByte(',')
			}
			fmt.Fprintf(&s, `["%s","%s"]`, l.price.StringFixed(8), l.size.StringFixed(8))
		}
		return s.String()
	}
	return fmt.Sprintf(`{"lastUpdateId":%d,"bids":[%s],"asks":[%s]}`, b.sequence, half(b.bids.levels), half(b.asks.levels))
}

// best is the best bid and ask of a bookTicker message.
type best struct {
	symbol string
	id     int64
	levels [2][2]string // of bid and ask
}

// bestOf reads one; false for any other message.
func bestOf(t *testing.T, line string) (b best, ok bool) {
	t.Helper()
	if !strings.Contains(line, "@bookTicker") {
		return best{}, false
	}
	raw, err := unwrap([]byte(line))
	if err != nil {
		t.Fatal(err)
	}
	for key, into := range map[string]any{
		"s": &b.symbol, "u": &b.id, "b": &b.levels[0][0], "B": &b.levels[0][1], "a": &b.levels[1][0], "A": &b.levels[1][1],
	} {
		if err = json.Unmarshal(raw[key], into); err != nil {
			t.Fatal(err)
		}
	}
	return b, true
}
