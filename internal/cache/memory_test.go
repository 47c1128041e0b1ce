package cache_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"exchange-gateway/internal/cache"
	"exchange-gateway/internal/market"
)

func memory(cfg cache.Config) *cache.Memory {
	return cache.NewMemory(cfg, quiet(), prometheus.NewRegistry())
}

func named(i int) market.Pair { return market.Pair{Base: fmt.Sprintf("COIN%d", i), Quote: "USDT"} }

func called(p market.Pair) change { return func(b *market.OrderBook) { b.Pair = p } }

func TestMemory_saysWhenALevelChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memory(cache.Config{})
		keep := func(changes ...change) *market.OrderBook {
			t.Helper()
			b := book(t, changes...)
			kept, _ := m.Keep(b)
			if !b.ChangedAt.IsZero() || kept == b {
				t.Error("the caller's book was changed")
			}
			time.Sleep(time.Second)
			return kept
		}
		began := time.Now()
		first := keep(numbered(1))
		if !first.ChangedAt.Equal(began) {
			t.Errorf("without a time of the exchange: %v, want when it was confirmed", first.ChangedAt)
		}
		same := keep(numbered(1))
		if !same.ChangedAt.Equal(began) || !same.ConfirmedAt.Equal(began.Add(time.Second)) || same.Levels != first.Levels {
			t.Errorf("confirmed: changed %v, confirmed %v, same levels %v", same.ChangedAt, same.ConfirmedAt, same.Levels == first.Levels)
		}
		equal := keep(numbered(2))
		if !equal.ChangedAt.Equal(began) || equal.Sequence.Value != 2 || equal.Levels != first.Levels {
			t.Errorf("a newer version with equal levels: changed %v, %+v", equal.ChangedAt, equal.Sequence)
		}
		moved := keep(numbered(3), stamped(venueTime), bid(t, "64000.00"))
		if !moved.ChangedAt.Equal(venueTime) {
			t.Errorf("with a time of the exchange: %v, want it", moved.ChangedAt)
		}
		deeper := keep(numbered(4), stamped(venueTime.Add(time.Hour)), bid(t, "64000.00"), asked(500))
		if !deeper.ChangedAt.Equal(venueTime) {
			t.Errorf("more levels of the same book: %v, want what it was", deeper.ChangedAt)
		}
	})
}

func TestMemory_aShallowerAnswerServesItsOwnCall(t *testing.T) {
	m := memory(cache.Config{})
	stands, _ := m.Keep(book(t, deep(t, 50), numbered(1)))
	in := book(t, deep(t, 5), numbered(2))
	got, verdict := m.Keep(in)
	if verdict != market.VerdictShallower || got.Sequence.Value != 2 || len(got.Bids()) != 5 || got.ChangedAt.IsZero() {
		t.Errorf("the call is answered with %+v, %s", got, verdict)
	}
	if b, _ := m.Book("okx", btc); b != stands {
		t.Errorf("stands: %+v, want the deeper one", b)
	}
}

func TestMemory_equalLevelsAreEncodedOnce(t *testing.T) {
	m := memory(cache.Config{})
	first, _ := m.Keep(book(t, deep(t, 100), numbered(1)))
	buffer := make([]byte, 0, 1<<16)
	first.AppendBids(buffer, 100)
	second, _ := m.Keep(book(t, deep(t, 100), numbered(2)))
	if n := testing.AllocsPerRun(1, func() { second.AppendBids(buffer, 100) }); n != 0 {
		t.Errorf("the same levels were encoded again: %v allocations", n)
	}
}

// TestMemory_aFlappingCacheIsNoReset: a bot that asks five times a second was once given a book a minute old as live,
// because it met the same late cache three times in 0.4 s.
func TestMemory_aFlappingCacheIsNoReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, keep := range map[string]func(*market.OrderBook) (*market.OrderBook, market.Verdict){
			"memory":  memory(cache.Config{}).Keep,
			"layered": cache.NewWithRemote(cache.Config{}, &fakeRedis{}, quiet(), prometheus.NewRegistry()).Keep,
		} {
			keep(book(t, stamped(venueTime.Add(time.Minute))))
			start := time.Now()
			for {
				time.Sleep(200 * time.Millisecond)
				stands, verdict := keep(book(t, stamped(venueTime)))
				spanned := time.Since(start) - 200*time.Millisecond // since the first of them
				if spanned < 2*time.Second {
					if verdict != market.VerdictOlder || !stands.ExchangeTime.Equal(venueTime.Add(time.Minute)) {
						t.Fatalf("%s: %s after %v", name, verdict, spanned)
					}
					continue
				}
				if verdict != market.VerdictReset || !stands.ExchangeTime.Equal(venueTime) {
					t.Errorf("%s: %s after %v, want a reset: it lasts", name, verdict, spanned)
				}
				break
			}
		}
	})
}

func TestMemory_aResetIsLogged(t *testing.T) {
	for name, c := range map[string]struct {
		before, now change
		want, lacks string
	}{
		"sequences": {numbered(100), numbered(7), "sequence_before=100 sequence_now=7", "exchange_time"},
		"times": {
			stamped(venueTime.Add(time.Minute)), stamped(venueTime),
			"exchange_time_before=2026-11-29T02:01:00.123Z exchange_time_now=2026-11-29T02:00:00.123Z", "sequence",
		},
	} {
		var log bytes.Buffer
		m := cache.NewMemory(cache.Config{}, slog.New(slog.NewTextHandler(&log, nil)), prometheus.NewRegistry())
		m.Keep(book(t, c.before, ago(10*time.Second)))
		for i := range 3 {
			m.Keep(book(t, c.now, ago(time.Duration(9-3*i)*time.Second)))
		}
		line := log.String()
		if strings.Count(line, "started anew") != 1 || !strings.Contains(line, "exchange=okx pair=BTC/USDT") ||
			!strings.Contains(line, c.want) || strings.Contains(line, c.lacks) || strings.Contains(line, "0001-01-01") {
			t.Errorf("%s: logged %q, want one line with %q", name, line, c.want)
		}
	}
}

func TestMemory_isBoundedInBooks(t *testing.T) {
	reg := prometheus.NewRegistry()
	s := cache.New(cache.Config{MaxBooks: 100}, nil, quiet(), reg)
	for i := range 1000 {
		s.Keep(book(t, called(named(i))))
		for hot := range min(i, 10) { // these are read all the time
			if _, ok := s.Book("okx", named(hot)); !ok {
				t.Fatalf("after %d books one that is read all the time is gone", i)
			}
		}
	}
	held := 0
	for i := range 1000 {
		if _, ok := s.Book("okx", named(i)); ok {
			held++
		}
	}
	if held != 100 {
		t.Errorf("holds %d books, want 100", held)
	}
	if n, err := testutil.GatherAndCount(reg, "gateway_cache_evictions_total"); n != 1 || err != nil {
		t.Errorf("evictions are not counted: %v", err)
	}
}

func TestMemory_isBoundedInLevels(t *testing.T) {
	m := memory(cache.Config{MaxLevels: 10_000})
	large := deep(t, 1000)
	for i := range 50 {
		m.Keep(book(t, called(named(i)), large))
	}
	held := 0
	for i := range 50 {
		if _, ok := m.Book("okx", named(i)); ok {
			held++
		}
	}
	if held != 5 {
		t.Errorf("holds %d books of 2,000 levels, want 5 in 10,000", held)
	}
	m.Keep(book(t, called(named(99)), deep(t, 6000)))
	if _, ok := m.Book("okx", named(99)); !ok {
		t.Error("a book larger than the bound is not kept at all")
	}
}

func TestMemory_manyAtOnce(t *testing.T) {
	m := memory(cache.Config{MaxBooks: 50, MaxLevels: 80})
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 2000 {
				p := named((i*7 + w) % 120)
				if got, v := m.Keep(book(t, called(p), numbered(int64(i)))); got == nil || got.Pair != p {
					t.Errorf("keep = %v, %s", got, v)
				}
				if b, ok := m.Book("okx", p); ok && b.Pair != p {
					t.Errorf("asked for %v, got %v", p, b.Pair)
				}
			}
		})
	}
	wg.Wait()
	held := 0
	for i := range 120 {
		if _, ok := m.Book("okx", named(i)); ok {
			held++
		}
	}
	if held == 0 || held > 40 {
		t.Errorf("holds %d books of 2 levels, want at most 40 in 80 levels", held)
	}
}

func TestMemory_concurrentAnswersOfOneBookNeverGoBack(t *testing.T) {
	m := memory(cache.Config{})
	var wg sync.WaitGroup
	begin := time.Now()
	for w := range 4 {
		wg.Go(func() {
			last := int64(0)
			for i := range 1000 {
				// Each was sent before the one that stands, so none is a reset.
				m.Keep(book(t, numbered(int64(i*4+w)), func(b *market.OrderBook) { b.ConfirmedAt = begin }))
				b, _ := m.Book("okx", btc)
				if b.Sequence.Value < last {
					t.Errorf("went back from %d to %d", last, b.Sequence.Value)
				}
				last = b.Sequence.Value
			}
		})
	}
	wg.Wait()
}

func TestMemory_lookupAllocatesNothing(t *testing.T) {
	m := memory(cache.Config{})
	m.Keep(book(t))
	if n := testing.AllocsPerRun(100, func() { m.Book("okx", btc) }); n != 0 {
		t.Errorf("a lookup makes %v allocations", n)
	}
}

func full(b *testing.B) (*cache.Memory, []market.Pair) {
	m := memory(cache.Config{})
	pairs := make([]market.Pair, 5000)
	one := book(b)
	for i := range pairs {
		pairs[i] = named(i)
		next := *one
		next.Pair = pairs[i]
		m.Keep(&next)
	}
	return m, pairs
}

func BenchmarkMemoryBook(b *testing.B) {
	m, pairs := full(b)
	b.Run("one", func(b *testing.B) {
		b.ReportAllocs()
		perCPU(b)
		for b.Loop() {
			m.Book("okx", pairs[7])
		}
	})
	b.Run("all", func(b *testing.B) {
		b.ReportAllocs()
		perCPU(b)
		i := 0
		for b.Loop() {
			if i++; i == len(pairs) {
				i = 0
			}
			m.Book("okx", pairs[i])
		}
	})
	b.Run("a map, to compare", func(b *testing.B) {
		type key struct {
			exchange market.ExchangeID
			pair     market.Pair
		}
		books := make(map[key]*market.OrderBook, len(pairs))
		for _, p := range pairs {
			books[key{"okx", p}], _ = m.Book("okx", p)
		}
		perCPU(b)
		i, found := 0, 0
		for b.Loop() {
			if i++; i == len(pairs) {
				i = 0
			}
			if books[key{"okx", pairs[i]}] != nil {
				found++
			}
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				m.Book("okx", pairs[7])
			}
		})
	})
}

func BenchmarkMemoryKeep(b *testing.B) {
	m := memory(cache.Config{})
	books := []*market.OrderBook{book(b, deep(b, 100)), book(b, deep(b, 100))}
	b.ReportAllocs()
	perCPU(b)
	for i := 0; b.Loop(); i++ {
		next := *books[i%2]
		next.Sequence = market.SequenceOf(int64(i))
		m.Keep(&next)
	}
}

func BenchmarkCodec(b *testing.B) {
	one := book(b, deep(b, 100))
	value, err := cache.EncodeBook(one, redisNow)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		b.ReportMetric(float64(len(value)), "B/book")
		perCPU(b)
		for b.Loop() {
			_, _ = cache.EncodeBook(one, redisNow)
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		text := string(value)
		perCPU(b)
		for b.Loop() {
			_, _ = cache.DecodeBook(text, redisNow, time.Now())
		}
	})
}
