package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
)

const (
	connections = 32
	seconds     = 1 // of one round
)

// run is what one run of wrk counted.
type wrkRun struct {
	requests  float64
	perSecond float64
	not2xx    float64
}

var (
	wrkRequests  = regexp.MustCompile(`(?m)^\s+(\d+) requests in`)
	wrkPerSecond = regexp.MustCompile(`(?m)^Requests/sec:\s+([0-9.]+)`)
	wrkNot2xx    = regexp.MustCompile(`(?m)^\s+Non-2xx or 3xx responses: (\d+)`)
	wrkErrors    = regexp.MustCompile(`(?m)^\s+Socket errors:.*`)
)

// wrk asks for one URL over and over.
func wrk(ctx context.Context, url, authorization string) (wrkRun, error) {
	args := []string{"-t1", "-c" + strconv.Itoa(connections), "-d" + strconv.Itoa(seconds) + "s"}
	if authorization != "" {
		args = append(args, "-H", "Authorization: "+authorization)
	}
	cmd := exec.CommandContext(ctx, "wrk", append(args, url)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return wrkRun{}, fmt.Errorf("wrk: %w: %s", err, out)
	}
	if e := wrkErrors.Find(out); e != nil {
		return wrkRun{}, fmt.Errorf("wrk %s: %s", url, e)
	}
	number := func(re *regexp.Regexp) float64 {
		m := re.FindSubmatch(out)
		if m == nil {
			return 0
		}
		v, _ := strconv.ParseFloat(string(m[1]), 64) // what matched is a number
		return v
	}
	r := wrkRun{requests: number(wrkRequests), perSecond: number(wrkPerSecond), not2xx: number(wrkNot2xx)}
	if r.requests == 0 {
		return r, fmt.Errorf("wrk %s: nothing was answered: %s", url, out)
	}
	return r, nil
}
