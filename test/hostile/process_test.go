package hostile_test

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"exchange-gateway/test/hostile/attack"
)

// process is one run of a program. It is killed when the test ends, if it still runs.
type process struct {
	name string
	cmd  *exec.Cmd
	log  output
	done chan struct{}
}

// output keeps the last of what a process wrote to standard error.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

const maxOutput = 16 << 20

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

// launch starts a program that TestMain built, in a process group of its own.
func launch(t *testing.T, name string, env []string, out io.Writer, in io.Reader, args ...string) *process {
	t.Helper()
	p := &process{name: name, done: make(chan struct{})}
	p.cmd = exec.Command(filepath.Join(programs, name), args...)
	p.cmd.Env = append([]string{"HOME=" + t.TempDir()}, env...)
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = in, out, &p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", name, err)
	}
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait() // who waits for its end asks for the exit code
	}()
	t.Cleanup(func() {
		p.kill()
		if text := p.log.String(); t.Failed() && text != "" {
			t.Logf("%s wrote:\n%s", name, text[max(0, len(text)-3000):])
		}
	})
	return p
}

func (p *process) kill() {
	select {
	case <-p.done:
	default:
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // it may have ended meanwhile
		<-p.done
	}
}

// attacker is the second process at work.
type attacker struct {
	t       *testing.T
	p       *process
	in      *os.File
	reports chan attack.Report
}

// attacks starts the second process with an order.
func attacks(t *testing.T, o attack.Order) *attacker {
	t.Helper()
	// Pipes of the system: those of package io would have the end of the process wait for somebody to close them.
	in, orders := pipe(t)
	from, out := pipe(t)
	a := &attacker{t: t, in: orders, reports: make(chan attack.Report, 2)}
	a.p = launch(t, "attacker", nil, out, in)
	_, _ = in.Close(), out.Close() // the process has its own
	go func() {
		defer close(a.reports)
		for d := json.NewDecoder(from); ; {
			var r attack.Report
			if d.Decode(&r) != nil {
				return // the process has ended
			}
			a.reports <- r
		}
	}()
	if err := json.NewEncoder(orders).Encode(o); err != nil {
		t.Fatalf("order: %v", err)
	}
	return a
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = r.Close(), w.Close() }) // most are closed by then
	return r, w
}

// report waits for the next report.
func (a *attacker) report(within time.Duration) attack.Report {
	a.t.Helper()
	select {
	case r, ok := <-a.reports:
		if !ok {
			a.t.Fatalf("the attacker ended without a report: %s", a.p.log.String())
		}
		return r
	case <-time.After(within):
		a.t.Fatalf("the attacker has not reported within %v", within)
		return attack.Report{}
	}
}

// release ends the attacker's input: an idle crowd goes home.
func (a *attacker) release() { _ = a.in.Close() }

func eventually(t *testing.T, within time.Duration, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(within); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", within, what)
		}
	}
}
