package cache_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"exchange-gateway/internal/cache"
	"exchange-gateway/internal/market"
)

// purge drops every copy of the book that these tests are about.
func purge(t *testing.T, s *cache.Store, want ...string) {
	t.Helper()
	if where, err := s.Purge(t.Context(), "okx", btc); err != nil || !slices.Equal(where, want) {
		t.Errorf("purge = %v, %v, want %v", where, err, want)
	}
}

func held(s *cache.Store) bool {
	_, ok := s.Book("okx", btc)
	return ok
}

func TestPurge_dropsTheCopyAndKeepsNoneFromBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := cache.New(cache.Config{}, nil, quiet(), prometheus.NewRegistry())
		purge(t, s)
		time.Sleep(time.Millisecond)
		s.Keep(book(t, numbered(900)))
		other := book(t, pairNo(1))
		s.Keep(other)
		asked := book(t, numbered(901)) // a call that is under way
		time.Sleep(time.Second)
		purge(t, s, "memory")
		purge(t, s)
		if held(s) {
			t.Fatal("the copy is still there")
		}
		if _, ok := s.Book("okx", other.Pair); !ok {
			t.Error("the copy of another pair is gone")
		}
		if b, v := s.Keep(asked); b != nil || v != market.VerdictPurged || held(s) {
			t.Errorf("an answer from before = %v, %v", b, v)
		}
		time.Sleep(time.Millisecond)
		fresh := book(t, numbered(1)) // its numbers may have started anew: nothing stands that it could be older than
		if b, v := s.Keep(fresh); b == nil || v != market.VerdictStored || !held(s) {
			t.Errorf("a fresh answer = %v, %v", b, v)
		}
		if b, v := s.Keep(asked); b == nil || b.Sequence.Value != 1 || v != market.VerdictPurged {
			t.Errorf("an answer from before, once more = %v, %v, want the one that stands", b, v)
		}
	})
}

// A copy from before is too old to be served once copies are kept no longer, so the purge need not be remembered either.
func TestPurge_isRememberedForAsLongAsCopiesAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := cache.New(cache.Config{BookTTL: time.Hour}, nil, quiet(), prometheus.NewRegistry())
		old := book(t)
		purge(t, s)
		time.Sleep(time.Hour)
		if _, v := s.Keep(old); v != market.VerdictPurged {
			t.Errorf("after an hour: %v", v)
		}
		time.Sleep(time.Second)
		if _, err := s.Purge(t.Context(), "okx", named(1)); err != nil { // the next purge sweeps
			t.Fatal(err)
		}
		if _, v := s.Keep(old); v != market.VerdictStored {
			t.Errorf("after more than an hour: %v", v)
		}
	})
}

func TestPurge_areBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := cache.New(cache.Config{}, nil, quiet(), prometheus.NewRegistry())
		first, second := book(t), book(t)
		first.Pair, second.Pair = named(0), named(1)
		for i := range 1001 {
			if _, err := s.Purge(t.Context(), "okx", named(i)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
		}
		if _, v := s.Keep(first); v != market.VerdictStored {
			t.Errorf("the oldest of 1001 purges is remembered: %v", v)
		}
		if _, v := s.Keep(second); v != market.VerdictPurged {
			t.Errorf("the second of 1001 purges is forgotten: %v", v)
		}
	})
}

func TestPurge_takesWhatWaitsToBeWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &fakeRedis{}
		s, _ := running(t, r, cache.Config{})
		s.Keep(book(t))
		time.Sleep(100 * time.Millisecond)
		purge(t, s, "memory")
		time.Sleep(time.Minute)
		synctest.Wait()
		if _, books := r.seen(); len(books) != 0 {
			t.Errorf("written after the purge: %d books", len(books))
		}
	})
}

// A write that fails is tried again, and must not be once its book was purged.
func TestPurge_takesWhatIsBeingWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &fakeRedis{slow: 10 * time.Millisecond}
		s, _ := running(t, r, cache.Config{})
		s.Keep(book(t))
		s.Keep(book(t, pairNo(1)))
		time.Sleep(1005 * time.Millisecond) // Redis is being asked whether it is there
		r.set(errRefused, 40*time.Millisecond)
		time.Sleep(15 * time.Millisecond) // and now it is being written to
		r.set(nil, 0)
		purge(t, s, "memory")
		time.Sleep(time.Minute)
		synctest.Wait()
		batches, books := r.seen()
		if !slices.Equal(batches, []int{2, 1}) || len(books) != 1 || books[0].Pair == btc {
			t.Errorf("batches of %v, %d books written, want the other book alone the second time", batches, len(books))
		}
	})
}

func TestPurge_endsARecallThatIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old := book(t)
		old.Anchor = old.ConfirmedAt
		r := &fakeRedis{book: old, slow: 30 * time.Millisecond}
		s := cache.NewWithRemote(cache.Config{}, r, quiet(), prometheus.NewRegistry())
		found := make(chan bool)
		go func() {
			_, ok := s.Recall(context.WithoutCancel(t.Context()), "okx", btc)
			found <- ok
		}()
		time.Sleep(10 * time.Millisecond)
		r.mu.Lock()
		r.slow = 0
		r.mu.Unlock()
		purge(t, s, "redis")
		r.mu.Lock()
		r.book = old // what the recall will bring was read before
		r.mu.Unlock()
		if <-found || held(s) {
			t.Error("the recall brought the purged copy back")
		}
	})
}

func TestPurge_elsewhereIsLearnedByARecall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &fakeRedis{}
		s := cache.NewWithRemote(cache.Config{}, r, quiet(), prometheus.NewRegistry())
		s.Keep(book(t))
		time.Sleep(time.Second)
		r.mu.Lock()
		r.purgedAt = time.Now()
		r.mu.Unlock()
		if b, ok := s.Recall(t.Context(), "okx", btc); ok {
			t.Errorf("got %v, which another gateway purged", b)
		}
		time.Sleep(time.Second)
		s.Keep(book(t))
		if _, ok := s.Recall(t.Context(), "okx", btc); !ok {
			t.Error("a book from after that purge is gone")
		}
	})
}

func TestPurge_waitsABoundedTimeForRedisAndReachesItLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old := book(t)
		old.Anchor = old.ConfirmedAt
		r := &fakeRedis{book: old}
		s, _ := running(t, r, cache.Config{})
		s.Keep(book(t))
		time.Sleep(5 * time.Second)
		for _, broken := range []struct {
			err  error
			slow time.Duration
		}{{errRefused, 0}, {nil, time.Hour}} {
			r.set(broken.err, broken.slow)
			begin := time.Now()
			over, cancel := context.WithCancel(t.Context())
			cancel() // whoever asked may leave: the purge is not left half done
			_, err := s.Purge(over, "okx", btc)
			if took := time.Since(begin); err == nil || took > 250*time.Millisecond || held(s) {
				t.Errorf("purge with %v, %v: %v after %v", broken.err, broken.slow, err, took)
			}
		}
		r.set(nil, 0)
		if b, ok := s.Recall(t.Context(), "okx", btc); ok {
			t.Errorf("got %v, which Redis still held", b)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		r.mu.Lock()
		left, reached := r.book, r.purges
		r.mu.Unlock()
		if left != nil {
			t.Error("the copy is still in Redis a minute after it answers again")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if r.mu.Lock(); r.purges != reached {
			t.Errorf("told %d times more", r.purges-reached)
		}
		r.mu.Unlock()
	})
}

func ExampleStore_Purge() {
	s := cache.New(cache.Config{}, nil, quiet(), prometheus.NewRegistry())
	s.Keep(&market.OrderBook{Exchange: "okx", Pair: btc, Levels: &market.Levels{}, ConfirmedAt: time.Now()})
	where, err := s.Purge(context.Background(), "okx", btc)
	_, left := s.Book("okx", btc)
	fmt.Println(where, err, left)
	// Output: [memory] <nil> false
}
