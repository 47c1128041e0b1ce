package app

import (
	"crypto/tls"
	"log/slog"

	"github.com/redis/go-redis/v9"

	"exchange-gateway/cmd/gateway/config"
	"exchange-gateway/internal/cache"
	"exchange-gateway/internal/fleet"
)

// newRedis makes a client that fails fast. It dials nothing yet. Nil without an address.
func newRedis(c config.Redis, log *slog.Logger) redis.UniversalClient {
	if len(c.Addrs) == 0 {
		return nil
	}
	o := redis.UniversalOptions{
		Addrs: c.Addrs, MasterName: c.Master, Username: c.Username, Password: c.Password.Reveal(), DB: c.DB,
	}
	if c.TLS {
		o.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	redis.SetLogger(cache.RedisLogger(log))
	return redis.NewUniversalClient(cache.ClientOptions(o))
}

// newGates keeps the ends of gates in the state directory and, if there is one, in Redis.
func newGates(c config.Config, client redis.UniversalClient, log *slog.Logger) *fleet.Gates {
	file := fleet.NewGateFile(c.StateDir, log)
	if client == nil {
		return fleet.NewGates(file, nil, log)
	}
	return fleet.NewGates(file, fleet.NewGateRedis(client, c.Redis.KeyPrefix), log)
}
