package stream

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"exchange-gateway/internal/market"
)

// tap sits on the way to one exchange, below everything of the gateway, and counts what passes.
type tap struct {
	way *http.Transport

	mu  sync.Mutex
	all []passing
}

// passing is one request that left the gateway for an exchange.
type passing struct {
	at     time.Time
	stream bool // the handshake of a stream
	book   bool
	ours   bool // asked for by the feed, not by a caller
	depth  int  // levels asked for, of a book
	status int  // 0: no answer
}

func newTap(dial func(ctx context.Context, network, addr string) (net.Conn, error)) *tap {
	return &tap{way: &http.Transport{DialContext: dial}}
}

// RoundTrip implements http.RoundTripper.
func (p *tap) RoundTrip(r *http.Request) (*http.Response, error) {
	one := passing{
		at: time.Now(), stream: r.Header.Get("Sec-Websocket-Key") != "", ours: market.LaneOf(r.Context()) == market.LanePrefetch,
	}
	for _, end := range []string{"/depth", "/market/books", "/product_book"} {
		one.book = one.book || strings.HasSuffix(r.URL.Path, end)
	}
	if one.book {
		q := r.URL.Query()
		one.depth, _ = strconv.Atoi(q.Get("limit") + q.Get("sz")) // an exchange knows one of them
	}
	p.mu.Lock()
	n := len(p.all)
	p.all = append(p.all, one)
	p.mu.Unlock()
	res, err := p.way.RoundTrip(r)
	if err == nil {
		p.mu.Lock()
		p.all[n].status = res.StatusCode
		p.mu.Unlock()
	}
	return res, err
}

// asked is what has left for an exchange since some moment.
type asked struct {
	connects  int // handshakes of streams, refused ones too
	snapshots int // books for the feed, to begin with
	checks    int // books for the feed, to compare with
	refused   int // answers of 418 and 429
}

// checkDepth is up to how many levels the feed asks for to compare.
const checkDepth = 100

func (p *tap) since(t time.Time) (n asked) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range p.all {
		switch {
		case one.at.Before(t):
			continue
		case one.stream:
			n.connects++
		case one.book && one.ours && one.depth > checkDepth:
			n.snapshots++
		case one.book && one.ours:
			n.checks++
		}
		if one.status == http.StatusTooManyRequests || one.status == http.StatusTeapot {
			n.refused++
		}
	}
	return n
}
