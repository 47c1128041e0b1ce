package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// upstream is an exchange that answers Binance's requests from memory, as fast as net/http can.
type upstream struct {
	server    *http.Server
	url       string
	listings  []byte
	books     map[string][]byte // by limit: all of the answer behind its sequence
	sequence  atomic.Int64
	streams   *streams // nil: the books do not change
	broken    atomic.Bool
	held      atomic.Pointer[hold] // nil: books are answered at once
	mu        sync.Mutex
	asked     map[string]int // books by symbol
	serveDone chan error
}

// hold keeps books back until it is over.
type hold struct{ over chan struct{} }

// hold keeps books back until release is called.
func (u *upstream) hold() (release func()) {
	h := &hold{make(chan struct{})}
	u.held.Store(h)
	return func() {
		u.held.Store(nil)
		close(h.over)
	}
}

// coins is how many pairs the exchange lists beside BTC/USDT and ETH/USDT; see coin.
const coins = 4000

// coin is the base of one of them.
func coin(i int) string { return fmt.Sprintf("C%04d", i) }

func startUpstream(ctx context.Context) (*upstream, error) {
	return serveUpstream(ctx, &upstream{listings: exchangeInfo()})
}

// startStreaming starts an exchange whose books change.
func startStreaming(ctx context.Context) (*upstream, error) {
	return serveUpstream(ctx, &upstream{listings: exchangeInfo(), streams: newStreams()})
}

func serveUpstream(ctx context.Context, u *upstream) (*upstream, error) {
	u.books = map[string][]byte{"100": depthBody(100), "1000": depthBody(1000)}
	u.asked, u.serveDone = map[string]int{}, make(chan error, 1)
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	u.url = "http://" + l.Addr().String()
	u.server = &http.Server{Handler: u, ReadHeaderTimeout: time.Minute}
	go func() { u.serveDone <- u.server.Serve(l) }()
	return u, nil
}

func (u *upstream) stop() {
	_ = u.server.Close() // nothing is in flight that anybody waits for
	if u.streams != nil {
		u.streams.close()
	}
	<-u.serveDone
}

// booksAsked is how often the book of a symbol was asked for.
func (u *upstream) booksAsked(symbol string) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.asked[symbol]
}

// ServeHTTP answers as Binance does.
func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "application/json;charset=UTF-8")
	h.Set("X-Mbx-Used-Weight", "1")
	h.Set("X-Mbx-Used-Weight-1m", "1")
	switch {
	case r.URL.Path == "/api/v3/exchangeInfo":
		_, _ = w.Write(u.listings)
	case r.URL.Path == "/api/v3/time":
		_, _ = fmt.Fprintf(w, `{"serverTime":%d}`, time.Now().UnixMilli())
	case r.URL.Path == "/stream" && u.streams != nil:
		u.streams.serve(w, r)
	case r.URL.Path != "/api/v3/depth" || u.broken.Load():
		h.Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusServiceUnavailable)
	default:
		u.depth(w, r)
	}
}

func (u *upstream) depth(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	u.mu.Lock()
	u.asked[q.Get("symbol")]++
	u.mu.Unlock()
	if h := u.held.Load(); h != nil {
		select {
		case <-h.over:
		case <-r.Context().Done():
			return
		}
	}
	if n, err := strconv.Atoi(q.Get("limit")); err == nil && u.streams != nil && n <= 1000 {
		_, _ = w.Write(u.streams.snapshot(q.Get("symbol"), n))
		return
	}
	rest, ok := u.books[q.Get("limit")]
	if !ok {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	head := strconv.AppendInt([]byte(`{"lastUpdateId":`), 90_210_000_000+u.sequence.Add(1), 10)
	w.Header().Set("Content-Length", strconv.Itoa(len(head)+len(rest)))
	_, _ = w.Write(append(head, rest...))
}

// depthBody is a book of n levels a side in Binance's form, with eight decimals, behind its sequence.
func depthBody(n int) []byte {
	still := func(int) int64 { return 0 }
	text := appendSide([]byte(`,"bids":[`), n, bestBid, -1, still)
	text = appendSide(append(text, `],"asks":[`...), n, bestAsk, 1, still)
	return append(text, `]}`...)
}

// exchangeInfo lists the pairs.
func exchangeInfo() []byte {
	var b strings.Builder
	b.WriteString(`{"symbols":[`)
	bases := []string{"BTC", "ETH"}
	for i := range coins {
		bases = append(bases, coin(i))
	}
	for i, base := range bases {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"symbol":"%[1]sUSDT","status":"TRADING","baseAsset":"%[1]s","quoteAsset":"USDT","filters":[]}`, base)
	}
	b.WriteString(`]}`)
	return []byte(b.String())
}
