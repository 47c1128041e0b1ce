package hub

import (
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/feed"
	"exchange-gateway/internal/market"
)

// stateWithheld is the `status` of a topic that an operator withholds. The feed does not know it: its states are what can be
// said of the exchange.
const stateWithheld feed.State = "withheld"

// Withhold takes a pair's book away from its subscribers, or gives it back; the zero pair is every pair of the exchange. They
// get a status "withheld" at once, in place of what waits for them, and after that nothing but heartbeats; whoever
// subscribes meanwhile gets the status alone. When it ends they get a status and a snapshot, which stands for whatever
// happened. A pair is withheld while it is or its exchange is. It changes nothing upstream and for no other pair.
//
// What is withheld is remembered until it is given back: the caller bounds how much that is.
func (h *Hub) Withhold(exchange market.ExchangeID, pair market.Pair, on bool) {
	h.withholding.Lock() // one after another, so that every book ends as the last of them says
	defer h.withholding.Unlock()
	for _, b := range h.withhold(feed.Key{Exchange: exchange, Pair: pair}, on) {
		if fresh := h.withheldNow(b.key); fresh.State != "" {
			b.withhold(fresh)
		} else if !h.source.Inspect(b.key, b.giveBack) {
			b.giveBack(nil)
		}
	}
}

// withhold notes what is withheld and returns the books that it is about. A book that is opened later reads the note.
func (h *Hub) withhold(k feed.Key, on bool) (books []*book) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !on {
		delete(h.withheld, k)
	} else if _, twice := h.withheld[k]; !twice {
		h.withheld[k] = clock.Now()
	}
	for _, b := range h.books {
		if b.key == k || k.Pair.IsZero() && b.key.Exchange == k.Exchange {
			books = append(books, b)
		}
	}
	return books
}

func (h *Hub) withheldNow(k feed.Key) feed.Freshness {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.withheldAs(k)
}

// withheldAs is how a book is shown that is withheld, zero for one that is not. The caller holds the hub's lock.
func (h *Hub) withheldAs(k feed.Key) feed.Freshness {
	since, on := h.withheld[k]
	if !on {
		since, on = h.withheld[feed.Key{Exchange: k.Exchange}]
	}
	if !on {
		return feed.Freshness{}
	}
	return feed.Freshness{State: stateWithheld, Reason: market.KindWithheld, Since: since}
}

// isWithheld tells whether the subscribers are told nothing. The caller holds the lock of the book.
func (b *book) isWithheld() bool { return b.withheld.State != "" }

func (b *book) withhold(as feed.Freshness) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.isWithheld() {
		return
	}
	b.withheld = as
	now := clock.Now()
	for _, s := range b.streams {
		s.withhold(now)
	}
}

// withhold tells the subscribers, and holds nothing from here on.
func (s *stream) withhold(now time.Time) {
	s.fresh = s.book.withheld
	s.source, s.confirmedAt = "", time.Time{}
	f := s.state(now)
	for _, u := range s.subs {
		u.client.withdraw(u)
		s.send(u, f, now)
	}
}

// giveBack begins where the book is now. v is nil if it is not streamed; otherwise this runs under the feed's lock.
func (b *book) giveBack(v feed.View) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.isWithheld() {
		return
	}
	b.withheld = feed.Freshness{}
	for _, s := range b.streams {
		if v == nil {
			s.fresh = feed.Freshness{State: feed.StateSyncing}
			s.publish(s.state(clock.Now()), clock.Now())
			continue
		}
		s.giveBack(b.seen(v))
	}
}

func (s *stream) giveBack(v *sight) {
	s.fresh = v.Freshness()
	if v.Held() {
		s.confirmedAt = v.ConfirmedAt()
	}
	s.publish(s.state(v.now), v.now)
	if v.Held() {
		s.load(v)
	}
}
