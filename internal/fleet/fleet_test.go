package fleet_test

import (
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"exchange-gateway/internal/cache/redistest"
	"exchange-gateway/internal/fleet"
	"exchange-gateway/internal/market"
)

var (
	ip   = market.Scope{Kind: market.ScopeIP}
	main = market.Scope{Kind: market.ScopeAccount, Name: "main|EU desk"}
)

// ban is a ban of our address at Binance that began just now.
func ban(d time.Duration, changes ...func(*market.GateRecord)) market.GateRecord {
	now := time.Now().Round(0)
	r := market.GateRecord{
		Exchange: "binance", Scope: ip, Kind: market.KindBanned, Until: now.Add(d), Step: 1, UpdatedAt: now,
	}
	for _, c := range changes {
		c(&r)
	}
	return r
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func textLog(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

// client waits for Redis as long as it takes: the machine may be busy.
func client(t *testing.T, s *redistest.Server) redis.UniversalClient {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: s.Addr()})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// hurried is a client with the bounds of a gateway.
func hurried(t *testing.T, s *redistest.Server) redis.UniversalClient {
	t.Helper()
	c := redis.NewClient(&redis.Options{
		Addr: s.Addr(), ContextTimeoutEnabled: true, MaxRetries: -1, DialerRetries: 1,
		DialTimeout: 200 * time.Millisecond, ReadTimeout: 50 * time.Millisecond, WriteTimeout: 50 * time.Millisecond,
	})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func save(t *testing.T, k fleet.Keeper, r market.GateRecord) {
	t.Helper()
	if err := k.Save(t.Context(), r); err != nil {
		t.Fatalf("save: %v", err)
	}
}

func load(t *testing.T, k fleet.Keeper) []market.GateRecord {
	t.Helper()
	list, err := k.Load(t.Context())
	if err != nil {
		t.Fatalf("load: %v", err)
	}
	return list
}

// sameTimes lets an end move by the round trip to Redis, and not by more. Where an end was anchored on the clock is for inForce.
var sameTimes = cmp.Options{
	cmp.Comparer(func(a, b time.Time) bool { return a.Sub(b).Abs() < 2*time.Second }),
	cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Ends" }, cmp.Ignore()),
}

func want(t *testing.T, got []market.GateRecord, records ...market.GateRecord) {
	t.Helper()
	if diff := cmp.Diff(records, got, sameTimes); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
}

// keepers are the places under the suite; each call of reopen is a new process.
func keepers() map[string]func(*testing.T) (reopen func() fleet.Keeper) {
	return map[string]func(*testing.T) func() fleet.Keeper{
		"file": func(t *testing.T) func() fleet.Keeper {
			dir := t.TempDir()
			return func() fleet.Keeper { return fleet.NewGateFile(dir, quiet()) }
		},
		"redis": func(t *testing.T) func() fleet.Keeper {
			s := redistest.Start(t)
			return func() fleet.Keeper { return fleet.NewGateRedis(client(t, s), "gw") }
		},
		"file and redis": func(t *testing.T) func() fleet.Keeper {
			s, dir := redistest.Start(t), t.TempDir()
			return func() fleet.Keeper {
				return fleet.NewGates(fleet.NewGateFile(dir, quiet()), fleet.NewGateRedis(client(t, s), "gw"), quiet())
			}
		},
	}
}

func TestKeeper_keepsGatesAcrossRestarts(t *testing.T) {
	for name, open := range keepers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reopen := open(t)
			if got := load(t, reopen()); len(got) != 0 {
				t.Fatalf("at first = %v, want none", got)
			}
			address := ban(2 * time.Minute)
			account := ban(time.Minute, func(r *market.GateRecord) {
				r.Exchange, r.Scope, r.Kind, r.Step = "okx", main, market.KindAuth, 3
			})
			// A process that is killed gets to do nothing after Save, so nothing is closed here.
			k := reopen()
			save(t, k, address)
			save(t, k, account)
			want(t, load(t, reopen()), address, account)
		})
	}
}

func TestKeeper_movesAnEndOnlyForward(t *testing.T) {
	for name, open := range keepers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reopen := open(t)
			long := ban(time.Hour, func(r *market.GateRecord) { r.Step = 4; r.UpdatedAt = r.UpdatedAt.Add(-time.Minute) })
			save(t, reopen(), long)
			// A shorter refusal that came later: its growth holds, the end and its reason stay.
			short := ban(2*time.Second, func(r *market.GateRecord) { r.Kind = market.KindRateLimited })
			save(t, reopen(), short)
			joined := long
			joined.Step, joined.UpdatedAt = 1, short.UpdatedAt
			want(t, load(t, reopen()), joined)
			// The same, arriving in the other order.
			save(t, reopen(), long)
			want(t, load(t, reopen()), joined)
			longer := ban(2 * time.Hour)
			save(t, reopen(), longer)
			want(t, load(t, reopen()), longer)
		})
	}
}

func TestKeeper_remembersGrowthWhileItMatters(t *testing.T) {
	for name, open := range keepers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reopen := open(t)
			opened := ban(-5*time.Minute, func(r *market.GateRecord) {
				r.Step, r.UpdatedAt = 5, r.Until.Add(-30*time.Second)
			})
			over := ban(-time.Hour, func(r *market.GateRecord) {
				r.Exchange, r.UpdatedAt = "okx", r.Until.Add(-30*time.Second)
			})
			day := ban(-time.Hour, func(r *market.GateRecord) {
				r.Exchange, r.Step, r.UpdatedAt = "okx", 8, r.Until.Add(-24*time.Hour)
				r.Scope = market.Scope{Kind: market.ScopeEndpoint, Name: "books"}
			})
			k := reopen()
			for _, r := range []market.GateRecord{opened, over, day} {
				save(t, k, r)
			}
			want(t, load(t, reopen()), opened, day)
		})
	}
}

func TestKeeper_refusesWhatIsNoGate(t *testing.T) {
	for name, open := range keepers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reopen := open(t)
			for _, r := range []market.GateRecord{
				{},
				ban(time.Minute, func(r *market.GateRecord) { r.Until = time.Time{} }),
				ban(time.Minute, func(r *market.GateRecord) { r.Exchange = "" }),
			} {
				if err := reopen().Save(t.Context(), r); err == nil {
					t.Errorf("saved %+v", r)
				}
			}
			if got := load(t, reopen()); len(got) != 0 {
				t.Errorf("kept %v", got)
			}
		})
	}
}
