package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// row is a key as gateway key list -o json shows it.
type row struct {
	ID       string     `json:"id"`
	Client   string     `json:"client"`
	Scopes   []string   `json:"scopes"`
	Expires  *time.Time `json:"expires"`
	Expired  bool       `json:"expired"`
	LastUsed *time.Time `json:"last_used"`
	Note     string     `json:"note"`
}

// desk runs the program on a state directory of its own.
type desk struct {
	t   *testing.T
	dir string
}

func (d desk) run(args ...string) (out, said string, err error) {
	d.t.Helper()
	return gateway(d.t, nil, append(args, "--state-dir", d.dir)...)
}

func (d desk) must(args ...string) (out, said string) {
	d.t.Helper()
	out, said, err := d.run(args...)
	if err != nil {
		d.t.Fatalf("%v: %v", args, err)
	}
	return out, said
}

func (d desk) list() (rows []row) {
	d.t.Helper()
	out, _ := d.must("key", "list", "-o", "json")
	if err := json.Unmarshal([]byte(out), &rows); err != nil {
		d.t.Fatalf("%v\n%s", err, out)
	}
	return rows
}

// TestKey_life: made for a client, seen in the list, replaced by its successor, revoked.
func TestKey_life(t *testing.T) {
	d := desk{t, t.TempDir()}
	if out, _ := d.must("key", "list"); !strings.Contains(out, "There are no keys") {
		t.Errorf("without keys: %s", out)
	}
	first, said := d.must("key", "new", "--client", "desk-a", "--scope", "market:read", "--expires", "90d", "--note", "Ada's\u202e bot")
	if !strings.Contains(said, "make its successor before, with the same --client") {
		t.Errorf("said %s", said)
	}
	_, said = d.must("key", "new", "--client", "desk-a", "--scope", "market:read")
	rows := d.list()
	if len(rows) != 2 || !strings.Contains(said, "gateway key revoke "+rows[0].ID) {
		t.Fatalf("%+v, said %s", rows, said)
	}
	if r := rows[0]; r.Client != "desk-a" || r.Expires == nil || r.Expired || r.LastUsed != nil || time.Until(*r.Expires) < 89*24*time.Hour {
		t.Errorf("the first: %+v", r)
	}
	if rows[1].Expires != nil {
		t.Errorf("the second: %+v", rows[1])
	}
	out, _, err := d.run("key", "new", "--client", "desk-a", "--scope", "market:read")
	if err == nil || out != "" || !strings.Contains(err.Error(), "desk-a has 2 valid keys already") || !strings.Contains(err.Error(), rows[1].ID) {
		t.Errorf("a third: %v, printed %d bytes", err, len(out))
	}

	used := `{"used":{"` + rows[0].ID + `":"` + time.Now().Add(-3*time.Hour).UTC().Format(time.RFC3339) + `"}}`
	if err := os.WriteFile(filepath.Join(d.dir, "keys-used.json"), []byte(used), 0o600); err != nil {
		t.Fatal(err)
	}
	table, _ := d.must("key", "list")
	for _, want := range []string{"LAST USED", "desk-a", "3 h ago", "never", "Ada's? bot"} {
		if !strings.Contains(table, want) {
			t.Errorf("%q is not in\n%s", want, table)
		}
	}
	if asJSON, _ := d.must("key", "list", "-o", "json"); regexp.MustCompile(`[0-9a-f]{64}`).MatchString(table + asJSON) {
		t.Error("the list shows a hash")
	}

	if out, _ := d.must("key", "revoke", strings.TrimSpace(first)); !strings.Contains(out, "Revoked "+rows[0].ID+" of client desk-a") || !strings.Contains(out, "within 10 s") {
		t.Errorf("said %s", out)
	}
	if left := d.list(); len(left) != 1 || left[0].ID != rows[1].ID {
		t.Errorf("left %+v", left)
	}
	if _, _, err := d.run("key", "revoke", rows[0].ID); err == nil || !strings.Contains(err.Error(), "gateway key list") {
		t.Errorf("twice: %v", err)
	}
}

// TestKeyRevoke_saysWhatThereIsNoKeyOf: by its id, and without what may be a secret.
func TestKeyRevoke_saysWhatThereIsNoKeyOf(t *testing.T) {
	d := desk{t, t.TempDir()}
	text, _ := d.must("key", "new", "--scope", "market:read")
	f := func(given, want, secret string) {
		t.Helper()
		_, said, err := d.run("key", "revoke", given)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), `""`) {
			t.Errorf("%s: %v, want %s", given, err, want)
		} else if secret != "" && strings.Contains(err.Error()+said, secret) {
			t.Errorf("%s: the secret is repeated: %v", given, err)
		}
	}
	f("gw_aaaaaaaa_zzz", `no key with the id "aaaaaaaa"`, "zzz")
	f("gw_aaaaaaaa", `no key with the id "aaaaaaaa"`, "gw_")
	f("gw_aaaaaaaa_notarealsecretnotareal", `no key with the id "aaaaaaaa"`, "notareal")
	f("aaaaaaaa", `no key with the id "aaaaaaaa"`, "")
	_, secret, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(text), "gw_"), "_")
	f(secret, "no id of a key and no key", secret)
	f("gw__"+secret, "no id of a key and no key", secret)
	f("", "no id of a key and no key", "")
	// One that a log has cut off names its key as well.
	if out, _ := d.must("key", "revoke", strings.TrimSpace(text)[:15]); !strings.Contains(out, "Revoked ") || len(d.list()) != 0 {
		t.Errorf("cut off: %s", out)
	}
}

func TestKeyList_lastUsesThatCannotBeRead(t *testing.T) {
	d := desk{t, t.TempDir()}
	d.must("key", "new", "--scope", "market:read")
	if err := os.WriteFile(filepath.Join(d.dir, "keys-used.json"), []byte("}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, said := d.must("key", "list"); !strings.Contains(said, "Warning: when keys were last used is not known") || !strings.Contains(out, "market:read") {
		t.Errorf("said %s, printed %s", said, out)
	}
}

func TestKeyNew_refusesWhatMakesNoSense(t *testing.T) {
	d := desk{t, t.TempDir()}
	f := func(want string, args ...string) {
		t.Helper()
		out, _, err := d.run(append([]string{"key", "new", "--scope", "market:read"}, args...)...)
		if err == nil || !strings.Contains(err.Error(), want) || out != "" {
			t.Errorf("%v: %v, printed %d bytes", args, err, len(out))
		}
	}
	f("--client: a client's name has", "--client", "Desk A")
	f("is over already", "--expires", "2020-01-01")
	for _, text := range []string{"0d", "-1d", "-90d", "0s", "-12h", "2020-01-01", "2020-01-01T00:00:00Z"} {
		f("it must be later than now", "--expires="+text)
	}
	for _, text := range []string{"soon", "36501d", "d", "1.5d", "2027-13-01", "1e3d", "+1y"} {
		f("write 90d, 12h, a date such as 2027-01-31", "--expires="+text)
	}
	if _, err := os.Stat(filepath.Join(d.dir, "keys.yaml")); err == nil {
		t.Error("a file was made")
	}
}

// TestKeyNew_ofAnothersQuota: a key without a client has a quota of its own, and no key is added to it unasked.
func TestKeyNew_ofAnothersQuota(t *testing.T) {
	d := desk{t, t.TempDir()}
	d.must("key", "new", "--scope", "market:read")
	id := d.list()[0].ID
	out, _, err := d.run("key", "new", "--client", id, "--scope", "market:read")
	if err == nil || out != "" || !strings.Contains(err.Error(), id+" is the id of a key that has no client") || !strings.Contains(err.Error(), "gateway key revoke "+id) {
		t.Errorf("%v, printed %d bytes", err, len(out))
	}
	d.must("client", "set", id, "--streams", "3") // a quota of its own
	d.must("key", "new", "--client", "desk-a", "--scope", "market:read")
	d.must("key", "new", "--client", "desk-a", "--scope", "market:read")
	if n := len(d.list()); n != 3 {
		t.Errorf("%d keys", n)
	}
}

func TestExpiry(t *testing.T) {
	now := time.Date(2026, 11, 30, 1, 2, 3, 999, time.UTC)
	f := func(text string, want time.Time) {
		t.Helper()
		if got, err := expiry(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
	f("", time.Time{})
	f("90d", time.Date(2027, 2, 28, 1, 2, 3, 0, time.UTC))
	f("36500d", now.Truncate(time.Second).Add(36500*24*time.Hour))
	f("1h30m", time.Date(2026, 11, 30, 2, 32, 3, 0, time.UTC))
	f("2027-01-31", time.Date(2027, 1, 31, 0, 0, 0, 0, time.UTC))
	f("2027-01-31T02:00:00+02:00", time.Date(2027, 1, 31, 0, 0, 0, 0, time.UTC))
}

// TestClient_set: what was given is changed, the rest stays, and 0 takes the default again.
func TestClient_set(t *testing.T) {
	d := desk{t, t.TempDir()}
	out, said := d.must("client", "set", "desk-a", "--requests-per-second", "50", "--max-age", "5s")
	if !strings.Contains(out, "50 requests a second, 2000 (default) units") || !strings.Contains(out, "age of books 5s") {
		t.Errorf("printed %s", out)
	}
	if !strings.Contains(said, "no key belongs to client desk-a yet") {
		t.Errorf("said %s", said)
	}
	d.must("key", "new", "--client", "desk-a", "--scope", "market:read")
	d.must("key", "new", "--scope", "market:read")
	if _, said := d.must("client", "set", "desk-a", "--streams", "3", "--requests-per-second", "0"); said != "" {
		t.Errorf("said %s", said)
	}
	table, _ := d.must("client", "list", "--set", "client_defaults.requests_per_second=7")
	if lines := strings.Split(table, "\n"); len(lines) != 4 || !strings.Contains(table, "7 (default)") || !strings.Contains(table, "5s") {
		t.Errorf("got\n%s", table)
	}
	out, _ = d.must("client", "list", "-o", "json")
	var rows []struct {
		Client            string   `json:"client"`
		Keys              []string `json:"keys"`
		RequestsPerSecond *int     `json:"requests_per_second"`
		MaxAgeMS          *int64   `json:"max_age_ms"`
		Streams           *int     `json:"streams"`
	}
	if err := json.Unmarshal([]byte(out), &rows); err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, r := range rows {
		if len(r.Keys) != 1 {
			t.Errorf("%+v", r)
		}
		if r.Client == "desk-a" && r.RequestsPerSecond == nil && *r.MaxAgeMS == 5000 && *r.Streams == 3 {
			found++
		}
	}
	if len(rows) != 2 || found != 1 {
		t.Errorf("got %s", out)
	}
	f := func(want string, args ...string) {
		t.Helper()
		if _, _, err := d.run(append([]string{"client", "set"}, args...)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", args, err, want)
		}
	}
	f("nothing to change", "desk-a")
	f("a client's name", "Desk", "--streams", "1")
	f("streams is -1", "desk-a", "--streams=-1")
	f("no copy older than stale_max_age is served, which is 1h0m0s here", "desk-a", "--max-age", "2h")
	f("stale_max_age is served, which is 1m0s here", "desk-a", "--max-age", "61s", "--set", "stale_max_age=1m", "--set", "default_max_age=10s")
	f("max_age_ms is -1000", "desk-a", "--max-age=-1s")
	f("whole milliseconds", "desk-a", "--max-age", "5us")
}
