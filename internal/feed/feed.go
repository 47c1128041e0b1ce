package feed

import (
	"context"

	"exchange-gateway/internal/market"
)

// Feed keeps the books of several exchanges. Safe for concurrent use.
type Feed struct {
	config Config
}

// New makes a feed. It does no I/O and starts nothing.
func New(c Config) *Feed { return &Feed{config: c.withDefaults()} }

// Run keeps the books until ctx ends, and returns when everything that it started has ended.
func (f *Feed) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// Watch streams a listing's book until release is called, and for IdleAfter beyond.
func (f *Feed) Watch(l market.Listing, ch market.StreamChannel) (release func(), err error) {
	return func() {}, nil
}

// Used notes a read of a listing's book by REST.
func (f *Feed) Used(l market.Listing) {}

// Book is the local book of a pair as it stands.
func (f *Feed) Book(k Key) (b *market.OrderBook, fresh Freshness, ok bool) {
	return nil, Freshness{}, false
}

// Inspect shows a book to see, and tells whether there is one.
func (f *Feed) Inspect(k Key, see func(View)) bool { return false }

// Status is an exchange's streams as they stand.
func (f *Feed) Status(id market.ExchangeID) Status { return Status{Exchange: id} }

// Books lists an exchange's streamed books.
func (f *Feed) Books(id market.ExchangeID) []BookStatus { return nil }

// Capture is what a book was made of lately.
func (f *Feed) Capture(k Key) (*Capture, bool) { return nil, false }
