package cache_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"exchange-gateway/internal/cache"
	"exchange-gateway/internal/cache/redistest"
	"exchange-gateway/internal/market"
	"exchange-gateway/test/schedlat"
)

// staleBound is the most by which Redis may slow a stale answer; a live one it may not slow at all. Other tests use the
// machine at the same time, so the wait for a processor is subtracted, and a few answers may be slower all the same: what
// waits for Redis waits each time.
const (
	staleBound = 60 * time.Millisecond
	liveBound  = 10 * time.Millisecond
)

const bookKey = "gw:book:v1:{okx:BTC/USDT}"

func TestBroken_aRestartInAnOutageKnowsTheTrueAge(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	first := start(t, client(t, server))
	kept, _ := first.Keep(book(t, ago(90*time.Second), stamped(venueTime), numbered(7)))
	eventually(t, "the book in redis", func() bool { return server.Do("EXISTS", bookKey) == "1" })
	// The first process dies here: nothing of it is closed or flushed before the second starts.
	second := start(t, client(t, server))
	var got *market.OrderBook
	eventually(t, "the second process knows the book", func() (ok bool) {
		got, ok = second.Recall(t.Context(), "okx", btc)
		return ok
	})
	age, known := got.Age(time.Now())
	if !known || age < 90*time.Second || age > 95*time.Second {
		t.Errorf("age = %v, %v, want 90s and what passed since", age, known)
	}
	if !got.ConfirmedAt.Equal(kept.ConfirmedAt) || !got.ChangedAt.Equal(kept.ChangedAt) || got.Compare(kept) != 0 ||
		text(got) != text(kept) {
		t.Errorf("got %+v, want %+v", got, kept)
	}
	if ttl := server.Do("PTTL", bookKey); len(ttl) != len("3510000") {
		t.Errorf("ttl = %s ms, want an hour less the age", ttl)
	}
}

func TestBroken_aShutdownWritesWhatIsLeft(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	g := start(t, client(t, server))
	g.Keep(book(t))
	g.KeepListings(listingsOf(btcListing))
	g.stop()
	if n := server.Do("DBSIZE"); n != "2" {
		t.Errorf("redis holds %s values, want the book and the list", n)
	}
	next := start(t, client(t, server))
	eventually(t, "the next process knows the list", func() bool {
		l, ok := next.RecallListings(t.Context(), "okx")
		return ok && l.Rows[0].Pair == btc
	})
}

func TestBroken_down(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	g := start(t, client(t, server))
	stored(t, g, server)
	server.Kill()
	liveIsNotDelayed(t, g)
	staleIsBounded(t, g)
	staleIsBounded(t, start(t, client(t, server)))
	eventually(t, "degraded", degradedBy(g, cache.DegradedWrite))
	server.Restart()
	eventually(t, "whole again", func() bool { return g.Degraded() == nil })
	// It came back empty; what memory holds is written again, without a single answer of the exchange.
	eventually(t, "eleven books in redis", func() bool { return server.Do("DBSIZE") == "11" })
	g.stop()
}

func TestBroken_hung(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	g := start(t, client(t, server))
	stored(t, g, server)
	server.Freeze()
	staleIsBounded(t, start(t, client(t, server)))
	liveIsNotDelayed(t, g)
	eventually(t, "degraded", degradedBy(g, cache.DegradedWrite))
	var waited []time.Duration
	meter := schedlat.Start(t)
	for range 20 { // within an instant
		watch := meter.Watch()
		g.Recall(t.Context(), "okx", market.Pair{Base: "ETH", Quote: "USDT"})
		if took := watch.Took(); took > 5*time.Millisecond {
			waited = append(waited, took)
		}
	}
	if len(waited) > 1 { // one of them may be the probe
		t.Errorf("stale answers waited %v for a redis that is known to hang", waited)
	}
	server.Thaw()
	eventually(t, "whole again", func() bool { return g.Degraded() == nil })
	eventually(t, "the last book in redis", func() bool {
		b, err := patient(t, server, cache.Config{}).ReadBook(t.Context(), "okx", btc)
		return err == nil && b.Sequence.Value == 1199
	})
}

// hangs is a hook that stops the server between reading its clock and sending it the scripts.
type hangs struct{ server *redistest.Server }

func (h hangs) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (h hangs) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (h hangs) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		h.server.Freeze()
		return next(ctx, cmds)
	}
}

func TestBroken_aCommandThatRunsLateMakesNothingYounger(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	c := client(t, server)
	r := cache.NewRedis(cache.Config{}, c)
	old := book(t, numbered(1))
	// The script has to be there already, or the command that runs late fails for another reason.
	if _, err := patient(t, server, cache.Config{}).WriteBooks(t.Context(), []*market.OrderBook{book(t, pairNo(1))}); err != nil {
		t.Fatal(err)
	}
	other := client(t, server)
	before := scripts(t, other)
	c.AddHook(hangs{server})
	if _, err := r.WriteBooks(t.Context(), []*market.OrderBook{old}); err == nil {
		t.Fatal("a frozen server took a book")
	}
	time.Sleep(1200 * time.Millisecond)
	server.Thaw()
	if server.Do("EXISTS", bookKey) != "0" {
		t.Error("a command from before the hang was executed after it")
	}
	if after := scripts(t, other); after == before {
		t.Error("the late command never ran, so this test tells nothing")
	}
}

// scripts is how many scripts the server ran, as it counts them itself.
func scripts(t *testing.T, c redis.UniversalClient) string {
	t.Helper()
	info, err := c.Info(t.Context(), "commandstats").Result()
	_, calls, ok := strings.Cut(info, "cmdstat_evalsha:")
	if err != nil || !ok {
		t.Fatalf("no count of scripts: %v", err)
	}
	calls, _, _ = strings.Cut(calls, ",")
	return calls
}

func TestBroken_slow(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		delay time.Duration
		want  int
	}{{15 * time.Millisecond, 10}, {100 * time.Millisecond, 0}} {
		t.Run(c.delay.String(), func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			writer := start(t, client(t, server))
			stored(t, writer, server)
			slow := redis.NewClient(cache.ClientOptions(redis.UniversalOptions{Addrs: []string{delayed(t, server.Addr(), c.delay)}}).Simple())
			t.Cleanup(func() { _ = slow.Close() })
			// A connection costs a round trip of its own, so the first question may fail.
			g := start(t, slow)
			g.Recall(t.Context(), "okx", market.Pair{Base: "ETH", Quote: "USDT"})
			liveIsNotDelayed(t, g)
			if c.want == 10 {
				allAreFound(t, g)
			} else if found := staleIsBounded(t, g); found != c.want {
				t.Errorf("found %d of 10 books, want %d", found, c.want)
			}
		})
	}
}

// delayed is a relay to addr that hands every answer on a while later.
func delayed(t *testing.T, addr string, by time.Duration) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", addr)
			if err != nil {
				_ = in.Close()
				continue
			}
			go func() { _, _ = io.Copy(out, in); _ = out.Close() }()
			go func() { _, _ = io.Copy(slowWriter{in, by}, out); _ = in.Close() }()
		}
	}()
	return l.Addr().String()
}

type slowWriter struct {
	w  io.Writer
	by time.Duration
}

func (s slowWriter) Write(p []byte) (int, error) {
	time.Sleep(s.by)
	return s.w.Write(p)
}

func TestBroken_readOnlyReplica(t *testing.T) {
	t.Parallel()
	primary, replica := redistest.Start(t), redistest.Start(t)
	stored(t, start(t, client(t, primary)), primary)
	host, port, _ := net.SplitHostPort(primary.Addr())
	replica.Do("REPLICAOF", host, port)
	eventually(t, "the replica has the books", func() bool { return replica.Do("DBSIZE") == "11" })
	g := start(t, client(t, replica))
	allAreFound(t, g)
	liveIsNotDelayed(t, g)
	eventually(t, "degraded", degradedBy(g, cache.DegradedWrite))
	eventually(t, "reads count as well: a replica can be read", func() bool {
		return slices.Equal(g.Degraded(), []string{cache.DegradedWrite})
	})
	replica.Do("REPLICAOF", "NO", "ONE")
	eventually(t, "whole again", func() bool { return g.Degraded() == nil })
}

func TestBroken_full(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--maxmemory-policy", "noeviction")
	g := start(t, client(t, server))
	stored(t, g, server)
	server.Do("CONFIG", "SET", "maxmemory", "1")
	liveIsNotDelayed(t, g)
	eventually(t, "degraded", degradedBy(g, cache.DegradedWrite))
	allAreFound(t, start(t, client(t, server)))
	server.Do("CONFIG", "SET", "maxmemory", "0")
	eventually(t, "whole again", func() bool { return g.Degraded() == nil })
}

func TestBroken_rubbish(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(*redistest.Server){
		"text":               func(s *redistest.Server) { s.Do("SET", bookKey, "rubbish") },
		"another type":       func(s *redistest.Server) { s.Do("RPUSH", bookKey, "a", "b") },
		"a header that lies": func(s *redistest.Server) { s.Do("SET", bookKey, "gwb02"+strings.Repeat("9", 108)) },
		"an older format":    func(s *redistest.Server) { s.Do("SET", bookKey, "gwb00123") },
		"two megabytes":      func(s *redistest.Server) { s.Do("SETRANGE", bookKey, "2097152", "x") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			set(server)
			g := start(t, client(t, server))
			eventually(t, "the values alone are degraded: redis itself is well", func() bool {
				if b, ok := g.Recall(t.Context(), "okx", btc); ok {
					t.Fatalf("read %+v", b)
				}
				return slices.Equal(g.Degraded(), []string{cache.DegradedValues})
			})
			// It is our name, so the next book takes it.
			g.Keep(book(t, numbered(5)))
			r := patient(t, server, cache.Config{})
			eventually(t, "a book in its place", func() bool {
				b, err := r.ReadBook(t.Context(), "okx", btc)
				return err == nil && b.Sequence.Value == 5
			})
		})
	}
}

func TestBroken_aNewerFormatIsLeftAlone(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	const listKey = "gw:listings:v1:{okx}"
	newer := map[string]string{bookKey: "gwb03-of-a-newer-gateway", listKey: "gwl02-of-a-newer-gateway"}
	for k, v := range newer {
		server.Do("SET", k, v)
	}
	g := start(t, client(t, server))
	eventually(t, "degraded", func() bool {
		if b, ok := g.Recall(t.Context(), "okx", btc); ok {
			t.Fatalf("read %+v", b)
		}
		return slices.Equal(g.Degraded(), []string{cache.DegradedValues})
	})
	g.Keep(book(t))
	g.KeepListings(listingsOf(btcListing))
	g.stop()
	c := client(t, server)
	for k, v := range newer {
		if got := c.Get(t.Context(), k).Val(); got != v {
			t.Errorf("%s = %q, want what the newer gateway wrote", k, got)
		}
	}
}

func TestBroken_flushedUnderLoad(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	g := start(t, client(t, server))
	stored(t, g, server)
	for range 5 {
		server.Do("FLUSHALL")
		server.Do("SCRIPT", "FLUSH")
		liveIsNotDelayed(t, g)
		if found := staleIsBounded(t, g); found != 10 {
			t.Errorf("found %d of 10 books that memory holds", found)
		}
	}
	eventually(t, "whole: an empty redis is well", func() bool { return g.Degraded() == nil })
	eventually(t, "the streaming book in redis", func() bool { return server.Do("EXISTS", bookKey) == "1" })
}

func TestBroken_anotherBookUnderTheName(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	c := client(t, server)
	value, err := cache.EncodeBook(book(t, pairNo(3)), time.Now().UnixMicro())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Set(t.Context(), bookKey, value, time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	r := patient(t, server, cache.Config{})
	if b, err := r.ReadBook(t.Context(), "okx", btc); err == nil || fmt.Sprint(err) != cache.ErrRubbish.Error() {
		t.Errorf("read %+v, %v: the book of another pair", b, err)
	}
}
