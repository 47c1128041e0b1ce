package binance

import (
	"errors"
	"fmt"

	"exchange-gateway/internal/market"
)

// shape is the channel of an event without the name of a stream. Best bid and ask come without a kind.
func (m *message) shape() channel {
	switch {
	case string(m.event) == depthUpdate:
		return channelDepth
	case !m.saw(keyEvent) && m.saw(keysOfTop):
		return channelTop
	}
	return channelNone
}

const depthUpdate = "depthUpdate"

var (
	errForeign   = errors.New("it names another symbol than its stream")
	errOtherKind = errors.New("it is of another kind than its stream")
	errRange     = errors.New("its ids are not a range")
)

// checkDiff tells why an event is not a change of the book of symbol. All of it is checked before any is used.
func (m *message) checkDiff(symbol string) error {
	switch {
	case string(m.event) != depthUpdate:
		return errOtherKind
	case !m.saw(keysOfDiff):
		return errMissing
	case string(m.symbol) != symbol:
		return errForeign
	case m.first < 0 || m.last < m.first:
		return errRange
	}
	if err := honest(m.bids); err != nil {
		return err
	}
	return honest(m.asks)
}

// honest tells why levels cannot be true.
func honest(side []market.Level) error {
	for i := range side {
		if side[i].Price.Sign() <= 0 || side[i].Size.Sign() < 0 {
			return fmt.Errorf("%w: a level of price %v and size %v", market.ErrSuspect, side[i].Price, side[i].Size)
		}
	}
	return nil
}

// checkTop tells why an event is not the best bid and ask of symbol. A price of zero is a side without orders.
func (m *message) checkTop(symbol string) error {
	switch {
	case m.saw(keyEvent):
		return errOtherKind
	case !m.saw(keysOfTop):
		return errMissing
	case string(m.symbol) != symbol:
		return errForeign
	case m.last < 0:
		return errRange
	case m.bid[0].Price.Sign() < 0, m.bid[0].Size.Sign() < 0, m.ask[0].Price.Sign() < 0, m.ask[0].Size.Sign() < 0:
		return market.ErrSuspect
	}
	return nil
}
