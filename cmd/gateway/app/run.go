package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"exchange-gateway/internal/api/cork"
)

// Addresses are where the gateway listens.
type Addresses struct {
	Public string // host:port
	Admin  string
	TLS    bool
}

// Run listens, serves until ctx ends, drains, and returns nil; or returns why it cannot serve. ready is called once both
// listeners are open; it may be nil.
func (a *App) Run(ctx context.Context, ready func(Addresses)) error {
	public, admin, err := a.listen(ctx)
	if err != nil {
		return err
	}
	a.Start(ctx)

	// What goes on beside requests outlives the last of them.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	background := make(chan error, 1)
	go func() {
		background <- Together(life, a.Background, func(ctx context.Context) error { a.Reach(ctx); return nil })
	}()

	if ready != nil {
		ready(Addresses{Public: public.Addr().String(), Admin: admin.Addr().String(), TLS: a.conf.TLSCertFile != ""})
	}
	err = a.serve(ctx, public, admin, background)

	end()
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	select {
	case e := <-background:
		err = errors.Join(err, e)
	case <-closing.Done():
		err = errors.Join(err, errors.New("the work in the background did not end"))
	}
	return errors.Join(err, a.Close(closing))
}

// listenOn listens, or says what to do about an address that is taken. flag is the one of the command line that names another.
func listenOn(ctx context.Context, addr, what, flag string) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		variable := strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
		return nil, fmt.Errorf("%s: %s is taken, perhaps by another gateway: stop the program that listens there, or choose another address with "+
			"--%s HOST:PORT (with make: %s=HOST:PORT): %w", what, addr, flag, variable, err)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return l, nil
}

func (a *App) listen(ctx context.Context) (public, admin net.Listener, err error) {
	public, err = listenOn(ctx, a.conf.Listen, "public listener", "listen")
	admin, adminErr := listenOn(ctx, a.conf.AdminListen, "admin listener", "admin-listen")
	if err := errors.Join(err, adminErr); err != nil {
		for _, l := range []net.Listener{public, admin} {
			if l != nil {
				err = errors.Join(err, l.Close())
			}
		}
		return nil, nil, err
	}
	public, admin = a.bound(public, admin, descriptors())
	if a.certificate == nil {
		return cork.Listen(public), admin, nil
	}
	if err := a.certificate.load(); err != nil {
		return nil, nil, errors.Join(err, public.Close(), admin.Close())
	}
	public = tls.NewListener(public, a.certificate.config())
	if a.conf.AdminTLS() {
		admin = tls.NewListener(admin, a.certificate.config())
	}
	return public, admin, nil
}

// bound bounds the connections of both listeners by what the process may hold. Behind a proxy all callers have its address.
func (a *App) bound(public, admin net.Listener, descriptors uint64) (boundPublic, boundAdmin net.Listener) {
	most := share(descriptors)
	if most.public < maxPublic {
		a.log.Info("the limit of open files bounds the connections", slog.Uint64("open_files", descriptors),
			slog.Int("public", most.public), slog.Int("admin", most.admin))
	}
	c := limitConfig{name: "public", most: most.public, perAddress: max(most.public/2, 1), shortage: a.shortage, log: a.log}
	if len(a.conf.TrustedProxies) > 0 {
		c.perAddress = 0
	}
	boundPublic = limit(public, c)
	c.name, c.most, c.perAddress = "admin", most.admin, min(c.perAddress, max(most.admin/2, 1))
	return boundPublic, limit(admin, c)
}

// serve serves both listeners until ctx ends or one of the parts fails, then drains.
func (a *App) serve(ctx context.Context, public, admin net.Listener, background chan error) error {
	servers := []*http.Server{a.api.HTTPServer(a.Public()), a.api.HTTPServer(a.Admin())}
	failed := make(chan error, len(servers))
	for i, l := range []net.Listener{public, admin} {
		go func() { failed <- servers[i].Serve(l) }()
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
		failed <- nil // keep the count of what drain waits for
	case err = <-background:
		background <- nil
		if err == nil {
			err = errors.New("the work in the background ended early")
		}
	}
	return errors.Join(err, a.drain(ctx, servers, failed))
}

// lameDuck is how long a stopping gateway still accepts connections: whoever asks /readyz once a second has heard by then
// that it is not ready, and sends nothing that would be refused. A tenth of the drain if that is less.
const lameDuck = time.Second

// drain lets the requests in flight end: readiness first, so that no new ones are sent here; those that outlast the bound
// are answered `shutting_down`. The admin listener is the last to close: until then it says on /readyz what is going on,
// and its metrics count what is left.
func (a *App) drain(ctx context.Context, servers []*http.Server, failed chan error) error {
	a.api.Drain()
	a.log.InfoContext(ctx, "stopping: requests in flight may end", slog.Duration("bound", a.conf.Drain))
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.conf.Drain)
	defer cancel()
	// Some of the bound is kept for ending what outlasts the rest of it.
	timer := time.AfterFunc(a.conf.Drain-a.conf.Drain/5, a.api.Stop)
	defer timer.Stop()

	duck := time.NewTimer(min(lameDuck, a.conf.Drain/10))
	<-duck.C
	// Streams would outlast any bound: they are told to go.
	closing, done := context.WithTimeout(bound, a.conf.Drain/2)
	err := a.api.CloseStreams(closing)
	done()
	for _, s := range servers { // the public one first
		err = errors.Join(err, s.Shutdown(bound))
	}
	if err != nil {
		for _, s := range servers {
			_ = s.Close() // the bound is over: the connections are cut
		}
		a.log.WarnContext(ctx, "requests were cut off at the bound of the drain", slog.Any("err", err))
	}
	for range servers {
		if e := <-failed; e != nil && !errors.Is(e, http.ErrServerClosed) {
			return e
		}
	}
	return nil
}

// Together runs all of them until ctx ends or one fails, and returns when all have ended.
func Together(ctx context.Context, runs ...func(context.Context) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, run := range runs {
		group.Go(func() error {
			if err := run(ctx); err != nil && !errors.Is(err, context.Canceled) {
				return err
			}
			return nil
		})
	}
	return group.Wait()
}
