package exchangetest

import (
	"os"
	"path/filepath"
	"testing"
)

// Recorded is the folder of an exchange's recorded payloads, seen from the folder of its adapter. It lies beside the
// repository and is no part of it: without it the test is skipped, but where CI=true promises it, the test fails.
func Recorded(t testing.TB, exchange string) string {
	t.Helper()
	dir := filepath.Join("..", "..", "..", "..", "shared", "recorded", exchange)
	if _, err := os.Stat(dir); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("recorded payloads are required in CI: %v", err)
		}
		t.Skipf("recorded payloads are not here: %v", err)
	}
	return dir
}
