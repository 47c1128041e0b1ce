package main

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"exchange-gateway/client"
	"exchange-gateway/internal/ops"
)

// bookView is a book for people: whose it is, how far it can be trusted, and its levels.
type bookView struct {
	exchange, symbol string
	note             string // the market's status where it does not trade as usual
	fresh            client.Freshness
	since            time.Time // since when fresh is so, zero if unknown
	pushed           bool      // it is told when that changes: while it is live, the exchange vouches for it
	held             bool      // there is a book to show
	hidden           string    // why the book that is held is not shown, "" if it is
	mid, spread      string
	bids, asks       []client.Level
}

// paper is what is written on: colours only where they can be seen. Nothing is told by colour alone.
type paper bool

func (p paper) good(s string) string { return p.paint("34", s) } // blue and orange: the colour-blind can tell them apart
func (p paper) bad(s string) string  { return p.paint("1;38;5;208", s) }

func (p paper) paint(code, s string) string {
	if !p {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// text is the whole view, some lines long.
func (v *bookView) text(now time.Time, p paper) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s  %s\n", plain(v.exchange), plain(v.symbol), v.standing(now, p))
	if v.note != "" {
		fmt.Fprintf(&b, "the market is not trading as usual: %s\n", plain(v.note))
	}
	switch {
	case !v.held:
		b.WriteString("no book to show\n")
	case v.hidden != "":
		b.WriteString(v.hidden + "\n")
	default:
		fmt.Fprintf(&b, "mid %s  spread %s\n", v.mid, v.spread)
		v.levels(&b)
	}
	return b.String()
}

// standing says in words how far the book can be trusted.
func (v *bookView) standing(now time.Time, p paper) string {
	f := &v.fresh
	switch {
	case !f.Stale && v.pushed:
		return p.good("LIVE") + "  " + from(f) + "last message " + span(now.Sub(f.ReceivedAt)) + " ago"
	case !f.Stale:
		return p.good("LIVE") + "  " + from(f) + confirmed(f, now)
	}
	s := p.bad(strings.ToUpper(plain(f.Status)))
	if !v.since.IsZero() {
		s += " since " + v.since.Local().Format("15:04:05")
	}
	if f.Reason != "" {
		s += ": " + reason(f.Reason)
	}
	if f.Circuit != "" && f.Circuit != "closed" {
		s += ", circuit " + strings.ReplaceAll(plain(f.Circuit), "_", " ")
	}
	return s + ", " + from(f) + confirmed(f, now)
}

func from(f *client.Freshness) string {
	if f.Source == "" {
		return ""
	}
	return "from " + plain(f.Source) + ", "
}

func confirmed(f *client.Freshness, now time.Time) string {
	if f.ConfirmedAt.IsZero() {
		return "never confirmed"
	}
	return "confirmed " + span(f.AgeNow(now)) + " ago"
}

// reason is why a book is stale, for people. Those that are not here are the gateway's own words.
func reason(code string) string {
	switch code {
	case client.ReasonDisconnected:
		return "the gateway is lost"
	case client.ReasonSilent:
		return "the gateway says nothing"
	case client.ReasonGap:
		return "a message of the gateway is missing"
	case client.ReasonBadMessage:
		return "a message of the gateway makes no sense"
	}
	return strings.ReplaceAll(plain(code), "_", " ")
}

// levels writes both sides, best first, bids to the left.
func (v *bookView) levels(b *strings.Builder) {
	var wide [4]int
	rows := make([][4]string, max(len(v.bids), len(v.asks)))
	for i := range rows {
		if i < len(v.bids) {
			rows[i][0], rows[i][1] = string(v.bids[i].Size), string(v.bids[i].Price)
		}
		if i < len(v.asks) {
			rows[i][2], rows[i][3] = string(v.asks[i].Price), string(v.asks[i].Size)
		}
	}
	heads := [4]string{"size", "bid", "ask", "size"}
	for _, row := range append([][4]string{heads}, rows...) {
		for i, cell := range row {
			wide[i] = max(wide[i], len(cell))
		}
	}
	line := func(row [4]string) {
		text := fmt.Sprintf("%*s  %*s | %-*s  %*s", wide[0], row[0], wide[1], row[1], wide[2], row[2], wide[3], row[3])
		b.WriteString(strings.TrimRight(text, " ") + "\n")
	}
	line(heads)
	for _, row := range rows {
		line(row)
	}
}

// words is a computed number, or a dash where a side of the book is empty.
func words(d fmt.Stringer, ok bool) string {
	if !ok {
		return "-"
	}
	return d.String()
}

// span is a duration for people; the part of a second matters only in the first ten.
func span(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", max(0, d).Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%d.%d s", d/time.Second, d%time.Second/(100*time.Millisecond))
	}
	return ops.Span(d)
}

// plain takes out what a terminal would obey instead of show.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return -1
	}, s)
}
