package ops

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// Span is a duration as people say it, to a precision that matters to them: "8 s", "2 min 14 s", "3 h 5 min", "2 d 4 h".
func Span(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < time.Second:
		return "under 1 s"
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return two(int(d.Minutes()), "min", int(d.Seconds())%60, "s")
	case d < 24*time.Hour:
		return two(int(d.Hours()), "h", int(d.Minutes())%60, "min")
	}
	return two(int(d.Hours())/24, "d", int(d.Hours())%24, "h")
}

func two(major int, majorUnit string, minor int, minorUnit string) string {
	if minor == 0 {
		return fmt.Sprintf("%d %s", major, majorUnit)
	}
	return fmt.Sprintf("%d %s %d %s", major, majorUnit, minor, minorUnit)
}

// clockTime is an instant as people say it, in UTC: with its seconds where they matter, with its day if that is not now's.
func clockTime(t, now time.Time) string {
	t, now = clock.Wall(t).UTC(), clock.Wall(now).UTC()
	switch {
	case t.Sub(now).Abs() < 10*time.Minute:
		return t.Format("15:04:05 UTC")
	case t.YearDay() != now.YearDay() || t.Year() != now.Year():
		return t.Format("2 Jan 15:04 UTC")
	}
	return t.Format("15:04 UTC")
}

// sentence begins with a capital letter and ends with a full stop. It is not for text that begins with an exchange's id, which
// is written as it is typed; nor is a pair at the beginning changed.
func sentence(s string) string {
	if s == "" {
		return ""
	}
	return stopped(capital(s))
}

// capital begins with a capital letter, unless it begins with a pair.
func capital(s string) string {
	first, n := utf8.DecodeRuneInString(s)
	if word, _, _ := strings.Cut(s, " "); n == 0 || strings.Contains(word, "/") {
		return s
	}
	return string(unicode.ToUpper(first)) + s[n:]
}

// sentences makes one text of several: each but the first begins with a capital letter, and the last has no full stop yet. Empty
// ones are left out.
func sentences(all ...string) string {
	text := ""
	for _, s := range all {
		switch {
		case s == "":
		case text == "":
			text = s
		default:
			text = stopped(text) + " " + capital(s)
		}
	}
	return text
}

// stopped ends with a full stop, or with the mark that is there.
func stopped(s string) string {
	if strings.HasSuffix(s, ".") || strings.HasSuffix(s, "?") || strings.HasSuffix(s, "!") {
		return s
	}
	return s + "."
}

// target is what an isolation is about, as people say it.
func target(id market.ExchangeID, class market.Class) string {
	if class == "" {
		return string(id)
	}
	return string(id) + " " + market.ClassText(class)
}

// joined joins words as people do: "a, b and c".
func joined(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

// Text is what an exchange does, as people say it. Closed, open and half-open are states of circuits.
func (s State) Text() string {
	switch s {
	case StateClosed:
		return "answers"
	case StateOpen, StateFailing:
		return "failing"
	case StateHalfOpen:
		return "trying"
	case StateNotAsked:
		return "not asked"
	case StateBanned, StateIsolated, StateWithheld, StateMaintenance, StateLimited:
	}
	return string(s)
}
