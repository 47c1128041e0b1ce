package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a server that is measured.
type process struct {
	cmd    *exec.Cmd
	addr   string // host:port
	cancel context.CancelFunc
	read   chan struct{}
}

const (
	startTimeout = 30 * time.Second // how long a server may take to say that it listens
	stopTimeout  = 12 * time.Second // and to stop; the gateway's own bound is 10 s
)

var errSilent = errors.New("it did not say that it listens")

// start runs a program until stop or ctx ends. listening finds in a line of its output the address that it serves.
func start(ctx context.Context, listening func(line string) (addr string, ok bool), program string, args ...string) (*process, error) {
	return startIn(ctx, nil, listening, program, args...)
}

// startIn is start with variables added to the environment.
func startIn(
	ctx context.Context, env []string, listening func(line string) (addr string, ok bool), program string, args ...string,
) (*process, error) {
	ctx, cancel := context.WithCancel(ctx)
	p := &process{cmd: exec.CommandContext(ctx, program, args...), cancel: cancel, read: make(chan struct{})}
	// Asked to stop it ends its own children too; what does not stop is killed.
	p.cmd.Cancel = func() error { return p.cmd.Process.Signal(syscall.SIGTERM) }
	p.cmd.WaitDelay = stopTimeout
	p.cmd.Env = append(os.Environ(), env...)
	r, w, err := os.Pipe()
	if err != nil {
		cancel()
		return nil, err
	}
	p.cmd.Stdout, p.cmd.Stderr = w, w
	err = p.cmd.Start()
	_ = w.Close() // the program has its own
	if err != nil {
		cancel()
		_ = r.Close()
		return nil, fmt.Errorf("start %s: %w", filepath.Base(program), err)
	}
	found := make(chan string, 1)
	var last string
	go func() {
		defer close(p.read)
		defer r.Close()
		lines := bufio.NewScanner(r)
		for lines.Scan() {
			last = lines.Text()
			if addr, ok := listening(last); ok {
				found <- addr
				_, _ = io.Copy(io.Discard, r) // it must not block on its log; the pipe ends with it
				return
			}
		}
	}()
	timer := time.NewTimer(startTimeout)
	defer timer.Stop()
	select {
	case p.addr = <-found:
		return p, nil
	case <-p.read:
		err = fmt.Errorf("%s: %w: %s", filepath.Base(program), errSilent, last)
	case <-timer.C:
		err = fmt.Errorf("%s: %w", filepath.Base(program), errSilent)
	}
	p.stop()
	return nil, err
}

// stop ends it and waits for its end.
func (p *process) stop() {
	p.cancel()
	_ = p.cmd.Wait() // it was told to stop, and how it does so is not what is measured
	<-p.read
}

// cpu is the processor time that all of its threads have used.
func (p *process) cpu() (time.Duration, error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", p.cmd.Process.Pid))
	if err != nil || len(files) == 0 {
		return 0, fmt.Errorf("no processor times of process %d in /proc: %w", p.cmd.Process.Pid, errors.Join(err, os.ErrNotExist))
	}
	sum := time.Duration(0)
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return 0, err
		}
		field, _, _ := strings.Cut(string(text), " ")
		ns, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", f, err)
		}
		sum += time.Duration(ns)
	}
	return sum, nil
}

// rss is the memory that the process has in use, in bytes.
func (p *process) rss() (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	var all, resident int
	if _, err := fmt.Sscan(string(text), &all, &resident); err != nil {
		return 0, fmt.Errorf("memory of process %d: %w", p.cmd.Process.Pid, err)
	}
	return float64(resident * os.Getpagesize()), nil
}
