package night

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"exchange-gateway/internal/exchangesim"
	"exchange-gateway/internal/market"
)

// crossing is one request that left the gateway for an exchange.
type crossing struct {
	at     time.Time
	class  market.Class
	path   string
	symbol string
	probe  bool // the one request that an open circuit lets through
	signed bool
	status int       // 0: no answer
	ended  time.Time // when the answer's head or the failure was there, zero before
}

// tap sits on the way to one exchange, below everything of the gateway, and writes down what passes.
type tap struct {
	next http.RoundTripper

	mu   sync.Mutex
	all  []crossing
	last map[string]time.Time // by symbol: the last moment the exchange vouched for the book that it sent
}

func newTap(next http.RoundTripper) *tap {
	return &tap{next: next, all: make([]crossing, 0, 16<<10), last: map[string]time.Time{}}
}

// RoundTrip implements http.RoundTripper.
func (p *tap) RoundTrip(r *http.Request) (*http.Response, error) {
	c := crossing{at: time.Now(), class: classOf(r.URL.Path), path: r.URL.Path, probe: market.IsProbe(r.Context()), signed: signed(r)}
	for _, name := range []string{"symbol", "instId", "product_id"} {
		if s := r.URL.Query().Get(name); s != "" {
			c.symbol = s
		}
	}
	p.mu.Lock()
	n := len(p.all)
	p.all = append(p.all, c)
	p.mu.Unlock()
	res, err := p.next.RoundTrip(r)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all[n].ended = time.Now()
	if err != nil {
		return res, err
	}
	p.all[n].status = res.StatusCode
	if res.StatusCode == http.StatusOK && c.class == market.ClassMarketData {
		age, _ := strconv.Atoi(res.Header.Get("Age")) // of a cache in front of the exchange; none is none
		p.last[c.symbol] = c.at.Add(-time.Duration(age) * time.Second)
	}
	return res, nil
}

// classOf names the class of a path of any of the exchanges.
func classOf(path string) market.Class {
	switch {
	case strings.HasSuffix(path, "/depth"), strings.HasSuffix(path, "/market/books"), strings.HasSuffix(path, "/product_book"):
		return market.ClassMarketData
	case strings.HasSuffix(path, "/account"), strings.HasSuffix(path, "/balance"), strings.HasSuffix(path, "/balances"),
		strings.HasSuffix(path, "/accounts"):
		return market.ClassAccount
	}
	return market.ClassReference
}

// signed tells whether a request shows a key.
func signed(r *http.Request) bool {
	for _, name := range []string{"X-Mbx-Apikey", "Ok-Access-Key", "Cb-Access-Key", "Authorization"} {
		if r.Header.Get(name) != "" {
			return true
		}
	}
	return false
}

// confirmed is when the exchange last vouched for the book of a symbol.
func (p *tap) confirmed(symbol string) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last[symbol]
}

// from lists the crossings but the first n.
func (p *tap) from(n int) []crossing {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]crossing(nil), p.all[n:]...)
}

func (p *tap) total() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.all)
}

// truth is the best bid and ask that the exchange really had when it made a book: told by the book's own sequence, or by
// its stamp where the exchange sends none.
func truth(v *exchangesim.Venue, b *book) (exchangesim.Book, error) {
	if b.Nonce != nil {
		return v.BookBySeq(b.ExchangeSymbol, *b.Nonce, 1)
	}
	return v.Book(b.ExchangeSymbol, time.UnixMilli(*b.Timestamp), 1)
}
