package okx

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"unicode"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/market"
)

// spot is the only type of instrument that we ask for.
const spot = "SPOT"

// maxListingsBody bounds the list of instruments: 1,218 spot pairs of 49 fields were 2.8 MB in April 2026.
const maxListingsBody = exchange.DefaultMaxBody

// Listings asks for every spot instrument, suspended ones included. A row that cannot be read is left out and counted in
// the log; a list of which more than half is unreadable, or nothing is left, is malformed. Delisted instruments vanish
// from the list without a final state.
func (v *Venue) Listings(ctx context.Context) (*market.Listings, error) {
	call := v.Plan(market.OpListings, market.Listing{}, 0)
	var list *market.Listings
	err := v.client.Do(ctx, exchange.Request{
		Call: call, Hosts: v.public, Path: pathInstruments, Query: "instType=" + spot, MaxBody: maxListingsBody,
	}, func(a *exchange.Response) *market.Error {
		rows, bad := decode[json.RawMessage](v, call, a)
		if bad != nil {
			return bad
		}
		kept, skipped := v.listings(rows)
		if len(kept) <= skipped {
			return v.malformed(call, a, fmt.Errorf("%w: %d of %d rows are spot pairs", errList, len(kept), len(rows)))
		}
		list = &market.Listings{Exchange: v.id, Rows: kept, ConfirmedAt: a.ConfirmedAt()}
		if skipped > 0 {
			v.log.WarnContext(ctx, "pairs left out of the list: their rows cannot be used", slog.String("exchange", string(v.id)),
				slog.String("op", string(call.Op)), slog.Int("skipped", skipped), slog.Int("kept", len(kept)))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// Listing asks for one instrument.
func (v *Venue) Listing(ctx context.Context, l market.Listing) (got market.Listing, _ error) {
	call := v.Plan(market.OpListings, l, 0)
	err := v.client.Do(ctx, exchange.Request{
		Call: call, Hosts: v.public, Path: pathInstruments, Query: "instId=" + url.QueryEscape(l.Symbol) + "&instType=" + spot,
		MaxBody: maxListingBody,
	}, func(a *exchange.Response) *market.Error {
		rows, bad := decode[wireInstrument](v, call, a)
		if bad != nil {
			if bad.Code == codeNoInstrument { // here, other than of the list, one was asked for
				bad.Kind, bad.OurFault = market.KindUnknownSymbol, false
			}
			return bad
		}
		if len(rows) == 0 { // as it is gone from the list
			return &market.Error{Kind: market.KindUnknownSymbol, Err: errNotListed}
		}
		read, ok := rows[0].listing()
		if !ok || len(rows) > 1 || read.Symbol != l.Symbol || read.Pair != l.Pair {
			return v.malformed(call, a, errOther)
		}
		got = read
		got.Exchange, got.StatusAt = v.id, a.ConfirmedAt()
		return nil
	})
	return got, err
}

// maxListingBody bounds one instrument: some 2 KB.
const maxListingBody = 256 << 10

var (
	errOther     = errors.New("the answer is about another instrument")
	errNotListed = errors.New("the instrument is not listed")
)

var errList = errors.New("no list of spot pairs")

// listings converts the rows that can be read and counts the others. Of two rows with one name or one pair the first
// holds: a pair must lead to one book.
func (v *Venue) listings(rows []json.RawMessage) (list []market.Listing, skipped int) {
	list = make([]market.Listing, 0, len(rows))
	symbols, pairs := make(map[string]bool, len(rows)), make(map[market.Pair]bool, len(rows))
	for _, raw := range rows {
		var w wireInstrument
		if err := json.Unmarshal(raw, &w); err != nil {
			skipped++
			continue
		}
		l, ok := w.listing()
		if !ok || symbols[l.Symbol] || pairs[l.Pair] {
			skipped++
			continue
		}
		symbols[l.Symbol], pairs[l.Pair] = true, true
		l.Exchange = v.id
		list = append(list, l)
	}
	return list, skipped
}

// wireInstrument is what we need of an instrument's 49 fields. The step fields are "" until about five minutes before a
// new pair starts. They can change (upcChg announces it), so no price is ever checked against them.
type wireInstrument struct {
	InstType text `json:"instType"`
	InstID   text `json:"instId"`
	Base     text `json:"baseCcy"`
	Quote    text `json:"quoteCcy"`
	State    text `json:"state"`
	OpenType text `json:"openType"`
	TickSize text `json:"tickSz"`
	LotSize  text `json:"lotSz"`
	MinSize  text `json:"minSz"`
}

// listing converts one row; false if it is no spot pair or a number in it cannot be read.
func (w wireInstrument) listing() (l market.Listing, ok bool) {
	base, quote, ok := spotName(string(w.InstID))
	if !ok || w.InstType != spot {
		return l, false
	}
	// The list's own fields are the truth; a pair that is being prepared may lack them, and then its name tells.
	if w.Base != "" && w.Quote != "" {
		base, quote = string(w.Base), string(w.Quote)
	}
	pair, err := market.ParsePair(base + "/" + quote)
	if err != nil {
		return l, false
	}
	l = market.Listing{Pair: pair, Symbol: string(w.InstID), Status: w.status()}
	ok = step(&l.PriceTick, w.TickSize) && step(&l.SizeStep, w.LotSize) && step(&l.MinSize, w.MinSize)
	return l, ok
}

// step reads a smallest step: "" and zero are absent, a negative or unreadable one makes the row unreadable.
func step(to *market.Optional, s text) bool {
	if s == "" {
		return true
	}
	n, ok := s.number()
	if !ok || n.Sign() < 0 {
		return false
	}
	if !n.IsZero() {
		*to = market.Some(n)
	}
	return true
}

// status maps the venue's words. Only "live" trades; "preopen" with a call auction takes orders before it does. Words that
// are not listed here ("suspend", "test", "rebase", "settling", and those to come) mean that the pair does not trade now.
func (w wireInstrument) status() market.TradingStatus {
	switch w.State {
	case "live", "":
		return market.TradingActive
	case "post_only":
		return market.TradingPostOnly
	case "preopen":
		if w.OpenType == "call_auction" {
			return market.TradingAuction
		}
	}
	return market.TradingPaused
}

// spotName splits the name of a spot pair. Exactly one dash: BTC-USDT-SWAP and BTC-USD-220527 are contracts. Names are
// upper case letters and digits today ("1INCH-USDT"); letters of other scripts would be kept.
func spotName(id string) (base, quote string, ok bool) {
	base, quote, ok = strings.Cut(id, "-")
	return base, quote, ok && isAsset(base) && isAsset(quote)
}

func isAsset(s string) bool {
	for _, r := range s {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) || unicode.IsLower(r) {
			return false
		}
	}
	return s != ""
}
