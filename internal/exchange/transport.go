package exchange

import (
	"crypto/tls"
	"net/http"
	"time"

	"exchange-gateway/internal/dial"
	"exchange-gateway/internal/market"
)

// Bounds of the connections to one exchange. HTTP/1.1 only: on HTTP/2 one dead connection holds every request until
// the kernel gives up (golang/go#36026), while here an attempt that times out closes its own.
const (
	dialTimeout      = time.Second
	handshakeTimeout = 2 * time.Second
	keepAlive        = 15 * time.Second
	idleTimeout      = 60 * time.Second
	maxConns         = 64       // per host, probes apart
	maxIdle          = 16       // per host
	maxHeader        = 64 << 10 // bytes of an answer's header
)

// NewDialer is how exchanges are dialled. What it notes and logs is the caller's to set.
func NewDialer() *dial.Dialer { return &dial.Dialer{Timeout: dialTimeout, KeepAlive: keepAlive} }

// NewTransport is the transport to one exchange. Proxies named by the environment are honoured. tlsConfig may be nil; a nil
// dialer means NewDialer.
func NewTransport(tlsConfig *tls.Config, dialer *dial.Dialer) http.RoundTripper {
	pooled := newHTTP1(tlsConfig, dialer)
	fresh := newHTTP1(tlsConfig, dialer)
	fresh.DisableKeepAlives = true
	return &transport{pooled: pooled, fresh: fresh}
}

// NewStreamTransport is the transport of an exchange's streams. Each of its connections is one stream, so none is kept for
// the next, and their number is bounded by who opens them. tlsConfig and dialer are as in NewTransport.
func NewStreamTransport(tlsConfig *tls.Config, dialer *dial.Dialer) http.RoundTripper {
	t := newHTTP1(tlsConfig, dialer)
	t.MaxConnsPerHost = 0
	t.MaxIdleConnsPerHost = -1
	return t
}

func newHTTP1(tlsConfig *tls.Config, dialer *dial.Dialer) *http.Transport {
	if dialer == nil {
		dialer = NewDialer()
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            dialer.DialContext,
		OnProxyConnectResponse: proxyAnswered,
		Protocols:              protocols,
		TLSClientConfig:        tlsConfig,
		TLSHandshakeTimeout:    handshakeTimeout,
		MaxConnsPerHost:        maxConns,
		MaxIdleConnsPerHost:    maxIdle,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHeader,
	}
}

// transport sends probes over a connection of their own: a pooled one may be as dead as the exchange was.
type transport struct{ pooled, fresh *http.Transport }

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if market.IsProbe(r.Context()) {
		t.pooled.CloseIdleConnections()
		return t.fresh.RoundTrip(r)
	}
	return t.pooled.RoundTrip(r)
}

// CloseIdleConnections ends the connections that no request uses.
func (t *transport) CloseIdleConnections() {
	t.pooled.CloseIdleConnections()
	t.fresh.CloseIdleConnections()
}
