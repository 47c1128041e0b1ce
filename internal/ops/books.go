package ops

import (
	"slices"
	"strings"
	"time"

	"exchange-gateway/internal/market"
)

// maxBooks bounds the books that the overview shows. Beyond it those with the least age are left out.
const maxBooks = 200

// streamed are the streamed books of each exchange.
func (b *Board) streamed() map[market.ExchangeID][]Book {
	if b.cfg.Feed == nil {
		return nil
	}
	all := make(map[market.ExchangeID][]Book, len(b.cfg.Exchanges))
	for _, id := range b.cfg.Exchanges {
		all[id] = b.cfg.Feed.Books(id)
	}
	return all
}

// books lists what clients get or could get: what was answered lately and what is streamed, the oldest ages first.
func (b *Board) books(streamed map[market.ExchangeID][]Book, now time.Time) []Book {
	rows := make([]Book, 0)
	at := make(map[bookKey]int)
	for _, id := range b.cfg.Exchanges {
		for _, row := range streamed[id] {
			row.Streamed = true
			if pair, err := market.ParsePair(row.Symbol); err == nil {
				at[bookKey{id, pair}] = len(rows)
			}
			rows = append(rows, row)
		}
	}
	for _, s := range b.cfg.Answers.ServedBooks() {
		if i, streamed := at[bookKey{s.Exchange, s.Pair}]; streamed {
			rows[i].ServedAt = instant(s.ServedAt)
		} else if slices.Contains(b.cfg.Exchanges, s.Exchange) {
			rows = append(rows, bookRow(&s))
		}
	}
	for i := range rows {
		b.age(&rows[i], now)
	}
	slices.SortStableFunc(rows, func(x, y Book) int { return older(&x, &y) })
	return rows[:min(len(rows), maxBooks)]
}

func bookRow(s *market.ServedBook) Book {
	row := Book{
		Exchange: s.Exchange, Symbol: s.Pair.String(), Source: s.Source, Reason: s.Reason, ConfirmedAt: instant(s.ConfirmedAt),
		ChangedAt: instant(s.ChangedAt), ServedAt: instant(s.ServedAt),
	}
	bid, hasBid := s.Bid.Get()
	ask, hasAsk := s.Ask.Get()
	if hasBid {
		row.Bid = text(bid)
	}
	if hasAsk {
		row.Ask = text(ask)
	}
	if hasBid && hasAsk {
		row.Spread = text(market.Spread(bid, ask))
	}
	if s.Sequence.Known {
		row.Sequence = &s.Sequence.Value
	}
	return row
}

func text(n market.Number) *string {
	s := n.String()
	return &s
}

// age puts a book's age beside its bounds. What is not streamed is live as long as it is young; what is streamed says
// itself whether the exchange vouches for it.
func (b *Board) age(row *Book, now time.Time) {
	row.FreshForMS, row.StaleMaxMS = b.cfg.FreshFor.Milliseconds(), b.cfg.StaleMax.Milliseconds()
	if row.ConfirmedAt != nil {
		row.AgeMS = milliseconds(max(now.Sub(*row.ConfirmedAt), 0))
	}
	if !row.Streamed {
		row.Status = "stale"
		if row.AgeMS != nil && *row.AgeMS <= row.FreshForMS {
			row.Status = "live"
		}
	}
	if pair, err := market.ParsePair(row.Symbol); err == nil {
		if _, withheld := b.cfg.Overrides.Withheld(row.Exchange, pair); withheld {
			row.Status = "withheld"
		}
	}
}

// older sorts by age, the oldest first and what holds nothing last; then by name, so that rows keep their place.
func older(x, y *Book) int {
	switch {
	case x.AgeMS == nil && y.AgeMS == nil:
	case x.AgeMS == nil:
		return 1
	case y.AgeMS == nil:
		return -1
	case *x.AgeMS != *y.AgeMS:
		if *x.AgeMS > *y.AgeMS {
			return -1
		}
		return 1
	}
	if c := strings.Compare(string(x.Exchange), string(y.Exchange)); c != 0 {
		return c
	}
	return strings.Compare(x.Symbol, y.Symbol)
}

// inUse is how lately a book was answered to count as one that clients read now.
const inUse = time.Minute

// oldestServed is the greatest age of the books that clients of an exchange read now and that are not live; zero if there is
// none.
func oldestServed(books []Book, id market.ExchangeID, now time.Time) time.Duration {
	var oldest int64
	for i := range books {
		row := &books[i]
		if row.Exchange == id && row.Status == "stale" && row.AgeMS != nil && row.ServedAt != nil && now.Sub(*row.ServedAt) <= inUse {
			oldest = max(oldest, *row.AgeMS)
		}
	}
	return time.Duration(oldest) * time.Millisecond
}
