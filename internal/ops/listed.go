package ops

import (
	"strings"

	"exchange-gateway/internal/market"
)

// checkListed refuses a withholding and a purge of a pair that the exchange does not list: nobody can read it, so the order
// would say that it is done and change nothing. Without a list the order is carried out as it stands; a release always is.
func (d *Desk) checkListed(o *Order) error {
	if o.Pair.IsZero() || (o.Verb != market.VerbWithhold && o.Verb != market.VerbPurge) {
		return nil
	}
	if listed, known := d.cfg.Answers.Listed(o.Exchange, o.Pair); listed || !known {
		return nil
	}
	// Case is not folded for the caller, as nowhere else: the wrong pair would be worse than none.
	meant := market.Pair{Base: strings.ToUpper(o.Pair.Base), Quote: strings.ToUpper(o.Pair.Quote)}
	if listed, _ := d.cfg.Answers.Listed(o.Exchange, meant); listed {
		return wrong("symbol", []string{meant.String()}, "there is no %s at %s: did you mean %s?", o.Pair, o.Exchange, meant)
	}
	return wrong("symbol", nil, "there is no %s at %s", o.Pair, o.Exchange)
}
