package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"exchange-gateway/test/bench/cpu"
)

// figures are what one run of a Go benchmark reports, by unit.
type figures map[string]float64

// Units of a benchmark.
const (
	unitCPU    = cpu.Unit
	unitAllocs = "allocs/op"
)

// benchmarks are the compiled tests of one package.
type benchmarks struct {
	plan
	program string
}

// compile builds the tests of a package.
func (r *run) compile(ctx context.Context, pkg string) (benchmarks, error) {
	b := benchmarks{plan: r.plan, program: filepath.Join(r.dir, strings.ReplaceAll(pkg, "/", "-")+".test")}
	out, err := exec.CommandContext(ctx, "go", "test", "-c", "-o", b.program, "./"+pkg).CombinedOutput()
	if err != nil {
		return b, fmt.Errorf("go test -c ./%s: %w: %s", pkg, err, out)
	}
	return b, nil
}

// run runs one benchmark, "Permit/ours", for so many iterations, in a process of its own.
func (b benchmarks) run(ctx context.Context, name string, iterations int) (figures, error) {
	parts := strings.Split("Benchmark"+name, "/")
	for i, p := range parts {
		parts[i] = "^" + p + "$"
	}
	cmd := exec.CommandContext(ctx, b.program, "-test.run=^$", "-test.bench="+strings.Join(parts, "/"),
		"-test.benchtime="+strconv.Itoa(iterations)+"x")
	cmd.Dir = filepath.Dir(b.program)
	cmd.Env = append(os.Environ(), "GOGC=400") // as the gateway runs
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("benchmark %s: %w: %s", name, err, out)
	}
	lines := bufio.NewScanner(strings.NewReader(string(out)))
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "Benchmark"+name) {
			return parseFigures(lines.Text())
		}
	}
	return nil, fmt.Errorf("benchmark %s reported nothing: %s", name, out)
}

// parseFigures reads `BenchmarkPermit/ours-2  100000  512 ns/op  300.1 cpu-ns/op  1 allocs/op`.
func parseFigures(line string) (figures, error) {
	fields := strings.Fields(line)
	f := figures{}
	for i := 2; i+1 < len(fields); i += 2 {
		v, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			return nil, fmt.Errorf("benchmark line %q: %w", line, err)
		}
		f[fields[i+1]] = v
	}
	return f, nil
}

// duel lets ours and a peer take turns. Each gets as many iterations as take some hundredths of a second.
func (b benchmarks) duel(ctx context.Context, name, peer string, iterations, peerIterations int) (p paired, ours figures, err error) {
	iterations, peerIterations = b.part(iterations), b.part(peerIterations)
	for range b.rounds {
		if ours, err = b.run(ctx, name+"/ours", iterations); err != nil {
			return p, nil, err
		}
		theirs, err := b.run(ctx, name+"/"+peer, peerIterations)
		if err != nil {
			return p, nil, err
		}
		p.add(ours[unitCPU], theirs[unitCPU])
	}
	return p, ours, nil
}

// least is the least processor time of some runs.
func (b benchmarks) least(ctx context.Context, name string, iterations int) (float64, error) {
	all := make([]float64, b.rounds)
	for i := range all {
		f, err := b.run(ctx, name, b.part(iterations))
		if err != nil {
			return 0, err
		}
		all[i] = f[unitCPU]
	}
	return slices.Min(all), nil
}
