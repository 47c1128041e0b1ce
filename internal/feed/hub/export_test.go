package hub

// Holds counts what the hub remembers.
func (h *Hub) Holds() (books, clients int) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return len(h.books), len(h.clients)
}
