package cache_test

import (
	"context"
	"errors"
	"slices"
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

var errRefused = errors.New("connection refused")

func TestStore_writesEachBookOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &fakeRedis{}
		s, _ := running(t, r, cache.Config{})
		for i := range 100 { // for a second
			s.Keep(book(t, numbered(int64(i))))
			time.Sleep(10 * time.Millisecond)
		}
		synctest.Wait()
		batches, books := r.seen()
		if len(books) > 1 {
			t.Fatalf("written %d times within a second, in %v", len(books), batches)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		_, more := r.seen()
		if books = append(books, more...); len(books) == 0 || books[len(books)-1].Sequence.Value != 99 {
			t.Fatalf("written last: %d books, want the newest", len(books))
		}
		time.Sleep(time.Minute)
		if batches, _ := r.seen(); len(batches) != 0 {
			t.Errorf("a book that did not change was written again: %v", batches)
		}
	})
}

func TestStore_writesInBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &fakeRedis{}
		s, _ := running(t, r, cache.Config{})
		for i := range 150 {
			s.Keep(book(t, pairNo(i)))
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if batches, _ := r.seen(); !slices.Equal(batches, []int{64, 64, 22}) {
			t.Errorf("batches = %v, want 64, 64, 22", batches)
		}
		large := deep(t, 2000)
		for i := range 5 {
			s.Keep(book(t, pairNo(i), large))
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if batches, _ := r.seen(); !slices.Equal(batches, []int{2, 2, 1}) {
			t.Errorf("batches of large books = %v, want 2, 2, 1", batches)
		}
	})
}

func TestStore_whatRedisDoesNotTakeIsWrittenLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &fakeRedis{}
		s, reg := running(t, r, cache.Config{})
		s.Keep(book(t, pairNo(1)))
		time.Sleep(1500 * time.Millisecond)
		r.seen()
		r.set(errRefused, 0)
		s.Keep(book(t, pairNo(2), numbered(1)))
		time.Sleep(2 * time.Second)
		s.Keep(book(t, pairNo(2), numbered(2)))
		s.KeepListings(listingsOf(btcListing))
		time.Sleep(time.Minute)
		if parts := s.Degraded(); !slices.Equal(parts, []string{cache.DegradedRead, cache.DegradedWrite}) {
			t.Errorf("degraded = %q", parts)
		}
		if r.pings > 25 {
			t.Errorf("a dead redis was asked %d times in a minute", r.pings)
		}
		gauge := strings.NewReader("# HELP gateway_cache_redis_pending Copies waiting to be written to Redis.\n" +
			"# TYPE gateway_cache_redis_pending gauge\ngateway_cache_redis_pending 2\n")
		if err := testutil.GatherAndCompare(reg, gauge, "gateway_cache_redis_pending"); err != nil {
			t.Error(err)
		}
		r.set(nil, 0)
		time.Sleep(8 * time.Second)
		synctest.Wait()
		_, books := r.seen()
		newest := map[market.Pair]int64{}
		for _, b := range books {
			newest[b.Pair] = max(newest[b.Pair], b.Sequence.Value)
		}
		// The first was written before the failure, but the Redis that came back may be empty.
		if len(newest) != 2 || newest[book(t, pairNo(2)).Pair] != 2 || len(r.lists) == 0 {
			t.Errorf("after the recovery: %v and %d lists, want both books and the list", newest, len(r.lists))
		}
		if parts := s.Degraded(); parts != nil {
			t.Errorf("degraded = %q after the recovery", parts)
		}
	})
}

func TestStore_anIdleStoreKnowsHowRedisIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &fakeRedis{}
		s, _ := running(t, r, cache.Config{})
		s.Keep(book(t))
		time.Sleep(10 * time.Second)
		r.seen()
		r.set(errRefused, 0)
		time.Sleep(30 * time.Second)
		if parts := s.Degraded(); !slices.Equal(parts, []string{cache.DegradedRead, cache.DegradedWrite}) {
			t.Errorf("degraded = %q with a dead redis and nothing to do", parts)
		}
		r.set(nil, 0)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if parts := s.Degraded(); parts != nil {
			t.Errorf("degraded = %q after the recovery", parts)
		}
		if _, books := r.seen(); len(books) != 1 {
			t.Errorf("%d books were written again, want the one in memory", len(books))
		}
	})
}

func TestStore_theLastRoundIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, slow := range []time.Duration{0, time.Hour} {
			r := &fakeRedis{}
			s := cache.NewWithRemote(cache.Config{}, r, quiet(), prometheus.NewRegistry())
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- s.Run(ctx) }()
			s.Keep(book(t))
			r.set(nil, slow)
			start := time.Now()
			cancel()
			if err := <-ended; err != nil {
				t.Errorf("run = %v", err)
			}
			took := time.Since(start)
			if _, books := r.seen(); slow == 0 && (len(books) != 1 || took != 0) {
				t.Errorf("at the end: %d books written in %v, want the one that was left", len(books), took)
			}
			if took > 2*time.Second {
				t.Errorf("the end took %v", took)
			}
		}
	})
}

func TestStore_asksRedisOnceASecondPerBook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &fakeRedis{book: book(t, ago(time.Minute)), slow: 20 * time.Millisecond}
		s := cache.NewWithRemote(cache.Config{}, r, quiet(), prometheus.NewRegistry())
		var wg sync.WaitGroup
		for range 64 {
			wg.Go(func() {
				if b, ok := s.Recall(t.Context(), "okx", btc); !ok || b != nil && b.Pair != btc {
					t.Errorf("recall = %v, %v", b, ok)
				}
			})
		}
		wg.Wait()
		for range 9 {
			s.Recall(t.Context(), "okx", btc)
			time.Sleep(100 * time.Millisecond)
		}
		if n := r.readCount(); n != 1 {
			t.Errorf("redis was asked %d times within a second, want once", n)
		}
		time.Sleep(200 * time.Millisecond)
		s.Recall(t.Context(), "okx", btc)
		s.Recall(t.Context(), "okx", market.Pair{Base: "ETH", Quote: "USDT"})
		if n := r.readCount(); n != 3 {
			t.Errorf("redis was asked %d times, want 3: a second later, and for another book", n)
		}
	})
}

func TestStore_aCallerWhoLeavesTakesNothingFromTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &fakeRedis{book: book(t), slow: 40 * time.Millisecond}
		s := cache.NewWithRemote(cache.Config{}, r, quiet(), prometheus.NewRegistry())
		first, leave := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { s.Recall(first, "okx", btc) })
		synctest.Wait()
		wg.Go(func() {
			if _, ok := s.Recall(t.Context(), "okx", btc); !ok {
				t.Error("the one who stayed got nothing")
			}
		})
		synctest.Wait()
		leave()
		wg.Wait()
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, ok := s.Recall(gone, "binance", btc); ok || r.readCount() != 1 {
			t.Error("asked for somebody who had left")
		}
	})
}

func TestStore_recallGivesTheNewerCopy(t *testing.T) {
	for name, c := range map[string]struct {
		memory, redis []change
		want          int64
		anchored      bool
	}{
		"redis is newer":                 {[]change{numbered(1), ago(2 * time.Second)}, []change{numbered(2), ago(time.Second)}, 2, true},
		"memory is newer":                {[]change{numbered(3), ago(2 * time.Second)}, []change{numbered(2), ago(time.Second)}, 3, false},
		"another gateway confirmed it":   {[]change{numbered(1), ago(5 * time.Second)}, []change{numbered(1), ago(time.Second)}, 1, true},
		"this gateway confirmed it last": {[]change{numbered(1), ago(time.Second)}, []change{numbered(1), ago(5 * time.Second)}, 1, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			copied := book(t, c.redis...)
			copied.Anchor = copied.ConfirmedAt
			r := &fakeRedis{book: copied}
			s := cache.NewWithRemote(cache.Config{}, r, quiet(), prometheus.NewRegistry())
			s.Keep(book(t, c.memory...))
			b, ok := s.Recall(t.Context(), "okx", btc)
			if !ok || b.Sequence.Value != c.want || b.Anchor.IsZero() == c.anchored {
				t.Errorf("%s: got %+v, %v", name, b, ok)
			}
		})
	}
}

func TestStore_olderCopiesFromRedisAreNeverAReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &fakeRedis{}
		s := cache.NewWithRemote(cache.Config{}, r, quiet(), prometheus.NewRegistry())
		s.Keep(book(t, numbered(100)))
		for range 5 {
			time.Sleep(2 * time.Second)
			r.book = book(t, numbered(1))
			if b, _ := s.Recall(t.Context(), "okx", btc); b.Sequence.Value != 100 {
				t.Fatalf("an older copy was adopted: %+v", b)
			}
		}
	})
}

func TestStore_aBrokenRedisIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &fakeRedis{slow: 50 * time.Millisecond, err: context.DeadlineExceeded}
		s := cache.NewWithRemote(cache.Config{}, r, quiet(), prometheus.NewRegistry())
		slow := 0
		for range 300 { // five minutes, a new book each second
			for i := range 10 {
				start := time.Now()
				s.Recall(t.Context(), "okx", book(t, pairNo(i)).Pair)
				if time.Since(start) > 0 {
					slow++
				}
			}
			time.Sleep(time.Second)
		}
		if slow != r.readCount() || slow > 70 {
			t.Errorf("%d of 3,000 reads waited and redis was asked %d times, want at most 70: one each five seconds", slow, r.readCount())
		}
		r.set(nil, 0)
		r.book = book(t)
		time.Sleep(6 * time.Second)
		if _, ok := s.Recall(t.Context(), "okx", btc); !ok || s.Degraded() != nil {
			t.Errorf("redis works again, and recall = %v, degraded = %q", ok, s.Degraded())
		}
	})
}

func TestStore_listings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := listingsOf(btcListing)
		shared.ConfirmedAt = time.Now().Add(-3 * 24 * time.Hour)
		r := &fakeRedis{listings: shared}
		s, _ := running(t, r, cache.Config{})
		if _, ok := s.Listings("okx"); ok {
			t.Error("a list out of nothing")
		}
		if l, ok := s.RecallListings(t.Context(), "okx"); !ok || len(l.Rows) != 1 {
			t.Errorf("after a restart: %v, %v, want the three days old list", l, ok)
		}
		if _, kept := s.KeepListings(listingsOf()); kept {
			t.Error("an empty list was kept")
		}
		fresh := listingsOf(btcListing, btcListing)
		if l, kept := s.KeepListings(fresh); !kept || l != fresh {
			t.Error("a newer list was not kept")
		}
		if l, kept := s.KeepListings(shared); kept || l != fresh {
			t.Error("an older list was kept")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if len(r.lists) != 1 || r.lists[0] != fresh {
			t.Errorf("written to redis: %v, want the fresh one once", r.lists)
		}
		time.Sleep(6 * time.Hour)
		if _, ok := s.Listings("okx"); !ok {
			t.Error("a name expired")
		}
	})
}

func TestStore_metricsAreWellFormed(t *testing.T) {
	reg := prometheus.NewRegistry()
	s := cache.NewWithRemote(cache.Config{Exchanges: []market.ExchangeID{"binance", "okx"}}, &fakeRedis{book: book(t)}, quiet(), reg)
	s.Keep(book(t))
	s.Recall(t.Context(), "okx", btc)
	if problems, err := testutil.GatherAndLint(reg); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	const want = `# HELP gateway_cache_answers_total Answers of exchanges offered to the store of last-known books, by what became of them.
# TYPE gateway_cache_answers_total counter
gateway_cache_answers_total{exchange="binance",verdict="confirmed"} 0
gateway_cache_answers_total{exchange="binance",verdict="older"} 0
gateway_cache_answers_total{exchange="binance",verdict="purged"} 0
gateway_cache_answers_total{exchange="binance",verdict="reset"} 0
gateway_cache_answers_total{exchange="binance",verdict="shallower"} 0
gateway_cache_answers_total{exchange="binance",verdict="stored"} 0
gateway_cache_answers_total{exchange="binance",verdict="unaged"} 0
gateway_cache_answers_total{exchange="okx",verdict="confirmed"} 0
gateway_cache_answers_total{exchange="okx",verdict="older"} 0
gateway_cache_answers_total{exchange="okx",verdict="purged"} 0
gateway_cache_answers_total{exchange="okx",verdict="reset"} 0
gateway_cache_answers_total{exchange="okx",verdict="shallower"} 0
gateway_cache_answers_total{exchange="okx",verdict="stored"} 1
gateway_cache_answers_total{exchange="okx",verdict="unaged"} 0
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "gateway_cache_answers_total"); err != nil {
		t.Error(err)
	}
}

func TestStore_withoutRedisWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := cache.New(cache.Config{}, nil, quiet(), prometheus.NewRegistry())
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		s.Keep(book(t))
		if _, ok := s.Recall(t.Context(), "okx", btc); !ok || s.Degraded() != nil {
			t.Errorf("recall = %v, degraded = %q", ok, s.Degraded())
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
