package keys_test

import (
	"strings"
	"testing"
	"time"

	"exchange-gateway/internal/api/keys"
)

func TestFile_expiredKeysDoNotCount(t *testing.T) {
	now := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	hash := strings.Repeat("ab", 32)
	f, err := keys.Parse([]byte(`keys:
  - id: reader01
    hash: `+hash+`
    scopes: [market:read, ops:write]
    expires: "2026-12-01T00:00:01Z"
  - id: reader02
    hash: `+hash+`
    scopes: [market:read]
  - id: reader03
    hash: `+hash+`
    scopes: [ops:read]
    expires: "2026-11-30T00:00:00Z"
`), now)
	if err != nil {
		t.Fatal(err)
	}
	if n := f.Valid(now); n != 2 {
		t.Errorf("%d are valid", n)
	}
	if !f.Holds(keys.OpsRead, now) || !f.Holds(keys.OpsWrite, now) || !f.Holds(keys.MarketRead, now) {
		t.Error("a valid key's scope is not held")
	}
	later := now.Add(time.Second) // the moment of the first one's end
	if n := f.Valid(later); n != 1 {
		t.Errorf("%d are valid", n)
	}
	if f.Holds(keys.OpsRead, later) || f.Holds(keys.OpsWrite, later) || !f.Holds(keys.MarketRead, later) {
		t.Error("an expired key's scope is held, or a valid one's is not")
	}
	if n := (&keys.File{}).Valid(now); n != 0 {
		t.Errorf("an empty file has %d valid keys", n)
	}
}
