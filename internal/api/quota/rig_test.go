package quota_test

import (
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"exchange-gateway/internal/api/keys"
	"exchange-gateway/internal/api/quota"
)

// newKey is a key of a client.
func newKey(t testing.TB, client string) keys.Key {
	t.Helper()
	scopes, err := keys.ParseScopes(keys.MarketRead)
	if err != nil {
		t.Fatal(err)
	}
	k, _, err := keys.New(scopes, "", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	k.Client = client
	return k
}

// one is the quota of one client with settings.
func one(t testing.TB, settings keys.Client) *quota.Client {
	t.Helper()
	settings.Name = "desk-a"
	k := newKey(t, settings.Name)
	cs := quota.New(quota.Config{Ring: keys.FixedRing(keys.File{Keys: []keys.Key{k}, Clients: []keys.Client{settings}})})
	return cs.Of(&k)
}

// follow is a ring on a file and the quotas of its clients.
func follow(t *testing.T, c quota.Config) (path string, ring *keys.Ring, cs *quota.Clients) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "keys.yaml")
	ring, err := keys.Open(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	c.Ring = ring
	return path, ring, quota.New(c)
}

func add(t *testing.T, path string, ring *keys.Ring, all ...keys.Key) {
	t.Helper()
	for _, k := range all {
		if err := keys.Append(path, k); err != nil {
			t.Fatal(err)
		}
	}
	reload(t, ring)
}

func reload(t *testing.T, ring *keys.Ring) {
	t.Helper()
	if _, err := ring.Reload(); err != nil {
		t.Fatal(err)
	}
}
