package feed

import (
	"errors"
	"math/rand/v2"
	"time"

	"exchange-gateway/internal/market"
)

const (
	// compareEvery is how often one book of an exchange, drawn among those that are live, is compared with its REST answer.
	compareEvery = 30 * time.Second
	// stillBefore is how long a book without a sequence must not have changed before it is compared: Coinbase answers from
	// caches of about a second.
	stillBefore = time.Second
)

var errDiffers = errors.New("the book is not the one that the exchange answers with")

// compare has one book compared, now and then. A queue of snapshots comes first.
func (v *venue) compare(now time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if now.Before(v.compareAt) {
		return
	}
	v.compareAt = now.Add(compareEvery*4/5 + rand.N(compareEvery*2/5))
	if queued, _ := v.queue.status(); queued > 0 {
		return
	}
	if n := len(v.books); n > 0 {
		skip := rand.IntN(n)
		for _, b := range v.books {
			if skip--; skip < 0 && b.shard.queueComparison(b) {
				return
			}
		}
	}
}

// queueComparison asks the exchange about a book if that is live.
func (s *shard) queueComparison(b *book) bool {
	s.enter()
	defer s.mu.Unlock()
	x := b.shown
	if x == nil || !x.synced() || x.checking || b.freshness(s.now).State != StateLive {
		return false
	}
	x.checking, x.pending = true, nil
	s.venue.queue.push(&job{seat: x, rank: rankCompare, at: s.now})
	return true
}

// compareTo compares a book with an answer to a question that was asked at some time.
func (s *shard) compareTo(x *seat, rest *market.OrderBook, asked time.Time, err error) {
	x.checking = false
	passed := x.passed
	x.passed = nil
	if err != nil || !x.synced() || x.link.over != nil {
		s.venue.metrics.comparisons[compareUndecided].Inc()
		return
	}
	if x.sequence.Known && rest.Sequence.Known {
		if was := passed.find(rest.Sequence.Value); was != nil {
			s.settled(x, was.same(rest))
		} else {
			x.pending = rest
			s.compared(x)
		}
		s.resolve()
		return
	}
	if !x.still(asked) || !x.still(rest.ConfirmedAt) {
		s.venue.metrics.comparisons[compareUndecided].Inc()
		return
	}
	switch {
	case sameBook(x, rest):
		s.venue.metrics.comparisons[compareAgrees].Inc()
	case x.ahead.since.IsZero(): // or a change is on its way
		x.ahead = ahead{since: s.now, compared: true}
	}
}

// compared settles a comparison once the stream has come as far as the answer, or past it.
func (s *shard) compared(x *seat) {
	if x.pending == nil || x.sequence.Value < x.pending.Sequence.Value {
		return
	}
	rest := x.pending
	x.pending = nil
	if x.sequence.Value > rest.Sequence.Value {
		s.venue.metrics.comparisons[compareUndecided].Inc()
		return
	}
	s.settled(x, sameBook(x, rest))
}

func (s *shard) settled(x *seat, same bool) {
	if same {
		s.venue.metrics.comparisons[compareAgrees].Inc()
		return
	}
	s.differs(x)
}

// differs gives up a book that is not the exchange's.
func (s *shard) differs(x *seat) {
	s.venue.metrics.comparisons[compareDiffers].Inc()
	s.disown(x, errDiffers)
}

// sameBook compares two copies as deep as both reach.
func sameBook(x *seat, rest *market.OrderBook) bool {
	return equalSide(x.local.Bids(nil, checkDepth), rest.Bids(), x, rest) &&
		equalSide(x.local.Asks(nil, checkDepth), rest.Asks(), x, rest)
}

// equalSide compares the levels that both sides reach: one may end earlier unless it says that it is whole.
func equalSide(own, theirs []market.Level, x *seat, rest *market.OrderBook) bool {
	n := min(len(own), len(theirs))
	if n < len(own) && rest.Complete(n+1) || n < len(theirs) && x.local.Complete(n+1) {
		return false // one of them has no more, and the other has
	}
	return begins(own, theirs)
}

// Bounds of what is remembered of a book while the exchange is asked about it: 64 versions are 6 s of a busy book, and
// older ones go first.
const (
	passedMost  = 64
	passedDepth = 20
)

// passed is how a book began in the versions since the exchange was asked: its answer shows one that a busy book has left
// behind when the answer comes.
type passed struct{ versions []version }

type version struct {
	sequence   int64
	bids, asks []market.Level
}

// note remembers the version as it is now.
func (p *passed) note(x *seat) {
	if p == nil || !x.sequence.Known {
		return
	}
	if len(p.versions) >= passedMost {
		p.versions = p.versions[1:]
	}
	p.versions = append(p.versions, version{
		x.sequence.Value, x.local.Bids(nil, passedDepth), x.local.Asks(nil, passedDepth),
	})
}

func (p *passed) find(sequence int64) *version {
	if p == nil {
		return nil
	}
	for i := range p.versions {
		if p.versions[i].sequence == sequence {
			return &p.versions[i]
		}
	}
	return nil
}

// same compares what both show.
func (v *version) same(rest *market.OrderBook) bool {
	return begins(v.bids, rest.Bids()) && begins(v.asks, rest.Asks())
}

func begins(own, theirs []market.Level) bool {
	for i := range min(len(own), len(theirs)) {
		if !own[i].Price.Equal(theirs[i].Price) || !own[i].Size.Equal(theirs[i].Size) {
			return false
		}
	}
	return true
}
