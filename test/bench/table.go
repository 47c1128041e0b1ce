package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"
)

// table collects the rows in the order in which they are printed.
type table struct {
	rows   []row
	judged bool // figures are held against their goals, and not counts alone
}

type row struct {
	name, measured, peer, ratio, goal string
	counted, ok                       bool // a count is right or wrong, however little was measured
}

// ratio adds a row whose goal is a ratio of at most limit.
func (t *table) ratio(name string, p paired, show func(float64) string, limit float64) {
	r := p.ratio()
	t.rows = append(t.rows, row{
		name: name, measured: show(median(p.ours)), peer: show(median(p.peer)), ratio: times(r), goal: "<= " + times(limit), ok: r <= limit,
	})
}

// faster adds a row whose goal is to be at least so many times faster than the peer.
func (t *table) faster(name string, p paired, show func(float64) string, least float64) {
	r := p.inverse().ratio()
	t.rows = append(t.rows, row{
		name: name, measured: show(median(p.ours)), peer: show(median(p.peer)), ratio: times(r) + " faster", goal: ">= " + times(least), ok: r >= least,
	})
}

// most adds a row whose goal is an amount that is not exceeded.
func (t *table) most(name string, measured float64, show func(float64) string, limit float64) {
	t.rows = append(t.rows, row{name: name, measured: show(measured), goal: "<= " + show(limit), ok: measured <= limit})
}

// exactly adds a row whose goal is one amount.
func (t *table) exactly(name string, measured, want float64) {
	t.rows = append(t.rows, row{name: name, measured: count(measured), goal: count(want), counted: true, ok: measured == want})
}

// shown adds a row that has no goal but to be seen.
func (t *table) shown(name string, p paired, show func(float64) string) {
	t.rows = append(t.rows, row{
		name: name, measured: show(median(p.ours)), peer: show(median(p.peer)), ratio: times(p.ratio()), goal: "shown", ok: true,
	})
}

// seen adds a row without a peer that has no goal but to be seen.
func (t *table) seen(name string, measured float64, show func(float64) string) {
	t.rows = append(t.rows, row{name: name, measured: show(measured), goal: "shown", ok: true})
}

func (t *table) missed() bool {
	return slices.ContainsFunc(t.rows, func(r row) bool { return t.verdict(&r) == verdictMissed })
}

// What is said of a row.
const (
	verdictOK     = "ok"
	verdictMissed = "MISS"
	verdictNone   = "-" // too little was measured for one
)

func (t *table) verdict(r *row) string {
	switch {
	case !t.judged && !r.counted:
		return verdictNone
	case r.ok:
		return verdictOK
	}
	return verdictMissed
}

func (t *table) print(w io.Writer) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	defer tw.Flush()
	fmt.Fprintln(tw, "row\tmeasured\tpeer\tratio\tgoal\t")
	for _, r := range t.rows {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\n", r.name, r.measured, dash(r.peer), dash(r.ratio), r.goal, t.verdict(&r))
	}
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// paired are the figures of two that took turns, one of each a round.
type paired struct{ ours, peer []float64 }

func (p *paired) add(ours, peer float64) {
	p.ours, p.peer = append(p.ours, ours), append(p.peer, peer)
}

func (p paired) inverse() paired { return paired{ours: p.peer, peer: p.ours} }

// ratio is the median of the rounds' ratios.
func (p paired) ratio() float64 {
	all := make([]float64, len(p.ours))
	for i := range all {
		all[i] = p.ours[i] / p.peer[i]
	}
	return median(all)
}

// median of figures, of which there is at least one.
func median(in []float64) float64 {
	s := slices.Sorted(slices.Values(in))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// Ways to show a figure; those of time take nanoseconds.
func times(v float64) string    { return strconv.FormatFloat(v, 'f', 2, 64) + "x" }
func count(v float64) string    { return strconv.FormatFloat(v, 'f', 0, 64) }
func cpuNanos(v float64) string { return strconv.FormatFloat(v, 'f', 0, 64) + " CPU-ns" }
func cpuMicros(v float64) string {
	return strconv.FormatFloat(v/float64(time.Microsecond), 'f', 1, 64) + " CPU-us"
}

func micros(v float64) string {
	return strconv.FormatFloat(v/float64(time.Microsecond), 'f', 1, 64) + " us"
}

func millis(v float64) string {
	return strconv.FormatFloat(v/float64(time.Millisecond), 'f', 1, 64) + " ms"
}

// grouped is a number as the names of rows have it, "1,000".
func grouped(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}

func allocs(v float64) string    { return count(v) + " allocs" }
func inBytes(v float64) string   { return count(v) + " B" }
func perSecond(v float64) string { return count(v) + " req/s" }

func mebibytes(v float64) string { return strconv.FormatFloat(v/(1<<20), 'f', 1, 64) + " MiB" }
func kibibytes(v float64) string { return strconv.FormatFloat(v/(1<<10), 'f', 1, 64) + " KiB" }
