// Package client asks a gateway and follows its streams, for programs in Go. Everything that a program needs to judge an
// answer is in the answer: whether a book is stale, since when and why; what went wrong, whose fault it is and when trying
// again makes sense.
//
//	c, err := client.New("http://127.0.0.1:8080", client.Options{})
//	book, err := c.OrderBook(ctx, "okx", "BTC/USDT", client.Depth(10), client.MaxAge(2*time.Second))
//	switch {
//	case errors.Is(err, client.ErrCircuitOpen):
//		// nothing to show; err says when to ask again
//	case err == nil && book.Freshness.AgeNow(time.Now()) > time.Second:
//		// an old book: say so, or do not trade on it
//	}
//
// It does not hide anything: it asks once unless Options.Retry says otherwise, it never answers from a memory of its own, and
// a stale book stays labelled. Words that a later gateway may add (codes, states, fields, types of messages) are passed on
// or passed over, and break nothing. Numbers keep the digits that the exchange wrote.
package client
