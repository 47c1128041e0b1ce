package fleet_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"exchange-gateway/internal/cache/redistest"
	"exchange-gateway/internal/fleet"
	"exchange-gateway/internal/market"
)

const (
	overridesKey = "gw:{ops}:overrides:v1"
	eventsKey    = "gw:{ops}:events:v1:a"
)

// bounded is a client whose calls end with their context, and not before: the machine may be busy.
func bounded(t *testing.T, s *redistest.Server) redis.UniversalClient {
	t.Helper()
	c := redis.NewClient(&redis.Options{
		Addr: s.Addr(), ContextTimeoutEnabled: true, MaxRetries: -1, DialerRetries: 1,
		DialTimeout: time.Second, ReadTimeout: time.Second, WriteTimeout: time.Second,
	})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// works waits until a part works again.
func works(t *testing.T, o *fleet.Operations) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); len(o.Degraded()) > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("degraded still: %q", o.Degraded())
		}
	}
}

func TestOperationsRedis_downHungAndBack(t *testing.T) {
	t.Parallel()
	server, dir := redistest.Start(t), t.TempDir()
	open := func() *fleet.Operations {
		return fleet.NewOperations(fleet.OperationsConfig{
			StateDir: dir, Redis: bounded(t, server), Prefix: "gw", Instance: "a", Log: quiet(),
		})
	}
	o := open()
	past(t, o)
	// The bounds are those of the caller; a machine that is busy adds to them.
	within := func(what string, most time.Duration, fn func()) {
		t.Helper()
		if d := took(fn); d > most+5*time.Second {
			t.Errorf("%s took %v, want at most %v", what, d, most)
		}
	}
	all, pair := isolation(time.Hour), withheld(time.Hour)
	server.Freeze()
	within("an action while redis hangs", 250*time.Millisecond, func() { _, _ = o.Append(t.Context(), act(1)) })
	within("an override while redis hangs", time.Second, func() { _, _ = o.Save(t.Context(), all) })
	within("a start while redis hangs", time.Second, func() {
		fresh := open()
		inForce(t, past(t, fresh).Overrides, all)
		whole(t, fresh, fleet.DegradedOperations)
	})
	server.Thaw()
	server.Kill()
	within("an action while redis is down", 250*time.Millisecond, func() { _, _ = o.Append(t.Context(), act(2)) })
	within("an override while redis is down", time.Second, func() { _, _ = o.Save(t.Context(), pair) })
	inForce(t, o.InForce(), all, pair)

	heard := follow(t, o)
	server.Restart() // empty
	works(t, o)
	for deadline := time.Now().Add(30 * time.Second); o.Close(t.Context()) != nil; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("not everything is written")
		}
	}
	fresh := patient(fleet.OperationsConfig{Redis: client(t, server)})
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if len(past(t, fresh).Overrides) == 2 {
			break // what was in force before is in Redis again, too
		}
		if time.Now().After(deadline) {
			t.Fatal("redis did not get what it had lost")
		}
	}
	k := past(t, patient(fleet.OperationsConfig{StateDir: dir, Redis: client(t, server)}))
	inForce(t, k.Overrides, all, pair)
	if len(k.Events) != 2 {
		t.Errorf("%d events are kept, want 2", len(k.Events))
	}
	// What nobody else changed is not told.
	select {
	case list := <-heard:
		inForce(t, list, all, pair)
	default:
	}
}

// A Redis that loses everything between two looks ends no isolation, and is filled again.
func TestOperationsRedis_losesEverything(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	o := patient(fleet.OperationsConfig{Redis: client(t, server)})
	past(t, o)
	all := isolation(time.Hour)
	keep(t, o, all)
	tell(t, o, act(1))
	follow(t, o)
	began := time.Now()
	server.Do("FLUSHALL")
	for deadline := time.Now().Add(30 * time.Second); server.Do("EXISTS", overridesKey) != "1"; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("redis did not get what it had lost")
		}
	}
	inForce(t, o.InForce(), all)
	// The history begins anew, and says so.
	two := act(2)
	tell(t, o, two)
	k := past(t, patient(fleet.OperationsConfig{Redis: client(t, server)}))
	events(t, k.Events, two)
	if k.Since.Before(began) {
		t.Errorf("complete since %v, before it was lost at %v", k.Since, began)
	}
}

func TestOperationsRedis_readOnly(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	all := isolation(time.Hour)
	keep(t, patient(fleet.OperationsConfig{Redis: client(t, server)}), all)
	server.Do("REPLICAOF", "127.0.0.1", "1")
	o := patient(fleet.OperationsConfig{Redis: client(t, server)})
	inForce(t, past(t, o).Overrides, all)
	if where, err := o.Save(t.Context(), withheld(time.Hour)); err == nil || len(where) > 0 || !strings.Contains(err.Error(), "READONLY") {
		t.Errorf("saved in %q, %v", where, err)
	}
	whole(t, o, fleet.DegradedOperations)
	server.Do("REPLICAOF", "NO", "ONE")
	follow(t, o)
	works(t, o)
	if n := len(past(t, patient(fleet.OperationsConfig{Redis: client(t, server)})).Overrides); n != 2 {
		t.Errorf("%d overrides are kept, want 2", n)
	}
}

func TestOperationsRedis_rubbish(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	c := client(t, server)
	server.Do("SET", overridesKey, "rubbish")
	server.Do("SET", eventsKey, "rubbish")
	o := patient(fleet.OperationsConfig{Redis: c})
	inForce(t, past(t, o).Overrides)
	all, one := isolation(time.Hour), act(1)
	keep(t, o, all)
	tell(t, o, one)
	future := strconv.FormatInt(time.Now().AddDate(100, 0, 0).UnixMicro(), 10)
	soon := strconv.FormatInt(time.Now().Add(time.Hour).UnixMicro(), 10)
	for field, value := range map[string]string{
		"x": "y", "isolate|okx||": "9999999999999999.00000000|" + soon + "|1|" + soon + "|0|{}",
		"isolate|a||":          "1796000000000000.0123abcd|" + future + "|1|" + future + "|0|{}",
		"isolate|b||":          "1796000000000000.0123abcd|" + soon + "|1|" + soon + "|2|{}",
		"isolate|c||":          "1796000000000000.0123abcd|" + soon + "|1|" + soon + "|0|{",
		"withhold|d||BTC":      "1796000000000000.0123abcd|" + soon + "|1|" + soon + "|0|{}",
		"isolate|e":            "1796000000000000.0123abcd|" + soon + "|1|" + soon + "|0|{}",
		"isolate||market_data": "1796000000000000.0123abcd|" + soon + "|1|" + soon + "|0|{}",
	} {
		if err := c.HSet(t.Context(), overridesKey, field, value).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.RPush(t.Context(), eventsKey, "rubbish", "", `{"since":1}`, `{"id":"x-1","type":"weather"}`).Err(); err != nil {
		t.Fatal(err)
	}
	k := past(t, patient(fleet.OperationsConfig{Redis: c}))
	inForce(t, k.Overrides) // what was ours is overwritten there, with a version from the future
	events(t, k.Events, one)
	// That version is rubbish as well: it does not keep anybody from saying something.
	keep(t, o, all)
	inForce(t, past(t, patient(fleet.OperationsConfig{Redis: c})).Overrides, all)
}

func TestOperationsRedis_everythingExpiresAndIsBounded(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	c := client(t, server)
	o := patient(fleet.OperationsConfig{Redis: c})
	past(t, o)
	keep(t, o, isolation(time.Hour), withheld(time.Minute))
	if ttl := c.TTL(t.Context(), overridesKey).Val(); ttl < 24*time.Hour+30*time.Minute || ttl > 26*time.Hour {
		t.Errorf("overrides expire in %v, want a day after the last end", ttl)
	}
	pipe := c.Pipeline()
	for i := range 20_500 {
		pipe.RPush(t.Context(), eventsKey, fmt.Sprintf(`{"id":"old-%d","at":%q,"type":"circuit"}`, i+1, time.Now().UTC().Format(time.RFC3339Nano)))
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	tell(t, o, change(1))
	if n := c.LLen(t.Context(), eventsKey).Val(); n != 20_000 {
		t.Errorf("%d lines are kept, want 20000", n)
	}
	if ttl := c.TTL(t.Context(), eventsKey).Val(); ttl < 24*time.Hour || ttl > 25*time.Hour {
		t.Errorf("events expire in %v, want in 25h", ttl)
	}
	k := past(t, patient(fleet.OperationsConfig{Redis: c}))
	if len(k.Events) != 20_000 || !k.Since.Equal(k.Events[0].At) {
		t.Errorf("%d events, complete since %v; want 20000, since the first", len(k.Events), k.Since)
	}

	// At the bound what is over goes first, and nothing that is in force.
	pipe = c.Pipeline()
	now := strconv.FormatInt(time.Now().UnixMicro(), 10)
	for i := range 2100 {
		pipe.HSet(t.Context(), overridesKey, fmt.Sprintf("withhold|okx||A%d/USDT", i), "1796000000000000.0123abcd|"+now+"|1|"+now+"|1|{}")
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	keep(t, o, isolation(time.Hour, func(o *market.Override) { o.Exchange = "binance" }))
	if n := c.HLen(t.Context(), overridesKey).Val(); n > 2001 {
		t.Errorf("%d fields are kept, want 2000 and the revision", n)
	}
	if n := len(past(t, patient(fleet.OperationsConfig{Redis: c})).Overrides); n != 3 {
		t.Errorf("%d overrides are in force, want 3", n)
	}
}

// Two machines whose clocks disagree by an hour: an end is on Redis' clock, and the later word holds whoever says it.
func TestOperationsRedis_clocksThatDisagree(t *testing.T) {
	server := redistest.Start(t)
	c := client(t, server)
	past(t, patient(fleet.OperationsConfig{Redis: c}))
	all := isolation(time.Hour)
	// Written by a machine an hour ahead.
	version := strconv.FormatInt(time.Now().Add(time.Hour).UnixMicro(), 10) + ".0123abcd"
	ends := strconv.FormatInt(all.Until.UnixMicro(), 10)
	since := strconv.FormatInt(all.Since.UnixMicro(), 10)
	value := strings.Join([]string{version, ends, since, ends, "0", `{"actor":"ahead"}`}, "|")
	if err := c.HSet(t.Context(), overridesKey, "isolate|okx||", value, "revision", "1").Err(); err != nil {
		t.Fatal(err)
	}
	o := patient(fleet.OperationsConfig{Redis: c})
	k := past(t, o)
	if len(k.Overrides) != 1 || k.Overrides[0].Actor != "ahead" || k.Overrides[0].Until.Sub(all.Until).Abs() > 5*time.Second {
		t.Errorf("in force: %+v", k.Overrides)
	}
	keep(t, o, released(all))
	inForce(t, past(t, patient(fleet.OperationsConfig{Redis: c})).Overrides)
}

func TestJoinMarks_isTheSameInEveryOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	base := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	for range 2000 {
		ms := make([]fleet.Mark, 3)
		for i := range ms {
			n := rng.IntN(3)
			ms[i] = fleet.Mark{
				Override: market.Override{
					Kind: market.OverrideIsolate, Exchange: "okx", Actor: strconv.Itoa(n),
					Until: base.Add(time.Duration(rng.IntN(3)) * time.Hour),
				},
				Version:  fleet.NextVersion("", base.Add(time.Duration(n)*time.Second))[:16] + ".00000000",
				Released: n == 2, Last: base.Add(time.Duration(rng.IntN(3)) * time.Hour),
			}
		}
		a := fleet.JoinMarks(fleet.JoinMarks(ms[0], ms[1]), ms[2])
		b := fleet.JoinMarks(ms[1], fleet.JoinMarks(ms[2], ms[0]))
		if diff := cmp.Diff(a, b); diff != "" {
			t.Fatalf("%+v: order matters:\n%s", ms, diff)
		}
		for _, m := range ms {
			if m.Version > a.Version || m.Last.After(a.Last) {
				t.Fatalf("%+v: %+v was given up for %+v", ms, m, a)
			}
		}
	}
}

func TestNextVersion_isLaterWhateverTheClocksSay(t *testing.T) {
	now := time.Now()
	ahead := fleet.NextVersion("", now.Add(time.Hour))
	if later := fleet.NextVersion(ahead, now); later <= ahead {
		t.Errorf("%s is not later than %s", later, ahead)
	}
	if a, b := fleet.NextVersion("", now), fleet.NextVersion("", now); a == b {
		t.Errorf("two versions of one moment are both %s", a)
	}
}

func FuzzParseOverride(f *testing.F) {
	f.Add("isolate|okx||", "1796000000000000.0123abcd|1796000000000000|1795000000000000|1796000000000000|0|{\"actor\":\"night\"}",
		int64(1795500000000000))
	f.Add("withhold|binance||BTC/USDT", "9999999999999999.ffffffff|0|0|0|1|{}", int64(0))
	f.Add("", "|||||", int64(-1))
	f.Fuzz(func(t *testing.T, field, value string, now int64) {
		received := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
		if now < 0 || now > 1<<53 {
			return // Redis' clock
		}
		m, ok := fleet.ParseOverride(field, value, now, received)
		if ok && (m.Exchange == "" || m.Kind == "" || m.Until.IsZero() || m.Until.After(received.Add(8*24*time.Hour))) {
			t.Errorf("read %+v", m)
		}
	})
}

// Several gateways say things about one exchange at once: in the end all of them hold the same.
func TestOperations_agreeInTheEnd(t *testing.T) {
	everywhere(t, func(t *testing.T, _ []string, reopen func(string) *fleet.Operations) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var all []*fleet.Operations
		ended := make(chan struct{}, 3)
		for i := range 3 {
			o := reopen(string(rune('a' + i)))
			past(t, o)
			all = append(all, o)
			go func() { _ = o.Run(ctx, nil); ended <- struct{}{} }()
		}
		said := make(chan error, 3)
		for i, o := range all {
			go func() {
				var err error
				for n := range 8 {
					ov := isolation(time.Hour, func(ov *market.Override) { ov.Actor = fmt.Sprintf("%d-%d", i, n) })
					if (i+n)%3 == 0 {
						ov = released(ov)
					}
					if _, e := o.Save(ctx, ov); e != nil {
						err = e
					}
				}
				said <- err
			}()
		}
		for range all {
			if err := <-said; err != nil {
				t.Error(err)
			}
		}
		agree := func() bool {
			first := all[0].InForce()
			return cmp.Equal(first, all[1].InForce(), sameTimes) && cmp.Equal(first, all[2].InForce(), sameTimes) &&
				cmp.Equal(first, past(t, reopen("d")).Overrides, sameTimes)
		}
		for deadline := time.Now().Add(30 * time.Second); !agree(); time.Sleep(50 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("they hold %+v, %+v, %+v", all[0].InForce(), all[1].InForce(), all[2].InForce())
			}
		}
		cancel()
		for range all {
			<-ended
		}
	})
}
