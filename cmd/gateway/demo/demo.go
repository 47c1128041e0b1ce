// Package demo runs simulated exchanges and the gateway in one process, breaks one exchange after the other, and says in
// words what a bot sees. Nothing of it leaves this machine.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"exchange-gateway/cmd/gateway/app"
	"exchange-gateway/cmd/gateway/config"
	"exchange-gateway/internal/api/keys"
	"exchange-gateway/internal/exchangesim"
	"exchange-gateway/internal/market"
)

// Options are what can be chosen.
type Options struct {
	Out         io.Writer
	Log         *slog.Logger
	Version     string
	Program     string // how the gateway is called in a shell
	Listen      string
	AdminListen string
	Control     string        // where the simulated exchanges are told to misbehave
	Every       time.Duration // from one outage to the next
	Outage      time.Duration // how long one lasts
	Set         []string      // settings beside the demo's own, "path=value"
	ReadyFile   string        // written once everything listens, see readiness; "" writes none
}

// Validate says what makes no sense.
func (o Options) Validate() error {
	if o.Outage < time.Second || o.Every < 2*o.Outage {
		return fmt.Errorf("an outage of %v every %v leaves no time to recover: --outage is at least 1s, --every at least twice that", o.Outage, o.Every)
	}
	if !config.Loopback(o.Listen) || !config.Loopback(o.AdminListen) || !config.Loopback(o.Control) {
		return errors.New("the demo listens on loopback only, for example 127.0.0.1:8080")
	}
	return nil
}

// shown are the pairs that the demo's own bot asks for, one an exchange, in the order of the outages.
var shown = []struct {
	exchange market.ExchangeID
	symbol   string
}{{"okx", "BTC/USDT"}, {"binance", "BTC/USDT"}, {"coinbase", "BTC/USD"}}

// Run shows the demo until ctx ends.
func Run(ctx context.Context, o Options) (err error) {
	if err := o.Validate(); err != nil {
		return err
	}
	state, err := os.MkdirTemp("", "exchange-gateway-demo-")
	if err != nil {
		return fmt.Errorf("a place for the demo's state: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(state)) }()

	key, err := newKey(filepath.Join(state, "keys.yaml"))
	if err != nil {
		return err
	}
	sim, err := exchangesim.New(exchangesim.Config{Seed: 1})
	if err != nil {
		return fmt.Errorf("simulated exchanges: %w", err)
	}
	defer sim.Close()
	conf, control, stop, err := serveVenues(ctx, sim, o, state)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()

	say := newVoice(o.Out)
	a, err := app.New(conf, app.Options{Log: o.Log, Version: o.Version, Program: o.Program, Listener: say.event})
	if err != nil {
		return err
	}
	return play(ctx, a, sim, say, scene{options: o, key: key, control: control, venues: hosts(conf)})
}

// scene is what the actors need to know.
type scene struct {
	options Options
	key     market.Secret
	control string
	venues  map[market.ExchangeID]string // where each simulated exchange listens
}

func hosts(conf config.Config) map[market.ExchangeID]string {
	all := make(map[market.ExchangeID]string, len(conf.Exchanges))
	for id, e := range conf.Exchanges {
		all[id] = e.Hosts[0]
	}
	return all
}

// play runs the gateway, the bot and the outages until ctx ends or the gateway cannot run.
func play(ctx context.Context, a *app.App, sim *exchangesim.Sim, say *voice, s scene) error {
	group, ctx := errgroup.WithContext(ctx)
	listening := make(chan app.Addresses, 1)
	group.Go(func() error {
		return a.Run(ctx, func(at app.Addresses) { listening <- at })
	})
	group.Go(func() error {
		select {
		case at := <-listening:
			base := "http://" + at.Public
			if err := writeReady(s.options.ReadyFile, s, base, "http://"+at.Admin); err != nil {
				return err
			}
			say.welcome(base, "http://"+at.Admin, s)
			b := &bot{base: base, key: s.key, say: say, client: &http.Client{Timeout: botTimeout}}
			return app.Together(ctx, b.run, func(ctx context.Context) error { return outages(ctx, sim, say, s.options) })
		case <-ctx.Done():
			return nil
		}
	})
	if err := group.Wait(); err != nil {
		return err
	}
	say.line("", "stopped: every request was answered, nothing is left running")
	return nil
}

func newKey(path string) (market.Secret, error) {
	scopes, err := keys.ParseScopes("market:read", "account:read")
	if err != nil {
		return market.Secret{}, err
	}
	key, text, err := keys.New(scopes, "demo", time.Now())
	if err != nil {
		return market.Secret{}, err
	}
	return text, keys.Append(path, key)
}
