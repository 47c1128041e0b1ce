package binance

import "exchange-gateway/internal/market"

// channel is what of a symbol a stream has.
type channel uint8

// The channels that are used.
const (
	channelNone channel = iota
	channelDepth
	channelTop
)

// channelOf reads the part of a stream's name that starts at "@". Depth at its slower pace is the same events, merged.
// depth5, depth10 and depth20 are something else: the best levels alone, again and again.
func channelOf(suffix []byte) channel {
	switch string(suffix) {
	case suffixDepth, "@depth":
		return channelDepth
	case suffixTop:
		return channelTop
	}
	return channelNone
}

const (
	suffixDepth = "@depth@100ms"
	suffixTop   = "@bookTicker"
)

// streamName is the name of a listing's stream: the symbol in small letters. Characters that are not ASCII are left alone.
func streamName(symbol string) string {
	small := []byte(symbol)
	for i, ch := range small {
		if 'A' <= ch && ch <= 'Z' {
			small[i] = ch + 'a' - 'A'
		}
	}
	return string(small)
}

// streamOf is the name of a subscription's stream.
func streamOf(s market.StreamSub) string {
	name := streamName(s.Listing.StreamSymbol())
	if s.Channel == market.StreamBest {
		return name + suffixTop
	}
	return name + suffixDepth
}
