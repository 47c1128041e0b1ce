package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"exchange-gateway/internal/cache/redistest"
	"exchange-gateway/internal/exchangesim"
	"exchange-gateway/test/schedlat"
)

// The gateway whose wall clock these tests step: time.Now of the standard library with its wall reading moved, its monotonic
// reading as it is. That is what a process sees when NTP sets the clock of its machine.
const (
	steppedProgram = "gateway-stepped"
	steppedNow     = `package time

import "sync/atomic"

var wallStep atomic.Int64

// StepWall moves what Now says of the wall clock.
func StepWall(d Duration) { wallStep.Store(int64(d)) }

func Now() Time {
	t := now0()
	stepped := t.Add(Duration(wallStep.Load()))
	if stepped.wall&hasMonotonic != 0 {
		stepped.ext = t.ext
	}
	return stepped
}
`
	steppedMain = `package main

import (
	"os"
	"time"
)

func init() {
	go func() {
		for ; ; time.Sleep(10 * time.Millisecond) {
			text, _ := os.ReadFile(os.Getenv("TEST_WALL_STEP"))
			if d, err := time.ParseDuration(string(text)); err == nil {
				time.StepWall(d)
			}
		}
	}()
}
`
)

// buildStepped builds it beside the other programs, once.
var buildStepped = sync.OnceValue(func() error {
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return err
	}
	src := filepath.Join(strings.TrimSpace(string(goroot)), "src", "time")
	text, err := os.ReadFile(filepath.Join(src, "time.go"))
	if err != nil {
		return err
	}
	renamed := strings.Replace(string(text), "\nfunc Now() Time {", "\nfunc now0() Time {", 1)
	if renamed == string(text) {
		return fmt.Errorf("time.Now of this Go looks different: %s", src)
	}
	dir := filepath.Join(programs, "stepped")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	main, err := filepath.Abs(filepath.Join(root, "cmd", "gateway", "wallstep.go"))
	if err != nil {
		return err
	}
	replace := map[string]string{}
	for path, text := range map[string]string{
		filepath.Join(src, "time.go"):     renamed,
		filepath.Join(src, "wallstep.go"): steppedNow,
		main:                              steppedMain,
	} {
		own := filepath.Join(dir, fmt.Sprint(len(replace))+".go")
		if err := os.WriteFile(own, []byte(text), 0o600); err != nil {
			return err
		}
		replace[path] = own
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		return err
	}
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-overlay", list, "-o", filepath.Join(programs, steppedProgram), "./cmd/gateway")
	build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the gateway with a clock that can be stepped: %w\n%s", err, out)
	}
	return nil
})

// wall steps the wall clock of the gateways that were started with it.
type wall struct {
	t    *testing.T
	path string
}

// stepped makes the gateway one whose wall clock can be stepped.
func (s setup) stepped(t *testing.T) (setup, wall) {
	t.Helper()
	if err := buildStepped(); err != nil {
		t.Fatal(err)
	}
	w := wall{t, filepath.Join(t.TempDir(), "step")}
	s.name = steppedProgram
	s.env = append(append([]string{}, s.env...), "TEST_WALL_STEP="+w.path)
	return s, w
}

// step is how far the wall clock is from the machine's. It returns when the gateway has it.
func (w wall) step(d time.Duration) {
	w.t.Helper()
	next := w.path + ".next"
	if err := os.WriteFile(next, []byte(d.String()), 0o600); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Rename(next, w.path); err != nil {
		w.t.Fatal(err)
	}
	time.Sleep(100 * time.Millisecond)
}

// steps are the courses of the wall clock: each is done after the one before had time to do harm.
var steps = map[string][]time.Duration{
	"back 5 s":                  {-5 * time.Second},
	"on 2.5 s":                  {2500 * time.Millisecond},
	"back 5 s, then 20 s ahead": {-5 * time.Second, 20 * time.Second},
}

// A streamed book is as young and as live as without the step, and nothing is asked beside the stream.
func TestClockStep_whileStreaming(t *testing.T) {
	t.Parallel()
	for name, course := range steps {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sim := simulate(t)
			life, w := before(t, sim).streaming(sim).warm(sim).account(t, "main", "binance-hmac").stepped(t)
			key := life.newKey(t, "account:read")
			g := life.serve(t)
			for _, id := range ids() {
				eventually(t, 15*time.Second, id+": a book of the stream", func() bool { return g.live(id, pairOf(id)).Freshness.Source == "stream" })
			}
			meter := schedlat.Start(t)
			for _, d := range course {
				asked := map[string]int{}
				for _, id := range ids() {
					asked[id] = sim.counted(id).Requests
				}
				w.step(d)
				watch := meter.Watch()
				for end := time.Now().Add(4 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
					for _, id := range ids() {
						a := g.book(id, pairOf(id))
						if a.Stale || a.Freshness.Source != "stream" || a.age() > 2*time.Second+watch.Lost() {
							t.Fatalf("%s, the wall clock at %v: %v", id, d, a)
						}
					}
				}
				for _, id := range ids() {
					if n := sim.counted(id).Requests - asked[id]; n > 3 { // status, time
						t.Errorf("%s, the wall clock at %v: %d requests beside the stream", id, d, n)
					}
				}
				g.key = key
				if a := g.balance("binance", "main"); a.status != http.StatusOK {
					t.Errorf("the wall clock at %v: balance: %v", d, a)
				}
				g.key = ""
			}
		})
	}
}

// In an outage a held book is served on, and its age goes on growing as it does without the step; also over a restart, from Redis.
func TestClockStep_inAnOutage(t *testing.T) {
	t.Parallel()
	for name, course := range steps {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			redis := redistest.Start(t)
			sim := simulate(t)
			life, w := before(t, sim, "--redis="+redis.Addr()).stepped(t)
			g := life.serve(t)
			held := map[string]time.Time{}
			for _, id := range ids() {
				before := time.Now()
				a := g.live(id, pairOf(id))
				held[id] = before.Add(-a.age())
				inRedis(t, redis, id, pairOf(id))
				sim.breaks(id, exchangesim.Fault{Kind: exchangesim.FaultMaintenance})
			}
			true4s := func(when string) {
				t.Helper()
				for end := time.Now().Add(4 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
					for _, id := range ids() {
						asked := time.Now()
						a := g.book(id, pairOf(id))
						least, most := asked.Sub(held[id])-500*time.Millisecond, time.Since(held[id])+500*time.Millisecond
						if a.status != http.StatusOK || a.age() < least || a.age() > most || !a.Stale && a.age() > time.Second {
							t.Fatalf("%s, %s: %v, want a book of %v to %v", id, when, a, least, most)
						}
					}
				}
			}
			for _, d := range course {
				w.step(d)
				true4s(fmt.Sprintf("the wall clock at %v", d))
			}
			g.kill()
			g = life.serve(t)
			true4s("after a restart")
		})
	}
}

// A ban lasts as long as the exchange said, whatever the wall clock does meanwhile.
func TestClockStep_inABan(t *testing.T) {
	t.Parallel()
	const length = 10 * time.Second
	for name, course := range steps {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sim := simulate(t, "--okx=", "--coinbase=")
			life, w := before(t, sim).stepped(t)
			g := life.serve(t)
			g.live("binance", "BTC/USDT")
			sim.breaks("binance", exchangesim.Fault{Kind: exchangesim.FaultBan, RetryAfter: length})
			if a := g.book("binance", "ETH/USDT"); a.Code != "upstream_banned" {
				t.Fatalf("the request that is banned: %v", a)
			}
			began, asked := time.Now(), sim.counted("binance").Requests
			for _, d := range course {
				w.step(d)
				for end := time.Now().Add(2 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
					if a := g.book("binance", "ETH/USDT"); a.status == http.StatusOK {
						t.Fatalf("in the ban: %v", a)
					}
				}
			}
			time.Sleep(time.Until(began.Add(length - 500*time.Millisecond)))
			if n := sim.counted("binance").Requests - asked; n > 0 {
				t.Errorf("%d requests in the ban", n)
			}
			sim.heals("binance")
			watch := schedlat.Start(t).Watch()
			eventually(t, 20*time.Second, "the ban is over", func() bool { return g.book("binance", "ETH/USDT").status == http.StatusOK })
			if took := time.Since(began); took > length+3*time.Second+watch.Lost() {
				t.Errorf("asked again after %v, the ban was %v", took, length)
			}
		})
	}
}
