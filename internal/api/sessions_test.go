package api_test

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/api"
	"exchange-gateway/internal/api/keys"
)

// standing is what GET /admin/v1/me says.
type standing struct {
	Actor        *string    `json:"actor"`
	MayRead      bool       `json:"may_read"`
	MayAct       bool       `json:"may_act"`
	NeedsName    bool       `json:"needs_name"`
	Why          *string    `json:"why"`
	SessionUntil *time.Time `json:"session_until"`
}

func readStanding(t testing.TB, w *httptest.ResponseRecorder) (s standing) {
	t.Helper()
	if err := json.Unmarshal(w.Body.Bytes(), &s); err != nil || w.Code != http.StatusOK || w.Header().Get("Cache-Control") != "no-store" {
		t.Fatalf("%d %v: %s", w.Code, err, w.Body)
	}
	return s
}

func TestMe_saysWhatItsCallerMayDo(t *testing.T) {
	guarded := func(c *api.Config) { c.OpsNeedsKey, c.AdminOnLoopback = true, false }
	f := func(name string, r *deskRig, headers []string, actor, read, act, needsName bool, why string) {
		t.Helper()
		s := readStanding(t, r.see("/admin/v1/me", headers...))
		if (s.Actor != nil) != actor || s.MayRead != read || s.MayAct != act || s.NeedsName != needsName || (s.Why != nil) == act {
			t.Errorf("%s: %+v", name, s)
		}
		if s.Why != nil && !strings.Contains(*s.Why, why) {
			t.Errorf("%s: why: %s", name, *s.Why)
		}
	}
	r := newDeskRig(t)
	f("nobody, with keys", r, nil, false, true, false, false, "log in")
	f("who may act", r, []string{"X-Api-Key", r.keys[keys.OpsWrite]}, true, true, true, false, "")
	f("who may look", r, []string{"X-Api-Key", r.keys[keys.OpsRead]}, true, true, false, false, "ops:write")
	f("who may act, by cookie", r, []string{"Cookie", r.login(t, r.keys[keys.OpsWrite])}, true, true, true, false, "")
	r = newDeskRig(t, guarded)
	f("nobody, guarded", r, nil, false, false, false, false, "log in")
	f("who may act, guarded", r, []string{"X-Api-Key", r.keys[keys.OpsWrite]}, true, true, true, false, "")
	f("who may look, guarded", r, []string{"X-Api-Key", r.keys[keys.OpsRead]}, true, true, false, false, "ops:write")
	f("a bot, guarded", r, []string{"X-Api-Key", r.keys[keys.MarketRead]}, true, false, false, false, "ops:write")
	r = newDeskRig(t, keyless)
	f("this machine, no keys", r, nil, false, true, true, true, "")
	f("a name that points here", r, []string{"Cookie", "gateway_ops=x"}, false, true, true, true, "")
	r = newDeskRig(t, keyless, func(c *api.Config) { c.AdminOnLoopback = false })
	f("no keys, not on loopback", r, nil, false, true, false, false, "gateway key new --scope ops:write")
	if p := readProblem(t, r.see("/admin/v1/me", "X-Api-Key", "gw_nosuchkey_0000000000000000000000fake")); p.Code != "unauthenticated" {
		t.Errorf("a wrong key: %+v", p)
	}
}

func TestSession_isACookieThatNoScriptReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newDeskRig(t, func(c *api.Config) { c.OpsNeedsKey = true })
		w := r.post("session", `{"key":"`+r.keys[keys.OpsWrite]+`"}`)
		s := readStanding(t, w)
		if s.Actor == nil || !s.MayAct || s.SessionUntil == nil || !s.SessionUntil.Equal(time.Now().Add(12*time.Hour)) {
			t.Errorf("got %+v", s)
		}
		line := w.Header().Get("Set-Cookie")
		for _, want := range []string{"gateway_ops=", "; Path=/", "; Max-Age=43200", "; HttpOnly", "; SameSite=Strict"} {
			if !strings.Contains(line, want) {
				t.Errorf("%s lacks %q", line, want)
			}
		}
		if strings.Contains(line, "Secure") {
			t.Errorf("%s: no browser would send it back in the clear", line)
		}
		if secret := r.keys[keys.OpsWrite]; strings.Contains(line, secret[strings.LastIndex(secret, "_")+1:]) {
			t.Error("the cookie holds the key")
		}
		cookie := strings.Split(line, ";")[0]
		if w := r.see("/v1/circuits", "Cookie", cookie); w.Code != http.StatusOK {
			t.Errorf("looking: %d", w.Code)
		}
		if w := r.see("/v1/circuits"); w.Code != http.StatusUnauthorized {
			t.Errorf("looking without it: %d", w.Code)
		}
		if w := r.post("reload", `{"reason":"x"}`, "Cookie", "other=1; "+cookie); w.Code != http.StatusOK || r.desk.count() != 1 {
			t.Errorf("acting: %d %s", w.Code, w.Body)
		}
		time.Sleep(12*time.Hour - time.Second) // fake clock
		if w := r.post("reload", `{"reason":"x"}`, "Cookie", cookie); w.Code != http.StatusOK {
			t.Errorf("at its end: %d %s", w.Code, w.Body)
		}
		time.Sleep(2 * time.Second)
		if p := readProblem(t, r.post("reload", `{"reason":"x"}`, "Cookie", cookie)); p.Code != "unauthenticated" || r.desk.count() != 2 {
			t.Errorf("after its end: %+v, %d orders", p, r.desk.count())
		}
		if log := r.log.String(); strings.Contains(log, cookie[len("gateway_ops="):]) || strings.Contains(log, r.keys[keys.OpsWrite]) {
			t.Errorf("the log holds a credential:\n%s", log)
		}
	})
}

func TestSession_overTLSIsSecure(t *testing.T) {
	r := newDeskRig(t)
	req := httptest.NewRequest(http.MethodPost, "/admin/v1/session", strings.NewReader(`{"key":"`+r.keys[keys.OpsWrite]+`"}`))
	req.Host = adminHost
	req.Header.Set("Content-Type", "application/json")
	req.TLS = &tls.ConnectionState{}
	if line := serve(r.server.Admin(), req).Header().Get("Set-Cookie"); !strings.Contains(line, "; Secure") {
		t.Errorf("got %s", line)
	}
}

func TestSession_ends(t *testing.T) {
	r := newDeskRig(t)
	cookie, another := r.login(t, r.keys[keys.OpsWrite]), r.login(t, r.keys[keys.OpsWrite])
	w := r.post("session/end", "", "Cookie", cookie)
	if s := readStanding(t, w); s.Actor != nil || s.MayAct || !strings.Contains(w.Header().Get("Set-Cookie"), "gateway_ops=; Path=/; Max-Age=0") {
		t.Errorf("%+v, %v", s, w.Header())
	}
	// A copy of the cookie is worth nothing, and the same key's session in another browser goes on.
	if p := readProblem(t, r.post("reload", `{"reason":"x"}`, "Cookie", cookie)); p.Code != "unauthenticated" || r.desk.count() != 0 {
		t.Errorf("replayed: %+v, %d orders", p, r.desk.count())
	}
	if w := r.post("reload", `{"reason":"x"}`, "Cookie", another); w.Code != http.StatusOK || r.desk.count() != 1 {
		t.Errorf("another session: %d %s", w.Code, w.Body)
	}
	// Not by a page of another origin.
	w = r.post("session/end", "", "Cookie", another, "Origin", "https://evil.example")
	if p := readProblem(t, w); p.Code != "forbidden" {
		t.Errorf("%+v", p)
	}
	if w := r.post("reload", `{"reason":"x"}`, "Cookie", another); w.Code != http.StatusOK {
		t.Errorf("ended by another page: %d", w.Code)
	}
}

// A session survives a restart of the gateway, and not the end of its key.
func TestSession_lastsAsLongAsItsKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "keys.yaml")
		k, text := newKey(t, keys.OpsWrite)
		if err := keys.Append(path, k); err != nil {
			t.Fatal(err)
		}
		secret := []byte(strings.Repeat("s", 32))
		life := func() (*deskRig, *keys.Ring) {
			ring, err := keys.Open(path, discard())
			if err != nil {
				t.Fatal(err)
			}
			return newDeskRig(t, func(c *api.Config) { c.Keys, c.SessionSecret = ring, secret }), ring
		}
		first, _ := life()
		cookie := first.login(t, text)
		second, ring := life()
		if w := second.post("reload", `{"reason":"x"}`, "Cookie", cookie); w.Code != http.StatusOK {
			t.Errorf("after a restart: %d %s", w.Code, w.Body)
		}
		rotated, _ := newKey(t, keys.OpsWrite)
		file, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		// The same id with another secret.
		if err := os.WriteFile(path, []byte(strings.Replace(string(file), k.Hash(), rotated.Hash(), 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		if changed, err := ring.Reload(); err != nil || !changed {
			t.Fatal(changed, err)
		}
		if p := readProblem(t, second.post("reload", `{"reason":"x"}`, "Cookie", cookie)); p.Code != "unauthenticated" || second.desk.count() != 1 {
			t.Errorf("with another key of the same id: %+v", p)
		}
		secret = []byte(strings.Repeat("t", 32))
		third, _ := life()
		if p := readProblem(t, third.post("reload", `{"reason":"x"}`, "Cookie", cookie)); p.Code != "unauthenticated" || third.desk.count() != 0 {
			t.Errorf("with another secret: %+v", p)
		}
	})
}

func TestSession_ofAKeyThatMayNotLook(t *testing.T) {
	r := newDeskRig(t)
	w := r.post("session", `{"key":"`+r.keys[keys.MarketRead]+`"}`)
	if p := readProblem(t, w); p.Code != "forbidden" || w.Header().Get("Set-Cookie") != "" {
		t.Errorf("%+v, %v", p, w.Header())
	}
	// One that may look gives a session that may look and not act.
	if p := readProblem(t, r.post("reload", `{"reason":"x"}`, "Cookie", r.login(t, r.keys[keys.OpsRead]))); p.Code != "forbidden" || r.desk.count() != 0 {
		t.Errorf("%+v", p)
	}
}

// A login is one more way to try keys, and counts with the others.
func TestSession_wrongKeysAreSlowedDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newDeskRig(t)
		try := func(key string) *httptest.ResponseRecorder { return r.post("session", `{"key":"`+key+`"}`) }
		for range 30 { // right ones are not
			if w := try(r.keys[keys.OpsWrite]); w.Code != http.StatusOK {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
		}
		wrong := func(i int) string { return fmt.Sprintf("gw_nosuchkey_%032d", i) }
		for i := range 20 {
			if p := readProblem(t, try(wrong(i))); p.Code != "unauthenticated" {
				t.Fatalf("%+v", p)
			}
		}
		for _, w := range []*httptest.ResponseRecorder{try(wrong(20)), r.see("/admin/v1/me", "X-API-Key", wrong(20)), r.get("/v1/exchanges", "X-API-Key", wrong(20))} {
			if p := readProblem(t, w); p.Status != 429 || p.Code != "client_rate_limited" || *p.RetryAfterMS != 3000 {
				t.Errorf("the next: %+v", p)
			}
		}
		if w := try(r.keys[keys.OpsWrite]); w.Code != http.StatusOK {
			t.Errorf("a right key that is in use here: %d", w.Code)
		}
		if p := readProblem(t, try(r.keys[keys.OpsRead])); p.Status != 429 {
			t.Errorf("a right key that is new here: %+v", p)
		}
		began, refused := time.Now(), 0
		for i := 0; time.Since(began) < time.Minute; i++ {
			if try(wrong(i)).Code == http.StatusUnauthorized {
				refused++
			}
			time.Sleep(100 * time.Millisecond)
		}
		if refused < 19 || refused > 21 {
			t.Errorf("%d wrong keys were tried in a minute, want 20", refused)
		}
	})
}
