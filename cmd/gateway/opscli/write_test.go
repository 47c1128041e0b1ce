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

// TestWriteOutcome_saysWhatItReplaces, and the second of an end that is near.
func TestWriteOutcome_saysWhatItReplaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := time.Now().Add(90*time.Second), time.Now().Add(4*time.Hour)
		lines := outcome(t, &ops.Outcome{
			Verb: market.VerbIsolate, Exchange: "okx", Changed: true, Until: &near,
			Replaced: &ops.Replaced{Actor: "bob", Reason: "upgrade", Until: far},
		})
		if want := "isolate okx until " + near.Local().Format("2 Jan 15:04:05 MST") + ": done"; lines[0] != want {
			t.Errorf("got  %s\nwant %s", lines[0], want)
		}
		if want := "replaces: bob's until " + far.Local().Format("2 Jan 15:04 MST") + ": upgrade"; lines[1] != want {
			t.Errorf("got  %s\nwant %s", lines[1], want)
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
