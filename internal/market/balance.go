package market

import "time"

// Balance is the money of one asset. Free and Used are the exchange's own digits; Total is the exchange's own where it
// sends one and their exact sum otherwise.
type Balance struct {
	Asset string
	Free  Number
	Used  Number
	Total Number
}

// Balances is one live answer about one wallet of one credential. It has no clock of freshness because it is never
// kept: it was true between RequestedAt and ReceivedAt.
type Balances struct {
	Exchange    ExchangeID
	AccountType string // "spot", "trading", "funding", "portfolio", "profile": what the exchange calls this ledger
	Rows        []Balance
	RequestedAt time.Time
	ReceivedAt  time.Time
	UpdatedAt   time.Time // the exchange's stamp of the last change of the account, zero if none; can be years old
}
