package fleet_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"exchange-gateway/internal/fleet"
	"exchange-gateway/internal/market"
)

func TestGateFile_aTornOrForeignFileIsSetAside(t *testing.T) {
	good := t.TempDir()
	save(t, fleet.NewGateFile(good, quiet()), ban(time.Hour))
	text, err := os.ReadFile(filepath.Join(good, "gates.json"))
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]string{
		"torn":           string(text[:len(text)/2]),
		"empty":          "",
		"zeros":          string(make([]byte, 512)),
		"another file":   "accounts:\n  main: {}\n",
		"other json":     `[1,2,3]`,
		"no version":     `{"gates":[]}`,
		"newer":          `{"version":2,"gates":[]}`,
		"a gate of none": `{"version":1,"gates":[{}]}`,
		"huge":           `{"version":1,"gates":[` + strings.Repeat(" ", 5<<20) + `]}`,
	}
	for name, text := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "gates.json")
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			f := fleet.NewGateFile(dir, quiet())
			if got := load(t, f); len(got) != 0 {
				t.Errorf("loaded %v", got)
			}
			aside, err := os.ReadFile(path + ".unreadable")
			if err != nil || string(aside) != text {
				t.Errorf("set aside: %d bytes, %v; want the %d bytes that were there", len(aside), err, len(text))
			}
			r := ban(time.Minute)
			save(t, f, r)
			want(t, load(t, fleet.NewGateFile(dir, quiet())), r)
		})
	}
}

func TestGateFile_saveSetsARottenFileAsideToo(t *testing.T) {
	dir := t.TempDir()
	f := fleet.NewGateFile(dir, quiet())
	first, second := ban(time.Hour), ban(time.Minute, func(r *market.GateRecord) { r.Exchange = "okx" })
	save(t, f, first)
	if err := os.WriteFile(filepath.Join(dir, "gates.json"), []byte("rot"), 0o600); err != nil {
		t.Fatal(err)
	}
	save(t, f, second)
	// What this process knew is written again along with the new one.
	want(t, load(t, fleet.NewGateFile(dir, quiet())), first, second)
}

func TestGateFile_isPrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state", "exchange-gateway")
	save(t, fleet.NewGateFile(dir, quiet()), ban(time.Hour))
	for path, want := range map[string]os.FileMode{dir: 0o700 | os.ModeDir, filepath.Join(dir, "gates.json"): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode() != want {
			t.Errorf("%s: mode %v, %v, want %v", filepath.Base(path), info.Mode(), err, want)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("left behind: %v, %v, want the file and its lock", entries, err)
	}
}

func TestGateFile_aDirectoryThatCannotBeWrittenIsAnError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f := fleet.NewGateFile(filepath.Join(file, "state"), quiet())
	if list, err := f.Load(t.Context()); err == nil || len(list) != 0 {
		t.Errorf("load = %v, %v, want an error", list, err)
	}
	if err := f.Save(t.Context(), ban(time.Minute)); err == nil {
		t.Error("saved into a directory that cannot be")
	}
}

func TestGateFile_forgetsWhatEndsFirstAtItsBound(t *testing.T) {
	dir := t.TempDir()
	f := fleet.NewGateFile(dir, quiet())
	const most = 4096
	var wg sync.WaitGroup
	for i := range most + 8 {
		wg.Go(func() {
			r := ban(time.Hour+time.Duration(i)*time.Second, func(r *market.GateRecord) {
				r.Scope = market.Scope{Kind: market.ScopeSymbol, Name: strconv.Itoa(i)}
			})
			if err := f.Save(context.Background(), r); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	list := load(t, fleet.NewGateFile(dir, quiet()))
	if len(list) != most {
		t.Fatalf("kept %d, want %d", len(list), most)
	}
	for _, r := range list {
		if n, _ := strconv.Atoi(r.Scope.Name); n < 8 {
			t.Errorf("kept %s, which ends among the first", r.Scope.Name)
		}
	}
}

func TestGateFile_aLockThatIsHeldBoundsTheWait(t *testing.T) {
	dir := t.TempDir()
	other := fleet.NewGateFile(dir, quiet())
	save(t, other, ban(time.Minute))
	release := fleet.HoldLock(t, dir)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	start := time.Now()
	err := fleet.NewGateFile(dir, quiet()).Save(ctx, ban(time.Hour))
	if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || took > time.Second {
		t.Errorf("save = %v after %v, want the deadline", err, took)
	}
	list, err := fleet.NewGateFile(dir, quiet()).Load(ctx)
	if !errors.Is(err, context.DeadlineExceeded) || len(list) != 1 {
		t.Errorf("load = %v, %v: reading needs no lock", list, err)
	}
	release()
	save(t, other, ban(time.Hour))
}

// TestGateFile_child is not a test of its own: it is the process that the tests below start and kill.
func TestGateFile_child(t *testing.T) {
	dir, name := os.Getenv("GATE_FILE_TEST_DIR"), os.Getenv("GATE_FILE_TEST_NAME")
	if dir == "" {
		t.Skip("only as a child process")
	}
	most, err := strconv.Atoi(os.Getenv("GATE_FILE_TEST_SAVES"))
	if err != nil {
		t.Fatal(err)
	}
	f := fleet.NewGateFile(dir, quiet())
	begin := time.Now().Round(0)
	for i := range most {
		save(t, f, market.GateRecord{
			Exchange: "binance", Scope: market.Scope{Kind: market.ScopeSymbol, Name: name + strconv.Itoa(i%10)},
			Kind: market.KindBanned, Until: begin.Add(time.Hour + time.Duration(i)*time.Second), Step: i + 1, UpdatedAt: begin,
		})
		fmt.Println("saved", i+1)
	}
}

func child(t *testing.T, dir, name string, saves int) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestGateFile_child$", "-test.v")
	cmd.Env = append(os.Environ(), "GATE_FILE_TEST_DIR="+dir, "GATE_FILE_TEST_NAME="+name,
		"GATE_FILE_TEST_SAVES="+strconv.Itoa(saves))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewScanner(out)
}

func TestGateFile_aKillAtAnyTimeLosesNothingThatWasSaved(t *testing.T) {
	dir := t.TempDir()
	for round := range 5 {
		name := string(rune('a' + round))
		cmd, out := child(t, dir, name, 1_000_000)
		last := 0
		for last < 7*(round+1) && out.Scan() {
			_, _ = fmt.Sscanf(out.Text(), "saved %d", &last)
		}
		_ = cmd.Process.Kill()
		for out.Scan() { // what it still said that it had saved
			_, _ = fmt.Sscanf(out.Text(), "saved %d", &last)
		}
		_ = cmd.Wait()
		step := 0
		for _, r := range load(t, fleet.NewGateFile(dir, quiet())) {
			if strings.HasPrefix(r.Scope.Name, name) {
				step = max(step, r.Step)
			}
		}
		if step < last || last == 0 {
			t.Errorf("round %d: step %d is kept, %d was saved", round, step, last)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "gates.json.unreadable")); err == nil {
		t.Error("a kill left a file that cannot be read")
	}
}

func TestGateFile_severalProcessesShareADirectory(t *testing.T) {
	dir := t.TempDir()
	type process struct {
		cmd *exec.Cmd
		out *bufio.Scanner
	}
	var all []process
	for _, name := range []string{"a", "b", "c"} {
		cmd, out := child(t, dir, name, 20)
		all = append(all, process{cmd, out})
	}
	for _, p := range all {
		for p.out.Scan() {
		}
		if err := p.cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	list := load(t, fleet.NewGateFile(dir, quiet()))
	if len(list) != 30 {
		t.Fatalf("kept %d gates, want the 10 of each of 3 processes", len(list))
	}
	for _, r := range list {
		if r.Step < 11 {
			t.Errorf("%s: step %d, want that of the second save", r.Scope.Name, r.Step)
		}
	}
}

func FuzzDecodeGates(f *testing.F) {
	f.Add([]byte(`{"version":1,"gates":[{"exchange":"binance","scope":"ip","kind":"banned",` +
		`"until":"2026-11-30T01:00:00Z","step":2,"updated_at":"2026-11-30T00:58:00Z"}]}`))
	f.Add([]byte(`{"version":1,"gates":[{"exchange":"okx","scope":"account","name":"main","kind":"new_kind",` +
		`"until":"9999-11-30T01:00:00+14:00","step":0,"updated_at":"0000-01-01T00:00:00Z"}]}`))
	f.Add([]byte(`{"version":2}`))
	f.Add([]byte("\x00"))
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := fleet.DecodeGates(text)
		if err != nil {
			return
		}
		again, err := fleet.EncodeGates(list)
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		if back, err := fleet.DecodeGates(again); err != nil || len(back) != len(list) {
			t.Fatalf("what was written cannot be read: %v", err)
		}
	})
}
