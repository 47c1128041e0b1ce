package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/alecthomas/kong"

	"exchange-gateway/cmd/gateway/app"
	"exchange-gateway/cmd/gateway/config"
)

// cli is the whole surface of the program, as `gateway --help` shows it.
type cli struct {
	Serve       serveCmd       `cmd:"" default:"withargs" help:"Serve the REST API (the default)."`
	Demo        demoCmd        `cmd:"" help:"Simulated exchanges and the gateway in one process, with outages to watch."`
	Status      statusCmd      `cmd:"" help:"How a running gateway stands: circuits, overrides, gates, the oldest books."`
	Events      eventsCmd      `cmd:"" help:"What happened in the last 24 hours, and with -f what happens."`
	Isolate     isolateCmd     `cmd:"" help:"Send an exchange nothing at all for a while."`
	Release     releaseCmd     `cmd:"" help:"End an isolation or a withholding."`
	Probe       probeCmd       `cmd:"" help:"Ask an exchange whose circuit is open now."`
	Withhold    withholdCmd    `cmd:"" help:"Answer reads of a pair or an exchange with 503 for a while."`
	Purge       purgeCmd       `cmd:"" help:"Drop every copy of a wrong book."`
	Reload      reloadCmd      `cmd:"" help:"Have the configuration read again: warm pairs, thresholds, windows, quotas, keys, log level."`
	Book        bookCmd        `cmd:"" help:"Show an order book, and with --watch as it changes."`
	Key         keyCmd         `cmd:"" help:"Client keys."`
	Client      clientCmd      `cmd:"" help:"Clients and their quotas."`
	Config      configCmd      `cmd:"" help:"Check or print the configuration."`
	Healthcheck healthcheckCmd `cmd:"" help:"Exit 0 if the gateway on this machine is up, for containers."`
	Version     versionCmd     `cmd:"" help:"Print the version."`
}

// settings are the flags that change the configuration. What has no flag of its own is set by --set.
type settings struct {
	Config      string   `short:"c" placeholder:"FILE" help:"YAML file. Also GATEWAY_CONFIG."`
	Listen      string   `placeholder:"ADDR" help:"Public listener, default 127.0.0.1:8080."`
	AdminListen string   `placeholder:"ADDR" help:"Listener of the dashboard, operators' actions, metrics and probes, default 127.0.0.1:8081."`
	StateDir    string   `placeholder:"DIR" help:"Where ban ends, overrides, history and keys are kept, default ~/.local/state/exchange-gateway."`
	Redis       []string `placeholder:"ADDR" help:"Redis that keeps books across restarts, default none."`
	LogLevel    string   `placeholder:"LEVEL" help:"debug, info, warn or error; default info."`
	LogFormat   string   `placeholder:"FORMAT" help:"json, text or auto; default auto: text on a terminal."`
	Set         []string `sep:"none" placeholder:"PATH=VALUE" help:"Any setting of the file, for example exchanges.okx.region=eea. Repeatable."`
}

// sources turns the flags into settings by path, so that every flag is a setting of the file under another name.
func (s settings) sources(sys system) config.Sources {
	set := make([]string, 0, len(s.Set)+6)
	add := func(path, value string) {
		if value != "" {
			set = append(set, path+"="+value)
		}
	}
	add("listen", s.Listen)
	add("admin_listen", s.AdminListen)
	add("state_dir", s.StateDir)
	add("redis.addrs", strings.Join(s.Redis, ","))
	add("log.level", s.LogLevel)
	add("log.format", s.LogFormat)
	file := s.Config
	if file == "" {
		file = lookup(sys.env, "GATEWAY_CONFIG")
	}
	return config.Sources{
		File: file, Env: sys.env, Set: append(set, s.Set...), Known: app.ExchangeIDs(),
		Home: lookup(sys.env, "HOME"), State: lookup(sys.env, "XDG_STATE_HOME"), Host: sys.host,
	}
}

// load reads the configuration. What the next release refuses is said on standard error.
func (s settings) load(sys system) (config.Config, error) {
	return s.loadWith(sys, func(w config.Warning) { fmt.Fprintf(sys.err, "Warning: %v\n", w) })
}

func (s settings) loadWith(sys system, warn func(config.Warning)) (config.Config, error) {
	sources := s.sources(sys)
	sources.Warn = warn
	return config.Load(sources)
}

func lookup(env []string, name string) string {
	value := ""
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			value = v
		}
	}
	return value
}

const description = `An exchange gateway for Binance spot, OKX and Coinbase: order books through outages, labelled with their age; balances live or an error. It places no orders.

Every setting can be given, strongest first, as a flag, as an environment variable (exchanges.okx.region is GATEWAY_EXCHANGES_OKX_REGION; with _FILE at the end the value is read from a file), or in the YAML file. With none of them the gateway serves public data on 127.0.0.1:8080.`

// run reads the command line and does what it says. It returns when that is done, or soon after ctx ends.
func run(ctx context.Context, sys system) error {
	var c cli
	exited := false
	parser, err := kong.New(&c,
		kong.Name("gateway"), kong.Description(description), kong.Writers(sys.out, sys.err),
		kong.Exit(func(int) { exited = true }), kong.ConfigureHelp(kong.HelpOptions{Compact: true}), kong.UsageOnError())
	if err != nil {
		return fmt.Errorf("command line: %w", err)
	}
	command, err := parser.Parse(sys.args)
	if exited { // --help was printed
		return nil
	}
	if err != nil {
		fmt.Fprintf(sys.err, "gateway: %v\n", err)
		if p, ok := errors.AsType[*kong.ParseError](err); ok && p.Context != nil {
			fmt.Fprintf(sys.err, "Run '%s --help' to see every command and flag.\n", sys.name())
		}
		return errUsage
	}
	command.BindTo(ctx, (*context.Context)(nil))
	return command.Run(sys)
}
