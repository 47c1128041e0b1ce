// Package docs_test keeps what the README says true.
package docs_test

import (
	"os"
	"strings"
	"testing"

	"exchange-gateway/internal/api"
	"exchange-gateway/internal/gateway"
)

const readme = "../../README.md"

// TestREADME_tablesAreTheCodes compares each generated part with what the code says; UPDATE_README=1 writes it.
func TestREADME_tablesAreTheCodes(t *testing.T) {
	raw, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	for name, want := range map[string]string{"policy": gateway.PolicyTable(), "errors": api.ErrorTable()} {
		begin, end := "<!-- "+name+":begin -->\n", "<!-- "+name+":end -->"
		head, rest, ok := strings.Cut(text, begin)
		body, tail, ok2 := strings.Cut(rest, end)
		if !ok || !ok2 {
			t.Fatalf("README has no part %q", name)
		}
		want = "\n" + strings.TrimSpace(want) + "\n\n"
		if body == want {
			continue
		}
		if os.Getenv("UPDATE_README") == "" {
			t.Errorf("the README's %s table is not the code's: run UPDATE_README=1 go test ./test/docs", name)
			continue
		}
		text = head + begin + want + end + tail
	}
	if text != string(raw) {
		if err := os.WriteFile(readme, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
