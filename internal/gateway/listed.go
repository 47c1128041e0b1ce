package gateway

import "exchange-gateway/internal/market"

// Listed tells whether an exchange's list of pairs has a pair, for those who want to know before they act on it; known is
// false while there is no list, and for an exchange that is not here. It looks at the list in use, however old that is, and
// neither asks the exchange nor counts as a use of it.
func (b *Books) Listed(exchange market.ExchangeID, pair market.Pair) (listed, known bool) {
	v := b.venues[exchange]
	if v == nil || v.table.Load() == nil {
		return false, false
	}
	return v.entry(pair) != nil, true
}
