package cache

import (
	"slices"
	"strings"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// A stored list of pairs is text: "gwl", two digits of format, when the exchange vouched for it in microseconds on Redis'
// clock (20 digits) and in nanoseconds on ours (20 digits), then lines: exchange, number of rows, and each row as eight
// fields between tabs.
const (
	listingsMagic  = "gwl"
	listingsFormat = "01"
	listingsHeader = len(listingsMagic) + len(listingsFormat) + 2*ordinalSize + 1

	maxRows         = 50_000  // Binance lists about 3,500 pairs
	maxListingsSize = 8 << 20 // about 250 KB for Binance
	rowFields       = 8
)

func encodeListings(l *market.Listings, at int64) ([]byte, error) {
	if at < 0 || !spellable(l.ConfirmedAt) || !plainField(string(l.Exchange)) || len(l.Rows) > maxRows {
		return nil, errUnencodable
	}
	const rowBytes = 80
	dst := make([]byte, 0, listingsHeader+64+rowBytes*len(l.Rows))
	dst = append(dst, listingsMagic+listingsFormat...)
	dst = appendPadded(dst, uint64(at), ordinalSize)
	dst = append(appendOrdinal(dst, clock.Wall(l.ConfirmedAt).UnixNano()), '\n')
	dst = append(append(dst, l.Exchange...), '\n')
	dst = appendLine(dst, len(l.Rows))
	for i := range l.Rows {
		r := &l.Rows[i]
		if r.Exchange != l.Exchange || !plainField(r.Symbol) || !plainField(r.AliasOf) {
			return nil, errUnencodable
		}
		dst = append(append(dst, r.Pair.String()...), '\t')
		dst = append(append(dst, r.Symbol...), '\t')
		dst = append(append(dst, r.Status...), '\t')
		for _, o := range []market.Optional{r.PriceTick, r.SizeStep, r.MinSize, r.MinNotional} {
			if n, ok := o.Get(); ok {
				dst = n.AppendText(dst)
			}
			dst = append(dst, '\t')
		}
		dst = append(append(dst, r.AliasOf...), '\n')
	}
	if len(dst) > maxListingsSize {
		return nil, errUnencodable
	}
	return dst, nil
}

func decodeListings(v string, now int64, sent time.Time) (*market.Listings, error) {
	if err := checkFormat(v, listingsMagic, listingsFormat); err != nil {
		return nil, err
	}
	if len(v) < listingsHeader || v[listingsHeader-1] != '\n' || !digits(v[:listingsHeader-1][formatEnd:]) {
		return nil, ErrRubbish
	}
	at, err := parseMicros(v[formatEnd : formatEnd+ordinalSize])
	if err != nil {
		return nil, err
	}
	nanos, err := parseOrdinal(v[formatEnd+ordinalSize : listingsHeader-1])
	if err != nil {
		return nil, err
	}
	in := lines{rest: v[listingsHeader:]}
	l := &market.Listings{Exchange: market.ExchangeID(in.field()), ConfirmedAt: time.Unix(0, nanos).UTC()}
	n := in.count(maxRows)
	if n > len(in.rest)/rowFields {
		return nil, ErrRubbish
	}
	l.Rows = make([]market.Listing, n)
	for i := range l.Rows {
		l.Rows[i] = in.row(l.Exchange)
	}
	if in.failed || in.rest != "" {
		return nil, ErrRubbish
	}
	if l.Anchor, err = anchor(at, now, sent); err != nil {
		return nil, err
	}
	if _, known := l.Age(clock.Now()); !known {
		return nil, ErrUnaged
	}
	return l, nil
}

func (l *lines) row(exchange market.ExchangeID) market.Listing {
	f := strings.Split(l.line(), "\t")
	if len(f) != rowFields {
		l.failed = true
		return market.Listing{}
	}
	return market.Listing{
		Exchange: exchange, Pair: l.pair(f[0]), Symbol: l.name(f[1]), Status: tradingStatus(f[2]),
		PriceTick: l.optional(f[3]), SizeStep: l.optional(f[4]), MinSize: l.optional(f[5]), MinNotional: l.optional(f[6]),
		AliasOf: l.name(f[7]),
	}
}

func (l *lines) optional(s string) market.Optional {
	if s == "" {
		return market.Optional{}
	}
	return market.Some(l.number(s))
}

// tradingStatus reads a status. A word that we do not know, from a newer gateway, is paused: the pair still has a book.
func tradingStatus(s string) market.TradingStatus {
	known := []market.TradingStatus{
		market.TradingActive, market.TradingPaused, market.TradingCancelOnly, market.TradingPostOnly, market.TradingAuction,
		market.TradingDelisted,
	}
	if t := market.TradingStatus(s); slices.Contains(known, t) {
		return t
	}
	return market.TradingPaused
}
