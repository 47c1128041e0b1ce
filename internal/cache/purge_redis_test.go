package cache_test

import (
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"exchange-gateway/internal/cache"
	"exchange-gateway/internal/cache/redistest"
	"exchange-gateway/internal/market"
)

func TestPurge_ofRedisRefusesOlderWritesOfOtherGateways(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	r := patient(t, server, cache.Config{})
	write := func(b *market.OrderBook, want cache.Result) {
		t.Helper()
		if got, err := r.WriteBooks(t.Context(), []*market.OrderBook{b}); err != nil || got[0] != want {
			t.Errorf("write = %v, %v, want %v", got, err, want)
		}
	}
	before := book(t, numbered(1))
	write(before, cache.ResultStored)
	time.Sleep(2 * time.Millisecond)
	if held, err := r.PurgeBook(t.Context(), "okx", btc, time.Now()); err != nil || !held {
		t.Fatalf("purge = %v, %v", held, err)
	}
	write(before, cache.ResultPurged)
	write(book(t, pairNo(1), ago(time.Minute)), cache.ResultStored) // another pair
	if b, purged, err := r.RecallBook(t.Context(), "okx", btc); b != nil || purged.IsZero() || time.Since(purged) > time.Minute {
		t.Errorf("recall = %v, purged at %v, %v", b, purged, err)
	}
	time.Sleep(2 * time.Millisecond)
	write(book(t, numbered(0)), cache.ResultStored) // a lower number: nothing stands that is newer
	if b, purged, err := r.RecallBook(t.Context(), "okx", btc); err != nil || b.Sequence.Value != 0 || purged.IsZero() {
		t.Errorf("recall = %v, purged at %v, %v", b, purged, err)
	}
	// A purge that comes late, or once more, does not move the one that stands back.
	if held, err := r.PurgeBook(t.Context(), "okx", btc, time.Now().Add(-time.Hour)); err != nil || !held {
		t.Errorf("purge = %v, %v", held, err)
	}
	write(before, cache.ResultPurged)
	ttl, err := strconv.Atoi(server.Do("PTTL", "gw:purged:v1:{okx:BTC/USDT}"))
	if err != nil || ttl <= 0 || ttl > int(time.Hour.Milliseconds()) {
		t.Errorf("the note of the purge expires in %d ms, %v", ttl, err)
	}
}

// What somebody else left under the name of a purge is no purge, and keeps nothing from working.
func TestPurge_ofRedisSurvivesRubbish(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	r := patient(t, server, cache.Config{})
	const name = "gw:purged:v1:{okx:BTC/USDT}"
	for _, rubbish := range [][]string{
		{"SET", name, "soon"}, {"SET", name, strings.Repeat("9", 18)}, {"SET", name, strings.Repeat("9", 300)}, {"SADD", name, "x"},
	} {
		server.Do("DEL", name)
		server.Do(rubbish...)
		if _, _, err := r.RecallBook(t.Context(), "okx", btc); err == nil || strings.Contains(err.Error(), "read copy") {
			t.Errorf("%v: recall fails with %v, want that there is no copy", rubbish, err)
		}
		before := book(t)
		if got, err := r.WriteBooks(t.Context(), []*market.OrderBook{before}); err != nil || got[0] != cache.ResultStored {
			t.Errorf("%v: write = %v, %v", rubbish, got, err)
		}
		time.Sleep(2 * time.Millisecond)
		if held, err := r.PurgeBook(t.Context(), "okx", btc, time.Now()); err != nil || !held {
			t.Errorf("%v: purge = %v, %v", rubbish, held, err)
		}
		if got, err := r.WriteBooks(t.Context(), []*market.OrderBook{before}); err != nil || got[0] != cache.ResultPurged {
			t.Errorf("%v: write after the purge = %v, %v", rubbish, got, err)
		}
	}
}

func TestPurge_reachesGatewaysThatShareARedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	shared := func() *cache.Store {
		return cache.NewWithRemote(cache.Config{}, patient(t, server, cache.Config{}), quiet(), prometheus.NewRegistry())
	}
	one, other := start(t, client(t, server)), shared()
	one.Keep(book(t))
	other.Keep(book(t))
	eventually(t, "the book in redis", func() bool { return server.Do("EXISTS", "gw:book:v1:{okx:BTC/USDT}") == "1" })
	eventually(t, "a purge that redis heard of", func() bool {
		_, err := one.Purge(t.Context(), "okx", btc)
		return err == nil
	})
	if _, ok := one.Recall(t.Context(), "okx", btc); ok {
		t.Error("the gateway that purged has a copy")
	}
	if _, ok := other.Recall(t.Context(), "okx", btc); ok {
		t.Error("the other gateway has a copy after it asked for the shared one")
	}
}

// Reads, answers, writes and purges at once: whatever was confirmed before the last purge is nowhere in the end.
func TestPurge_againstEverythingAtOnce(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	gateways := []gateway{start(t, client(t, server)), start(t, client(t, server))}
	stop := make(chan struct{})
	var busy sync.WaitGroup
	for i, g := range gateways {
		busy.Go(func() {
			for n := int64(0); ; n++ {
				select {
				case <-stop:
					return
				case <-time.After(time.Millisecond):
				}
				g.Keep(book(t, numbered(n)))
				g.Keep(book(t, numbered(n), ago(20*time.Millisecond))) // a call that took its time
			}
		})
		busy.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(5 * time.Millisecond):
				}
				g.Recall(t.Context(), "okx", btc)
				g.Book("okx", btc)
			}
		})
		busy.Go(func() {
			for range 10 {
				_, _ = gateways[i].Purge(t.Context(), "okx", btc) // a busy machine: Redis may be slow, which Run makes good
				time.Sleep(50 * time.Millisecond)
			}
		})
	}
	time.Sleep(2500 * time.Millisecond) // some rounds of writes
	close(stop)
	busy.Wait()
	last := time.Now()
	eventually(t, "a purge that redis heard of", func() bool {
		last = time.Now()
		_, err := gateways[0].Purge(t.Context(), "okx", btc)
		return err == nil
	})
	// The other gateway still has its copy, and one of it in the queue or on its way. It finds out when it writes or reads.
	eventually(t, "no copy in the other gateway", func() bool {
		_, ok := gateways[1].Recall(t.Context(), "okx", btc)
		return !ok
	})
	time.Sleep(1200 * time.Millisecond) // one more round of writes
	for i, g := range gateways {
		if b, ok := g.Recall(t.Context(), "okx", btc); ok {
			t.Errorf("gateway %d has a copy that was confirmed %v before the purge", i, last.Sub(b.ConfirmedAt))
		}
	}
	if server.Do("EXISTS", "gw:book:v1:{okx:BTC/USDT}") != "0" {
		t.Error("redis has a copy")
	}
	gateways[1].Keep(book(t, numbered(1)))
	eventually(t, "the fresh book in redis", func() bool {
		return server.Do("EXISTS", "gw:book:v1:{okx:BTC/USDT}") == "1"
	})
	eventually(t, "the fresh book in the gateway that purged", func() bool {
		b, ok := gateways[0].Recall(t.Context(), "okx", btc)
		return ok && b.Sequence.Value == 1
	})
}

// A gateway that did not hear of a purge finds out when it writes what was purged, and drops it.
func TestPurge_elsewhereIsLearnedByAWrite(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	g := start(t, client(t, server))
	b := book(t)
	time.Sleep(2 * time.Millisecond)
	r := patient(t, server, cache.Config{})
	if held, err := r.PurgeBook(t.Context(), "okx", btc, time.Now()); err != nil || held {
		t.Fatalf("purge = %v, %v", held, err)
	}
	g.Keep(b)
	eventually(t, "the copy that another gateway purged is gone", func() bool {
		_, ok := g.Book("okx", btc)
		return !ok
	})
	g.Keep(book(t))
	eventually(t, "the fresh book in redis", func() bool {
		return server.Do("EXISTS", "gw:book:v1:{okx:BTC/USDT}") == "1"
	})
	if _, ok := g.Book("okx", btc); !ok {
		t.Error("the fresh book is gone")
	}
}
