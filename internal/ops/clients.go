package ops

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"exchange-gateway/internal/market"
)

// What an order means to clients, in words. They describe the policy of package gateway: books may be stale, balances never.

// effectOf is what clients see of an isolation or a withholding.
func (d *Desk) effectOf(v *market.Override, now time.Time) string {
	ends := fmt.Sprintf(" It ends by itself at %s.", clockTime(v.Until, now))
	if v.Kind == market.OverrideIsolate {
		return isolationOf(v) + ends
	}
	if v.Pair.IsZero() {
		return fmt.Sprintf("Every book, price, 24 h statistic and balance of %s answers 503 withheld, and its streams get "+
			"status withheld; listings and the other exchanges go on.", v.Exchange) + ends
	}
	text := fmt.Sprintf("Reads of %s of %s answer 503 withheld, and streams of it get status withheld; nothing else changes.",
		v.Pair, v.Exchange) + ends
	if !d.known(v.Exchange, v.Pair) {
		text += fmt.Sprintf(" Nobody has read or streamed %s of %s in the last 10 minutes", v.Pair, v.Exchange)
		if listed, _ := d.cfg.Answers.Listed(v.Exchange, v.Pair); listed {
			return text + "."
		}
		text += ": is it spelt as clients spell it?"
	}
	return text
}

// replacedText says whose word gave way, so that nobody shortens a colleague's isolation without a notice; "" if nobody's.
func replacedText(r *Replaced, now time.Time) string {
	if r == nil {
		return ""
	}
	return fmt.Sprintf(" It replaces %s's until %s: %s", r.Actor, clockTime(r.Until, now), stopped(r.Reason))
}

// lackingText is what it means that a part did not take an override; "" if none is lacking. It takes it as soon as it can.
func lackingText(lacking []string) string {
	text := ""
	for _, place := range lacking {
		switch place {
		case "redis":
			text += " Redis did not take it: other gateways hear of it when Redis is back."
		case "state_dir":
			text += " The state directory did not take it: it is written there when that is possible again."
		}
	}
	return text
}

func isolationOf(v *market.Override) string {
	switch v.Class {
	case market.ClassMarketData:
		return fmt.Sprintf("Books of %s that are not streamed are served stale, up to the age that the caller accepts.", v.Exchange)
	case market.ClassReference:
		return fmt.Sprintf("Listings and 24 h statistics of %s are served as last known; books and balances go on.", v.Exchange)
	case market.ClassAccount:
		return fmt.Sprintf("Balances of %s answer 503 isolated; books go on.", v.Exchange)
	case market.ClassStream:
		return fmt.Sprintf("Streams of %s get status stale; books are read by request as long as it answers.", v.Exchange)
	}
	return fmt.Sprintf("Books of %s are served stale, up to the age that the caller accepts; balances answer 503 isolated; "+
		"streams get status stale.", v.Exchange)
}

// known tells whether clients read or stream a pair.
func (d *Desk) known(id market.ExchangeID, pair market.Pair) bool {
	read := func(b market.ServedBook) bool { return b.Exchange == id && b.Pair == pair }
	if slices.ContainsFunc(d.cfg.Answers.ServedBooks(), read) {
		return true
	}
	return d.cfg.Feed != nil && slices.ContainsFunc(d.cfg.Feed.Books(id), func(b Book) bool { return b.Symbol == pair.String() })
}

// afterRelease is what clients see of a release, and what goes on being in force.
func (d *Desk) afterRelease(o *Order, ended []market.Override, now time.Time) string {
	if len(ended) == 0 {
		said := "Nothing was in force that this ends, so nothing changes."
		return strings.Join(append([]string{said}, d.stillInForce(o.Exchange, now)...), " ")
	}
	isolated, withheld := false, false
	lifted := make([]string, 0, maxLifted)
	for i := range ended {
		v := &ended[i]
		isolated = isolated || v.Kind == market.OverrideIsolate
		withheld = withheld || v.Kind == market.OverrideWithhold
		if len(lifted) < maxLifted {
			lifted = append(lifted, fmt.Sprintf("%s (%s: %s)", overrideText(v, now), v.Actor, v.Reason))
		}
	}
	text := joined(lifted)
	if more := len(ended) - len(lifted); more > 0 {
		text = fmt.Sprintf("%s and %d more", strings.Join(lifted, ", "), more)
	}
	said := []string{"Lifted: " + stopped(text)}
	if isolated {
		said = append(said, fmt.Sprintf("Requests go to %s again; clients get live answers as soon as it answers.", target(o.Exchange, o.Class)))
	}
	if withheld {
		what := string(o.Exchange)
		if !o.Pair.IsZero() {
			what = o.Pair.String() + " of " + what
		}
		said = append(said, fmt.Sprintf("Reads of %s are answered again, and streams of it begin with a fresh book.", what))
	}
	return strings.Join(append(said, d.stillInForce(o.Exchange, now)...), " ")
}

// maxLifted is how many of what a release ended, and of what it left, are named.
const maxLifted = 3

// stillInForce names what is in force on an exchange.
func (d *Desk) stillInForce(id market.ExchangeID, now time.Time) (said []string) {
	for _, v := range d.cfg.Overrides.List(id) {
		if len(said) == maxLifted {
			return append(said, "There is more.")
		}
		said = append(said, fmt.Sprintf("Still in force: %s (%s: %s).", overrideText(&v, now), v.Actor, v.Reason))
	}
	return said
}

// overrideText is an override as people say it: "okx account isolated until 05:30 UTC".
func overrideText(v *market.Override, now time.Time) string {
	if v.Kind == market.OverrideIsolate {
		return fmt.Sprintf("%s isolated until %s", target(v.Exchange, v.Class), clockTime(v.Until, now))
	}
	what := string(v.Exchange)
	if !v.Pair.IsZero() {
		what = v.Pair.String() + " of " + what
	}
	return fmt.Sprintf("%s withheld until %s", what, clockTime(v.Until, now))
}

// afterProbe is what clients see once the exchange was asked; answered tells whether it had an answer to everything.
func (d *Desk) afterProbe(o *Order, answered bool) string {
	var open, probing []string
	for _, st := range d.circuits(o) {
		switch st.State {
		case market.CircuitOpen:
			open = append(open, circuitName(&st))
		case market.CircuitHalfOpen:
			probing = append(probing, circuitName(&st))
		case market.CircuitClosed:
		}
	}
	switch {
	case len(open) > 0:
		return fmt.Sprintf("Still open at %s: %s. Clients get what they got before.", o.Exchange, joined(open))
	case len(probing) > 0:
		return fmt.Sprintf("Under way at %s: %s. Clients get live answers as soon as it answers.", o.Exchange, joined(probing))
	case !answered:
		return fmt.Sprintf("No circuit of %s is open: clients get live answers wherever it gives some.", target(o.Exchange, o.Class))
	}
	return fmt.Sprintf("Clients get live answers: %s answers, and none of its circuits that this is about is open.", o.Exchange)
}

// unrecorded says what a restart would forget.
func (d *Desk) unrecorded(out *Outcome) string {
	if len(out.Recorded) > 0 {
		return ""
	}
	return " This could be written down nowhere but in the log, and does not survive a restart."
}
