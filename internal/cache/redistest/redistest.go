// Package redistest runs a real redis-server for a test, and breaks it: kills, freezes and restarts it. It is for tests
// alone and knows no client library.
package redistest

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Server is one redis-server without persistence, on a free port of the loopback interface. Its methods belong to the
// test's goroutine.
type Server struct {
	t    testing.TB
	path string
	dir  string
	port int
	args []string
	out  *bytes.Buffer
	cmd  *exec.Cmd
	gone chan struct{}
}

// Start runs a server until the test ends. The arguments are configuration as on its command line: "--maxmemory", "10mb".
// Without the program the test is skipped, and fails where CI=true.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("redis-server is not installed, and CI must test against it")
		}
		t.Skip("redis-server is not installed: apt-get install redis-server")
	}
	s := &Server{t: t, path: path, dir: t.TempDir(), args: args}
	// Between finding a free port and listening on it somebody else may take it.
	for range 5 {
		s.port = freePort(t)
		if s.start() {
			t.Cleanup(s.stop)
			return s
		}
	}
	t.Fatalf("redis-server does not start: %s", s.out)
	return nil
}

// Addr is its host and port.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// URL is its address as configuration has it.
func (s *Server) URL() string { return "redis://" + s.Addr() + "/0" }

// Kill ends it at once. What it held is lost.
func (s *Server) Kill() {
	s.t.Helper()
	s.stop()
}

// Restart starts it again, empty, on the same port.
func (s *Server) Restart() {
	s.t.Helper()
	s.stop()
	for range 20 {
		if s.start() {
			return
		}
	}
	s.t.Fatalf("redis-server does not start again: %s", s.out)
}

// Freeze stops it from running. Connections to it are accepted by the kernel and never answered.
func (s *Server) Freeze() {
	s.t.Helper()
	s.signal(syscall.SIGSTOP)
}

// Thaw lets it run again. It then executes what it was sent in the meantime.
func (s *Server) Thaw() {
	s.t.Helper()
	s.signal(syscall.SIGCONT)
}

// Do sends one command and returns the first line of the reply, without its type. It fails the test on an error reply.
// Arguments must not contain spaces or quotes.
func (s *Server) Do(args ...string) string {
	s.t.Helper()
	reply, err := s.ask(strings.Join(args, " "))
	if err != nil || strings.HasPrefix(reply, "-") {
		s.t.Fatalf("%s: %q, %v", args[0], reply, err)
	}
	return strings.TrimLeft(reply, "+:")
}

func (s *Server) signal(sig os.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatalf("signal redis-server: %v", err)
	}
}

// start runs the program and tells whether it answers.
func (s *Server) start() bool {
	s.out = &bytes.Buffer{}
	s.cmd = exec.Command(s.path, append([]string{
		"--port", strconv.Itoa(s.port), "--bind", "127.0.0.1", "--dir", s.dir, "--save", "", "--appendonly", "no",
	}, s.args...)...)
	s.cmd.Stdout, s.cmd.Stderr = s.out, s.out
	if err := s.cmd.Start(); err != nil {
		s.t.Fatalf("start redis-server: %v", err)
	}
	s.gone = make(chan struct{})
	go func(cmd *exec.Cmd, gone chan struct{}) {
		defer close(gone)
		_ = cmd.Wait() // killed, or its port was taken: the output says why
	}(s.cmd, s.gone)
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		if reply, err := s.ask("PING"); err == nil && reply == "+PONG" {
			return true
		}
		select {
		case <-s.gone:
			return false
		case <-time.After(5 * time.Millisecond):
		}
	}
	s.stop()
	return false
}

// stop ends the program and waits for its end.
func (s *Server) stop() {
	_ = s.cmd.Process.Kill() // an error means that it has ended already
	<-s.gone
}

func (s *Server) ask(line string) (string, error) {
	conn, err := net.DialTimeout("tcp", s.Addr(), time.Second)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(2 * time.Second)); err != nil {
		return "", err
	}
	if _, err := fmt.Fprintf(conn, "%s\r\n", line); err != nil {
		return "", err
	}
	reply, err := bufio.NewReader(conn).ReadString('\n')
	return strings.TrimRight(reply, "\r\n"), err
}

func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("find a free port: %v", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port // it was listened on as tcp
}
