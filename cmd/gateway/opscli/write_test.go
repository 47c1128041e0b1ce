package opscli_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/cmd/gateway/opscli"
	"exchange-gateway/internal/market"
	"exchange-gateway/internal/ops"
)

// TestWriteOutcome_saysWhatBecameOfIt, in words that fit the verb.
func TestWriteOutcome_saysWhatBecameOfIt(t *testing.T) {
	for _, c := range []struct {
		verb    market.Verb
		changed bool
		want    string
	}{
		{market.VerbIsolate, true, "isolate okx: done"},
		{market.VerbIsolate, false, "isolate okx: it was so already"},
		{market.VerbWithhold, false, "withhold okx: it was so already"},
		{market.VerbRelease, false, "release okx: nothing of it was in force"},
		{market.VerbProbe, true, "probe okx: done"},
		{market.VerbProbe, false, "probe okx: nothing was open; asked all the same"},
		{market.VerbPurge, false, "purge okx: there was no copy"},
	} {
		if got := outcome(t, &ops.Outcome{Verb: c.verb, Exchange: "okx", Changed: c.changed})[0]; got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
	if got, want := outcome(t, &ops.Outcome{Verb: market.VerbReload})[0], "reload: read, and nothing changed"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestWriteOutcome_saysTheSecond of an end that is near, and all that the gateway says about clients.
func TestWriteOutcome_saysTheSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := time.Now().Add(90*time.Second), time.Now().Add(4*time.Hour)
		const clients = "Balances of okx answer 503 isolated; books go on. It replaces bob's until 04:00 UTC: upgrade."
		for end, want := range map[time.Time]string{near: "2 Jan 15:04:05 MST", far: "2 Jan 15:04 MST"} {
			lines := outcome(t, &ops.Outcome{Verb: market.VerbIsolate, Exchange: "okx", Changed: true, Until: &end, Clients: clients})
			if want := "isolate okx until " + end.Local().Format(want) + ": done"; lines[0] != want || lines[1] != clients {
				t.Errorf("got  %q\nwant %q and %q", lines[:2], want, clients)
			}
		}
	})
}

func TestWriteStatus_namesTheInstance(t *testing.T) {
	now := time.Now()
	var b strings.Builder
	o := &ops.Overview{Instance: "gateway", Version: "devel", Now: now, StartedAt: now.Add(-time.Minute), Level: ops.LevelOK}
	if err := opscli.WriteStatus(&b, o, "", false); err != nil {
		t.Fatal(err)
	}
	if line := strings.Split(b.String(), "\n")[1]; !strings.HasPrefix(line, "instance gateway, version devel, up 1 min,") {
		t.Errorf("the second line is %q", line)
	}
}

func outcome(t *testing.T, out *ops.Outcome) []string {
	t.Helper()
	var b strings.Builder
	if err := opscli.WriteOutcome(&b, out); err != nil {
		t.Fatal(err)
	}
	return strings.Split(b.String(), "\n")
}
