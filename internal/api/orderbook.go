package api

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

// orderBook answers GET /v1/exchanges/{exchange}/orderbook.
func (s *Server) orderBook(ctx context.Context, c *call, r *http.Request, q *query) error {
	ask, ccxt, err := s.bookQuery(c, r, q)
	if err != nil {
		return err
	}
	if ask.Depth, err = q.depth(s.cfg.DefaultDepth, s.cfg.MaxDepth); err != nil {
		return err
	}
	c.note.pair = ask.Pair
	b, err := s.cfg.Books.OrderBook(ctx, ask)
	if err != nil {
		return err
	}
	if ccxt {
		appendCCXTBook(&c.doc, b)
	} else {
		appendBook(&c.doc, b)
	}
	s.fresh(c, &b.Freshness, s.cfg.FreshFor)
	c.send(http.StatusOK, jsonType)
	return nil
}

// bookQuery reads what every question about one book has: all but the depth. ccxt tells in whose shape it is answered.
func (s *Server) bookQuery(c *call, r *http.Request, q *query) (ask gateway.BookQuery, ccxt bool, err error) {
	if ask.Exchange, err = s.exchange(c, r); err != nil {
		return ask, false, err
	}
	if ask.Pair, err = q.pair(); err != nil {
		return ask, false, err
	}
	if ccxt, err = q.ccxt(); err != nil {
		return ask, false, err
	}
	if ask.MaxAge, err = s.bookAge(c, q, ccxt); err != nil {
		return ask, false, err
	}
	ask.RequireLive, err = q.requireLive()
	return ask, ccxt, err
}

// exchange reads the exchange of the path. A name that is not enabled gets no further, also not into the log.
func (s *Server) exchange(c *call, r *http.Request) (market.ExchangeID, error) {
	id := c.exchange
	if id == "" {
		id = market.ExchangeID(chi.URLParam(r, "exchange"))
	}
	if !slices.Contains(s.exchangeIDs, id) {
		return "", s.unknownExchange("The path", "")
	}
	c.note.exchange = id
	return id, nil
}

func (s *Server) unknownExchange(where, parameter string) error {
	names := make([]string, len(s.exchangeIDs))
	for i, id := range s.exchangeIDs {
		names[i] = string(id)
	}
	return &requestError{
		code: Code(gateway.CodeExchangeUnknown), parameter: parameter, allowed: names,
		detail: where + " names an exchange that is not enabled here. Enabled: " + strings.Join(names, ", ") + ".",
	}
}

// fresh says in headers and in the log how far an answer can be trusted.
func (s *Server) fresh(c *call, f *gateway.Freshness, freshFor time.Duration) {
	c.note.fresh(f)
	c.header("Age", strconv.FormatInt(seconds(f.Age), 10))
	c.header("Cache-Status", cacheStatus(f, freshFor))
}

// hits are what most answers say.
var hits = [...]string{"exchange-gateway; hit; ttl=0", "exchange-gateway; hit; ttl=1"}

// cacheStatus is RFC 9211. The ttl of a stale answer is negative, and only then: a book that its stream vouches for is
// live at any age. Where freshFor is zero nothing is kept.
func cacheStatus(f *gateway.Freshness, freshFor time.Duration) string {
	if f.Source == gateway.SourceREST {
		if freshFor == 0 {
			return "exchange-gateway; fwd=miss; fwd-status=200"
		}
		return "exchange-gateway; fwd=miss; fwd-status=200; stored"
	}
	var buf [96]byte
	b := append(buf[:0], "exchange-gateway; hit; ttl="...)
	ttl := -seconds(f.Age - freshFor) // rounded down
	if !f.Stale && ttl < int64(len(hits)) {
		return hits[max(ttl, 0)]
	}
	if f.Stale {
		ttl = min(ttl, -1)
	} else {
		ttl = max(ttl, 0)
	}
	b = strconv.AppendInt(b, ttl, 10)
	if f.Stale {
		b = append(b, "; detail="...)
		b = append(b, f.Why()...)
	}
	return string(b)
}

// appendBook writes one book. The levels are copied from text that was encoded once for all readers of this version.
func appendBook(d *doc, b *gateway.Book) {
	if need := b.EncodedSize(b.Shown) + bookFields; cap(d.b)-len(d.b) < need {
		d.b = append(make([]byte, 0, len(d.b)+need), d.b...)
	}
	d.open('{')
	d.str("exchange", string(b.Exchange))
	d.pair("symbol", b.Pair)
	d.str("exchange_symbol", b.Symbol)
	appendTrading(d, &b.Listing)
	d.bool("stale", b.Freshness.Stale)
	d.name("freshness")
	appendFreshness(d, &b.Freshness)
	d.int("depth", int64(b.Shown))
	d.bool("complete", b.Complete(b.Shown))
	d.epoch("timestamp", b.ExchangeTime)
	d.time("datetime", b.ExchangeTime)
	if b.Sequence.Known {
		d.int("nonce", b.Sequence.Value)
	} else {
		d.null("nonce")
	}
	d.name("bids")
	d.b = b.AppendBids(d.b, b.Shown)
	d.name("asks")
	d.b = b.AppendAsks(d.b, b.Shown)
	d.close('}')
}

// bookFields is room for all of a book but its levels.
const bookFields = 768

// appendTrading writes what the exchange says about a pair that does not trade as usual, and when it said so: the book beside
// it is younger as a rule, and is served all the same.
func appendTrading(d *doc, l *market.Listing) {
	if l.Symbol != "" && l.Status != market.TradingActive {
		d.str("market_status", string(l.Status))
		d.time("market_status_at", l.StatusAt)
	}
}

func appendFreshness(d *doc, f *gateway.Freshness) {
	status := "live"
	if f.Stale {
		status = "stale"
	}
	d.open('{')
	d.str("status", status)
	d.str("source", string(f.Source))
	d.int("age_ms", millis(f.Age))
	d.time("confirmed_at", f.ConfirmedAt)
	d.time("changed_at", f.ChangedAt)
	d.strOrNull("reason", f.Why())
	d.strOrNull("circuit", string(f.Circuit))
	if f.HasLag {
		d.int("exchange_lag_ms", f.Lag.Milliseconds())
	} else {
		d.null("exchange_lag_ms")
	}
	d.close('}')
}
