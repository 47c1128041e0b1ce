package recorded

import (
	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/market"
)

// dialect is how an exchange speaks, as far as these tests need it.
type dialect struct {
	id         market.ExchangeID
	make       func(exchange.Config) (streaming, error)
	symbol     func(base, quote string) string
	streamPath string // as a pattern of http.ServeMux
	restPath   string
	restKey    string // which parameter of a request for a book is the symbol
	ranges     bool   // messages hold a range of changes, and may reach back before a snapshot
	cut        int    // a side of a snapshot by REST with so many levels says nothing of what lies beyond; 0: never

	channel func(symbol string, ch market.StreamChannel) string
	read    func(line []byte) (message, error)
	request func(text []byte) (request, error)
	answer  func(request) []string
}

// streaming is an adapter with streams.
type streaming interface {
	market.Venue
	market.Streamer
}
