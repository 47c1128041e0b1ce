package keys_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"exchange-gateway/internal/api/keys"
)

// TestNames_thatAreTaken: no client and no key has a name that the metrics have for somebody else, wherever it is written.
func TestNames_thatAreTaken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.yaml")
	hash := strings.Repeat("0", 64)
	for _, name := range []string{"keyless", "anonymous", "gateway"} {
		want := "cannot be called " + name
		if err := keys.ValidClient(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := keys.SetClient(path, name, func(c *keys.Client) { c.Streams = 1 }); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("set %s: %v", name, err)
		}
		for what, text := range map[string]string{
			"a key's client": "keys:\n  - {id: abcd2345, hash: '" + hash + "', scopes: ['market:read'], client: " + name + "}\n",
			"a key's id":     "keys:\n  - {id: " + name + ", hash: '" + hash + "', scopes: ['market:read']}\n",
			"settings":       "clients:\n  " + name + ": {streams: 1}\n",
		} {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := keys.Load(path, time.Now()); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s %s: %v", what, name, err)
			}
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	if err := keys.ValidClient("keyless-desk"); err != nil {
		t.Error(err)
	}
}

// TestRing_AnyValid: a key that has expired is nobody's.
func TestRing_AnyValid(t *testing.T) {
	now := time.Now()
	scopes, err := keys.ParseScopes(keys.MarketRead)
	if err != nil {
		t.Fatal(err)
	}
	k, _, err := keys.New(scopes, "", now)
	if err != nil {
		t.Fatal(err)
	}
	k.Expires = now.Add(time.Hour)
	ring := keys.NewRing(k)
	if !ring.AnyValid(now) || ring.AnyValid(now.Add(2*time.Hour)) || keys.NewRing().AnyValid(now) {
		t.Errorf("%v now, %v later, %v without one", ring.AnyValid(now), ring.AnyValid(now.Add(2*time.Hour)), keys.NewRing().AnyValid(now))
	}
}
