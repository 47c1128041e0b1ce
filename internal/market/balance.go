package market

import "time"

// Balance is the money of one asset. Free and Used are the exchange's own digits; Total is the exchange's own where it
// sends one that holds, and their exact sum otherwise. What is owed is taken off the total, which can be negative.
type Balance struct {
	Asset string
	Free  Number
	Used  Number
	Total Number
	Debt  Optional // what is owed of the asset, above zero; absent where nothing is, or where the wallet cannot borrow
}

// IsZero tells of a balance that there is nothing of the asset, and nothing owed.
func (b *Balance) IsZero() bool {
	return b.Free.IsZero() && b.Used.IsZero() && b.Total.IsZero() && b.Debt.IsZero()
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
