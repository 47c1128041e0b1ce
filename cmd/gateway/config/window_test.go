package config_test

import (
	"strings"
	"testing"
	"time"

	"exchange-gateway/cmd/gateway/config"
)

func TestExchange_windows(t *testing.T) {
	e := config.Exchange{Maintenance: []string{"2026-12-01T02:00:00Z/2026-12-01T04:30:00+02:00 wallet upgrade", "2026-12-02T02:00:00Z/2026-12-02T03:00:00Z"}}
	all, err := e.Windows("okx")
	if err != nil || len(all) != 2 {
		t.Fatal(all, err)
	}
	m := all[0]
	if m.Exchange != "okx" || m.Note != "wallet upgrade" || m.Announced || m.Until.Sub(m.From) != 30*time.Minute {
		t.Errorf("got %+v", m)
	}
}

func TestExchange_windowsThatMakeNoSense(t *testing.T) {
	for text, want := range map[string]string{
		"":                          "FROM/UNTIL",
		"2026-12-01T02:00:00Z":      "FROM/UNTIL",
		"tomorrow/2026-12-01 words": "FROM/UNTIL",
		"2026-12-01T02:00:00Z/2026-12-01T02:00:00Z":                                "ends before it begins",
		"2026-12-01T02:00:00Z/2026-12-01T03:00:00Z " + strings.Repeat("long ", 50): "200 bytes",
		"2026-12-01T02:00:00Z/2026-12-01T03:00:00Z a\x07b":                         "control characters",
	} {
		_, err := config.Exchange{Maintenance: []string{text}}.Windows("okx")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if _, err := (config.Exchange{Maintenance: make([]string, 101)}).Windows("okx"); err == nil || !strings.Contains(err.Error(), "at most 100") {
		t.Errorf("101 windows: %v", err)
	}
}
