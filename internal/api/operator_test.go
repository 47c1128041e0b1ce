package api_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"exchange-gateway/internal/api"
	"exchange-gateway/internal/api/keys"
)

// TestActions_whereNoKeyIsLeft: each way to have no key that may act has its own way out, and what is said of it is true.
func TestActions_whereNoKeyIsLeft(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	add := func(k keys.Key) {
		t.Helper()
		if err := keys.Append(path, k); err != nil {
			t.Fatal(err)
		}
	}
	started := func() (*deskRig, *keys.Ring) {
		ring, _ := keys.Open(path, discard()) // also of a file that cannot be read
		return newDeskRig(t, func(c *api.Config) { c.Keys = ring }), ring
	}
	refused := func(name string, r *deskRig, with, without string) {
		t.Helper()
		p := readProblem(t, r.post("reload", `{"reason":"x","actor":"ann"}`))
		if p.Code != "unauthenticated" || !strings.Contains(p.Detail, with) || strings.Contains(p.Detail, without) || r.desk.count() != 0 {
			t.Errorf("%s: %+v, %d orders", name, p, r.desk.count())
		}
		if s := readStanding(t, r.see("/admin/v1/me")); s.Why == nil || *s.Why != p.Detail || s.MayAct {
			t.Errorf("%s: a page is told %+v", name, s)
		}
	}
	open := func(name string, r *deskRig) {
		t.Helper()
		if w := r.post("reload", `{"reason":"x","actor":"ann"}`); w.Code != http.StatusOK {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	reload := func(ring *keys.Ring) {
		t.Helper()
		if _, err := ring.Reload(); err != nil {
			t.Fatal(err)
		}
	}

	write("keys: [")
	r, ring := started()
	refused("unreadable", r, "cannot be read", "restart")
	write("")
	reload(ring)
	open("read at last", r)

	k, _ := newKey(t, keys.OpsWrite)
	k.Expires = time.Now().Add(-time.Hour).Truncate(time.Second)
	add(k)
	r, ring = started()
	refused("expired", r, "gateway key revoke", "cannot be read")
	r, _ = started()
	refused("restarted with the expired one", r, "expired", "cannot be read")
	if _, err := keys.Revoke(path, k.ID); err != nil {
		t.Fatal(err)
	}
	reload(ring)
	r, _ = started()
	open("restarted without it", r)

	k, _ = newKey(t, keys.OpsWrite)
	add(k)
	r, ring = started()
	if p := readProblem(t, r.post("reload", `{"reason":"x","actor":"ann"}`)); !strings.Contains(p.Detail, "log in") {
		t.Errorf("with a key: %+v", p)
	}
	if _, err := keys.Revoke(path, k.ID); err != nil {
		t.Fatal(err)
	}
	reload(ring)
	refused("revoked", r, "taken out", "expired")
	write("keys: [")
	_, _ = ring.Reload() // it is refused
	refused("revoked, and then unreadable", r, "cannot be read", "restart")
	write("")
	r, _ = started()
	open("restarted", r)
}
