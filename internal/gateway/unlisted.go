package gateway

import (
	"strings"

	"exchange-gateway/internal/market"
)

// unlisted is the refusal of a pair that the list in use does not name. The exchange was not asked about the pair, so the
// refusal is ours; one that an exchange gives itself stays a *market.Error.
func (v *venue) unlisted(p market.Pair) error {
	return &Error{
		Code: CodeSymbolUnknown, Exchange: v.ID,
		Detail: string(v.ID) + " does not list " + p.String() + orMeant(v.guess(p)),
		Err:    &market.Error{Exchange: v.ID, Op: market.OpOrderBook, Kind: market.KindUnknownSymbol},
	}
}

// delisted is the refusal of a pair of which the list in use says that it is gone.
func (v *venue) delisted(p market.Pair) error {
	return &Error{
		Code: CodeSymbolDelisted, Exchange: v.ID, Detail: string(v.ID) + " does not list " + p.String() + " any more",
		Err: &market.Error{Exchange: v.ID, Op: market.OpOrderBook, Kind: market.KindDelisted},
	}
}

// nobodyLists is the refusal of a pair that none of the asked exchanges has, nil if one has it or cannot be heard: that
// one may have it.
func (b *Books) nobodyLists(p market.Pair, said []VenueBook) error {
	var meant market.Pair
	for i := range said {
		if k := market.KindOf(said[i].Err); k != market.KindUnknownSymbol && k != market.KindDelisted {
			return nil
		}
		if meant.IsZero() {
			meant = b.venues[said[i].Exchange].guess(p)
		}
	}
	if len(said) == 0 {
		return nil
	}
	return &Error{
		Code: CodeSymbolUnknown, Detail: "no exchange that was asked lists " + p.String() + orMeant(meant), Venues: said,
		Err: said[0].Err,
	}
}

// guess is p in capitals where that is listed, zero otherwise. Asset names are the exchange's own, so case is not folded for
// the caller: the wrong pair would be worse than none.
func (v *venue) guess(p market.Pair) market.Pair {
	up := market.Pair{Base: strings.ToUpper(p.Base), Quote: strings.ToUpper(p.Quote)}
	if up == p || v.entry(up) == nil {
		return market.Pair{}
	}
	return up
}

// orMeant asks whether another pair was meant, if there is one.
func orMeant(p market.Pair) string {
	if p.IsZero() {
		return ""
	}
	return "; did you mean " + p.String() + "?"
}
