package feed

// A client may hold at most maxShare, in percent, of the books of an exchange: whoever subscribes to everything leaves room for
// others. A book that somebody holds already costs no room and is open to all.
const maxShare = 75

// shares are the books that subscribers hold, by client. It is guarded by the venue's lock, and bounded by the clients that have
// subscriptions times MaxBooks.
type shares map[string]map[*book]int

// full tells whether a client may not have another book streamed. Nobody, whose name is empty, always may: that is the gateway itself.
func (h shares) full(client string, maxBooks int) bool {
	return client != "" && len(h[client]) >= max(1, maxBooks*maxShare/100)
}

func (h shares) hold(client string, b *book) {
	if client == "" {
		return
	}
	if h[client] == nil {
		h[client] = map[*book]int{}
	}
	h[client][b]++
}

func (h shares) release(client string, b *book) {
	if client == "" {
		return
	}
	if h[client][b]--; h[client][b] > 0 {
		return
	}
	if delete(h[client], b); len(h[client]) == 0 {
		delete(h, client)
	}
}
