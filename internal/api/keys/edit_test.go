package keys_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"exchange-gateway/internal/api/keys"
)

// byHand is a file as people keep one.
const byHand = `# Ask Ada before touching this.
clients: # quotas
  # the big one
  desk-a:
    # agreed with Bob
    requests_per_second: 50 # until June
    streams: 3

  # after that
  desk-b: {streams: 5}

# Everybody's keys.
keys:
# Ada's bot
- id: aaaa
  hash: HASH # not the key
  client: desk-a
  scopes: [market:read]
# Bob's bot
- id: bbbb
  hash: HASH
  scopes:
    - market:read
    # may look, too
    - ops:read

# the end
`

func hand() string { return strings.ReplaceAll(byHand, "HASH", strings.Repeat("ab", 32)) }

// edit writes text into a file, lets f change it, and returns what it holds then.
func edit(t *testing.T, text string, f func(path string) error) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f(path); err != nil {
		t.Fatal(err)
	}
	if _, err := keys.Load(path, t0); err != nil {
		t.Error(err)
	}
	after, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(after)
}

// replaced is text with one part of it replaced.
func replaced(t *testing.T, text, part, by string) string {
	t.Helper()
	if strings.Count(text, part) != 1 {
		t.Fatalf("%q is there %d times", part, strings.Count(text, part))
	}
	return strings.Replace(text, part, by, 1)
}

// TestEdits_keepWhatPeopleWrote: every line of it but those that a change is about.
func TestEdits_keepWhatPeopleWrote(t *testing.T) {
	k, _ := newKey(t, keys.OpsRead)
	k.ID, k.Client, k.Note, k.Expires = "cccc", "desk-a", "Eve's", t0.Add(time.Hour)
	set := func(name string, f func(c *keys.Client)) func(string) error {
		return func(path string) error {
			_, err := keys.SetClient(path, name, f)
			return err
		}
	}
	f := func(name string, change func(path string) error, part, by string) {
		t.Helper()
		if diff := cmp.Diff(replaced(t, hand(), part, by), edit(t, hand(), change)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	f("append", func(path string) error { return keys.Append(path, k) }, "    - ops:read\n", `    - ops:read
- id: cccc
  hash: `+k.Hash()+`
  client: desk-a
  scopes:
    - ops:read
  note: Eve's
  created: "2026-11-30T01:02:03Z"
  expires: "2026-11-30T02:02:03Z"
`)
	revoke := func(id string) func(string) error {
		return func(path string) error {
			gone, err := keys.Revoke(path, id)
			if gone.ID != id {
				t.Errorf("revoked %+v", gone)
			}
			return err
		}
	}
	hash := strings.Repeat("ab", 32)
	f("revoke the first", revoke("aaaa"), "- id: aaaa\n  hash: "+hash+" # not the key\n  client: desk-a\n  scopes: [market:read]\n", "")
	f("revoke the last", revoke("bbbb"), "- id: bbbb\n  hash: "+hash+"\n  scopes:\n    - market:read\n    # may look, too\n    - ops:read\n", "")
	f("change", set("desk-a", func(c *keys.Client) { c.RequestsPerSecond = 70 }), "requests_per_second: 50 #", "requests_per_second: 70 #")
	f("add a setting", set("desk-a", func(c *keys.Client) { c.MaxAge = 5 * time.Second }), "    streams: 3\n", "    max_age_ms: 5000\n    streams: 3\n")
	f("take one away", set("desk-a", func(c *keys.Client) { c.Streams = 0 }), "    streams: 3\n", "")
	f("in braces", set("desk-b", func(c *keys.Client) { c.UpstreamPerMinute = 9 }), "  desk-b: {streams: 5}\n",
		"  desk-b:\n    upstream_per_minute: 9\n    streams: 5\n")
	f("another", set("desk-c", func(c *keys.Client) { c.Streams = 9 }), "  desk-b: {streams: 5}\n", "  desk-b: {streams: 5}\n  desk-c:\n    streams: 9\n")
	f("no settings left", set("desk-b", func(c *keys.Client) { c.Streams = 0 }), "  desk-b: {streams: 5}\n", "")
	f("none before", set("desk-z", func(*keys.Client) {}), "# the end", "# the end")
}

// TestEdits_layouts: whatever the file looks like, it holds afterwards what it should.
func TestEdits_layouts(t *testing.T) {
	hash := strings.Repeat("ab", 32)
	k, _ := newKey(t, keys.OpsRead)
	k.ID = "cccc"
	for name, text := range map[string]string{
		"braces":         `{keys: [{id: aaaa, hash: ` + hash + `, scopes: ["market:read"]}], clients: {desk-a: {streams: 1}}}`,
		"no end of line": "keys:\n  - id: aaaa\n    hash: " + hash + "\n    scopes: [market:read]\nclients:\n  desk-a:\n    streams: 1",
		"windows":        strings.ReplaceAll("keys:\n  - id: aaaa\n    hash: "+hash+"\n    scopes: [market:read]\nclients:\n  desk-a:\n    streams: 1\n", "\n", "\r\n"),
		"mark of order":  "\ufeffkeys:\n  - id: aaaa\n    hash: " + hash + "\n    scopes: [market:read]\nclients:\n  desk-a:\n    streams: 1\n",
		"document":       "---\nkeys:\n  - id: aaaa\n    hash: " + hash + "\n    scopes: [market:read]\nclients:\n  desk-a:\n    streams: 1\n",
		"quoted":         "\"keys\":\n  - id: aaaa\n    hash: " + hash + "\n    scopes: [market:read]\n'clients':\n  'desk-a':\n    streams: 1\n",
		"misleading": "keys:\n  - id: aaaa\n    note: >-\n      - id: bbbb\n      keys:\n    hash: " + hash +
			"\n    scopes: [market:read]\nclients:\n  desk-a:\n    streams: 1\n",
		"wide":     "clients:\n      desk-a:\n            streams: 1\nkeys:\n      -   id: aaaa\n          hash: " + hash + "\n          scopes: [market:read]\n",
		"anchored": "keys:\n  - id: aaaa\n    hash: " + hash + "\n    scopes: &s [market:read]\nclients:\n  desk-a: &d\n    streams: 1\n",
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "keys.yaml")
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			holds := func(ids []string, clients ...keys.Client) {
				t.Helper()
				f, err := keys.Load(path, t0)
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for i := range f.Keys {
					got = append(got, f.Keys[i].ID)
				}
				if !slices.Equal(got, ids) || !slices.Equal(f.Clients, clients) {
					t.Errorf("%v %+v", got, f.Clients)
				}
			}
			a := keys.Client{Name: "desk-a", Streams: 1}
			holds([]string{"aaaa"}, a)
			if err := keys.Append(path, k); err != nil {
				t.Fatal(err)
			}
			holds([]string{"aaaa", "cccc"}, a)
			if c, err := keys.SetClient(path, "desk-a", func(c *keys.Client) { c.RequestsPerSecond = 7 }); err != nil || c.RequestsPerSecond != 7 || c.Streams != 1 {
				t.Fatalf("%+v, %v", c, err)
			}
			a.RequestsPerSecond = 7
			holds([]string{"aaaa", "cccc"}, a)
			if _, err := keys.Revoke(path, "aaaa"); err != nil {
				t.Fatal(err)
			}
			holds([]string{"cccc"}, a)
			if _, err := keys.SetClient(path, "desk-a", func(c *keys.Client) { *c = keys.Client{} }); err != nil {
				t.Fatal(err)
			}
			holds([]string{"cccc"})
			if _, err := keys.Revoke(path, "cccc"); err != nil {
				t.Fatal(err)
			}
			holds(nil)
			if err := keys.Append(path, k); err != nil {
				t.Fatal(err)
			}
			holds([]string{"cccc"})
		})
	}
}

// TestAppend_aThirdKey: what to do stands in the error, and the file stays as it was.
func TestAppend_aThirdKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.yaml")
	var ids []string
	for range 2 {
		k, _ := newKey(t, keys.MarketRead)
		k.Client = "desk-a"
		ids = append(ids, k.ID)
		if err := keys.Append(path, k); err != nil {
			t.Fatal(err)
		}
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	third, _ := newKey(t, keys.MarketRead)
	third.Client = "desk-a"
	err = keys.Append(path, third)
	if want := "client desk-a has 2 valid keys already (" + strings.Join(ids, ", ") + ")"; err == nil || !strings.Contains(err.Error(), want) ||
		!strings.Contains(err.Error(), "gateway key revoke") {
		t.Errorf("got %v", err)
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
		t.Errorf("%v\n%s", err, after)
	}
	if _, err := keys.Revoke(path, ids[0]); err != nil {
		t.Fatal(err)
	}
	if err := keys.Append(path, third); err != nil {
		t.Errorf("in the place of a revoked one: %v", err)
	}
}

// TestRevoke_whenThereAreTooMany: the file that is refused for its keys can be mended by what its error says.
func TestRevoke_whenThereAreTooMany(t *testing.T) {
	text := "keys:\n" + entry("aaaa", ", client: desk-a") + entry("bbbb", ", client: desk-a") + entry("cccc", ", client: desk-a")
	got := edit(t, text, func(path string) error {
		if _, err := keys.Load(path, t0); err == nil {
			t.Error("three valid keys are taken")
		}
		_, err := keys.Revoke(path, "bbbb")
		return err
	})
	if strings.Contains(got, "bbbb") || !strings.Contains(got, "aaaa") || !strings.Contains(got, "cccc") {
		t.Errorf("got\n%s", got)
	}
}

func TestRevoke_showsNoKey(t *testing.T) {
	_, text := newKey(t, keys.MarketRead)
	secret := text[strings.LastIndexByte(text, '_')+1:]
	for _, id := range []string{text, secret, "", "a b"} {
		if _, err := keys.Revoke(filepath.Join(t.TempDir(), "keys.yaml"), id); err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("got %v", err)
		}
	}
	if _, err := keys.Revoke("", "aaaa"); err == nil || !strings.Contains(err.Error(), "keys_file") {
		t.Errorf("no file: %v", err)
	}
}

func TestSetClient_refusesWhatMakesNoSense(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.yaml")
	f := func(name, want string, set func(c *keys.Client)) {
		t.Helper()
		if _, err := keys.SetClient(path, name, set); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	f("Desk A", "a client's name", func(*keys.Client) {})
	f("desk-a", "streams is -1: write 1 to 100000", func(c *keys.Client) { c.Streams = -1 })
	f("desk-a", "max_age_ms is 90000000", func(c *keys.Client) { c.MaxAge = 25 * time.Hour })
	if _, err := os.Stat(path); err == nil {
		t.Error("a file was made")
	}
}

// FuzzEdit: whatever a keys file looks like, a change of it makes what it should and nothing else, or says why not.
func FuzzEdit(f *testing.F) {
	f.Add(hand())
	f.Add("keys: []\nclients: {}\n")
	f.Add("{}")
	f.Add("keys:\n- {id: aaaa, hash: " + strings.Repeat("ab", 32) + ", scopes: [\"ops:read\"], note: \"- id: x\"}\n")
	f.Add("clients:\n  zz-9: {streams: 1} # x\n  zz: {max_age_ms: 1}\nkeys:\n  - id: aaaa\n    scopes: [market:read]\n    note: |-\n      - id\n    hash: " +
		strings.Repeat("ab", 32) + "\n")
	k, _ := newKey(f, keys.MarketRead)
	k.ID = "zzzz"
	f.Fuzz(func(t *testing.T, text string) {
		before, err := keys.Parse([]byte(text), t0)
		if err != nil {
			t.Skip()
		}
		one, err := keys.TextWith([]byte(text), k)
		if err != nil {
			t.Skip() // the id is taken, or the file full
		}
		two, err := keys.TextSet(one, "zz-9", func(c *keys.Client) { c.Streams, c.MaxAge = 7, time.Second })
		if err != nil {
			t.Fatalf("%v\n%s", err, one)
		}
		three, err := keys.TextWithout(two, k.ID)
		if err != nil {
			t.Fatalf("%v\n%s", err, two)
		}
		after, err := keys.Parse(three, t0)
		if err != nil {
			t.Fatalf("%v\n%s", err, three)
		}
		if len(after.Keys) != len(before.Keys) {
			t.Fatalf("%d keys, %d before\n%s", len(after.Keys), len(before.Keys), three)
		}
		for i := range before.Keys {
			if b, a := &before.Keys[i], &after.Keys[i]; b.ID != a.ID || b.Hash() != a.Hash() || b.Note != a.Note || b.Client != a.Client {
				t.Fatalf("key %+v became %+v", b, a)
			}
		}
		want := slices.DeleteFunc(slices.Clone(before.Clients), func(c keys.Client) bool { return c.Name == "zz-9" })
		got := slices.DeleteFunc(slices.Clone(after.Clients), func(c keys.Client) bool { return c.Name == "zz-9" && c.Streams == 7 && c.MaxAge == time.Second })
		if len(got) != len(after.Clients)-1 || !slices.Equal(got, want) {
			t.Fatalf("clients %+v, before %+v", after.Clients, before.Clients)
		}
	})
}
