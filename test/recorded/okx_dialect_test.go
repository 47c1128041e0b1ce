package recorded

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/exchange/okx"
	"exchange-gateway/internal/market"
)

// ofOKX is the dialect of OKX's public streams.
func ofOKX() *dialect {
	return &dialect{
		id:         "okx",
		make:       func(c exchange.Config) (streaming, error) { return okx.New(c) },
		symbol:     func(base, quote string) string { return base + "-" + quote },
		streamPath: "/ws/v5/public", restPath: "/api/v5/market/books", restKey: "instId",
		channel: func(symbol string, ch market.StreamChannel) string {
			if ch == market.StreamBest {
				return "bbo-tbt:" + symbol
			}
			return "books:" + symbol
		},
		read: readOKX,
		request: func(text []byte) (request, error) {
			if string(text) == "ping" {
				return request{id: "ping"}, nil
			}
			var w struct {
				ID, Op string
				Args   []struct{ Channel, InstID string }
			}
			err := json.Unmarshal(text, &w)
			if err == nil && w.Op != "subscribe" && w.Op != "unsubscribe" {
				err = fmt.Errorf("op %q", w.Op)
			}
			r := request{id: w.ID, starts: w.Op == "subscribe"}
			for _, a := range w.Args {
				r.channels = append(r.channels, a.Channel+":"+a.InstID)
			}
			return r, err
		},
		answer: answerOKX,
	}
}

// answerOKX confirms each channel of a request.
func answerOKX(r request) (out []string) {
	if r.id == "ping" {
		return []string{"pong"}
	}
	event := "unsubscribe"
	if r.starts {
		event = "subscribe"
	}
	for _, c := range r.channels {
		channel, symbol, _ := strings.Cut(c, ":")
		out = append(out, fmt.Sprintf(
			`{"id":%q,"event":%q,"arg":{"channel":%q,"instId":%q},"connId":"0a1b2c3d"}`, r.id, event, channel, symbol))
	}
	return out
}

var errManyRows = errors.New("not one entry of data")

// readOKX reads messages of the channel books; all else says nothing about a book.
func readOKX(line []byte) (message, error) {
	var w struct {
		Arg    struct{ Channel, InstID string }
		Action string
		Data   []struct {
			Bids, Asks [][]string
			TS         string
			SeqID      int64
		}
	}
	var head struct{ Arg struct{ Channel string } }
	if err := json.Unmarshal(line, &head); err != nil || head.Arg.Channel != "books" {
		return message{}, err
	}
	if err := json.Unmarshal(line, &w); err != nil || w.Action == "" {
		return message{}, err
	}
	if len(w.Data) != 1 {
		return message{}, errManyRows
	}
	d := w.Data[0]
	m := message{symbol: w.Arg.InstID, snapshot: w.Action == "snapshot", sequence: d.SeqID}
	var err error
	if m.at, err = strconv.ParseInt(d.TS, 10, 64); err != nil {
		return message{}, err
	}
	if m.bids, err = rows(d.Bids); err == nil {
		m.asks, err = rows(d.Asks)
	}
	return m, err
}

// halfOfOKX writes one half of a book.
func halfOfOKX(levels []level) string {
	out := make([]string, len(levels))
	for i, l := range levels {
		out[i] = fmt.Sprintf(`["%v","%v","0","1"]`, l.price, l.size)
	}
	return "[" + strings.Join(out, ",") + "]"
}

// snapshotOfOKX is the first message of a subscription.
func snapshotOfOKX(symbol string, b *book) string {
	return fmt.Sprintf(`{"arg":{"channel":"books","instId":%q},"action":"snapshot","data":[{"asks":%s,"bids":%s,"ts":"%d",`+
		`"checksum":0,"seqId":%d,"prevSeqId":-1}]}`, symbol, halfOfOKX(b.asks.levels), halfOfOKX(b.bids.levels), b.at, b.sequence)
}

// restOfOKX is a whole book as REST answers it.
func restOfOKX(b *book) string {
	return fmt.Sprintf(`{"code":"0","msg":"","data":[{"asks":%s,"bids":%s,"ts":"%d","seqId":%d}]}`,
		halfOfOKX(b.asks.levels), halfOfOKX(b.bids.levels), b.at, b.sequence)
}
