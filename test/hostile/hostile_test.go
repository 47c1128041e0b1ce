package hostile_test

import (
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"exchange-gateway/test/hostile/attack"
)

const (
	// wantIdle connections do nothing while everything else goes on, a tenth of them WebSockets.
	wantIdle = 10_000
	// spareFiles are what a process needs beside them.
	spareFiles = 500
)

// idle is how many idle connections there can be: the gateway's end and the attacker's count against a limit each.
func idle(t *testing.T) int {
	t.Helper()
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		t.Fatal(err)
	}
	if most := int(min(files.Max, 1<<30)) - spareFiles; most < wantIdle {
		t.Logf("ONLY %d IDLE CONNECTIONS INSTEAD OF %d: the machine's hard limit of open files (ulimit -Hn) is %d", most,
			wantIdle, files.Max)
		return most
	}
	return wantIdle
}

// TestHostileClients lets everything happen at once, or one after the other where an answer is told apart by it, under the
// eyes of a client that does nothing wrong.
func TestHostileClients(t *testing.T) {
	s := newStage(t)
	key := s.newKey(t, "modest")
	s.raise(t)
	before := s.settled(2)
	v := s.watch(key)

	slowly := s.begin(t, s.public, append(slow(), halves()...))
	orderly := s.begin(t, s.admin, slowOrders())
	crowd := s.assemble(t, idle(t))
	t.Run("operators", func(t *testing.T) {
		if a := s.get(s.admin, "/v1/circuits", ""); a.status != http.StatusOK {
			t.Errorf("the dashboard's own question while orders trickle in: %d %.200s", a.status, a.body)
		}
	})
	for _, group := range []struct {
		name, target string
		all          []hostility
	}{
		{"oversized", s.public, oversized()},
		{"malformed", s.public, malformed()},
		{"paths and methods", s.public, lost()},
		{"parameters", s.public, absurd()},
		{"pipelined", s.public, pipelined()},
		{"handshakes", s.public, handshakes()},
		{"frames", s.public, frames()},
		{"messages", s.public, messages()},
		{"orders", s.admin, orders()},
		{"no keys", s.public, noKeys()},
		{"wrong keys", s.public, wrongKeys()},
	} {
		t.Run(group.name, func(t *testing.T) { s.plays(t, group.target, 30*time.Second, group.all) })
	}
	t.Run("slow orders", func(t *testing.T) { orderly.judge(t, 60*time.Second) })
	t.Run("slow", func(t *testing.T) { slowly.judge(t, 60*time.Second) })
	during := s.usage()
	t.Run("idle", crowd.goHome)
	v.verdict(t, 400)
	s.returns(t, before, during)
}

// noKeys are what is sent in the place of a key. They come before the guesses, after which each attempt is slowed down.
func noKeys() []hostility {
	const key = "gw_aaaaaaaa_aaaaaaaaaaaaaaaaaaaaaaaaaa"
	return []hostility{
		refused("two keys", get("/v1/exchanges", "X-API-Key: "+key, "Authorization: Bearer "+strings.ToUpper(key)), 401,
			"unauthenticated"),
		refused("a name and password", get("/v1/exchanges", "Authorization: Basic YTpi"), 401, "unauthenticated"),
		refused("a key of 10 KB", get("/v1/exchanges", "Authorization: Bearer "+key+strings.Repeat("a", 10<<10)), 401,
			"unauthenticated"),
	}
}

// wrongKeys are thousands of guesses. Each is refused alike, and a client with a right key is served meanwhile.
func wrongKeys() []hostility {
	const conns, each = 20, 250
	guess := func(n int) string {
		return get("/v1/exchanges/okx/balance", fmt.Sprintf("Authorization: Bearer gw_aaaaaaaa_%026d", n))
	}
	var b strings.Builder
	for n := range each {
		b.WriteString(guess(n))
	}
	return []hostility{
		{
			Script: attack.Script{
				Name: "5,000 wrong keys", Conns: conns, Steps: []attack.Step{{Send: []byte(b.String())}},
				Wait: 5 * time.Second,
			},
			statuses: []int{401, 429}, answers: each, codes: []string{"unauthenticated", "client_rate_limited"}, ends: either,
		},
	}
}

// crowd is the idle connections.
type crowd struct {
	a       *attacker
	want    int
	sockets int
}

func (s *stage) assemble(t *testing.T, n int) crowd {
	t.Helper()
	c := crowd{want: n, sockets: n / 10}
	c.a = attacks(t, attack.Order{Target: s.public, Idle: &attack.Idle{
		Requests: n - c.sockets, Request: []byte(get("/livez")), Sockets: c.sockets, Handshake: []byte(handshake()),
	}})
	if r := c.a.report(60 * time.Second).Crowd; r == nil || r.Standing != n {
		t.Errorf("of %d idle connections: %+v", n, r)
	}
	return c
}

// goHome finds the crowd where it was, and lets it go.
func (c crowd) goHome(t *testing.T) {
	c.a.release()
	if r := c.a.report(60 * time.Second).Crowd; r == nil || r.Lost > 0 || r.Standing == 0 {
		t.Errorf("asked again after their silence: %+v, want all of the sample answered", r)
	}
	<-c.a.p.done
}

const (
	// spareHeap and spareRoutines are what may be left of it all: pools, the books of pairs that were asked for.
	spareHeap, spareRoutines, spareConns = 24 << 20, 50, 50
	// maxPerIdle is the memory of one idle connection with everything that it makes the process keep: two buffers of 4 KiB,
	// a goroutine or two with their stacks, and the collector's headroom over all of it.
	maxPerIdle = 64 << 10
)

// returns waits until the gateway has given back what others took.
func (s *stage) returns(t *testing.T, before, during usage) {
	t.Helper()
	t.Logf("before %+v, during %+v", before, during)
	if grown := during.resident - before.resident; grown > wantIdle*maxPerIdle {
		t.Errorf("%d MiB more memory while attacked, want at most %d", grown>>20, wantIdle*maxPerIdle>>20)
	}
	var after usage
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); {
		after = s.settled(2)
		if after.goroutines <= before.goroutines+spareRoutines && after.files <= before.files+spareConns &&
			after.heap <= before.heap+spareHeap {
			t.Logf("after %+v", after)
			return
		}
	}
	t.Errorf("after %+v, want about what it was before: %+v", after, before)
}
