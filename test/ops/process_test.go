package ops_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

// tool finds a program of Prometheus'. Without it the test is skipped, and fails in CI, which has to run it.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	switch {
	case err == nil:
		return path
	case os.Getenv("CI") == "true":
		t.Fatalf("%s is not installed, and CI must run this test", name)
	}
	t.Skipf("%s is not installed: on Debian it is in the package prometheus", name)
	return ""
}

// output is what a process has written. It is bounded: a demo of a minute writes some ten lines a second.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

const maxOutput = 8 << 20

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

// process is a program that runs beside the test. It has ended when the test has.
type process struct {
	out  output
	cmd  *exec.Cmd
	done chan struct{}
	err  error // of its end, once done is closed
}

func start(t *testing.T, path string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(path, args...), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir(), "HOME="+t.TempDir())
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", path, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		p.stop(t)
		if t.Failed() {
			text := p.out.String()
			t.Logf("%s wrote:\n%s", filepath.Base(path), text[max(0, len(text)-6000):])
		}
	})
	return p
}

// stop ends a process as Ctrl-C does, and kills it if it does not end.
func (p *process) stop(t *testing.T) {
	t.Helper()
	_ = p.cmd.Process.Signal(syscall.SIGINT) // it may have ended
	select {
	case <-p.done:
	case <-time.After(20 * time.Second):
		t.Errorf("%s does not end", p.cmd.Path)
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// eventually asks again and again until ok. within is generous: the machine may be busy with other tests.
func eventually(t *testing.T, within time.Duration, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(within); !ok(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", within, what)
		}
	}
}

// build makes the program as it is shipped.
func build(t *testing.T) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute) // a cold cache on a busy machine
	defer cancel()
	program := filepath.Join(t.TempDir(), "gateway")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-o", program, "./cmd/gateway")
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return program
}
