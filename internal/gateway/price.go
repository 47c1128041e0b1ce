package gateway

import (
	"context"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// Price answers with the mid of the first exchange in the caller's order that is live; with a maxAge, and if none is, of
// the first that has a copy within it. The pair is taken as it is: USD, USDC and USDT are never equated, and an exchange
// that does not list it says so. An exchange whose book has an empty side does not answer. Without exchanges all are
// asked, in the configured order. If none can answer it returns an *Error with CodePriceUnavailable, or CodeSymbolUnknown
// where none has the pair, that holds why.
//
// The exchanges are not all asked at once, so that a price costs one call where the first answers. One that has not
// answered within stale_wait is passed over, though it may still win as long as none does.
func (b *Books) Price(
	ctx context.Context, pair market.Pair, exchanges []market.ExchangeID, maxAge Age,
) (*Price, error) {
	if len(exchanges) == 0 {
		exchanges = b.order
	}
	exchanges = distinct(exchanges)
	for _, id := range exchanges {
		if b.venues[id] == nil {
			return nil, unknownExchange(id, b.order)
		}
	}
	c := contest{
		b: b, pair: pair, maxAge: maxAge, said: make([]VenueBook, len(exchanges)),
		arrived: make(chan VenueBook, len(exchanges)),
	}
	for i, id := range exchanges {
		c.said[i].Exchange = id
	}
	winner, err := c.run(ctx)
	if err != nil {
		c.refuse(c.said)
		return nil, err
	}
	p := c.price(winner)
	c.refuse(p.Passed)
	return p, nil
}

func distinct(ids []market.ExchangeID) []market.ExchangeID {
	seen := make(map[market.ExchangeID]bool, len(ids))
	var out []market.ExchangeID
	for _, id := range ids {
		if !seen[id] {
			seen[id] = true
			out = append(out, id)
		}
	}
	return out
}

// contest is one question for a price. It runs on its caller's goroutine; those that it starts end before run returns.
type contest struct {
	b       *Books
	pair    market.Pair
	maxAge  Age
	said    []VenueBook    // what each exchange said so far, in the caller's order
	arrived chan VenueBook // takes what every exchange says without waiting
}

// run returns the place of the exchange that answers.
func (c *contest) run(ctx context.Context) (int, error) {
	if len(c.said) == 0 {
		return 0, c.nobody()
	}
	asking, leave := context.WithCancel(ctx)
	asked, heard := 0, 0
	defer func() {
		for leave(); heard < asked; heard++ {
			<-c.arrived // those who were asked leave at once
		}
	}()
	c.ask(asking, c.said[0].Exchange)
	asked++
	turn := time.NewTimer(c.b.cfg.StaleWait) // of the next one
	defer turn.Stop()
	triedCopies := false
	for {
		select {
		case <-ctx.Done():
			return 0, c.left(ctx)
		case v := <-c.arrived:
			heard++
			place := c.note(v)
			if v.Err == nil {
				return place, nil
			}
			if place != asked-1 && heard < asked {
				continue // it is the turn of one who was asked later
			}
		case <-turn.C:
		}
		switch {
		case asked < len(c.said):
			c.ask(asking, c.said[asked].Exchange)
			asked++
			turn.Reset(c.b.cfg.StaleWait)
			continue
		case !triedCopies && c.maxAge.Set:
			triedCopies = true
			if place, ok := c.copies(ctx); ok {
				return place, nil
			}
		}
		if heard == asked {
			return 0, c.nobody()
		}
	}
}

// nobody is the error of a question that no exchange answered.
func (c *contest) nobody() error {
	if err := c.b.nobodyLists(c.pair, c.said); err != nil {
		return err
	}
	if err := allLimited(c.said); err != nil {
		return err
	}
	return &Error{
		Code: CodePriceUnavailable, Detail: "no exchange that was asked has a price of " + c.pair.String(),
		RetryAfter: soonest(c.said), Venues: c.said,
	}
}

// ask puts the question for a live book to one exchange.
func (c *contest) ask(ctx context.Context, id market.ExchangeID) {
	go func() {
		q := BookQuery{Exchange: id, Pair: c.pair, Depth: 1, MaxAge: c.maxAge, RequireLive: true}
		book, err := c.b.read(ctx, q, manner{keep: true, part: true})
		if err == nil {
			err = oneSided(book)
		}
		if err != nil {
			book = nil
		}
		c.arrived <- VenueBook{Exchange: id, Book: book, Err: err}
	}()
}

func oneSided(b *Book) error {
	if _, _, hasBid, hasAsk := b.Top(); hasBid && hasAsk {
		return nil
	}
	return &Error{
		Code: CodeBookOneSided, Exchange: b.Exchange, Detail: "one side of the order book is empty, so there is no mid",
	}
}

// note writes down what an exchange said and returns its place.
func (c *contest) note(v VenueBook) int {
	for i := range c.said {
		if c.said[i].Exchange == v.Exchange {
			c.said[i] = v
			return i
		}
	}
	return 0
}

// copies looks for the first exchange with a usable copy within maxAge.
func (c *contest) copies(ctx context.Context) (int, bool) {
	for i := range c.said {
		s := &c.said[i]
		failed := s.Err
		if failed == nil { // not heard of yet
			failed = c.b.venues[s.Exchange].slow(market.OpOrderBook)
		}
		book, err := c.b.within(ctx, s.Exchange, c.pair, c.maxAge, failed)
		if err == nil {
			err = oneSided(book)
		}
		if err == nil {
			*s = VenueBook{Exchange: s.Exchange, Book: book}
			return i, true
		}
		s.Err = err
	}
	return 0, false
}

// within answers with the last-known book if it may stand in for the live one that failed.
func (b *Books) within(
	ctx context.Context, exchange market.ExchangeID, pair market.Pair, maxAge Age, failed error,
) (*Book, error) {
	v := b.venues[exchange]
	if err := b.withhold(exchange, pair); err != nil {
		return nil, err
	}
	r := reading{
		b: b, v: v, e: v.entry(pair), pair: pair, depth: 1, start: clock.Now(), failed: failed,
		most: min(maxAge.Limit, b.policy.Book.StaleFor),
	}
	book, err := r.lastKnown(ctx)
	return b.unlessWithheld(book, err, BookQuery{Exchange: exchange, Pair: pair})
}

// refuse counts the exchanges that did not answer.
func (c *contest) refuse(said []VenueBook) {
	now := clock.Now()
	for i := range said {
		if v := &said[i]; v.Err != nil {
			at := c.b.venues[v.Exchange]
			at.tally.refuse(at.metrics, QuestionBook, v.Err, now)
		}
	}
}

// price is the answer of the exchange at that place.
func (c *contest) price(winner int) *Price {
	book := c.said[winner].Book
	p := &Price{Pair: c.pair, Book: *book, Fallback: winner > 0, Passed: c.said[:winner:winner]}
	bid, ask, _, _ := book.Top()
	p.Mid = market.Mid(bid.Price, ask.Price)
	for i := range p.Passed {
		if v := &p.Passed[i]; v.Err == nil { // was asked, and is still thinking
			v.Err = c.b.venues[v.Exchange].slow(market.OpOrderBook)
		}
	}
	c.b.venues[book.Exchange].metrics.answer(QuestionPrice, &book.Freshness)
	return p
}

func (c *contest) left(ctx context.Context) error {
	return c.b.venues[c.said[0].Exchange].left(ctx, market.OpOrderBook)
}
