package cache_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"exchange-gateway/internal/cache"
	"exchange-gateway/internal/cache/redistest"
	"exchange-gateway/test/schedlat"
)

// gateway is a store over a real Redis, as one process has it.
type gateway struct {
	*cache.Store
	stop func()
}

func start(t *testing.T, c redis.UniversalClient) gateway {
	t.Helper()
	s := cache.New(cache.Config{}, c, quiet(), prometheus.NewRegistry())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	stopped := false
	stop := func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run = %v", err)
		}
	}
	t.Cleanup(stop)
	return gateway{s, stop}
}

// eventually waits for what happens in another process.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("never happened: %s", what)
}

func degradedBy(g gateway, part string) func() bool {
	return func() bool { return slices.Contains(g.Degraded(), part) }
}

// stored writes books of ten pairs and returns when Redis has them.
func stored(t *testing.T, g gateway, server *redistest.Server) {
	t.Helper()
	for i := range 10 {
		g.Keep(book(t, pairNo(i), numbered(1)))
	}
	g.Keep(book(t, numbered(1)))
	eventually(t, "eleven books in redis", func() bool { return server.Do("DBSIZE") == "11" })
}

// liveIsNotDelayed keeps and reads for a while and fails if that waited for Redis.
func liveIsNotDelayed(t *testing.T, g gateway) {
	t.Helper()
	const rounds = 200
	took, meter := make([]time.Duration, rounds), schedlat.Start(t)
	for i := range rounds {
		b := book(t, numbered(int64(1000+i)))
		watch := meter.Watch()
		g.Keep(b)
		if _, ok := g.Book("okx", btc); !ok {
			t.Fatal("a live book is not in memory")
		}
		took[i] = watch.Took()
		time.Sleep(time.Millisecond)
	}
	slices.Sort(took)
	t.Logf("live: median %v, 95 %% %v", took[rounds/2], took[rounds*95/100])
	if slow := took[rounds*95/100]; slow > liveBound {
		t.Errorf("one live answer in twenty took %v or more, want under %v", slow, liveBound)
	}
}

// staleIsBounded recalls ten books that are not in memory and tells how many it got.
func staleIsBounded(t *testing.T, g gateway) (found int) {
	t.Helper()
	took, meter := make([]time.Duration, 10), schedlat.Start(t)
	for i := range took {
		watch := meter.Watch()
		if _, ok := g.Recall(t.Context(), "okx", book(t, pairNo(i)).Pair); ok {
			found++
		}
		took[i] = watch.Took()
	}
	slices.Sort(took)
	t.Logf("stale: median %v, slowest %v", took[5], took[9])
	if took[7] > staleBound {
		t.Errorf("stale answers took %v, want at most %v", took, staleBound)
	}
	return found
}

// allAreFound waits until the ten books are known: on a busy machine a well Redis may need more than 50 ms at times.
func allAreFound(t *testing.T, g gateway) {
	t.Helper()
	eventually(t, "ten books out of redis", func() bool { return staleIsBounded(t, g) == 10 })
}
