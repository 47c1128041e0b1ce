package cache_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"exchange-gateway/internal/cache"
	"exchange-gateway/internal/cache/redistest"
	"exchange-gateway/internal/market"
)

// wholeOf is one process that keeps lists; stop ends it and writes what is left.
func wholeOf(t *testing.T, dir string, c redis.UniversalClient) (w *cache.Whole, stop func()) {
	t.Helper()
	w = cache.NewWhole(cache.Config{}, dir, c, quiet())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	return w, func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run = %v", err)
		}
	}
}

// said is an answer of some bytes that compress badly, as old as that.
func said(size int, age time.Duration) *market.NativeAnswer {
	b := make([]byte, size)
	r := rand.New(rand.NewPCG(1, uint64(size)))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return &market.NativeAnswer{Body: b, ConfirmedAt: time.Now().Add(-age)}
}

// recalled checks that a list comes back as it was, and how old.
func recalled(t *testing.T, w *cache.Whole, shared bool, want *market.NativeAnswer) {
	t.Helper()
	got, ok := w.RecallWhole(t.Context(), "alpha", shared)
	if want == nil {
		if ok {
			t.Errorf("a list of %d bytes, want none", len(got.Body))
		}
		return
	}
	if !ok || !bytes.Equal(got.Body, want.Body) {
		t.Errorf("a list: %v; its bytes are others", ok)
		return
	}
	now := time.Now()
	age, known := got.Age(now)
	if due, _ := want.Age(now); !known || age < due-10*time.Millisecond || age > due+10*time.Millisecond {
		t.Errorf("%v old, want %v", age, due)
	}
}

const wholeName = "listings-alpha.json.gz"

func TestWhole_survivesInTheStateDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	w, stop := wholeOf(t, dir, nil)
	recalled(t, w, false, nil)
	a := said(3<<20, 5*time.Hour)
	w.KeepWhole("alpha", a)
	recalled(t, w, false, a) // also before it is compressed
	stop()
	recalled(t, w, false, a)
	next, end := wholeOf(t, dir, nil)
	defer end()
	recalled(t, next, true, a)
	if _, ok := next.RecallWhole(t.Context(), "beta", true); ok || next.Degraded() != nil {
		t.Errorf("beta has a list: %v; degraded %v", ok, next.Degraded())
	}
	// It is a file that everybody can read.
	f, err := os.Open(filepath.Join(dir, wholeName))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(z); err != nil || !bytes.Equal(text, a.Body) {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.tmp")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestWhole_endsAfterADay(t *testing.T) {
	dir := t.TempDir()
	w, stop := wholeOf(t, dir, nil)
	w.KeepWhole("alpha", said(100, 24*time.Hour+time.Second))
	stop()
	recalled(t, w, false, nil)
	next, end := wholeOf(t, dir, nil)
	defer end()
	recalled(t, next, true, nil)
}

// TestWhole_bounds: a list that is too large, as it came or compressed, is not kept.
func TestWhole_bounds(t *testing.T) {
	dir := t.TempDir()
	w, stop := wholeOf(t, dir, nil)
	defer stop()
	w.KeepWhole("alpha", &market.NativeAnswer{Body: make([]byte, 64<<20+1), ConfirmedAt: time.Now()})
	recalled(t, w, false, nil)
	w.KeepWhole("alpha", said(17<<20, 0))
	eventually(t, "the list is given up", func() bool { _, ok := w.RecallWhole(t.Context(), "alpha", false); return !ok })
	large := &market.NativeAnswer{Body: bytes.Repeat([]byte(`{"symbol":"BTCUSDT"},`), 40<<20/21), ConfirmedAt: time.Now()}
	w.KeepWhole("alpha", large)
	recalled(t, w, false, large)
	path := filepath.Join(dir, wholeName)
	eventually(t, "40 MB are in a file", func() bool { _, err := os.Stat(path); return err == nil })
	next, end := wholeOf(t, dir, nil)
	defer end()
	recalled(t, next, false, large)
}

// TestWhole_leavesAloneWhatIsNotOurs, and says that it cannot keep the list; nothing hangs.
func TestWhole_leavesAloneWhatIsNotOurs(t *testing.T) {
	text := func(s string) func(string) error {
		return func(path string) error { return os.WriteFile(path, []byte(s), 0o600) }
	}
	var foreign, newer, other bytes.Buffer
	for b, comment := range map[*bytes.Buffer]string{
		&foreign: "somebody's own", &newer: "exchange-gateway list 2 and more", &other: "exchange-gateway list 1 beta 1796088298500000000",
	} {
		z := gzip.NewWriter(b)
		z.Comment = comment
		z.Write([]byte("{}"))
		z.Close()
	}
	for name, put := range map[string]func(string) error{
		"a text": text("my notes"), "nothing": text(""), "another gzip": text(foreign.String()), "a newer format": text(newer.String()),
		"another exchange's": text(other.String()),
		"a directory":        func(path string) error { return os.Mkdir(path, 0o700) },
		"a pipe":             func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a gigabyte": func(path string) error {
			if err := text("x")(path); err != nil {
				return err
			}
			return os.Truncate(path, 1<<30)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, wholeName)
			if err := put(path); err != nil {
				t.Fatal(err)
			}
			before, err := os.Lstat(path)
			if err != nil {
				t.Fatal(err)
			}
			w, stop := wholeOf(t, dir, nil)
			recalled(t, w, true, nil)
			a := said(100, 0)
			w.KeepWhole("alpha", a)
			stop()
			recalled(t, w, true, a)
			if !slices.Equal(w.Degraded(), []string{cache.DegradedLists}) {
				t.Errorf("degraded %v", w.Degraded())
			}
			after, err := os.Lstat(path)
			if err != nil || !os.SameFile(before, after) || after.Size() != before.Size() || !after.ModTime().Equal(before.ModTime()) {
				t.Errorf("it is another now: %v, %v", after, err)
			}
		})
	}
}

// TestWhole_replacesWhatIsBroken: a file of ours that was cut is not served, and the next list takes its place.
func TestWhole_replacesWhatIsBroken(t *testing.T) {
	dir := t.TempDir()
	w, stop := wholeOf(t, dir, nil)
	w.KeepWhole("alpha", said(10_000, 0))
	stop()
	path := filepath.Join(dir, wholeName)
	if err := os.Truncate(path, 5_000); err != nil {
		t.Fatal(err)
	}
	next, end := wholeOf(t, dir, nil)
	recalled(t, next, true, nil)
	a := said(100, time.Second)
	next.KeepWhole("alpha", a)
	end()
	if next.Degraded() != nil {
		t.Errorf("degraded %v", next.Degraded())
	}
	last, over := wholeOf(t, dir, nil)
	defer over()
	recalled(t, last, true, a)
}

// TestWhole_survivesInRedis: without a state directory. Three megabytes need more than one round trip of 50 ms.
func TestWhole_survivesInRedis(t *testing.T) {
	server := redistest.Start(t)
	c := client(t, server)
	w, stop := wholeOf(t, "", c)
	a := said(3<<20, 5*time.Hour)
	w.KeepWhole("alpha", a)
	stop()
	next, end := wholeOf(t, "", c)
	recalled(t, next, false, nil) // Redis is asked last
	recalled(t, next, true, a)
	next.KeepWhole("alpha", said(1000, 6*time.Hour)) // an older one does not take its place
	end()
	last, over := wholeOf(t, "", c)
	defer over()
	recalled(t, last, true, a)
	keys, err := c.Keys(t.Context(), "*").Result()
	if err != nil || len(keys) != 1 || !strings.HasPrefix(keys[0], "gw:whole:") {
		t.Errorf("keys %v, %v", keys, err)
	}
	if ttl := c.PTTL(t.Context(), keys[0]).Val(); ttl < 18*time.Hour || ttl > 19*time.Hour {
		t.Errorf("kept for %v more, want 19 h", ttl)
	}
	if d := last.Degraded(); d != nil {
		t.Errorf("degraded %v", d)
	}
}

// TestWhole_leavesAloneWhatIsNotOursInRedis as in the state directory.
func TestWhole_leavesAloneWhatIsNotOursInRedis(t *testing.T) {
	server := redistest.Start(t)
	c := client(t, server)
	for _, put := range []func(context.Context, string) error{
		func(ctx context.Context, key string) error { return c.Set(ctx, key, "something else", 0).Err() },
		func(ctx context.Context, key string) error { return c.LPush(ctx, key, "x").Err() },
		func(ctx context.Context, key string) error { return c.Set(ctx, key, "gww99 of a newer one", 0).Err() },
	} {
		const key = "gw:whole:v1:{alpha}"
		c.FlushAll(t.Context())
		if err := put(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		before := c.Dump(t.Context(), key).Val()
		w, stop := wholeOf(t, "", c)
		recalled(t, w, true, nil)
		w.KeepWhole("alpha", said(100, 0))
		stop()
		if d := w.Degraded(); !slices.Equal(d, []string{cache.DegradedValues}) || c.Dump(t.Context(), key).Val() != before {
			t.Errorf("degraded %v, or it is another now", d)
		}
	}
}
