package dashboard

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"exchange-gateway/internal/market"
	"exchange-gateway/internal/ops"
)

// circuitWord is the state of a circuit, as the API and the metrics have it.
func circuitWord(s market.CircuitState) string { return strings.ReplaceAll(string(s), "_", "-") }

func className(c market.Class, family string) string {
	name := market.ClassText(c)
	if family != "" {
		name += " (" + family + ")"
	}
	return name
}

func overrideWord(o ops.Override) string {
	what := "isolated"
	if o.Kind == market.OverrideWithhold {
		what = "withheld"
	}
	if o.Symbol != "" {
		what += " " + o.Symbol
	}
	if o.Class != "" {
		what += " (" + className(o.Class, "") + ")"
	}
	return what
}

// clientName is what a person reads for a client: its name, or that these callers have none. The page's script has the same
// words.
func clientName(name string) string {
	if name == market.Keyless {
		return "without a key"
	}
	return name
}

func at(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

func atOr(t *time.Time, otherwise string) string {
	if t == nil {
		return otherwise
	}
	return at(*t)
}

func ago(now time.Time, t *time.Time) string {
	if t == nil || t.IsZero() {
		return "-"
	}
	return span(now.Sub(*t)) + " ago"
}

func until(now, t time.Time) string { return span(t.Sub(now)) }

func probe(now time.Time, next *time.Time, due bool) string {
	switch {
	case due:
		return "with the next call"
	case next != nil:
		return "in " + until(now, *next)
	}
	return "-"
}

// span is a duration in its two largest units: a person compares, nobody computes with it.
func span(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
}

func age(ms *int64) string {
	if ms == nil {
		return "-"
	}
	d := time.Duration(*ms) * time.Millisecond
	if d < 10*time.Second {
		return fmt.Sprintf("%d.%ds", d/time.Second, d%time.Second/(100*time.Millisecond))
	}
	return span(d)
}

func word(s *string) string {
	if s == nil {
		return "-"
	}
	return *s
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// printable takes out what moves a cursor, colours a terminal or turns a line around: some of the words are an exchange's.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}
