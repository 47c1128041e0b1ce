package ops

import (
	"context"
	"strings"
	"unicode"
	"unicode/utf8"

	"exchange-gateway/internal/market"
)

// failed writes a second line of the audit for an order that was written down and has no effect: whoever reads the first one
// alone would believe that it had. Who calls has the turn.
func (d *Desk) failed(ctx context.Context, o *Order, err error) {
	d.write(ctx, market.Event{
		Type: market.EventAction, Exchange: o.Exchange,
		Action: market.Action{
			Verb: o.Verb, Actor: o.Actor, Reason: o.Reason, Class: o.Class, Pair: o.Pair, Failed: oneLine(err, o),
		},
	})
}

// oneLine is an error as the audit keeps it: without what stands beside it, on one line, and cut at its bound.
func oneLine(err error, o *Order) string {
	text := err.Error()
	for _, said := range []string{"reload: ", purging(o)} {
		text = strings.TrimPrefix(text, said)
	}
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ReplaceAll(strings.ToValidUTF8(text, "?"), "\n", "; "))
	if len(text) <= market.MaxFailed {
		return text
	}
	const more = "…"
	end := market.MaxFailed - len(more)
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + more
}
