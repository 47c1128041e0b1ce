package hostile_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// programs is where TestMain built the programs. It is written once, before any test.
var programs string

func TestMain(m *testing.M) {
	code, err := buildAndRun(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// buildAndRun builds the programs as they are shipped, and the attacker like them: with the race detector it could not
// hold ten thousand connections.
func buildAndRun(m *testing.M) (code int, err error) {
	if programs, err = os.MkdirTemp("", "exchange-gateway-hostile-"); err != nil {
		return 1, err
	}
	defer os.RemoveAll(programs)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute) // a cold cache on a busy machine
	defer cancel()
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-o", programs,
		"./cmd/gateway", "./cmd/exchangesim", "./test/hostile/attacker")
	build.Dir = filepath.Join("..", "..")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return 1, fmt.Errorf("build the programs: %w\n%s", err, out)
	}
	return m.Run(), nil
}
