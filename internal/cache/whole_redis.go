package cache

import (
	"context"
	"crypto/rand"
	_ "embed" // the script
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

//go:embed whole_write.lua
var wholeWriteScript string

// A list in Redis is "gww", two digits of format, when the exchange vouched for it in microseconds on Redis' clock (20 digits),
// and the packed list. A few megabytes do not pass within the 50 ms that a round trip may take, so it is written and read in
// pieces: under a name of its own, which it swaps for the list's at the end. One that changed while it was read does not unpack.
const (
	sharedMagic  = "gww"
	sharedFormat = "01"
	sharedHeader = len(sharedMagic) + len(sharedFormat) + ordinalSize
	sharedPiece  = 128 << 10
	// pieceFor is how long the pieces of a list that was not finished are kept.
	pieceFor = time.Minute
)

func (r *Redis) wholeKey(exchange market.ExchangeID) string {
	return r.prefix + ":whole:v1:{" + string(exchange) + "}"
}

func (r *Redis) readWhole(ctx context.Context, exchange market.ExchangeID) (*whole, error) {
	sent := clock.Now()
	now, _, err := r.clock(ctx)
	if err != nil {
		return nil, err
	}
	var value []byte
	for {
		piece, err := r.piece(ctx, r.wholeKey(exchange), len(value))
		if err != nil {
			return nil, err
		}
		value = append(value, piece...)
		if len(piece) < sharedPiece {
			break
		}
		if len(value) > sharedHeader+maxPacked {
			return nil, ErrRubbish
		}
	}
	if len(value) == 0 {
		return nil, ErrMiss
	}
	if err := checkFormat(string(value[:min(len(value), formatEnd)]), sharedMagic, sharedFormat); err != nil {
		return nil, err
	}
	if len(value) < sharedHeader {
		return nil, ErrRubbish
	}
	at, err := parseMicros(string(value[formatEnd:sharedHeader]))
	if err != nil {
		return nil, err
	}
	l, err := decodeWhole(value[sharedHeader:], exchange)
	if err != nil {
		return nil, err
	}
	l.anchor, err = anchor(at, now, sent)
	return l, err
}

func (r *Redis) piece(ctx context.Context, key string, from int) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	piece, err := r.client.GetRange(ctx, key, int64(from), int64(from+sharedPiece-1)).Bytes()
	switch {
	case redis.HasErrorPrefix(err, "WRONGTYPE"):
		return nil, ErrRubbish
	case err != nil:
		return nil, fmt.Errorf("read list: %w", err)
	}
	return piece, nil
}

var errNotShared = errors.New("the list was not written in time")

// writeWhole offers a list. One that is younger stays; what is not ours, or a newer gateway's, is left alone, which is the error.
func (r *Redis) writeWhole(ctx context.Context, l *whole) error {
	micros, received, err := r.clock(ctx)
	if err != nil {
		return err
	}
	age, known := l.age(received)
	ttl := wholeFor - age
	if !known || ttl <= 0 {
		return nil
	}
	name := r.wholeKey(l.exchange)
	temporary := name + ":" + rand.Text()
	value := append(appendPadded([]byte(sharedMagic+sharedFormat), uint64(stamp(micros, age)), ordinalSize), l.packed...)
	for len(value) > 0 {
		n := min(len(value), sharedPiece)
		if err := r.appendPiece(ctx, temporary, value[:n]); err != nil {
			return err
		}
		value = value[n:]
	}
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	result, err := r.nameWhole.Run(ctx, r.client, []string{name, temporary}, ttl.Milliseconds()).Text()
	switch {
	case err != nil:
		return fmt.Errorf("write list: %w", err)
	case result == "rubbish":
		return ErrRubbish
	case Result(result) == ResultNewerFormat:
		return ErrNewerFormat
	case Result(result) == ResultLate:
		return errNotShared
	}
	return nil
}

func (r *Redis) appendPiece(ctx context.Context, key string, piece []byte) error {
	ctx, cancel := context.WithTimeout(ctx, 2*r.timeout) // one bound each for writing and reading
	defer cancel()
	pipe := r.client.Pipeline()
	pipe.Append(ctx, key, string(piece))
	pipe.PExpire(ctx, key, pieceFor)
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("write list: %w", err)
	}
	return nil
}
