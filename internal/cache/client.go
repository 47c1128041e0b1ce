package cache

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// What one call of Redis may take. A copy in Redis is a fallback for a caller who has waited already.
const (
	callTimeout = 50 * time.Millisecond
	dialTimeout = 200 * time.Millisecond
	poolSize    = 8 // the writer needs one, and reads are paced per book
)

// ClientOptions are the options that a fallback store needs, on top of where Redis is and how to log in, which base says.
// The defaults of go-redis would stall an answer for ten seconds when Redis hangs: measured with v9.23.0, whose read and
// dial timeouts are five seconds with three retries and five dials, and which ignores a context's deadline in flight.
func ClientOptions(base redis.UniversalOptions) *redis.UniversalOptions {
	o := base
	o.ContextTimeoutEnabled = true
	o.DialTimeout = dialTimeout
	o.ReadTimeout, o.WriteTimeout = callTimeout, callTimeout
	o.PoolTimeout = callTimeout
	o.MaxRetries = -1
	o.DialerRetries = 1
	o.PoolSize, o.MaxActiveConns = poolSize, poolSize
	o.PipelinePoolSize = -1 // pipelines share the pool: it is bounded once
	o.ConnMaxIdleTime = 5 * time.Minute
	o.DisableIdentity = true
	// Its handshake is one more round trip within the same 50 ms, for a service of one vendor.
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return &o
}

// RedisLogger passes what go-redis logs by itself to log at debug level: each failed dial is one line, and the store
// counts and reports the failures already. Give it to redis.SetLogger once, in main.
func RedisLogger(log *slog.Logger) interface {
	Printf(ctx context.Context, format string, v ...any)
} {
	return redisLogger{log}
}

type redisLogger struct{ log *slog.Logger }

func (l redisLogger) Printf(ctx context.Context, format string, v ...any) {
	if l.log.Enabled(ctx, slog.LevelDebug) {
		l.log.DebugContext(ctx, "redis client", slog.String("message", fmt.Sprintf(format, v...)))
	}
}
