// Command gateway is the exchange gateway: it stands between trading systems and crypto exchanges and keeps an
// exchange's trouble away from them. See the README.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	host, _ := os.Hostname() // "" is a machine without a name
	err := run(ctx, system{program: os.Args[0], args: os.Args[1:], env: os.Environ(), host: host, out: os.Stdout, err: os.Stderr})
	stop()
	if code := exitCode(err, os.Stderr); code != 0 {
		os.Exit(code)
	}
}

// system is what the program gets from the world.
type system struct {
	program string // how the program was called: what hints name, so that they can be pasted
	args    []string
	env     []string
	host    string // the machine's name
	out     io.Writer
	err     io.Writer
}

// name is what to write in a shell for this program.
func (s system) name() string { return cmp.Or(s.program, "gateway") }

// errUsage marks a command line that makes no sense; the rest of the message is already printed.
var errUsage = errors.New("usage")

// exitCode prints an error and chooses the code: 2 for a command line that makes no sense, what `status` found, 1 for
// everything else.
func exitCode(err error, w io.Writer) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errUsage):
		return 2
	}
	if code, ok := errors.AsType[exitError](err); ok {
		return int(code)
	}
	fmt.Fprintf(w, "gateway: %v\n", err)
	return 1
}
