package app

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"exchange-gateway/cmd/gateway/config"
	"exchange-gateway/internal/cache"
	"exchange-gateway/internal/dial"
	"exchange-gateway/internal/fleet"
)

// newRedis makes a client that fails fast. It dials nothing yet. Nil without an address.
func newRedis(c config.Redis, shortage *dial.Shortage, log *slog.Logger) redis.UniversalClient {
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
	all := cache.ClientOptions(o)
	all.Dialer = redisDialer(all, shortage, log)
	return redis.NewUniversalClient(all)
}

// redisDialer connects as exchanges are connected to. The library leaves TLS to whoever dials.
func redisDialer(
	o *redis.UniversalOptions, shortage *dial.Shortage, log *slog.Logger,
) func(ctx context.Context, network, address string) (net.Conn, error) {
	d := &dial.Dialer{Timeout: o.DialTimeout, KeepAlive: redisKeepAlive, Log: log, Shortage: shortage}
	if o.TLSConfig == nil {
		return d.DialContext
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, o.DialTimeout) // the handshake included
		defer cancel()
		conn, err := d.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		c := o.TLSConfig.Clone()
		if c.ServerName == "" {
			c.ServerName, _, _ = net.SplitHostPort(address) // d has connected to it: it has a host
		}
		secure := tls.Client(conn, c)
		if err := secure.HandshakeContext(ctx); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		return secure, nil
	}
}

// redisKeepAlive is after how long the kernel asks an idle connection whether it is still there.
const redisKeepAlive = 30 * time.Second

// newGates keeps the ends of gates in the state directory and, if there is one, in Redis.
func newGates(c config.Config, client redis.UniversalClient, log *slog.Logger) *fleet.Gates {
	file := fleet.NewGateFile(c.StateDir, log)
	if client == nil {
		return fleet.NewGates(file, nil, log)
	}
	return fleet.NewGates(file, fleet.NewGateRedis(client, c.Redis.KeyPrefix), log)
}
