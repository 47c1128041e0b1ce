package fleet_test

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"exchange-gateway/internal/fleet"
	"exchange-gateway/internal/market"
)

func TestOperationsFile_aTornOrForeignFileOfOverridesIsSetAside(t *testing.T) {
	good := t.TempDir()
	keep(t, patient(fleet.OperationsConfig{StateDir: good}), isolation(time.Hour))
	text, err := os.ReadFile(filepath.Join(good, "overrides.json"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"torn":          string(text[:len(text)/2]),
		"empty":         "",
		"zeros":         string(make([]byte, 512)),
		"another file":  "accounts:\n  main: {}\n",
		"newer":         `{"version":2,"overrides":[]}`,
		"one of none":   `{"version":1,"overrides":[{}]}`,
		"for ever":      strings.Replace(string(text), `"until": "20`, `"until": "99`, 1),
		"for ever last": strings.Replace(string(text), `"last_until": "20`, `"last_until": "99`, 1),
		"from 2286":     strings.Replace(string(text), `"version": "1`, `"version": "9`, 1),
		"huge":          `{"version":1,"overrides":[` + strings.Repeat(" ", 9<<20) + `]}`,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "overrides.json")
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			o := patient(fleet.OperationsConfig{StateDir: dir})
			inForce(t, past(t, o).Overrides)
			aside, err := os.ReadFile(path + ".unreadable")
			if err != nil || string(aside) != text {
				t.Errorf("set aside: %d bytes, %v; want the %d bytes that were there", len(aside), err, len(text))
			}
			all := isolation(time.Hour)
			keep(t, o, all)
			inForce(t, past(t, patient(fleet.OperationsConfig{StateDir: dir})).Overrides, all)
		})
	}
}

// What a newer gateway put in force is kept for it, and not believed by one that does not know what it means.
func TestOperationsFile_aKindOfANewerGateway(t *testing.T) {
	dir := t.TempDir()
	o := patient(fleet.OperationsConfig{StateDir: dir})
	keep(t, o, isolation(time.Hour, func(o *market.Override) { o.Kind = "slow_down" }))
	inForce(t, o.InForce())
	keep(t, o, withheld(time.Hour))
	text, err := os.ReadFile(filepath.Join(dir, "overrides.json"))
	if err != nil || !strings.Contains(string(text), "slow_down") {
		t.Errorf("the file holds %s, %v", text, err)
	}
}

// A history that holds lines which a kill tore, rubbish, and events of a newer gateway.
func TestOperationsFile_lostLinesAreLeftOut(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "events-a.jsonl")
	one, two, three := change(1), act(2), change(3)
	o := patient(fleet.OperationsConfig{StateDir: dir})
	past(t, o)
	tell(t, o, one)
	add := func(text string) {
		t.Helper()
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	newer := `{"id":"boot-9","at":"2026-11-30T00:00:00Z","type":"weather"}`
	add(newer + "\nrubbish\n" + strings.Repeat("x", 5000) + "\n" + string(make([]byte, 64)) + "\n" + `{"id":"boot-2","at":"20`)
	tell(t, o, two) // not glued to the torn line
	tell(t, o, three)

	var log strings.Builder
	k := past(t, patient(fleet.OperationsConfig{StateDir: dir, Log: textLog(&log)}))
	events(t, k.Events, one, two, three)
	if !strings.Contains(log.String(), "rubbish=4 unknown=1") || strings.Count(log.String(), "\n") != 1 {
		t.Errorf("log:\n%s", &log)
	}
	if text, err := os.ReadFile(path); err != nil || !strings.Contains(string(text), newer) {
		t.Errorf("the newer gateway's event is gone: %v", err)
	}
}

func TestOperationsFile_aHistoryIsBounded(t *testing.T) {
	dir := t.TempDir()
	const most = 20_000
	o := fleet.SmallFiles(patient(fleet.OperationsConfig{StateDir: dir}), most)
	past(t, o)
	var all []market.Event
	for i := range uint64(500) {
		e := change(i + 1)
		all = append(all, e)
		tell(t, o, e)
	}
	var size int64
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if info, err := f.Info(); err == nil && strings.HasPrefix(f.Name(), "events-") {
			size += info.Size()
		}
	}
	if size > 2*most+1000 || size < most {
		t.Errorf("%d bytes are kept, want between %d and twice as many", size, most)
	}
	k := past(t, patient(fleet.OperationsConfig{StateDir: dir}))
	n := len(k.Events)
	if n < 50 || n > 200 {
		t.Fatalf("%d events are kept", n)
	}
	events(t, k.Events, all[len(all)-n:]...)
	// It says that it is complete from the first on, not from the beginning.
	if !k.Since.Equal(k.Events[0].At) {
		t.Errorf("complete since %v, want %v", k.Since, k.Events[0].At)
	}
}

// An instance whose name changes with every start does not fill the directory.
func TestOperationsFile_historiesOfTheGoneAreForgotten(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"gone", "gone.jsonl", "here", "a", "a.b"} {
		tell(t, patient(fleet.OperationsConfig{StateDir: dir, Instance: name}), act(1))
	}
	old := time.Now().Add(-26 * time.Hour)
	others := []string{"events-gone.jsonl.1", "notes-old.jsonl", "overrides.json"}
	for _, name := range others {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range append(others, "events-gone.jsonl", "events-gone.jsonl.jsonl", "events-a.jsonl") {
		if err := os.Chtimes(filepath.Join(dir, name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(dir, "overrides.json")); err != nil {
		t.Fatal(err)
	}
	past(t, patient(fleet.OperationsConfig{StateDir: dir, Instance: "a"}))
	var left []string
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		left = append(left, f.Name())
	}
	want := []string{"events-a.b.jsonl", "events-a.jsonl", "events-here.jsonl", "notes-old.jsonl", "operations.lock"}
	if !slices.Equal(left, want) {
		t.Errorf("left are %q, want %q", left, want)
	}
}

func TestOperationsFile_anUnwritableDirectoryIsDegraded(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	o := patient(fleet.OperationsConfig{StateDir: filepath.Join(file, "state"), Log: textLog(&log)})
	if k := past(t, o); len(k.Overrides)+len(k.Events) != 0 || !k.Since.IsZero() {
		t.Errorf("loaded %+v", k)
	}
	whole(t, o, fleet.DegradedFile)
	for i := range uint64(3) {
		if where, err := o.Append(t.Context(), act(i+1)); err == nil || len(where) > 0 {
			t.Errorf("written to %q", where)
		}
	}
	all := isolation(time.Hour)
	if where, err := o.Save(t.Context(), all); err == nil || len(where) > 0 {
		t.Errorf("saved in %q", where)
	}
	inForce(t, o.InForce(), all) // all the same
	if n := strings.Count(log.String(), "operations cannot be kept"); n != 1 {
		t.Errorf("logged %d times, want once:\n%s", n, &log)
	}
	if err := o.Close(t.Context()); err == nil {
		t.Error("closed, with everything unwritten")
	}
	// The directory appears, and gets everything.
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	closes(t, o)
	k := past(t, patient(fleet.OperationsConfig{StateDir: filepath.Join(file, "state")}))
	inForce(t, k.Overrides, all)
	if len(k.Events) != 3 {
		t.Errorf("%d events, want 3", len(k.Events))
	}
}

// TestOperationsFile_child is not a test of its own: it is the process that the test below starts and kills.
func TestOperationsFile_child(t *testing.T) {
	dir, boot := os.Getenv("OPERATIONS_TEST_DIR"), os.Getenv("OPERATIONS_TEST_BOOT")
	if dir == "" {
		t.Skip("only as a child process")
	}
	o := fleet.SmallFiles(patient(fleet.OperationsConfig{StateDir: dir}), 20_000)
	for i := uint64(1); i < 1_000_000; i++ {
		e := change(i)
		if i%10 == 0 {
			e = act(i)
		}
		e.Boot = boot
		tell(t, o, e)
		if i%5 == 0 {
			keep(t, o, isolation(time.Hour, func(o *market.Override) { o.Reason = fmt.Sprintf("%s-%d", boot, i) }))
		}
		fmt.Println("kept", i)
	}
}

func TestOperationsFile_aKillAtAnyTimeLosesNothingThatWasKept(t *testing.T) {
	dir := t.TempDir()
	for round := range 4 {
		boot := string(rune('a' + round))
		cmd := exec.Command(os.Args[0], "-test.run=^TestOperationsFile_child$", "-test.v")
		cmd.Env = append(os.Environ(), "OPERATIONS_TEST_DIR="+dir, "OPERATIONS_TEST_BOOT="+boot)
		pipe, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		last, out := 0, bufio.NewScanner(pipe)
		for last < 23*(round+1) && out.Scan() {
			_, _ = fmt.Sscanf(out.Text(), "kept %d", &last)
		}
		_ = cmd.Process.Kill()
		for out.Scan() { // what it still said that it had kept
			_, _ = fmt.Sscanf(out.Text(), "kept %d", &last)
		}
		_ = cmd.Wait()
		k := past(t, patient(fleet.OperationsConfig{StateDir: dir}))
		newest := 0
		for _, e := range k.Events {
			if e.Boot == boot {
				newest = max(newest, int(e.Seq))
			}
		}
		if newest < last || last == 0 {
			t.Errorf("round %d: event %d is kept, %d was written", round, newest, last)
		}
		kept := 0
		if len(k.Overrides) == 1 {
			_, _ = fmt.Sscanf(k.Overrides[0].Reason, boot+"-%d", &kept)
		}
		if kept < last/5*5 {
			t.Errorf("round %d: override %+v is kept, want that of %d", round, k.Overrides, last/5*5)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "overrides.json.unreadable")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a kill left a file that cannot be read")
	}
}

func FuzzDecodeOverrides(f *testing.F) {
	f.Add([]byte(`{"version":1,"overrides":[{"kind":"isolate","exchange":"okx","actor":"night","reason":"books are wrong",` +
		`"since":"2026-11-30T00:00:00Z","until":"2026-11-30T01:00:00Z","last_until":"2026-11-30T01:00:00Z","version":"1796000000000000.0123abcd"}]}`))
	f.Add([]byte(`{"version":1,"overrides":[{"kind":"withhold","exchange":"binance","symbol":"BTC/USDT","since":"0000-01-01T00:00:00Z",` +
		`"until":"9999-11-30T01:00:00+14:00","last_until":"2026-11-30T01:00:00Z","version":"9999999999999999.ffffffff","released":true}]}`))
	f.Add([]byte(`{"version":2}`))
	f.Add([]byte("\x00"))
	now := time.Date(2026, 11, 30, 0, 30, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := fleet.DecodeOverrides(text, now)
		if err != nil {
			return
		}
		for _, m := range list {
			if m.Kind == "" || m.Exchange == "" || m.Until.After(now.Add(8*24*time.Hour)) {
				t.Errorf("read %+v", m)
			}
		}
		again, err := fleet.EncodeOverrides(list)
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		if back, err := fleet.DecodeOverrides(again, now); err != nil || len(back) != len(list) {
			t.Fatalf("what was written cannot be read: %v", err)
		}
	})
}

func FuzzHistory(f *testing.F) {
	f.Add([]byte(`{"since":"2026-11-30T00:00:00Z"}`))
	f.Add([]byte(`{"id":"boot-1","at":"2026-11-30T00:00:00Z","type":"action","exchange":"okx","verb":"isolate","actor":"night","reason":"x"}`))
	f.Add([]byte(`{"id":"boot-1","at":"2026-11-30T00:00:00Z","type":"weather"}`))
	f.Add([]byte(`{"id":"boot-2","at":"20`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var p fleet.Past
		p.Read(text)
		if n, rubbish, unknown := p.Found(); n+rubbish+unknown > 1 {
			t.Errorf("one line is %d events, %d times rubbish, %d unknown", n, rubbish, unknown)
		}
	})
}
