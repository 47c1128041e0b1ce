package hub

import (
	"errors"
	"fmt"
	"slices"

	"exchange-gateway/internal/feed"
	"exchange-gateway/internal/market"
)

// Channel is what of a pair is pushed. It is the `channel` of messages and a metric label.
type Channel string

// The closed set of channels.
const (
	ChannelOrderBook Channel = "orderbook" // the best levels of both sides, as they change
	ChannelTicker    Channel = "ticker"    // best bid and ask with mid and spread, as they change
)

// Channels lists every channel.
func Channels() []Channel { return []Channel{ChannelOrderBook, ChannelTicker} }

// Depths lists the depths at which a book can be subscribed to. They are few so that many subscribers share few topics.
func Depths() []int { return []int{1, 5, 20, 50, 100, 400} }

// Topic is one thing to subscribe to.
type Topic struct {
	Key     feed.Key
	Channel Channel
	Depth   int // levels a side, one of Depths; 0 for ChannelTicker
}

// ErrTopic reports a subscription to what is no topic.
var ErrTopic = errors.New("no such topic")

// check refuses a topic that does not exist or is not that of l.
func (t Topic) check(l market.Listing) error {
	switch {
	case t.Channel == ChannelOrderBook && !slices.Contains(Depths(), t.Depth):
		return fmt.Errorf("%w: a book has no depth %d, only %v", ErrTopic, t.Depth, Depths())
	case t.Channel == ChannelTicker && t.Depth != 0:
		return fmt.Errorf("%w: a ticker has no depth", ErrTopic)
	case t.Channel != ChannelOrderBook && t.Channel != ChannelTicker:
		return fmt.Errorf("%w: channel %.20q", ErrTopic, string(t.Channel))
	case l.Exchange != t.Key.Exchange || l.Pair != t.Key.Pair:
		return fmt.Errorf("%w: %s %v is not the listing of %s %v", ErrTopic, l.Exchange, l.Pair, t.Key.Exchange, t.Key.Pair)
	}
	return nil
}

// upstream is what has to be streamed for the topic.
func (t Topic) upstream() market.StreamChannel {
	if t.Channel == ChannelTicker {
		return market.StreamBest
	}
	return market.StreamBook
}
