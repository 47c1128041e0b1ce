package notify

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"

	"exchange-gateway/internal/market"
)

const (
	maxLines = 10  // of one message; beyond it says how many more there are
	maxRunes = 400 // of one line: a reason has 200 characters
)

// lines makes lines of news. Circuits that flap are left to their own lines.
func (w *Webhook) lines(list []news, now time.Time, all bool) (lines []string) {
	began := map[market.CircuitID]bool{}
	for i := range list {
		n := &list[i]
		if n.event.Type != market.EventCircuit {
			lines = append(lines, n.text())
			continue
		}
		f := w.flaps[n.event.Circuit]
		flapped := f != nil && f.folded
		if w.flaps.add(n.event, now) {
			lines = append(lines, n.text())
		} else if !flapped {
			began[n.event.Circuit] = true
		}
	}
	return append(lines, w.flaps.lines(now, began, all)...)
}

func (n *news) text() string {
	if n.event.Type == "" {
		return n.note
	}
	return n.event.Text()
}

// compose is the text of a message.
func (w *Webhook) compose(lines []string, leftOut int) string {
	more := 0
	if len(lines) > maxLines {
		more = len(lines) - maxLines
		lines = lines[:maxLines]
	}
	var b strings.Builder
	start := ""
	if w.cfg.Instance != "" {
		b.WriteString(plain(w.cfg.Instance) + ": ")
	}
	if len(lines) > 1 {
		start = "\n- "
	}
	for _, l := range lines {
		b.WriteString(start + plain(l))
	}
	if more > 0 {
		fmt.Fprintf(&b, "\nand %d more", more)
	}
	if leftOut > 0 {
		fmt.Fprintf(&b, "\n%d earlier ones were left out", leftOut)
	}
	if w.cfg.Dashboard != "" {
		b.WriteString("\n" + escaper.Replace(w.cfg.Dashboard))
	}
	return b.String()
}

// escaper is what Slack asks for: these three are its only control characters, and with them a text can neither make a link
// that reads as another nor call everybody.
// https://api.slack.com/reference/surfaces/formatting#escaping
var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// plain makes one line of a text that somebody typed: it cannot begin a line of its own, be endless, or call people. Mattermost
// reads @all without any brackets; a space of no width after the @ makes it a text.
func plain(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || market.TurnsText(r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	if runes := []rune(text); len(runes) > maxRunes {
		text = string(runes[:maxRunes-1]) + "…"
	}
	return escaper.Replace(strings.ReplaceAll(text, "@", "@\u200b"))
}

// encode is the body of a request.
func encode(text string) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // & < > are escaped as the receiver wants it
	err := e.Encode(struct {
		Text string `json:"text"`
	}{text})
	return b.Bytes(), err
}
