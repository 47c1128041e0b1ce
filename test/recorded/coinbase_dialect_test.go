package recorded

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/exchange/coinbase"
	"exchange-gateway/internal/market"
)

// ofCoinbase is the dialect of Advanced Trade. Its answers are numbered with all other frames of a connection, so they are
// said as part of it.
func ofCoinbase() *dialect {
	return &dialect{
		id:         coinbase.ID,
		make:       func(c exchange.Config) (streaming, error) { return coinbase.New(c) },
		symbol:     func(base, quote string) string { return base + "-" + quote },
		streamPath: "/{$}", restPath: "/api/v3/brokerage/market/product_book", restKey: "product_id",
		channel: func(symbol string, _ market.StreamChannel) string { return "level2:" + symbol },
		read:    readCoinbase,
		request: func(text []byte) (request, error) {
			var w struct {
				Type, Channel string
				Products      []string `json:"product_ids"`
			}
			err := json.Unmarshal(text, &w)
			if err == nil && w.Type != "subscribe" && w.Type != "unsubscribe" {
				err = fmt.Errorf("type %q", w.Type)
			}
			r := request{starts: w.Type == "subscribe"}
			for _, p := range w.Products {
				r.channels = append(r.channels, w.Channel+":"+p)
			}
			if len(w.Products) == 0 {
				r.channels = []string{w.Channel}
			}
			return r, err
		},
		answer: func(request) []string { return nil },
	}
}

var errManyEvents = errors.New("not one event")

// readCoinbase reads frames of books; all else says nothing about a book.
func readCoinbase(line []byte) (message, error) {
	var head struct{ Channel string }
	if err := json.Unmarshal(line, &head); err != nil || head.Channel != "l2_data" {
		return message{}, err
	}
	var w struct {
		Events []struct {
			Type    string
			Product string `json:"product_id"`
			Updates []struct {
				Side  string
				Price string `json:"price_level"`
				Size  string `json:"new_quantity"`
			}
		}
	}
	if err := json.Unmarshal(line, &w); err != nil {
		return message{}, err
	}
	if len(w.Events) != 1 {
		return message{}, errManyEvents
	}
	e := w.Events[0]
	m := message{symbol: e.Product, snapshot: e.Type == "snapshot"}
	for _, u := range e.Updates {
		l, err := rows([][]string{{u.Price, u.Size}})
		if err != nil {
			return message{}, err
		}
		switch u.Side {
		case "bid":
			m.bids = append(m.bids, l...)
		case "offer":
			m.asks = append(m.asks, l...)
		default:
			return message{}, fmt.Errorf("side %q", u.Side)
		}
	}
	return m, nil
}

var sequenceNum = regexp.MustCompile(`"sequence_num":\d+`)

// numbered is a frame under another number.
func numbered(frame string, n int) string {
	return sequenceNum.ReplaceAllString(frame, fmt.Sprintf(`"sequence_num":%d`, n))
}

// snapshotOfCoinbase is a whole book, with its two sides mixed.
func snapshotOfCoinbase(symbol string, b *book) string {
	var s strings.Builder
	half := func(side string, levels []level) {
		for _, l := range levels {
			if s.Len() > 0 {
				s.WriteByte(',')
			}
			fmt.Fprintf(&s, `{"side":%q,"event_time":"1970-01-01T00:00:00Z","price_level":"%v","new_quantity":"%v"}`, side, l.price, l.size)
		}
	}
	half("offer", b.asks.levels)
	half("bid", b.bids.levels)
	return fmt.Sprintf(`{"channel":"l2_data","client_id":"","timestamp":"2021-04-17T16:43:50.123456Z","sequence_num":0,`+
		`"events":[{"type":"snapshot","product_id":%q,"updates":[%s]}]}`, symbol, s.String())
}

// ackOfCoinbase lists all that is subscribed.
func ackOfCoinbase(symbols ...string) string {
	return fmt.Sprintf(`{"channel":"subscriptions","client_id":"","timestamp":"2021-04-17T16:43:50.123456Z","sequence_num":0,`+
		`"events":[{"subscriptions":{"heartbeats":["heartbeats"],"level2":["%s"]}}]}`, strings.Join(symbols, `","`))
}
