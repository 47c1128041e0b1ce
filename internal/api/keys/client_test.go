package keys_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"exchange-gateway/internal/api/keys"
)

// entry is a key of the file's flow form.
func entry(id, more string) string {
	return fmt.Sprintf("  - {id: %s, hash: %s, scopes: [\"market:read\"]%s}\n", id, strings.Repeat("ab", 32), more)
}

func TestParse_clients(t *testing.T) {
	f, err := keys.Parse([]byte("keys:\n"+entry("aaaa", ", client: desk-a")+entry("bbbb", "")+
		"clients:\n  desk-b:\n  desk-a: {requests_per_second: 50, upstream_per_minute: 6000, max_age_ms: 5000, streams: 3}\n"), t0)
	if err != nil {
		t.Fatal(err)
	}
	want := []keys.Client{
		{Name: "desk-a", RequestsPerSecond: 50, UpstreamPerMinute: 6000, MaxAge: 5 * time.Second, Streams: 3}, {Name: "desk-b"},
	}
	if !slices.Equal(f.Clients, want) {
		t.Errorf("got %+v", f.Clients)
	}
	if f.Keys[0].Client != "desk-a" || f.Keys[1].Client != "bbbb" {
		t.Errorf("clients of keys: %s, %s", f.Keys[0].Client, f.Keys[1].Client)
	}
	ring := keys.FixedRing(*f)
	if got := ring.Client("desk-a"); got != want[0] {
		t.Errorf("got %+v", got)
	}
	if got := ring.Client("nobody"); got != (keys.Client{Name: "nobody"}) {
		t.Errorf("got %+v", got)
	}
	if got := ring.ClientNames(); !slices.Equal(got, []string{"bbbb", "desk-a"}) {
		t.Errorf("got %v", got)
	}
}

func TestParse_namesWhatIsWrongWithClients(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		if _, err := keys.Parse([]byte(text), t0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	f("clients: {desk-a: {requests_per_second: 0}}", `clients "desk-a": requests_per_second is 0: write 1 to 100000, or leave it out`)
	f("clients: {desk-a: {upstream_per_minute: -1}}", "upstream_per_minute is -1: write 1 to 1000000")
	f("clients: {desk-a: {max_age_ms: 86400001}}", "max_age_ms is 86400001: write 1 to 86400000")
	f("clients: {desk-a: {streams: 100001}}", "streams is 100001: write 1 to 100000")
	f("clients: {desk-a: {streams: 0, max_age_ms: 0}}", "max_age_ms is 0")
	f("clients: {desk-a: {streams: many}}", "streams is no whole number")
	f("clients: {desk-a: {streams: 1.5}}", "streams is no whole number")
	f("clients: {desk-a: {streams: [1]}}", "streams is no whole number")
	f("clients: {desk-a: {max_age_ms: 99999999999999999999}}", "max_age_ms is no whole number")
	f("clients: {desk-a: {limit: 5}}", "[1:20]")
	f("clients: {Desk: {}}", `clients "": a client's name has 1 to 32 small letters`)
	f("clients: {"+strings.Repeat("a", 33)+": {}}", `clients "": `)
	f("clients: [desk-a]", "[1:10]")
	f("clients: {a: {}, a: {}}", "[1:18]")
	f("keys:\n"+entry("aaaa", ", client: Desk A"), `keys[0] (id "aaaa"): a client's name`)
	f("keys:\n"+entry("aaaa", ", expires: tomorrow"), "expires is not an RFC 3339 time")
	f("keys:\n"+entry("aaaa", ", expires: 2027-01-01"), "expires is not an RFC 3339 time")
	many := "clients:\n"
	for i := range 4097 {
		many += fmt.Sprintf("  c%d: {}\n", i)
	}
	f(many, "more than 4096 names")
}

// TestParse_keysOfAClient: two valid ones, of which every key that has not expired counts.
func TestParse_keysOfAClient(t *testing.T) {
	three := entry("aaaa", ", client: desk-a") + entry("bbbb", ", client: desk-a") + entry("cccc", ", client: desk-a")
	_, err := keys.Parse([]byte("keys:\n"+three+entry("dddd", "")), t0)
	if err == nil || err.Error() != "client desk-a has 3 valid keys (aaaa, bbbb, cccc), and at most 2 are possible: revoke one, with gateway key revoke ID" {
		t.Errorf("got %v", err)
	}
	over := t0.Format(time.RFC3339)
	twoAndOver := entry("aaaa", ", client: desk-a") + entry("bbbb", ", client: desk-a, expires: "+over) + entry("cccc", ", client: desk-a")
	if _, err := keys.Parse([]byte("keys:\n"+twoAndOver), t0); err != nil {
		t.Errorf("one of three is over: %v", err)
	}
	if _, err := keys.Parse([]byte("keys:\n"+twoAndOver), t0.Add(-time.Second)); err == nil {
		t.Error("a second before it is over there are three")
	}
	// A key without a client counts for the client of its name.
	if _, err := keys.Parse([]byte("keys:\n"+entry("aaaa", "")+entry("bbbb", ", client: aaaa")+entry("cccc", ", client: aaaa")), t0); err == nil {
		t.Error("three keys of aaaa are taken")
	}
	var alone string
	for i := range 50 {
		alone += entry(fmt.Sprintf("id%04d", i), "")
	}
	if _, err := keys.Parse([]byte("keys:\n"+alone), t0); err != nil {
		t.Errorf("keys of nobody: %v", err)
	}
}
