package config

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"exchange-gateway/internal/market"
)

const (
	maxWindows = 100
	maxNote    = 200 // bytes
)

var errWindow = errors.New("write FROM/UNTIL and words, for example 2026-12-01T02:00:00Z/2026-12-01T04:00:00Z wallet upgrade")

// Windows are the configured times in which an exchange is closed.
func (e Exchange) Windows(id market.ExchangeID) ([]market.Maintenance, error) {
	if len(e.Maintenance) > maxWindows {
		return nil, fmt.Errorf("names %d windows: at most %d are kept", len(e.Maintenance), maxWindows)
	}
	all := make([]market.Maintenance, 0, len(e.Maintenance))
	for i, text := range e.Maintenance {
		m, err := parseWindow(text)
		if err != nil {
			return nil, fmt.Errorf("[%d]: %w", i, err)
		}
		m.Exchange = id
		all = append(all, m)
	}
	return all, nil
}

func parseWindow(text string) (m market.Maintenance, err error) {
	times, note, _ := strings.Cut(strings.TrimSpace(text), " ")
	from, until, ok := strings.Cut(times, "/")
	if !ok {
		return m, errWindow
	}
	m.Note = strings.TrimSpace(note)
	if len(m.Note) > maxNote || strings.ContainsFunc(m.Note, func(r rune) bool { return unicode.IsControl(r) || market.TurnsText(r) }) {
		return m, fmt.Errorf("the words are more than %d bytes or hold control characters", maxNote)
	}
	var errFrom, errUntil error
	m.From, errFrom = time.Parse(time.RFC3339, from)
	m.Until, errUntil = time.Parse(time.RFC3339, until)
	switch {
	case errFrom != nil || errUntil != nil:
		return m, errWindow
	case !m.Until.After(m.From):
		return m, errors.New("it ends before it begins")
	}
	return m, nil
}
