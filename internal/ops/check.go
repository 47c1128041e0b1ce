package ops

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"exchange-gateway/internal/market"
)

// MaxActor is how long the name of who acts may be, in characters.
const MaxActor = 60

// check tidies an order up and tells what is wrong with it as such, whatever is in force.
func (d *Desk) check(o *Order, now time.Time) error {
	if !slices.Contains(market.Verbs(), o.Verb) {
		return wrong("verb", texts(market.Verbs()), "no such verb: %.40q", o.Verb)
	}
	var err error
	if o.Reason, err = line("reason", o.Reason, MaxReason); err != nil {
		return err
	}
	if o.Actor, err = line("actor", o.Actor, MaxActor); err != nil {
		return err
	}
	if err := d.checkTarget(o); err != nil {
		return err
	}
	if err := d.checkListed(o); err != nil {
		return err
	}
	return checkEnd(o, now)
}

// checkTarget checks what the order is about.
func (d *Desk) checkTarget(o *Order) error {
	if o.Verb == market.VerbReload {
		if o.Exchange != "" {
			return wrong("exchange", nil, "reload is about the configuration, not about an exchange")
		}
	} else if !slices.Contains(d.cfg.Exchanges, o.Exchange) {
		if o.Exchange == "" {
			return wrong("exchange", texts(d.cfg.Exchanges), "exchange is missing")
		}
		return wrong("exchange", texts(d.cfg.Exchanges), "no such exchange: %.40q", o.Exchange)
	}
	switch o.Verb {
	case market.VerbIsolate, market.VerbRelease, market.VerbProbe:
		if o.Class != "" && !slices.Contains(market.Classes(), o.Class) {
			return wrong("class", texts(market.Classes()), "no such class: %.40q", o.Class)
		}
	case market.VerbWithhold, market.VerbPurge, market.VerbReload:
		if o.Class != "" {
			return wrong("class", nil, "%s knows no class", o.Verb)
		}
	}
	switch o.Verb {
	case market.VerbPurge:
		if o.Pair.IsZero() {
			return wrong("symbol", nil, "symbol is missing: one book is purged at a time")
		}
	case market.VerbRelease:
		if o.Class != "" && !o.Pair.IsZero() {
			return wrong("symbol", nil, "either class (of an isolation) or symbol (of a withholding), not both")
		}
	case market.VerbIsolate, market.VerbProbe, market.VerbReload:
		if !o.Pair.IsZero() {
			return wrong("symbol", nil, "%s knows no symbol", o.Verb)
		}
	case market.VerbWithhold:
	}
	return nil
}

// checkEnd checks For and Until, and leaves Until.
func checkEnd(o *Order, now time.Time) error {
	if o.Verb != market.VerbIsolate && o.Verb != market.VerbWithhold {
		switch {
		case o.For != 0:
			return wrong("for", nil, "%s takes no time", o.Verb)
		case !o.Until.IsZero():
			return wrong("until", nil, "%s takes no time", o.Verb)
		}
		return nil
	}
	if o.Until.IsZero() {
		length := o.For
		if length == 0 {
			length = DefaultFor
		}
		if length < 0 || length > MaxFor {
			return wrong("for", nil, "for has to be above 0 and at most %d h: whatever is in force ends by itself", int(MaxFor.Hours()))
		}
		// Whole milliseconds, as everywhere outside.
		o.Until = now.Add(length).Truncate(time.Millisecond)
		return nil
	}
	if o.For != 0 {
		return wrong("for", nil, "either for or until, not both")
	}
	o.Until = o.Until.Round(0).Truncate(time.Millisecond)
	if !o.Until.After(now) {
		return wrong("until", nil, "until is in the past: it is %s", clockTime(now, now))
	}
	if o.Until.Sub(now) > MaxFor {
		return wrong("until", nil, "until has to be at most %d h from now: whatever is in force ends by itself", int(MaxFor.Hours()))
	}
	return nil
}

// line checks one line of text that people will read.
func line(field, text string, limit int) (string, error) {
	if !utf8.ValidString(text) {
		return "", wrong(field, nil, "%s is not UTF-8", field)
	}
	text = strings.TrimSpace(text)
	if text == "" {
		return "", wrong(field, nil, "%s is missing", field)
	}
	if n := utf8.RuneCountInString(text); n > limit {
		return "", wrong(field, nil, "%s has %d characters: at most %d are kept", field, n, limit)
	}
	// Not control characters alone: what turns the direction of writing makes a line of the audit read as another one.
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return "", wrong(field, nil, "%s has to be one line of printable characters", field)
	}
	return text, nil
}

func wrong(field string, allowed []string, format string, args ...any) error {
	return &RefusedError{Field: field, Allowed: allowed, Detail: sentence(fmt.Sprintf(format, args...))}
}

func texts[T ~string](all []T) []string {
	out := make([]string, len(all))
	for i, t := range all {
		out[i] = string(t)
	}
	return out
}
