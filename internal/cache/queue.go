package cache

import (
	"sync"

	"exchange-gateway/internal/market"
)

// queue holds what is to be written to Redis: the newest version of each book and list, so it is never longer than what
// memory holds. At its bound a book that is not in it yet is dropped: its next answer comes anyway.
type queue struct {
	most int

	mu       sync.Mutex
	books    map[key]*market.OrderBook
	listings map[market.ExchangeID]*market.Listings
}

func newQueue(most int) *queue {
	return &queue{
		most: most, books: make(map[key]*market.OrderBook), listings: make(map[market.ExchangeID]*market.Listings),
	}
}

// put queues b in place of what is queued of the same book. It returns false if there was no room.
func (q *queue) put(b *market.OrderBook) bool {
	k := keyOf(b)
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, ok := q.books[k]; !ok && len(q.books) >= q.most {
		return false
	}
	q.books[k] = b
	return true
}

// drop takes a book out of the queue and tells whether it was in it.
func (q *queue) drop(k key) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, ok := q.books[k]
	delete(q.books, k)
	return ok
}

func (q *queue) putListings(l *market.Listings) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.listings[l.Exchange] = l
}

// take empties the queue.
func (q *queue) take() ([]*market.OrderBook, []*market.Listings) {
	q.mu.Lock()
	defer q.mu.Unlock()
	books := make([]*market.OrderBook, 0, len(q.books))
	for _, b := range q.books {
		books = append(books, b)
	}
	listings := make([]*market.Listings, 0, len(q.listings))
	for _, l := range q.listings {
		listings = append(listings, l)
	}
	clear(q.books)
	clear(q.listings)
	return books, listings
}

// back queues b again after a failure, unless something newer came in the meantime.
func (q *queue) back(b *market.OrderBook) {
	k := keyOf(b)
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, ok := q.books[k]; !ok && len(q.books) < q.most {
		q.books[k] = b
	}
}

func (q *queue) backListings(l *market.Listings) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, ok := q.listings[l.Exchange]; !ok {
		q.listings[l.Exchange] = l
	}
}

func (q *queue) size() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.books) + len(q.listings)
}
