package market

// ExchangeID names an exchange: "binance", "okx", "coinbase". It is a metric label, so its values come from
// configuration and never from a caller.
type ExchangeID string

// Class is a kind of work that fails on its own. Each exchange has one circuit per class (and per API family where an
// exchange has more than one account API), so that a broken balance endpoint never hides a healthy order book.
type Class string

// The closed set of classes.
const (
	ClassMarketData Class = "market_data" // order books
	ClassReference  Class = "reference"   // listings, 24 h statistics, server time, venue status
	ClassAccount    Class = "account"     // balances
	ClassStream     Class = "stream"      // stream connects
)

// Classes lists every class in the order in which people read them.
func Classes() []Class {
	return []Class{ClassMarketData, ClassReference, ClassAccount, ClassStream}
}

// Op is one question that is put to an exchange. It is a closed set: metric label, log field and error text.
type Op string

// The closed set of operations.
const (
	OpOrderBook  Op = "order_book"
	OpStatistics Op = "statistics"
	OpListings   Op = "listings"
	OpStatus     Op = "status"
	OpTime       Op = "time"
	OpBalances   Op = "balances"
	OpStream     Op = "stream" // connects and subscriptions of a stream
	OpNative     Op = "native" // public questions in the exchange's own form
)

// Ops lists every operation.
func Ops() []Op {
	return []Op{OpOrderBook, OpStatistics, OpListings, OpStatus, OpTime, OpBalances, OpStream, OpNative}
}

// Class tells which class of circuit an operation counts for.
func (o Op) Class() Class {
	switch o {
	case OpOrderBook:
		return ClassMarketData
	case OpBalances:
		return ClassAccount
	case OpStatistics, OpListings, OpStatus, OpTime, OpNative:
		return ClassReference
	case OpStream:
		return ClassStream
	}
	return ClassReference
}

// Wallet is a place where an exchange keeps money. Two wallets are never added up.
type Wallet string

// The closed set of wallets.
const (
	WalletTrading Wallet = "trading"
	WalletFunding Wallet = "funding"
)
