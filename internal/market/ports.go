package market

import "context"

// MarketData answers public questions about one exchange. Every error is an *Error or wraps one. What it returns is
// fresh from the exchange, belongs to the caller, and is immutable.
type MarketData interface {
	// OrderBook asks for the best depth levels a side; the exchange may have a smaller maximum, see OrderBook.Depth.
	OrderBook(ctx context.Context, l Listing, depth int) (*OrderBook, error)
	// Statistics asks for the figures of the last 24 hours.
	Statistics(ctx context.Context, l Listing) (*Statistics, error)
	// Listings asks for every spot pair that the exchange lists, paused ones included.
	Listings(ctx context.Context) (*Listings, error)
	// Listing asks for the row of one pair, which a row of it names. KindUnknownSymbol or KindDelisted is a pair that the
	// exchange does not name.
	Listing(ctx context.Context, l Listing) (Listing, error)
	// Status asks what the exchange announces about itself.
	Status(ctx context.Context) (VenueStatus, error)
}

// Account answers balance questions with one credential, bound at construction. It keeps nothing: an answer is live or
// an error.
type Account interface {
	// Balances asks for the non-zero rows of one wallet. All pages are read or the call fails: a partial balance is a
	// wrong balance. A wallet that the exchange does not have is KindNotSupported.
	Balances(ctx context.Context, w Wallet) (*Balances, error)
}

// Venue is one exchange's adapter, unguarded: its public port, what its calls cost, and accounts made from credentials.
type Venue interface {
	MarketData
	// ID is the exchange's name.
	ID() ExchangeID
	// Limits are the rate limits that calls are charged to, those of each account made so far among them: make the accounts
	// before asking.
	Limits() []Limit
	// Plan states what a public call touches. The listing and depth matter to OpOrderBook and OpStatistics only.
	Plan(op Op, l Listing, depth int) Call
	// Wallets are the wallets that its accounts can read.
	Wallets() []Wallet
	// Account binds a credential; name is the account's name in configuration and keys its gate. A credential that
	// cannot work is an error that says what is expected.
	Account(name string, c Credential) (VenueAccount, error)
}

// VenueAccount is one credential's account, unguarded.
type VenueAccount interface {
	Account
	// Plan states what a balance call touches.
	Plan(w Wallet) Call
}
