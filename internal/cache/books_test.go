package cache_test

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"exchange-gateway/internal/cache"
	"exchange-gateway/internal/cache/redistest"
	"exchange-gateway/internal/market"
)

var btc = market.Pair{Base: "BTC", Quote: "USDT"}

// change is one property of a test's book.
type change func(*market.OrderBook)

// book is one bid and one ask at OKX, confirmed just now, asked for with depth 100: a whole book.
func book(t testing.TB, changes ...change) *market.OrderBook {
	t.Helper()
	b := &market.OrderBook{
		Exchange: "okx", Pair: btc, Symbol: "BTC-USDT", Depth: 100, ConfirmedAt: time.Now(),
		Levels: levels(t, []string{"64073.00", "0.58849577"}, []string{"64073.10", "1.07909367"}),
	}
	for _, c := range changes {
		c(b)
	}
	return b
}

func levels(t testing.TB, bids, asks []string) *market.Levels {
	t.Helper()
	side := func(text []string) (out []market.Level) {
		for i := 0; i+1 < len(text); i += 2 {
			out = append(out, market.Level{Price: market.MustNumber(text[i]), Size: market.MustNumber(text[i+1])})
		}
		return out
	}
	l, err := market.NewLevels(side(bids), side(asks))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// deep is a book of n levels a side, of which the exchange has more.
func deep(t testing.TB, n int) change {
	t.Helper()
	var bids, asks []string
	for i := range n {
		bids = append(bids, fmt.Sprintf("%d.50", 50_000-i), "1.00")
		asks = append(asks, fmt.Sprintf("%d.50", 50_001+i), "2.00")
	}
	l := levels(t, bids, asks)
	return func(b *market.OrderBook) { b.Levels, b.Depth = l, n }
}

func ago(d time.Duration) change {
	return func(b *market.OrderBook) { b.ConfirmedAt = time.Now().Add(-d) }
}

func stamped(t time.Time) change { return func(b *market.OrderBook) { b.ExchangeTime = t } }

func numbered(n int64) change { return func(b *market.OrderBook) { b.Sequence = market.SequenceOf(n) } }

func bid(t testing.TB, price string) change {
	t.Helper()
	l := levels(t, []string{price, "1"}, []string{"64073.10", "1.07909367"})
	return func(b *market.OrderBook) { b.Levels = l }
}

// quiet is a log that nobody reads.
func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func client(t testing.TB, s *redistest.Server) redis.UniversalClient {
	t.Helper()
	c := redis.NewUniversalClient(cache.ClientOptions(redis.UniversalOptions{Addrs: []string{s.Addr()}}))
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// keeper is one implementation under the suite: what becomes of a book, and what stands then.
type keeper struct {
	keep  func(*testing.T, *market.OrderBook) string
	stand func(*testing.T) *market.OrderBook
}

// keepers makes each implementation; the name is one that no other test uses in the same Redis.
func keepers(t *testing.T) map[string]func(name string) keeper {
	t.Helper()
	server := redistest.Start(t)
	shared := func(name string) *cache.Redis { return patient(t, server, cache.Config{Prefix: name}) }
	return map[string]func(string) keeper{
		"memory": func(string) keeper {
			m := cache.NewMemory(cache.Config{}, quiet(), prometheus.NewRegistry())
			return keeper{
				keep: func(_ *testing.T, b *market.OrderBook) string { _, v := m.Keep(b); return string(v) },
				stand: func(*testing.T) *market.OrderBook {
					b, _ := m.Book("okx", btc)
					return b
				},
			}
		},
		"redis": func(name string) keeper { return redisKeeper(shared(name)) },
		"layered without redis": func(string) keeper {
			return storeKeeper(cache.New(cache.Config{}, nil, quiet(), prometheus.NewRegistry()))
		},
		"layered with redis": func(name string) keeper {
			return storeKeeper(cache.NewWithRemote(cache.Config{}, shared(name), quiet(), prometheus.NewRegistry()))
		},
	}
}

// patient waits for Redis as long as it takes: the machine may be busy.
func patient(t testing.TB, s *redistest.Server, cfg cache.Config) *cache.Redis {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: s.Addr()})
	t.Cleanup(func() { _ = c.Close() })
	return cache.Patient(cache.NewRedis(cfg, c))
}

func redisKeeper(r *cache.Redis) keeper {
	return keeper{
		keep: func(t *testing.T, b *market.OrderBook) string {
			t.Helper()
			results, err := r.WriteBooks(t.Context(), []*market.OrderBook{b})
			if err != nil {
				t.Fatal(err)
			}
			if results[0] == cache.ResultUnencodable {
				return string(market.VerdictUnaged)
			}
			return string(results[0])
		},
		stand: func(t *testing.T) *market.OrderBook {
			t.Helper()
			b, err := r.ReadBook(t.Context(), "okx", btc)
			if err != nil {
				t.Fatal(err)
			}
			return b
		},
	}
}

func storeKeeper(s *cache.Store) keeper {
	return keeper{
		keep: func(_ *testing.T, b *market.OrderBook) string { _, v := s.Keep(b); return string(v) },
		stand: func(t *testing.T) *market.OrderBook {
			b, _ := s.Recall(t.Context(), "okx", btc)
			return b
		},
	}
}
