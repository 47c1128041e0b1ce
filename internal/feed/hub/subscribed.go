package hub

import "exchange-gateway/internal/feed"

// Subscribed tells whether a client subscribes to a book. What is streamed for other reasons (a list of the configuration, reads
// by request) is not subscribed to.
func (h *Hub) Subscribed(k feed.Key) bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.books[k] != nil
}
