// Command bench measures the gateway's speed and memory and prints one table: what was measured, the same of a peer, their
// ratio, the goal, and `ok` or `MISS`. `make bench` runs it. It ends by itself within minutes, uses loopback alone, and
// fails if a row misses its goal. `go run ./test/bench layer books` measures those parts alone. With -short each part runs once
// on a tenth of the work: that every part still works is what it shows, its figures say nothing, and only counts are judged.
//
// # Method
//
// The machine is taken to do other work too. So wherever it can be, a figure is processor time per operation and not time
// on the clock, and a goal is a ratio to a peer that was measured in the same run: both take turns for several rounds, and
// a ratio is the median of the rounds' ratios. A figure shown is the median of the rounds. Where the goal is an amount of
// processor time, the least of the rounds counts: what disturbs only adds to it.
//
// Layer and books are Go benchmarks of the packages themselves, whose compiled tests run one benchmark at a time; they
// report the processor time of their process (package cpu), garbage collection included, at the gateway's own GOGC.
//
// Serving is measured on the program itself, built from cmd/gateway and run with its defaults, a client key on every
// request, of a client whose quota was raised beyond what wrk reaches, one process each: a gateway whose exchange answers, and one whose exchange has failed until its circuit
// opened. The exchange is a small server in this process that answers Binance's requests from memory. wrk asks over 32
// connections; the processor time of the server is read from /proc before and after, and divided by wrk's count.
//
// Waiting is measured on the clock, because it is about the clock: a call with and without the layer, a miss through the
// gateway and through httputil.ReverseProxy, one after the other in turns, by their medians; an answer while Redis hangs
// by its worst. Such a miss finds the exchange's list of pairs loaded and a connection open. What the first question of all
// has to wait for besides is shown apart, by gateways that were just started.
//
// Streams are measured on the program as well. The exchange is in this process and speaks Binance's dialect, or Coinbase's
// where hundreds of snapshots are wanted; the subscribers are one process with one thread that reads them all. The exchange
// numbers its changes by the microseconds of the clock, so each message that a client gets tells how long it was on its way.
// What is on the clock here is the least of some rounds, too. Memory is what is resident. For idle subscribers the gateway
// collects garbage early, as else what is not collected yet would be counted: it may be 192 MiB whatever is served.
//
// # Peers
//
// gobreaker is its rolling window with the elapsed time of the call measured inside, as slowness has to be. failsafe-go is
// the same order of policies: deadline, retry, breaker, attempt timeout. The standard way to a book is encoding/json into
// shopspring decimals and back. Bare net/http is a handler that writes bytes which it holds; the plain 404 is its
// http.NotFound. nginx caches the bare server's answer; it is there to compare with, not to be beaten. The usual way to push
// is a goroutine and a queue for each subscriber and a write for each message, with coder/websocket.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := measure(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(1)
	}
}

var (
	errMissed = errors.New("a goal was missed")
	errNoRows = errors.New("nothing was measured")
)

// part is a group of rows.
type part struct {
	name    string
	measure func(ctx context.Context, r *run) error
}

// run is one run of this program: where its files are, how much it measures, and its rows.
type run struct {
	plan
	*table
	dir string
}

// plan is how much is measured.
type plan struct {
	rounds     int           // how often two take turns
	pushRounds int           // the same of streams, where a round takes seconds
	divisor    int           // of how much is done in a round
	limit      time.Duration // of the run, whatever hangs
}

// part is so much of n as is done.
func (p plan) part(n int) int { return max(1, n/p.divisor) }

var (
	wholePlan = plan{rounds: 9, pushRounds: 5, divisor: 1, limit: 15 * time.Minute}
	shortPlan = plan{rounds: 1, pushRounds: 1, divisor: 10, limit: 5 * time.Minute}
)

func parts() []part {
	return []part{
		{"layer", measureLayer},
		{"call", measureUpstreamCall},
		{"books", measureBooks},
		{"changes", measureDiffs},
		{"serving", measureServing},
		{"watching", measureWatching},
		{"redis", measureRedis},
		{"delay", staged(nil, measureDelay)},
		{"fanout", staged(nil, measureFanOut)},
		{"idle", staged(collected, measureIdle)},
		{"pairs", measurePairs},
	}
}

// measure measures everything or the parts that are named, or is one of the servers that it measures against.
func measure(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	short := flags.Bool("short", false, "run each part once, on a tenth of the work, and judge counts alone")
	if err := flags.Parse(args); err != nil {
		return err
	}
	args = flags.Args()
	named := func(p part) bool { return slices.Contains(args, p.name) }
	if len(args) > 0 && !slices.ContainsFunc(parts(), named) {
		return servePeer(ctx, args)
	}
	r := &run{plan: wholePlan, table: &table{judged: !*short}}
	if *short {
		r.plan = shortPlan
	}
	ctx, cancel := context.WithTimeout(ctx, r.limit)
	defer cancel()
	var err error
	if r.dir, err = os.MkdirTemp("", "gateway-bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(r.dir)

	before, began := load(), time.Now()
	for _, p := range parts() {
		if len(args) > 0 && !named(p) {
			continue
		}
		fmt.Fprintf(os.Stderr, "%4.0f s: measuring %s\n", time.Since(began).Seconds(), p.name)
		rows := len(r.rows)
		err := p.measure(ctx, r)
		if err == nil && len(r.rows) == rows {
			err = errNoRows
		}
		if err != nil {
			r.print(os.Stdout)
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	r.print(os.Stdout)
	fmt.Printf("\nload of the machine: %s before, %s after; %v in all\n", before, load(), time.Since(began).Round(time.Second))
	if r.missed() {
		return errMissed
	}
	return nil
}

// load is how many processes wanted a processor, by the minute, 5 and 15 minutes.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	var a, b, c string
	if _, err := fmt.Sscan(string(text), &a, &b, &c); err != nil {
		return "unknown"
	}
	return a + " " + b + " " + c
}
