package quickstart_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	// bound is what a newcomer is promised, from the first command on, building included.
	bound = 5 * time.Minute
	// stopBound is how long Ctrl-C may take.
	stopBound = 20 * time.Second
)

func TestReadmesFirstCommands(t *testing.T) {
	for _, address := range []string{"127.0.0.1:8080", "127.0.0.1:8081"} { // as the README and its commands have them
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatalf("this test needs %s for itself: %v", address, err)
		}
		_ = l.Close() // the demo's from now on
	}
	clone := freshClone(t)
	commands := blocks(t, filepath.Join(clone, "README.md"))
	if len(commands) != 2 {
		t.Fatalf("the quick start has %d blocks of commands, want one for each of two terminals: %q", len(commands), commands)
	}
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	start := time.Now()

	demo := terminal(t, clone, commands[0])
	seenLive := false
	for {
		got, ok := look(ctx, clone, commands[1])
		switch {
		case ctx.Err() != nil || demo.ended():
			t.Fatalf("no stale book after %v; the last answer:\n%s\nthe first terminal:\n%s", time.Since(start).Round(time.Second),
				got.text, demo.text())
		case ok && !got.stale:
			seenLive = true
		case ok && got.stale:
			got.labelled(t)
			if !seenLive {
				t.Error("no live book was seen before the outage")
			}
			if !strings.Contains(demo.text(), commands[1]) {
				t.Errorf("the first terminal does not show the line to try: %s", commands[1])
			}
			t.Logf("a labelled stale book after %v", time.Since(start).Round(time.Second))
			demo.interrupt()
			return
		}
		pause(ctx, time.Second)
	}
}

// freshClone is what is committed, in an empty folder.
func freshClone(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "exchange-gateway")
	if out, err := exec.CommandContext(t.Context(), "git", "clone", "--quiet", root, dir).CombinedOutput(); err != nil {
		t.Fatalf("clone: %v\n%s", err, out)
	}
	return dir
}

// blocks are the blocks of commands of the README's quick start, in order.
func blocks(t *testing.T, readme string) (all []string) {
	t.Helper()
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, begins := strings.Cut(string(text), "<!-- quickstart:begin -->")
	section, _, ends := strings.Cut(rest, "<!-- quickstart:end -->")
	if !begins || !ends {
		t.Fatal("the README has no quick start between its marks")
	}
	for {
		_, after, ok := strings.Cut(section, "```sh\n")
		if !ok {
			return all
		}
		block, rest, ok := strings.Cut(after, "```")
		if !ok {
			t.Fatal("a block of the quick start does not end")
		}
		all = append(all, strings.TrimSpace(block))
		section = rest
	}
}

// shell is a first terminal.
type shell struct {
	t    *testing.T
	cmd  *exec.Cmd
	mu   sync.Mutex
	out  bytes.Buffer
	done chan struct{}
}

// Write implements io.Writer.
func (s *shell) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.out.Len() < 1<<20 { // more than five minutes of a demo
		s.out.Write(p)
	}
	return len(p), nil
}

func (s *shell) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.String()
}

// terminal types a command and leaves it running.
func terminal(t *testing.T, dir, command string) *shell {
	t.Helper()
	s := &shell{t: t, done: make(chan struct{})}
	s.cmd = exec.Command("bash", "-c", command)
	s.cmd.Dir, s.cmd.Stdout, s.cmd.Stderr = dir, s, s
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // as a terminal does: Ctrl-C goes to all of it
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(s.done)
		_ = s.cmd.Wait() // make calls it an error to be interrupted
	}()
	t.Cleanup(func() {
		if !s.ended() {
			_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL) // it may have ended meanwhile
			<-s.done
		}
	})
	return s
}

func (s *shell) ended() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// interrupt is Ctrl-C: the demo says goodbye and is gone.
func (s *shell) interrupt() {
	s.t.Helper()
	if err := syscall.Kill(-s.cmd.Process.Pid, syscall.SIGINT); err != nil {
		s.t.Fatal(err)
	}
	select {
	case <-s.done:
	case <-time.After(stopBound):
		s.t.Fatalf("still there %v after Ctrl-C", stopBound)
	}
	if !strings.Contains(s.text(), "stopped") {
		s.t.Errorf("it did not say that it stopped:\n%s", s.text())
	}
}

// seen is what the second terminal shows.
type seen struct {
	text   string
	header http.Header
	status int
	stale  bool
	book   struct {
		Stale     bool
		Freshness struct {
			Status string
			Reason string
			AgeMS  int64 `json:"age_ms"`
		}
		Bids, Asks [][2]string
	}
}

// look types the second command once. ok is false as long as nobody answers.
func look(ctx context.Context, dir, command string) (s seen, ok bool) {
	cmd := exec.CommandContext(ctx, "bash", "-c", command)
	cmd.Dir = dir
	out, err := cmd.Output()
	s.text = string(out)
	if err != nil {
		return s, false
	}
	res, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(out)), httptest.NewRequest(http.MethodGet, "/", nil))
	if err != nil {
		return s, false
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK || json.NewDecoder(res.Body).Decode(&s.book) != nil {
		return s, false // it has begun to listen, and not reached the exchange yet
	}
	s.status, s.header, s.stale = res.StatusCode, res.Header, s.book.Stale
	return s, true
}

// labelled judges a stale book as its reader does.
func (s *seen) labelled(t *testing.T) {
	t.Helper()
	f := s.book.Freshness
	if f.Status != "stale" || f.Reason == "" || f.AgeMS <= 0 || len(s.book.Bids) == 0 || len(s.book.Asks) == 0 {
		t.Errorf("a stale book without its label: %s", s.text)
	}
	if s.header.Get("Age") == "" || !strings.Contains(s.header.Get("Cache-Status"), "detail="+f.Reason) {
		t.Errorf("headers without its label: %v", s.header)
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
