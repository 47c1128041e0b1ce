package hostile_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"
)

// victim is a client that does nothing wrong. It reads warm books at a steady pace, whatever else happens.
type victim struct {
	s      *stage
	key    string
	stop   context.CancelFunc
	done   sync.WaitGroup
	plain  *httptest.Server // what the machine itself allows at that moment
	mu     sync.Mutex
	tooks  []time.Duration
	plains []time.Duration
	failed []string
	ages   []time.Duration // of the books
	begun  cpu
}

const (
	victimEvery = 25 * time.Millisecond // 40 a second
	// victimBound is what the 99th percentile of a warm book may take while others attack.
	victimBound = 100 * time.Millisecond
	// busyBound is the same on a machine that works for others for over busyShare of its time: there the gateway waits for a
	// processor for longer than that, attacked or not, and only standing still can be told.
	busyBound, busyShare = 2 * time.Second, 20
)

// watch starts a victim. key, if there is one, goes with every second request.
func (s *stage) watch(key string) *victim {
	ctx, stop := context.WithCancel(context.Background())
	v := &victim{s: s, key: key, stop: stop}
	v.plain = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("{}")) // whoever asked waits for it
	}))
	s.t.Cleanup(v.end)
	v.begun = s.measure()
	v.done.Go(func() { v.run(ctx) })
	return v
}

func (v *victim) end() {
	v.stop()
	v.done.Wait()
	v.plain.Close()
}

func (v *victim) run(ctx context.Context) {
	tick := time.NewTicker(victimEvery)
	defer tick.Stop()
	ids := []string{"binance", "okx", "coinbase"}
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		key := ""
		if n%2 == 0 {
			key = v.key
		}
		plain := v.s.get(v.plain.Listener.Addr().String(), "/", "")
		id := ids[n%len(ids)]
		a := v.s.get(v.s.public, bookPath(id, warm[id]), key)
		v.note(a, plain.took)
	}
}

func (v *victim) note(a answer, plain time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.tooks, v.plains = append(v.tooks, a.took), append(v.plains, plain)
	var book struct {
		Freshness struct {
			AgeMS int64 `json:"age_ms"`
		}
	}
	if json.Unmarshal(a.body, &book) == nil {
		v.ages = append(v.ages, time.Duration(book.Freshness.AgeMS)*time.Millisecond)
	}
	if a.err != nil || a.status != http.StatusOK || !bytes.Contains(a.body, []byte(`"stale":false`)) {
		v.failed = append(v.failed, fmt.Sprintf("%d %v %.200s", a.status, a.err, a.body))
	}
}

// verdict ends the victim and says what it saw. A plain server in the test's own process is asked beside each request: where
// the bound is missed, that one tells how much of it is the machine's, which the attackers have to share here.
func (v *victim) verdict(t *testing.T, least int) (bound time.Duration) {
	t.Helper()
	v.end()
	if len(v.tooks) < least {
		t.Errorf("the other client asked %d times, want at least %d", len(v.tooks), least)
		return victimBound
	}
	for _, f := range v.failed[:min(len(v.failed), 5)] {
		t.Errorf("the other client was answered: %s", f)
	}
	if len(v.failed) > 0 {
		t.Errorf("%d of %d requests of the other client failed or were stale", len(v.failed), len(v.tooks))
	}
	p50, p99 := percentile(v.tooks, 50), percentile(v.tooks, 99)
	machine := percentile(v.plains, 99)
	foreign := v.s.measure().foreign(v.begun)
	t.Logf("the other client: %d requests, p50 %v, p99 %v, max %v; a plain server meanwhile: p99 %v, max %v; "+
		"%d %% of the machine went to others",
		len(v.tooks), p50, p99, slices.Max(v.tooks), machine, slices.Max(v.plains), foreign)
	bound = victimBound
	if foreign > busyShare {
		bound = busyBound
		t.Logf("the machine is too busy for a bound of %v", victimBound)
	}
	if p99 > bound {
		t.Errorf("p99 %v, want at most %v", p99, bound)
	}
	return bound
}

func percentile(all []time.Duration, p int) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(len(sorted)-1, len(sorted)*p/100)]
}
