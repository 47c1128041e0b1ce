package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exchange-gateway/cmd/gateway/app"
	"exchange-gateway/cmd/gateway/config"
)

// measureServing measures the program over HTTP: warm books, an outage, misses.
func measureServing(ctx context.Context, r *run) error {
	s, err := newStage(ctx, r.dir)
	defer s.stop()
	if err != nil {
		return err
	}
	if err := s.measureAnswers(ctx, r); err != nil {
		return err
	}
	n, err := s.handlerAllocations(ctx, filepath.Join(r.dir, "handler"))
	if err != nil {
		return err
	}
	r.most("warm book: allocations in the handler", n, allocs, 25)
	return s.measureMisses(ctx, r)
}

// stage is the servers: a gateway that works and one in an outage, each with an exchange of its own, and their peers.
type stage struct {
	exchange, failed *upstream
	warm, outage     *gateway
	bare, nginx      *process
	proxy            *process
	stops            []func()
}

func (s *stage) stop() {
	for _, f := range s.stops {
		defer f()
	}
}

func newStage(ctx context.Context, dir string) (*stage, error) {
	s := &stage{}
	program, err := build(ctx, dir)
	if err != nil {
		return s, err
	}
	exchanges := []**upstream{&s.exchange, &s.failed}
	for i, g := range []**gateway{&s.warm, &s.outage} {
		if *exchanges[i], err = startUpstream(ctx); err != nil {
			return s, err
		}
		s.stops = append(s.stops, (*exchanges[i]).stop)
		if *g, err = startGateway(ctx, program, filepath.Join(dir, fmt.Sprint("state", i)), (*exchanges[i]).url); err != nil {
			return s, err
		}
		s.stops = append(s.stops, (*g).stop)
		if _, err = (*g).good(ctx, "BTC", 100); err != nil {
			return s, err
		}
	}
	s.failed.broken.Store(true)
	if err := s.outage.openCircuit(ctx); err != nil {
		return s, err
	}
	return s, s.startPeers(ctx, dir)
}

func (s *stage) startPeers(ctx context.Context, dir string) error {
	book, err := s.warm.good(ctx, "BTC", 100)
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "book.json")
	if err := os.WriteFile(file, book.Text, 0o600); err != nil {
		return err
	}
	if s.bare, err = startPeer(ctx, "bare", file); err != nil {
		return err
	}
	s.stops = append(s.stops, s.bare.stop)
	if s.nginx, err = startNginx(ctx, dir, s.bare.addr); err != nil {
		return err
	}
	s.stops = append(s.stops, s.nginx.stop)
	if s.proxy, err = startPeer(ctx, "proxy", s.exchange.url); err != nil {
		return err
	}
	s.stops = append(s.stops, s.proxy.stop)
	return nil
}

// measurement is one kind of answer under load.
type measurement struct {
	server        *process
	url           string
	authorization string
	fails         bool // every answer is meant to be an error

	cpu, perSecond []float64 // of each round, of one request
}

func (m *measurement) round(ctx context.Context) error {
	before, err := m.server.cpu()
	if err != nil {
		return err
	}
	r, err := wrk(ctx, m.url, m.authorization)
	if err != nil {
		return err
	}
	after, err := m.server.cpu()
	if err != nil {
		return err
	}
	if want := map[bool]float64{true: r.requests}[m.fails]; r.not2xx != want {
		return fmt.Errorf("wrk %s: %.0f of %.0f answers were errors, want %.0f", m.url, r.not2xx, r.requests, want)
	}
	m.cpu = append(m.cpu, float64(after-before)/r.requests)
	m.perSecond = append(m.perSecond, r.perSecond)
	return nil
}

func (s *stage) measureAnswers(ctx context.Context, r *run) error {
	ours := func(g *gateway, base string, depth int, fails bool) *measurement {
		return &measurement{server: g.process, url: g.bookURL(base, depth), authorization: g.authorization(), fails: fails}
	}
	peer := func(p *process, path string, fails bool) *measurement {
		return &measurement{server: p, url: "http://" + p.addr + path, fails: fails}
	}
	bare, warm, deep := peer(s.bare, "/book", false), ours(s.warm, "BTC", 100, false), ours(s.warm, "ETH", 1000, false)
	stale, open := ours(s.outage, "BTC", 100, false), ours(s.outage, unread, 100, true)
	missing, cached := peer(s.bare, "/nothing", true), peer(s.nginx, "/book", false)
	for range r.rounds {
		for _, m := range []*measurement{bare, warm, deep, stale, open, missing, cached} {
			if err := m.round(ctx); err != nil {
				return err
			}
		}
		if err := s.stillOpen(ctx); err != nil {
			return err
		}
	}
	r.ratio("warm book of 100 levels over HTTP / bare net/http", paired{warm.cpu, bare.cpu}, cpuMicros, 1.5)
	r.shown("  requests/s / bare net/http", paired{warm.perSecond, bare.perSecond}, perSecond)
	r.shown("  requests/s / nginx proxy_cache", paired{warm.perSecond, cached.perSecond}, perSecond)
	r.ratio("warm book of 1,000 levels / of 100", paired{deep.cpu, warm.cpu}, cpuMicros, 1.3)
	r.ratio("stale book while open / warm book", paired{stale.cpu, warm.cpu}, cpuMicros, 1.2)
	r.ratio("503 of an open circuit / bare 404", paired{open.cpu, missing.cpu}, cpuMicros, 1.5)
	return nil
}

var errNotStale = errors.New("the gateway in the outage does not answer as in an outage")

// stillOpen checks that what was measured was an open circuit, which a probe may be testing.
func (s *stage) stillOpen(ctx context.Context) error {
	a, err := s.outage.good(ctx, "BTC", 100)
	if err == nil && (!a.Stale || a.Freshness.Circuit == "closed") {
		err = fmt.Errorf("%w: %+v", errNotStale, a.Freshness)
	}
	return err
}

// handlerAllocations counts the allocations of a warm read in the whole handler, without a socket.
func (s *stage) handlerAllocations(ctx context.Context, dir string) (float64, error) {
	conf := config.Default()
	off := false
	conf.StateDir, conf.KeysFile = dir, filepath.Join(filepath.Dir(dir), "state0", "keys.yaml")
	conf.Exchanges = config.Exchanges{
		"binance": {Hosts: []string{s.exchange.url}, BudgetShare: 0.7}, "okx": {Enabled: &off}, "coinbase": {Enabled: &off},
	}
	a, err := app.New(conf, app.Options{})
	if err != nil {
		return 0, err
	}
	a.Start(ctx)
	u := s.warm.bookURL("BTC", 100)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u[strings.Index(u, "/v1/"):], nil)
	if err != nil {
		return 0, err
	}
	r.Header.Set("Authorization", s.warm.authorization())
	w := &sink{}
	serve := func() {
		w.header = make(http.Header)
		a.Public().ServeHTTP(w, r)
	}
	serve()
	n := testing.AllocsPerRun(500, serve)
	if w.status != http.StatusOK {
		return 0, fmt.Errorf("status %d", w.status)
	}
	return n, a.Close(ctx)
}

// sink is a ResponseWriter that keeps nothing.
type sink struct {
	header http.Header
	status int
}

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) WriteHeader(status int)      { s.status = status }
func (s *sink) Write(b []byte) (int, error) { return len(b), nil }
