package night

import (
	"bytes"
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
	"exchange-gateway/internal/api/keys"
	"exchange-gateway/internal/exchangesim"
	"exchange-gateway/internal/market"
)

// ids are the exchanges that every test is made for.
var ids = []market.ExchangeID{"binance", "okx", "coinbase"}

// stage is the gateway as the program wires it, before three simulated exchanges.
type stage struct {
	t    testing.TB
	sim  *exchangesim.Sim
	conf config.Config
	app  *app.App
	log  *journal
	taps map[market.ExchangeID]*tap
	key  string // of a client that may read every account

	mu     sync.Mutex
	events []market.Event
	opens  map[market.CircuitID]opening
}

// opening is the first time that a circuit opened.
type opening struct {
	before int // requests that had left for the exchange
	at     time.Time
}

// setting is what a test changes of the usual stage.
type setting struct {
	sim   exchangesim.Config // without instruments of its own: thin
	conf  func(*config.Config)
	log   *bytes.Buffer // gets the log's text; nil keeps none
	watch *secrets      // learns the signatures that are sent; nil for none
}

// account is the account of every exchange on the usual stage.
const account = "main"

// credentials are the simulator's credentials behind it.
var credentials = map[market.ExchangeID]string{"binance": "binance-hmac", "okx": "okx", "coinbase": "coinbase-es256"}

// newStage builds and starts a gateway without sockets. It may be called in a bubble, and ends with it.
func newStage(t *testing.T, o setting) *stage {
	t.Helper()
	if o.sim.Instruments == nil {
		o.sim.Instruments = thin()
	}
	sim, err := exchangesim.New(o.sim)
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{
		t: t, sim: sim, log: newJournal(o.log), conf: usual(t),
		taps: map[market.ExchangeID]*tap{}, opens: map[market.CircuitID]opening{},
	}
	if o.conf != nil {
		o.conf(&s.conf)
	}
	s.key = newKey(t, s.conf.KeysFile, keys.AccountRead)
	for _, id := range ids {
		way := sim.Venue(string(id)).Transport()
		if o.watch != nil {
			way = watched{way, o.watch}
		}
		s.taps[id] = newTap(way)
	}
	s.app, err = app.New(s.conf, app.Options{
		Log: slog.New(s.log), Version: "test", Listener: s.hear,
		Transport: func(id market.ExchangeID) http.RoundTripper { return s.taps[id] },
	})
	if err != nil {
		t.Fatal(err)
	}
	s.app.Start(t.Context())
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.app.Background(ctx) }()
	t.Cleanup(func() {
		stop()
		err := <-ended
		closing, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := errors.Join(err, s.app.Close(closing)); err != nil {
			t.Error(err)
		}
		sim.Close()
	})
	return s
}

// thin are pairs with few levels: what a simulated exchange costs to run is in its levels, and no test here is about them.
func thin() map[string][]exchangesim.Instrument {
	all := map[string][]exchangesim.Instrument{}
	for _, id := range ids {
		join := "-"
		if id == "binance" {
			join = ""
		}
		for _, pair := range instruments[id] {
			base, quote, _ := strings.Cut(pair, "/")
			all[string(id)] = append(all[string(id)], exchangesim.Instrument{
				Symbol: base + join + quote, Base: base, Quote: quote, Tick: "0.01", Lot: "0.001", Price: "640", Size: "4", Levels: 8,
			})
		}
	}
	return all
}

// usual is the default configuration with one account at each exchange. Nothing is streamed: these nights are about calls.
func usual(t testing.TB) config.Config {
	c := config.Default()
	c.StateDir = t.TempDir()
	c.KeysFile = filepath.Join(c.StateDir, "keys.yaml")
	for _, id := range ids {
		calls := false
		c.Exchanges[id] = config.Exchange{Streams: &calls, Accounts: map[string]config.Account{account: credential(t, credentials[id])}}
	}
	return c
}

// credential is one of the simulator's own, as configuration.
func credential(t testing.TB, name string) config.Account {
	t.Helper()
	for _, c := range exchangesim.ExampleCredentials() {
		if c.Name == name {
			return asAccount(c)
		}
	}
	t.Fatalf("the simulator has no credential %q", name)
	return config.Account{}
}

func asAccount(c exchangesim.Credential) config.Account {
	return config.Account{
		Key: market.NewSecret(c.Key), Secret: market.NewSecret(c.Secret), Passphrase: market.NewSecret(c.Passphrase), Demo: c.Demo,
	}
}

// newKey adds a client's key to the keys file.
func newKey(t testing.TB, path string, scopes ...string) string {
	t.Helper()
	parsed, err := keys.ParseScopes(scopes...)
	if err != nil {
		t.Fatal(err)
	}
	k, text, err := keys.New(parsed, "acceptance test", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := keys.Append(path, k); err != nil {
		t.Fatal(err)
	}
	return text.Reveal()
}

// hear is the listener of the guard's events.
func (s *stage) hear(e market.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, e)
	if _, known := s.opens[e.Circuit]; e.To == market.CircuitOpen && !known {
		s.opens[e.Circuit] = opening{s.taps[e.Circuit.Exchange].total(), e.At}
	}
}

// opened is how many requests had left for an exchange when the circuit of a class first opened, and when that was.
func (s *stage) opened(id market.ExchangeID, class market.Class) (before int, at time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c, o := range s.opens {
		if c.Exchange == id && c.Class == class {
			return o.before, o.at, true
		}
	}
	return 0, time.Time{}, false
}

// transitions are the changes of an exchange's circuits.
func (s *stage) transitions(id market.ExchangeID) []market.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []market.Event
	for _, e := range s.events {
		if e.Type == market.EventCircuit && e.Circuit.Exchange == id {
			out = append(out, e)
		}
	}
	return out
}

func (s *stage) venue(id market.ExchangeID) *exchangesim.Venue { return s.sim.Venue(string(id)) }

// inject makes an exchange misbehave.
func (s *stage) inject(id market.ExchangeID, f exchangesim.Fault) {
	s.t.Helper()
	if _, err := s.venue(id).Inject(f); err != nil {
		s.t.Fatal(err)
	}
}
