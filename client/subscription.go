package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Channel is what of a pair is streamed.
type Channel string

// The channels.
const (
	ChannelOrderBook Channel = "orderbook"
	ChannelTicker    Channel = "ticker"
)

// maxSymbols is how many pairs one connection may be subscribed to.
const maxSymbols = 200

// Subscription is what to watch: up to 200 pairs of one exchange, over one connection.
type Subscription struct {
	Exchange string
	Symbols  []string
	Depth    int     // of order books: 1, 5, 20, 50, 100 or 400; 0 is the gateway's default, 50
	Channel  Channel // ChannelOrderBook if empty
}

// clean checks what the gateway could not say better, and writes symbols as it does.
func (s Subscription) clean() (Subscription, error) {
	if s.Channel == "" {
		s.Channel = ChannelOrderBook
	}
	if s.Exchange == "" || len(s.Symbols) == 0 {
		return s, errors.New("subscription: name an exchange and at least one symbol")
	}
	if len(s.Symbols) > maxSymbols {
		return s, fmt.Errorf("subscription: %d symbols; one connection takes %d", len(s.Symbols), maxSymbols)
	}
	var symbols []string
	for _, name := range s.Symbols {
		symbol, ok := canonical(name)
		if !ok {
			return s, fmt.Errorf("subscription: %.80q is no symbol: write BASE/QUOTE, for example BTC/USDT", name)
		}
		if !slices.Contains(symbols, symbol) {
			symbols = append(symbols, symbol)
		}
	}
	s.Symbols = symbols
	return s, nil
}

// canonical is BTC/USDT also of BTC-USDT, as the gateway reads it.
func canonical(symbol string) (string, bool) {
	base, quote, ok := strings.Cut(symbol, "/")
	if !ok {
		base, quote, ok = strings.Cut(symbol, "-")
		ok = ok && !strings.Contains(quote, "-")
	}
	return base + "/" + quote, ok && base != "" && quote != ""
}

// request is the message that subscribes to symbols, or ends that.
func (s *Subscription) request(op string, symbols []string) []byte {
	text, err := json.Marshal(struct {
		Op       string   `json:"op"`
		Channel  Channel  `json:"channel"`
		Exchange string   `json:"exchange"`
		Symbols  []string `json:"symbols"`
		Depth    int      `json:"depth,omitempty"`
	}{op, s.Channel, s.Exchange, symbols, s.Depth})
	if err != nil {
		panic(err) // strings and numbers always have a JSON text
	}
	return text
}
