package api

import (
	"slices"
	"time"

	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

// The answers of format=ccxt have the shapes of ccxt's fetchOrderBook, fetchTicker and fetchBalance, so that a bot which was
// written for ccxt reads them as it is. Numbers are JSON numbers with the same digits as the strings elsewhere. What ccxt has
// no place for, how far an answer can be trusted above all, is under `info`.

// ccxtMaxAge is the age of a book that format=ccxt takes where nobody names one: a bot that speaks ccxt does not look for a
// label, and 5 s are what a retry of its own would take. Beyond it the answer is an error of ccxt's ExchangeNotAvailable.
const ccxtMaxAge = 5 * time.Second

// ccxt reads the optional parameter `format`.
func (q *query) ccxt() (bool, error) {
	v, ok := q.get("format")
	if ok && v != "ccxt" {
		return false, invalid("format", "has an unknown value", []string{"ccxt"})
	}
	return ok, nil
}

// bookAge is the age of a book that a request takes: with format=ccxt what it accepts, else its client's own if that is less
// than the age of the format.
func (s *Server) bookAge(c *call, q *query, ccxt bool) (gateway.Age, error) {
	_, named := q.get("max_age_ms")
	_, accepts := q.get("accept_stale")
	switch {
	case accepts && !ccxt:
		return gateway.Age{}, invalid("accept_stale", "belongs to format=ccxt; without it max_age_ms says the same", nil)
	case accepts && named:
		return gateway.Age{}, invalid("accept_stale", "is given beside max_age_ms: give one of them", nil)
	case accepts:
		return q.age("accept_stale")
	case named || !ccxt:
		return s.maxAge(c, q)
	}
	if own := s.ownAge(c); own.Set && own.Limit < ccxtMaxAge {
		return own, nil
	}
	return gateway.MaxAge(ccxtMaxAge), nil
}

// bare writes the exchange's digits as a JSON number. A market.Number is always written as one: no plus, no leading zeros, no
// exponent.
func (d *doc) bare(k string, n market.Number) {
	d.name(k)
	d.b = n.AppendText(d.b)
}

func (d *doc) bareOptional(k string, o market.Optional) {
	n, ok := o.Get()
	if !ok {
		d.null(k)
		return
	}
	d.bare(k, n)
}

// unquote takes the quotes out of everything from the byte at. What stands there is levels: brackets, commas, and numbers in
// quotes.
func (d *doc) unquote(at int) {
	to := at
	for _, c := range d.b[at:] {
		if c != '"' {
			d.b[to] = c
			to++
		}
	}
	d.b = d.b[:to]
}

func appendCCXTBook(d *doc, b *gateway.Book) {
	if need := b.EncodedSize(b.Shown) + bookFields; cap(d.b)-len(d.b) < need {
		d.b = append(make([]byte, 0, len(d.b)+need), d.b...)
	}
	d.open('{')
	d.pair("symbol", b.Pair)
	d.name("bids")
	at := len(d.b)
	d.b = b.AppendBids(d.b, b.Shown)
	d.unquote(at)
	d.name("asks")
	at = len(d.b)
	d.b = b.AppendAsks(d.b, b.Shown)
	d.unquote(at)
	d.epoch("timestamp", b.ExchangeTime)
	d.time("datetime", b.ExchangeTime)
	if b.Sequence.Known {
		d.int("nonce", b.Sequence.Value)
	} else {
		d.null("nonce")
	}
	d.object("info")
	appendOrigin(d, b)
	d.int("depth", int64(b.Shown))
	d.bool("complete", b.Complete(b.Shown))
	d.close('}')
	d.close('}')
}

// appendOrigin writes what `info` says of every book.
func appendOrigin(d *doc, b *gateway.Book) {
	d.str("exchange", string(b.Exchange))
	d.str("exchange_symbol", b.Symbol)
	appendTrading(d, &b.Listing)
	d.bool("stale", b.Freshness.Stale)
	d.name("freshness")
	appendFreshness(d, &b.Freshness)
}

// appendCCXTTicker leaves null what the exchange does not say. ccxt computes some of that; here nobody should take a computed
// figure for the exchange's.
func appendCCXTTicker(d *doc, t *gateway.Ticker) {
	var st market.Statistics
	if t.Statistics != nil {
		st = *t.Statistics
	}
	d.open('{')
	d.pair("symbol", t.Pair)
	d.epoch("timestamp", t.ExchangeTime)
	d.time("datetime", t.ExchangeTime)
	d.bareOptional("high", st.High)
	d.bareOptional("low", st.Low)
	bid, ask, hasBid, hasAsk := t.Top()
	appendBareTop(d, "bid", "bidVolume", bid, hasBid)
	appendBareTop(d, "ask", "askVolume", ask, hasAsk)
	d.null("vwap")
	d.bareOptional("open", st.Open)
	d.bareOptional("close", st.Last) // ccxt: the same as last
	d.bareOptional("last", st.Last)
	d.null("previousClose")
	d.bareOptional("change", st.Change)
	d.bareOptional("percentage", st.ChangePercent)
	d.null("average")
	d.bareOptional("baseVolume", st.BaseVolume)
	d.bareOptional("quoteVolume", st.QuoteVolume)
	d.object("info")
	appendOrigin(d, &t.Book)
	d.optional("mid", t.Mid)
	d.optional("spread", t.Spread)
	appendStatisticsFreshness(d, t)
	d.close('}')
	d.close('}')
}

func appendBareTop(d *doc, price, size string, l market.Level, has bool) {
	if !has {
		d.null(price)
		d.null(size)
		return
	}
	d.bare(price, l.Price)
	d.bare(size, l.Size)
}

// ccxtField tells whether a balance of ccxt has a field of this name beside its assets.
func ccxtField(name string) bool {
	switch name {
	case "info", "timestamp", "datetime", "free", "used", "total", "debt":
		return true
	}
	return false
}

// appendCCXTBalances writes each asset as a field of its own, and each amount in the map of its kind. An asset whose name is
// that of another field, which no exchange has today, is in the maps alone. A debt is there where there is one, as in ccxt,
// and the map of them with the first.
func appendCCXTBalances(d *doc, b *gateway.BalanceAnswer) {
	d.open('{')
	d.object("info")
	d.str("exchange", string(b.Exchange))
	d.str("account", b.Account)
	d.str("account_type", b.AccountType)
	d.bool("stale", false) // a balance is live or an error
	d.object("freshness")
	d.str("status", "live")
	d.str("source", string(gateway.SourceREST))
	d.time("confirmed_at", b.RequestedAt)
	d.close('}')
	d.time("requested_at", b.RequestedAt)
	d.time("received_at", b.ReceivedAt)
	d.close('}')
	d.epoch("timestamp", b.UpdatedAt)
	d.time("datetime", b.UpdatedAt)
	appendAmounts(d, "free", b.Rows, func(r *market.Balance) (market.Number, bool) { return r.Free, true })
	appendAmounts(d, "used", b.Rows, func(r *market.Balance) (market.Number, bool) { return r.Used, true })
	appendAmounts(d, "total", b.Rows, func(r *market.Balance) (market.Number, bool) { return r.Total, true })
	if slices.ContainsFunc(b.Rows, func(r market.Balance) bool { return !r.Debt.IsZero() }) {
		appendAmounts(d, "debt", b.Rows, func(r *market.Balance) (market.Number, bool) { return r.Debt.Get() })
	}
	for i := range b.Rows {
		row := &b.Rows[i]
		if ccxtField(row.Asset) {
			continue
		}
		d.asset(row.Asset)
		d.b = append(d.b, '{')
		d.bare("free", row.Free)
		d.bare("used", row.Used)
		d.bare("total", row.Total)
		if debt, owed := row.Debt.Get(); owed {
			d.bare("debt", debt)
		}
		d.close('}')
	}
	d.close('}')
}

func appendAmounts(d *doc, name string, rows []market.Balance, amount func(*market.Balance) (market.Number, bool)) {
	d.object(name)
	for i := range rows {
		if n, ok := amount(&rows[i]); ok {
			d.asset(rows[i].Asset)
			d.b = n.AppendText(d.b)
		}
	}
	d.close('}')
}

// asset writes the name of a field that is an exchange's own.
func (d *doc) asset(name string) {
	d.text(name)
	d.b = append(d.b, ':')
}
