package cache

import (
	"context"
	_ "embed" // the scripts
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

//go:embed read.lua
var readScript string

//go:embed book_write.lua
var bookWriteScript string

//go:embed book_purge.lua
var bookPurgeScript string

//go:embed listings_write.lua
var listingsWriteScript string

// Result is what became of a copy that was offered to Redis. It is a metric label.
type Result string

// The closed set of results.
const (
	ResultStored      Result = "stored"
	ResultConfirmed   Result = "confirmed"
	ResultOlder       Result = "older"
	ResultShallower   Result = "shallower"
	ResultReset       Result = "reset"
	ResultPurged      Result = "purged"       // the exchange vouched for it before an operator dropped every copy
	ResultLate        Result = "late"         // Redis ran the command over a second after it was sent
	ResultExpired     Result = "expired"      // older than copies are kept
	ResultNewerFormat Result = "newer_format" // the stored one was written by a newer gateway and was left alone
	ResultUnencodable Result = "unencodable"  // it cannot be written exactly, or is larger than is kept
	ResultFailed      Result = "failed"       // Redis refused or did not answer
	ResultDropped     Result = "dropped"      // not offered: the queue was full
)

// Results lists every result.
func Results() []Result {
	return []Result{
		ResultStored, ResultConfirmed, ResultOlder, ResultShallower, ResultReset, ResultPurged, ResultLate,
		ResultExpired, ResultNewerFormat, ResultUnencodable, ResultFailed, ResultDropped,
	}
}

// Redis keeps copies in Redis, shared by all gateways that use the same prefix. Ages are known on Redis' own clock, so
// the clocks of two machines need not agree. It is safe for concurrent use; it retries nothing and has no breaker, which
// is up to Store.
type Redis struct {
	client      redis.UniversalClient
	prefix      string
	bookTTL     time.Duration
	listingsTTL time.Duration
	freshFor    time.Duration
	timeout     time.Duration // of a round trip

	read, writeBook, purgeBook, writeListings, nameWhole *redis.Script
}

// NewRedis does no I/O. The client should have been made with ClientOptions.
func NewRedis(cfg Config, client redis.UniversalClient) *Redis {
	cfg = cfg.withDefaults()
	return &Redis{
		client: client, prefix: cfg.Prefix, bookTTL: cfg.BookTTL, listingsTTL: cfg.ListingsTTL, freshFor: cfg.FreshFor,
		timeout:       callTimeout,
		read:          redis.NewScript(readScript),
		writeBook:     redis.NewScript(bookWriteScript),
		purgeBook:     redis.NewScript(bookPurgeScript),
		writeListings: redis.NewScript(listingsWriteScript),
		nameWhole:     redis.NewScript(wholeWriteScript),
	}
}

// The number behind the colon is that of the key's layout. The braces keep a key's hash slot to the part that is in them.
func (r *Redis) bookKey(k key) string {
	return r.prefix + ":book:v1:{" + string(k.exchange) + ":" + k.pair.String() + "}"
}

// purgedKey holds when every copy of a book was dropped, in microseconds on Redis' clock. It is in the book's hash slot.
func (r *Redis) purgedKey(k key) string {
	return r.prefix + ":purged:v1:{" + string(k.exchange) + ":" + k.pair.String() + "}"
}

func (r *Redis) listingsKey(exchange market.ExchangeID) string {
	return r.prefix + ":listings:v1:{" + string(exchange) + "}"
}

// Ping tells whether Redis answers.
func (r *Redis) Ping(ctx context.Context) error {
	_, _, err := r.clock(ctx)
	return err
}

// clock reads Redis' clock in microseconds, and returns an instant of ours that is not before it was read.
func (r *Redis) clock(ctx context.Context) (micros int64, received time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	t, err := r.client.Time(ctx).Result()
	if err != nil {
		return 0, time.Time{}, fmt.Errorf("read redis clock: %w", err)
	}
	return t.UnixMicro(), clock.Now(), nil
}

// ReadBook reads one copy within 50 ms. It returns ErrMiss, ErrRubbish, ErrNewerFormat or ErrUnaged when Redis is well but
// has no copy that can be used, and another error when Redis is not.
func (r *Redis) ReadBook(ctx context.Context, exchange market.ExchangeID, pair market.Pair) (*market.OrderBook, error) {
	b, _, err := r.RecallBook(ctx, exchange, pair)
	return b, err
}

// RecallBook is ReadBook that also tells when every copy of the book was last dropped on purpose, whatever the error is: an
// instant of ours that is not after it. It is zero if that was not done for as long as copies are kept.
func (r *Redis) RecallBook(
	ctx context.Context, exchange market.ExchangeID, pair market.Pair,
) (b *market.OrderBook, purged time.Time, err error) {
	k := key{exchange, pair}
	c, err := r.get(ctx, []string{r.bookKey(k), r.purgedKey(k)}, maxValue)
	if c.purged != "" {
		if at, bad := parseMicros(c.purged); bad == nil {
			purged, _ = anchor(at, c.now, c.sent) // zero if it cannot be placed
		}
	}
	if err != nil {
		return nil, purged, err
	}
	b, err = decodeBook(c.value, c.now, c.sent)
	if err == nil && keyOf(b) != k {
		return nil, purged, ErrRubbish
	}
	return b, purged, err
}

// ReadListings reads the copy of one exchange's list, as ReadBook reads a book.
func (r *Redis) ReadListings(ctx context.Context, exchange market.ExchangeID) (*market.Listings, error) {
	c, err := r.get(ctx, []string{r.listingsKey(exchange)}, maxListingsSize)
	if err != nil {
		return nil, err
	}
	l, err := decodeListings(c.value, c.now, c.sent)
	if err == nil && l.Exchange != exchange {
		return nil, ErrRubbish
	}
	return l, err
}

// found is what Redis holds, read at one instant of its clock.
type found struct {
	value  string
	purged string    // of a book: when every copy was dropped, "" if that was not done
	now    int64     // Redis' clock, microseconds
	sent   time.Time // on ours, not after that instant
}

func (r *Redis) get(ctx context.Context, keys []string, most int) (c found, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	c.sent = clock.Now()
	reply, err := r.read.Run(ctx, r.client, keys, most).Slice()
	if err != nil {
		return c, fmt.Errorf("read copy: %w", err)
	}
	if len(reply) != 4 {
		return c, ErrMiss
	}
	if c.now, err = joinClock(reply[0], reply[1]); err != nil {
		return c, err
	}
	c.purged, _ = reply[3].(string)
	if reply[2] == nil {
		return c, ErrMiss
	}
	c.value, _ = reply[2].(string)
	return c, nil
}

var errClock = errors.New("redis sent no clock")

func joinClock(seconds, micros any) (int64, error) {
	s, _ := seconds.(string)
	u, _ := micros.(string)
	sec, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, errClock
	}
	usec, err := strconv.ParseInt(u, 10, 64)
	if err != nil {
		return 0, errClock
	}
	return sec*1_000_000 + usec, nil
}

// stamp is when something of this age was confirmed, on Redis' clock.
func stamp(micros int64, age time.Duration) int64 { return micros - age.Microseconds() }

// WriteBooks offers books to Redis in one pipeline and returns what became of each, in their order. The error is the first
// that Redis or the network gave; a result of ResultFailed belongs to it or to one like it.
func (r *Redis) WriteBooks(ctx context.Context, books []*market.OrderBook) ([]Result, error) {
	micros, received, err := r.clock(ctx)
	results := make([]Result, len(books))
	if err != nil {
		for i := range results {
			results[i] = ResultFailed
		}
		return results, err
	}
	items := make([]item, 0, len(books))
	for i, b := range books {
		age, known := b.Age(received)
		value, err := encodeBook(b, stamp(micros, age))
		if err != nil || !known {
			results[i] = ResultUnencodable
			continue
		}
		k := keyOf(b)
		items = append(items, item{at: i, keys: []string{r.bookKey(k), r.purgedKey(k)}, args: []any{
			value, micros, r.bookTTL.Milliseconds(), r.freshFor.Microseconds(),
		}})
	}
	return results, r.pipeline(ctx, r.writeBook, items, results)
}

// WriteListings offers one exchange's list to Redis.
func (r *Redis) WriteListings(ctx context.Context, l *market.Listings) (Result, error) {
	micros, received, err := r.clock(ctx)
	if err != nil {
		return ResultFailed, err
	}
	age, known := l.Age(received)
	value, err := encodeListings(l, stamp(micros, age))
	if err != nil || !known {
		return ResultUnencodable, nil // the result says it: nothing is wrong with Redis
	}
	results := make([]Result, 1)
	err = r.pipeline(ctx, r.writeListings, []item{{keys: []string{r.listingsKey(l.Exchange)}, args: []any{
		value, micros, r.listingsTTL.Milliseconds(),
	}}}, results)
	return results[0], err
}

// item is one run of a script; at is the place of its result.
type item struct {
	at   int
	keys []string
	args []any
}

// pipeline runs the script once per item in one round trip, and in a second one with the script's text for those whose
// server did not have it: after a restart or a failover.
func (r *Redis) pipeline(ctx context.Context, s *redis.Script, items []item, results []Result) error {
	missing, err := r.send(ctx, items, results, s.EvalSha)
	if len(missing) > 0 && err == nil {
		_, err = r.send(ctx, missing, results, s.Eval)
	}
	if err != nil {
		return fmt.Errorf("write copies: %w", err)
	}
	return nil
}

type runScript func(ctx context.Context, c redis.Scripter, keys []string, args ...any) *redis.Cmd

func (r *Redis) send(ctx context.Context, items []item, results []Result, run runScript) (missing []item, first error) {
	if len(items) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, 2*r.timeout) // one bound each for writing and reading
	defer cancel()
	pipe := r.client.Pipeline()
	commands := make([]*redis.Cmd, len(items))
	for i, it := range items {
		commands[i] = run(ctx, pipe, it.keys, it.args...)
	}
	_, _ = pipe.Exec(ctx) // each command carries its own error
	for i, c := range commands {
		text, err := c.Text()
		switch {
		case err == nil:
			results[items[i].at] = Result(text)
		case redis.HasErrorPrefix(err, "NOSCRIPT"):
			missing = append(missing, items[i])
			results[items[i].at] = ResultFailed
		default:
			results[items[i].at] = ResultFailed
			if first == nil {
				first = err
			}
		}
	}
	return missing, first
}
