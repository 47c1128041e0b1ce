package e2e_test

import (
	"bytes"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// process is one run of a program. It is killed when the test ends, if it still runs.
type process struct {
	t        *testing.T
	name     string
	cmd      *exec.Cmd
	out, log output // standard output, standard error
	done     chan struct{}
	code     int // exit code, -1 if a signal ended it; set when done is closed
}

// output is what a process has written so far, at most maxOutput of it.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// maxOutput bounds what is kept of one stream; a program that writes more is at fault, and the tests that read its log
// would say so.
const maxOutput = 64 << 20

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.buf.Len() < maxOutput {
		o.buf.Write(p)
	}
	return len(p), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// launch starts a program that TestMain built. Its environment is env and nothing else.
func launch(t *testing.T, name string, env []string, args ...string) *process {
	t.Helper()
	return launchIn(t, "", append([]string{"HOME=" + t.TempDir()}, env...), filepath.Join(programs, name), args...)
}

// launchIn starts any program in a process group of its own.
func launchIn(t *testing.T, dir string, env []string, path string, args ...string) *process {
	t.Helper()
	p := &process{t: t, name: filepath.Base(path), done: make(chan struct{})}
	p.cmd = exec.Command(path, args...)
	p.cmd.Dir, p.cmd.Env = dir, env
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", p.name, err)
	}
	go func() {
		defer close(p.done)
		err := p.cmd.Wait()
		p.code = p.cmd.ProcessState.ExitCode()
		if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
			p.code = -2 // the test says more than a code could
		}
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("%s wrote:\n%s%s", p.name, tail(p.out.String()), tail(p.log.String()))
		}
	})
	return p
}

// run runs a program to its end and gives its exit code.
func run(t *testing.T, name string, env []string, args ...string) *process {
	t.Helper()
	p := launch(t, name, env, args...)
	p.wait(20 * time.Second)
	return p
}

// wait waits for the end by itself and gives the exit code.
func (p *process) wait(within time.Duration) int {
	p.t.Helper()
	select {
	case <-p.done:
		return p.code
	case <-time.After(within):
		p.t.Fatalf("%s has not ended within %v", p.name, within)
		return 0
	}
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// signal sends a signal to the process alone.
func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil && !p.ended() {
		p.t.Fatalf("signal %s: %v", p.name, err)
	}
}

// kill is kill -9 of the process and all that it started. It returns when the process is gone.
func (p *process) kill() {
	if !p.ended() {
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // it may have ended meanwhile
	}
	<-p.done
}

// tail is the end of a text, for a person.
func tail(text string) string {
	const most = 4000
	if len(text) <= most {
		return text
	}
	return "...\n" + text[len(text)-most:]
}

// eventually waits until ok, asking every few milliseconds.
func eventually(t *testing.T, within time.Duration, what string, ok func() bool) time.Duration {
	t.Helper()
	start := time.Now()
	for !ok() {
		if time.Since(start) > within {
			t.Fatalf("not within %v: %s", within, what)
		}
		time.Sleep(5 * time.Millisecond)
	}
	return time.Since(start)
}

// lines are the lines of a text that hold all of the parts.
func lines(text string, parts ...string) []string {
	var found []string
	for line := range strings.Lines(text) {
		has := true
		for _, p := range parts {
			has = has && strings.Contains(line, p)
		}
		if has {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found
}
