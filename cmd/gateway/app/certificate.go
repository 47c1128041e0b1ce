package app

import (
	"context"
	"crypto/tls"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"exchange-gateway/cmd/gateway/config"
	"exchange-gateway/internal/clock"
)

// DegradedTLS is what a certificate is called that could not be read anew: the one before it is still shown.
const DegradedTLS = "tls"

// certificateEvery is how often the files are looked at for a change. Whoever renews a certificate does so days before its
// end, so a few seconds are nothing.
const certificateEvery = 5 * time.Second

// certificate is the gateway's certificate and key, read anew when their files change, without a restart. Connections that
// are open keep what they began with.
type certificate struct {
	certFile, keyFile string
	log               *slog.Logger
	now               atomic.Pointer[tls.Certificate]
	bad               atomic.Bool // the files changed and could not be read
	expires           prometheus.Gauge

	mu         sync.Mutex // covers reading, and what follows
	cert, keys os.FileInfo
}

// newCertificate is nil without files, and all of its methods then do nothing.
func newCertificate(certFile, keyFile string, log *slog.Logger, reg prometheus.Registerer) *certificate {
	expires := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "gateway_tls_certificate_expiry_timestamp_seconds", Help: "When the certificate that the public listener shows ends, 0 without TLS.",
	})
	reg.MustRegister(expires)
	if certFile == "" {
		return nil
	}
	return &certificate{certFile: certFile, keyFile: keyFile, log: log, expires: expires}
}

// load reads the files. What was shown before is still shown if that fails.
func (c *certificate) load() error {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	// Looked at before they are read: a change in between is seen by the next look.
	c.cert, c.keys = look(c.certFile), look(c.keyFile)
	pair, err := config.Certificate(c.certFile, c.keyFile, clock.WallNow())
	c.bad.Store(err != nil && c.now.Load() != nil)
	if err != nil {
		return err
	}
	c.now.Store(pair)
	c.expires.Set(float64(pair.Leaf.NotAfter.Unix()))
	return nil
}

func look(path string) os.FileInfo {
	info, err := os.Stat(path)
	if err != nil {
		return nil // load says why
	}
	return info
}

// run follows changes of the files until ctx ends. It returns nil.
func (c *certificate) run(ctx context.Context) error {
	if c == nil {
		<-ctx.Done()
		return nil
	}
	tick := time.NewTicker(certificateEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			c.poll()
		}
	}
}

// poll reads files that changed. Two files are seldom replaced in the same moment: a pair that does not fit is tried again
// with each look, and logged once.
func (c *certificate) poll() {
	if !c.changed() {
		return
	}
	first := !c.bad.Load()
	err := c.load()
	switch {
	case err == nil:
		c.log.Info("certificate read", slog.Time("expires", c.now.Load().Leaf.NotAfter))
	case first:
		c.log.Error("certificate not read, the one before it is still shown", slog.Any("err", err))
	}
}

func (c *certificate) changed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bad.Load() || differs(c.cert, look(c.certFile)) || differs(c.keys, look(c.keyFile))
}

func differs(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a != b
	}
	return !os.SameFile(a, b) || a.Size() != b.Size() || !a.ModTime().Equal(b.ModTime())
}

// degraded is [DegradedTLS] while the files hold what cannot be used.
func (c *certificate) degraded() []string {
	if c != nil && c.bad.Load() {
		return []string{DegradedTLS}
	}
	return nil
}

// config is how connections are secured. HTTP/1.1 alone: streams are one connection each, and WebSockets need it.
func (c *certificate) config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.now.Load(), nil },
	}
}
