package exchangesim

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// Server is a venue, or the control endpoint, on a listener. Close it, or end the context that it was started with.
type Server struct {
	ln     net.Listener
	scheme string
	http   *http.Server
	cancel context.CancelFunc
	conns  sync.WaitGroup // connections in net/http's hands, and requests
	served chan struct{}
	once   sync.Once
	err    error
}

// StartOptions are the choices of a listener.
type StartOptions struct {
	TLS bool
}

// Start listens on addr ("127.0.0.1:0" picks a port) and serves the venue over HTTP/1.1 until ctx ends or Close is called.
func (s *Sim) Start(ctx context.Context, v *Venue, addr string, opt StartOptions) (*Server, error) {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", v.id, err)
	}
	return s.serve(ctx, countedListener{ln, &v.count}, v, opt)
}

// StartHandler serves any handler, such as [Sim.Control], in the same way and without TLS.
func (s *Sim) StartHandler(ctx context.Context, h http.Handler, addr string) (*Server, error) {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return s.serve(ctx, ln, h, StartOptions{})
}

func (s *Sim) serve(ctx context.Context, ln net.Listener, h http.Handler, opt StartOptions) (*Server, error) {
	srv := &Server{ln: ln, scheme: "http", served: make(chan struct{})}
	if opt.TLS {
		a, err := s.certify()
		if err != nil {
			return nil, errors.Join(err, ln.Close())
		}
		srv.scheme = "https"
		ln = tls.NewListener(ln, &tls.Config{Certificates: []tls.Certificate{a.leaf}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}})
	}
	base, cancel := context.WithCancel(ctx)
	srv.cancel = cancel
	srv.http = &http.Server{
		Handler: srv.counted(h), ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
		BaseContext: func(net.Listener) context.Context { return base },
		ConnState:   srv.track,
	}
	go func() {
		defer close(srv.served)
		if err := srv.http.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			srv.err = err
		}
	}()
	context.AfterFunc(base, func() { _ = srv.http.Close() }) // Close gives the caller the error, if any
	return srv, nil
}

// counted counts the requests too: that of a stream outlives its connection's time in net/http's hands.
func (srv *Server) counted(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		srv.conns.Add(1)
		defer srv.conns.Done()
		h.ServeHTTP(w, r)
	})
}

// track counts the connections, so that Close can wait for all of them.
func (srv *Server) track(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		srv.conns.Add(1)
	case http.StateActive, http.StateIdle:
	case http.StateClosed, http.StateHijacked:
		srv.conns.Done()
	}
}

// Addr is the address that the server listens on.
func (srv *Server) Addr() string { return srv.ln.Addr().String() }

// URL is the base of the server's URLs, without a final slash.
func (srv *Server) URL() string { return srv.scheme + "://" + srv.Addr() }

// Close ends all requests, hanging ones too, closes all connections and waits for their goroutines.
func (srv *Server) Close() error {
	srv.once.Do(func() {
		srv.cancel()
		err := srv.http.Close()
		<-srv.served
		srv.conns.Wait()
		srv.err = errors.Join(srv.err, ignoreClosed(err))
	})
	return srv.err
}

// ignoreClosed drops what a second close of a listener says.
func ignoreClosed(err error) error {
	if err == nil || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// countedListener counts accepted connections as dials of a venue.
type countedListener struct {
	net.Listener
	count *counters
}

// Accept implements net.Listener.
func (l countedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.count.dialed()
	}
	return c, err
}
