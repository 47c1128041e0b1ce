package stream

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"exchange-gateway/cmd/gateway/app"
	"exchange-gateway/cmd/gateway/config"
	"exchange-gateway/internal/exchangesim"
	"exchange-gateway/internal/market"
)

// ids are the exchanges that every test is made for.
var ids = []market.ExchangeID{"binance", "okx", "coinbase"}

// stage is the gateway as the program wires it, between simulated exchanges and clients, all in memory.
type stage struct {
	t      testing.TB
	sim    *exchangesim.Sim
	app    *app.App
	taps   map[market.ExchangeID]*tap
	public *pipes
	client *http.Client // of the public listener
	stop   func()       // ends the gateway; clients have to be gone. It is called once more at the end of the test
}

// setting is what a test decides about its stage.
type setting struct {
	sim   exchangesim.Config
	only  []market.ExchangeID // exchanges that are enabled, nil for all
	conf  func(*config.Config)
	log   *slog.Logger // nil discards
	heard func(market.Event)
}

// newStage builds and starts a gateway. It is called in a bubble, and what it starts ends with the test.
func newStage(t *testing.T, o setting) *stage {
	t.Helper()
	sim, err := exchangesim.New(o.sim)
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{t: t, sim: sim, taps: map[market.ExchangeID]*tap{}, public: newPipes()}
	if o.only == nil {
		o.only = ids
	}
	var pipes []*exchangesim.PipeServer
	for _, id := range o.only {
		pipe, err := sim.StartPipe(context.WithoutCancel(t.Context()), s.venue(id), exchangesim.StartOptions{})
		if err != nil {
			t.Fatal(err)
		}
		pipes = append(pipes, pipe)
		s.taps[id] = newTap(pipe.DialContext)
	}
	conf := config.Default()
	conf.StateDir = t.TempDir()
	conf.KeysFile = filepath.Join(conf.StateDir, "keys.yaml")
	for _, id := range o.only {
		// Plain text: TLS is not what these tests are about.
		conf.Exchanges[id] = config.Exchange{Hosts: []string{"http://sim.test"}, StreamHosts: []string{"ws://sim.test"}}
	}
	for _, id := range app.ExchangeIDs() {
		if _, on := s.taps[id]; !on {
			conf.Exchanges[id] = config.Exchange{Enabled: new(bool)}
		}
	}
	if o.conf != nil {
		o.conf(&conf)
	}
	s.app, err = app.New(conf, app.Options{
		Log: o.log, Version: "test", Listener: o.heard,
		Transport: func(id market.ExchangeID) http.RoundTripper { return s.taps[id] },
	})
	if err != nil {
		t.Fatal(err)
	}
	s.app.Start(t.Context())
	ctx, end := context.WithCancel(context.Background())
	server := &http.Server{Handler: s.app.Public()}
	var running sync.WaitGroup
	running.Go(func() {
		if err := server.Serve(s.public); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	running.Go(func() {
		if err := s.app.Background(ctx); err != nil {
			t.Error(err)
		}
	})
	s.client = &http.Client{Transport: &http.Transport{DialContext: s.public.DialContext}}
	s.stop = sync.OnceFunc(func() {
		s.client.CloseIdleConnections()
		err := server.Close()
		end()
		running.Wait()
		closing, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		err = errors.Join(err, s.app.Close(closing))
		for _, tap := range s.taps {
			tap.way.CloseIdleConnections()
		}
		for _, pipe := range pipes {
			err = errors.Join(err, pipe.Close())
		}
		if err != nil {
			t.Error(err)
		}
		sim.Close()
	})
	t.Cleanup(s.stop)
	return s
}

func (s *stage) venue(id market.ExchangeID) *exchangesim.Venue { return s.sim.Venue(string(id)) }

// inject makes an exchange misbehave.
func (s *stage) inject(id market.ExchangeID, f exchangesim.Fault) {
	s.t.Helper()
	if _, err := s.venue(id).Inject(f); err != nil {
		s.t.Fatal(err)
	}
}

// symbolOf is an exchange's own name of a pair.
func symbolOf(id market.ExchangeID, pair string) string {
	join := "-"
	if id == "binance" {
		join = ""
	}
	return strings.Replace(pair, "/", join, 1)
}

// instrument is a pair of an exchange with a book of some levels that changes every so often.
func instrument(id market.ExchangeID, pair string, levels int, every time.Duration) exchangesim.Instrument {
	base, quote, _ := strings.Cut(pair, "/")
	return exchangesim.Instrument{
		Symbol: symbolOf(id, pair), Base: base, Quote: quote, Tick: "0.01", Lot: "0.001", Price: "6400", Size: "4",
		Levels: levels, Every: every,
	}
}
