package cache

import (
	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// Listings returns the last-known list of an exchange's pairs, however old.
func (m *Memory) Listings(exchange market.ExchangeID) (*market.Listings, bool) {
	m.listingsMu.RLock()
	defer m.listingsMu.RUnlock()
	l, ok := m.listings[exchange]
	return l, ok
}

// KeepListings offers a list and returns the one that stands then, and whether it is l. The list that the exchange
// vouched for last stands; one without rows or without a known age never does. There is one list per configured exchange.
func (m *Memory) KeepListings(l *market.Listings) (*market.Listings, bool) {
	now := clock.Now()
	age, known := l.Age(now)
	m.listingsMu.Lock()
	defer m.listingsMu.Unlock()
	old := m.listings[l.Exchange]
	if !known || len(l.Rows) == 0 {
		return old, false
	}
	if old != nil {
		if stood, known := old.Age(now); known && stood <= age {
			return old, false
		}
	}
	m.listings[l.Exchange] = l
	return l, true
}

func (m *Memory) allListings() []*market.Listings {
	m.listingsMu.RLock()
	defer m.listingsMu.RUnlock()
	all := make([]*market.Listings, 0, len(m.listings))
	for _, l := range m.listings {
		all = append(all, l)
	}
	return all
}
