package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"exchange-gateway/internal/cache/redistest"
	"exchange-gateway/internal/fleet"
	"exchange-gateway/internal/market"
)

// fake is a keeper that works, fails, or takes as long as it is allowed.
type fake struct {
	mu    sync.Mutex
	err   error
	hangs bool
	loads int
	saves int
	held  []market.GateRecord
}

func (f *fake) set(err error, hangs bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err, f.hangs = err, hangs
}

func (f *fake) end(ctx context.Context) error {
	f.mu.Lock()
	err, hangs := f.err, f.hangs
	f.mu.Unlock()
	if hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	return err
}

func (f *fake) Load(ctx context.Context) ([]market.GateRecord, error) {
	f.mu.Lock()
	f.loads++
	held := slices.Clone(f.held)
	f.mu.Unlock()
	return held, f.end(ctx)
}

func (f *fake) Save(ctx context.Context, r market.GateRecord) error {
	err := f.end(ctx)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.saves++
	if err == nil {
		f.held = append(f.held, r)
	}
	return err
}

// seen is what the keeper was asked and holds.
func (f *fake) seen() (loads, saves int, held []market.GateRecord) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.loads, f.saves, slices.Clone(f.held)
}

func degraded(t *testing.T, g *fleet.Gates, want ...string) {
	t.Helper()
	if got := g.Degraded(); !slices.Equal(got, want) {
		t.Errorf("degraded = %q, want %q", got, want)
	}
}

var errDisk = errors.New("no space left on device")

func TestGates_oneWorkingPlaceIsEnough(t *testing.T) {
	file, shared := &fake{}, &fake{}
	g := fleet.NewGates(file, shared, quiet())
	r := ban(time.Minute)

	file.set(errDisk, false)
	save(t, g, r)
	degraded(t, g, fleet.DegradedFile)
	want(t, load(t, g), r)

	file.set(nil, false)
	shared.set(errDisk, false)
	later := ban(time.Hour)
	save(t, g, later)
	degraded(t, g, fleet.DegradedRedis)

	file.set(errDisk, false)
	if err := g.Save(t.Context(), ban(2*time.Hour)); !errors.Is(err, errDisk) {
		t.Errorf("nobody took it: err = %v, want the reason", err)
	}
	degraded(t, g, fleet.DegradedFile, fleet.DegradedRedis)
}

func TestGates_withoutAnyPlaceKeepNothing(t *testing.T) {
	g := fleet.NewGates(nil, nil, quiet())
	save(t, g, ban(time.Minute))
	if got := load(t, g); len(got) != 0 {
		t.Errorf("loaded %v", got)
	}
	degraded(t, g)
}

func TestGates_aHangingRedisTakesAQuarterOfASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file, shared := &fake{held: []market.GateRecord{ban(time.Hour)}}, &fake{}
		shared.set(nil, true)
		g := fleet.NewGates(file, shared, quiet())
		start := time.Now()
		list := load(t, g)
		if took := time.Since(start); took != 250*time.Millisecond || len(list) != 1 {
			t.Errorf("loaded %d after %v, want the file's gate after 250ms", len(list), took)
		}
		start = time.Now()
		save(t, g, ban(time.Hour))
		if took := time.Since(start); took != 250*time.Millisecond {
			t.Errorf("saved after %v, want 250ms", took)
		}
		degraded(t, g, fleet.DegradedRedis)
	})
}

func TestGates_runGivesBackWhatWasMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file, shared := &fake{}, &fake{}
		g := fleet.NewGates(file, shared, quiet())
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- g.Run(ctx, nil) }()

		shared.set(errDisk, false)
		first, over := ban(time.Hour), ban(-10*time.Minute+20*time.Second, func(r *market.GateRecord) {
			r.Exchange, r.UpdatedAt = "okx", r.Until.Add(-time.Second)
		})
		save(t, g, first)
		save(t, g, over)
		time.Sleep(61 * time.Second)
		if _, saves, _ := shared.seen(); saves > 2+13 {
			t.Errorf("a broken part was asked %d times in a minute", saves)
		}
		degraded(t, g, fleet.DegradedRedis)

		shared.set(nil, false)
		time.Sleep(6 * time.Second)
		loads, saves, held := shared.seen()
		want(t, held, first) // the other one is of no use any more
		degraded(t, g)
		time.Sleep(time.Minute)
		if l, s, _ := shared.seen(); s != saves || l != loads {
			t.Errorf("a whole part was asked again")
		}
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run = %v", err)
		}
	})
}

func TestGates_runSeesThatAPartWorksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := &fake{}
		shared.set(errDisk, false)
		g := fleet.NewGates(nil, shared, quiet())
		load(t, g)
		degraded(t, g, fleet.DegradedRedis)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- g.Run(ctx, nil) }()
		shared.set(nil, false)
		time.Sleep(6 * time.Second)
		degraded(t, g)
		cancel()
		<-ended
	})
}

// A Redis that was slow at the start is asked again within its time, and read later if that was not enough: its bans were
// once forgotten then, and a request was sent in one.
func TestGates_aSlowStartForgetsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := ban(time.Hour)
		shared := &slowpoke{fake: fake{held: []market.GateRecord{r}}, times: 2}
		want(t, load(t, fleet.NewGates(nil, shared, quiet())), r)

		shared = &slowpoke{fake: fake{held: []market.GateRecord{r}}, times: 7}
		g := fleet.NewGates(&fake{}, shared, quiet())
		start := time.Now()
		if list := load(t, g); len(list) != 0 || time.Since(start) != 250*time.Millisecond {
			t.Fatalf("loaded %v after %v, want nothing after 250ms", list, time.Since(start))
		}
		degraded(t, g, fleet.DegradedRedis)
		var adopted []market.GateRecord
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- g.Run(ctx, func(list ...market.GateRecord) { adopted = append(adopted, list...) })
		}()
		time.Sleep(30 * time.Second)
		cancel()
		<-ended
		want(t, adopted, r) // once
		degraded(t, g)
		if loads, _, _ := shared.seen(); loads != 8 {
			t.Errorf("it was read %d times, want no more once it was known", loads)
		}
	})
}

// slowpoke takes longer than one call may, the given number of times.
type slowpoke struct {
	fake
	times int
}

func (s *slowpoke) Load(ctx context.Context) ([]market.GateRecord, error) {
	list, err := s.fake.Load(ctx)
	if loads, _, _ := s.seen(); loads > s.times {
		return list, err
	}
	ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	<-ctx.Done()
	return nil, fmt.Errorf("load gates: %w", os.ErrDeadlineExceeded) // as a socket says it
}

func TestGates_aCallerWhoLeavesBreaksNothing(t *testing.T) {
	shared := &fake{}
	shared.set(nil, true)
	g := fleet.NewGates(nil, shared, quiet())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := g.Save(ctx, ban(time.Minute)); !errors.Is(err, context.Canceled) {
		t.Errorf("save = %v", err)
	}
	degraded(t, g)
}

func TestGates_redisDownHungAndBack(t *testing.T) {
	t.Parallel()
	server, dir := redistest.Start(t), t.TempDir()
	open := func() *fleet.Gates {
		return fleet.NewGates(fleet.NewGateFile(dir, quiet()), fleet.NewGateRedis(hurried(t, server), "gw"), quiet())
	}
	bounded := func(what string, most time.Duration, fn func()) {
		t.Helper()
		start := time.Now()
		fn()
		if took := time.Since(start); took > most {
			t.Errorf("%s took %v, want at most %v", what, took, most)
		}
	}
	g := open()
	first, second := ban(time.Minute), ban(time.Hour)
	save(t, g, first)

	server.Freeze()
	bounded("a save while redis hangs", 600*time.Millisecond, func() { save(t, g, second) })
	degraded(t, g, fleet.DegradedRedis)
	bounded("a load while redis hangs", 600*time.Millisecond, func() { want(t, load(t, open()), second) })
	server.Thaw()

	server.Kill()
	third := ban(2 * time.Hour)
	bounded("a save while redis is down", 600*time.Millisecond, func() { save(t, g, third) })
	bounded("a load while redis is down", 600*time.Millisecond, func() { want(t, load(t, open()), third) })

	server.Restart()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- g.Run(ctx, nil) }()
	for ctx.Err() == nil && len(g.Degraded()) > 0 {
		time.Sleep(10 * time.Millisecond)
	}
	want(t, load(t, fleet.NewGateRedis(client(t, server), "gw")), third)
	cancel()
	<-ended
}

func TestGateRedis_rubbish(t *testing.T) {
	server := redistest.Start(t)
	g := fleet.NewGateRedis(client(t, server), "gw")
	const key = "gw:gates:v1:{gates}"
	r := ban(time.Minute)

	server.Do("SET", key, "rubbish")
	if list, err := g.Load(t.Context()); err == nil {
		t.Errorf("loaded %v from a value of another type", list)
	}
	save(t, g, r)
	for field, value := range map[string]string{
		"no-value": "x", "binance|ip|": "1|2|3", "okx|ip|": "x|1|1|banned", "a|b": "1|1|1|banned",
		"okx|endpoint|books": "99999999999999999999|1|1|banned",
	} {
		server.Do("HSET", key, field, value)
	}
	want(t, load(t, g))
	save(t, g, r)
	want(t, load(t, g), r)
	if ttl := server.Do("TTL", key); ttl == "-1" || ttl == "-2" {
		t.Errorf("ttl = %s, want one", ttl)
	}
}

func TestGateRedis_sweepsAtItsBound(t *testing.T) {
	server := redistest.Start(t)
	// A sweep takes longer than the 50 ms that a caller waits, but then a thousand gates close before the next.
	c := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer c.Close()
	g := fleet.NewGateRedis(c, "gw")
	const key, most = "gw:gates:v1:{gates}", 4096
	fill := func(value string, n int) {
		t.Helper()
		pipe := c.Pipeline()
		for i := range n {
			pipe.HSet(t.Context(), key, "okx|symbol|"+strconv.Itoa(i), value)
		}
		if _, err := pipe.Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	r := ban(time.Minute)
	fill("1000000|1000000|1|suspect", most) // over since 1970
	save(t, g, r)
	if n := c.HLen(t.Context(), key).Val(); n != 1 {
		t.Errorf("%d fields are left, want 1", n)
	}
	ends := strconv.FormatInt(time.Now().Add(time.Second).UnixMicro(), 10)
	fill(ends+"|"+ends+"|1|suspect", most+500)
	save(t, g, r)
	if n := c.HLen(t.Context(), key).Val(); n != most*3/4 {
		t.Errorf("%d fields are left, want %d", n, most*3/4)
	}
	if !slices.ContainsFunc(load(t, g), func(r market.GateRecord) bool { return r.Exchange == "binance" }) {
		t.Error("the ban was given up, and it ends last")
	}
}

func TestMerge_isTheSameInEveryOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	base := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	kinds := []market.Kind{market.KindBanned, market.KindRateLimited, market.KindAuth}
	for range 2000 {
		rs := make([]market.GateRecord, 3)
		for i := range rs {
			// A few seconds apart, or equal: the case in between is one closing seen through two clocks.
			rs[i] = market.GateRecord{
				Exchange: "okx", Scope: ip, Kind: kinds[rng.IntN(3)], Step: rng.IntN(3),
				Until: base.Add(time.Duration(rng.IntN(3)) * time.Hour), UpdatedAt: base.Add(time.Duration(rng.IntN(3)) * 5 * time.Second),
			}
		}
		a := fleet.Merge(fleet.Merge(rs[0], rs[1]), rs[2])
		b := fleet.Merge(rs[1], fleet.Merge(rs[2], rs[0]))
		if diff := cmp.Diff(a, b); diff != "" {
			t.Fatalf("%+v: order matters:\n%s", rs, diff)
		}
		for _, r := range rs {
			if r.Until.After(a.Until) {
				t.Fatalf("%+v: the end %v was given up for %v", rs, r.Until, a.Until)
			}
		}
	}
}

func TestGates_anUnwritableDirectoryIsDegraded(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	g := fleet.NewGates(fleet.NewGateFile(filepath.Join(file, "state"), quiet()), nil, textLog(&log))
	if list := load(t, g); len(list) != 0 {
		t.Errorf("loaded %v", list)
	}
	degraded(t, g, fleet.DegradedFile)
	for range 3 {
		if err := g.Save(t.Context(), ban(time.Minute)); err == nil {
			t.Error("saved nowhere")
		}
	}
	if n := strings.Count(log.String(), "gates cannot be kept"); n != 1 {
		t.Errorf("logged %d times, want once:\n%s", n, &log)
	}
}

func FuzzParseGate(f *testing.F) {
	f.Add("binance|ip|", "1796000000000000|1795000000000000|3|banned", int64(1795500000000000))
	f.Add("okx|account|a|b", "0|0|0|new_kind", int64(0))
	f.Add("", "|||", int64(-1))
	f.Fuzz(func(t *testing.T, field, value string, now int64) {
		received := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
		if now < 0 || now > 1<<53 {
			return // Redis' clock
		}
		r, ok := fleet.ParseGate(field, value, now, received)
		if ok && (r.Exchange == "" || r.Step < 0 || r.Until.IsZero()) {
			t.Errorf("read %+v", r)
		}
	})
}
