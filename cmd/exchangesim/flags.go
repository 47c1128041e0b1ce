package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"

	"exchange-gateway/internal/exchangesim"
)

// flags are the command line. Each can also be set by the environment: --ca-file is EXCHANGESIM_CA_FILE.
type flags struct {
	Binance  string `help:"Address of Binance; empty leaves the venue out." default:"127.0.0.1:9101"`
	OKX      string `name:"okx" help:"Address of OKX; empty leaves the venue out." default:"127.0.0.1:9102"`
	Coinbase string `help:"Address of Coinbase, both APIs; empty leaves the venue out." default:"127.0.0.1:9103"`
	Control  string `help:"Address of the control endpoint; empty leaves it out." default:"127.0.0.1:9100"`

	TLS      bool   `name:"tls" help:"Serve the venues over TLS with a CA made at start."`
	CAFile   string `name:"ca-file" help:"Write that CA to this file as PEM." placeholder:"FILE"`
	Relay    bool   `help:"Put a relay in front of each venue, which can drop packets silently; the printed URLs are the relays'."`
	Seed     uint64 `help:"Seed of the market." default:"1"`
	Schedule string `help:"JSON file with a schedule of faults to start with." placeholder:"FILE"`
	Replay   string `help:"JSON manifest of recorded payloads to play, or a capture of a stream as the gateway's admin listener gives it." placeholder:"FILE"`
	Keys     string `help:"JSON file with credentials to know instead of the example ones." placeholder:"FILE"`
	KeysOut  string `name:"keys-out" help:"Write the credentials, with all that a client needs, to this file (mode 0600). Adds a fresh RSA key for Binance to the example ones." placeholder:"FILE"`
	NoLimits bool   `name:"no-limits" help:"Enforce no rate limits."`
	OKX200   bool   `name:"okx-limit-200" help:"Answer OKX's exceeded limits with HTTP 200 and code 50011 instead of 429."`
	Region   string `name:"okx-region" help:"Region of the OKX host." enum:"global,eea,us" default:"global"`
	Ready    string `name:"ready-file" help:"Write the URLs to this file as JSON once all listen." placeholder:"FILE"`
}

// errHelp ends a run whose only wish was to read the help.
var errHelp = errors.New("help was printed")

// parse reads the arguments. The environment comes through getenv only.
func parse(args []string, getenv func(string) string, stdout io.Writer) (flags, error) {
	var f flags
	helped := false
	parser, err := kong.New(&f,
		kong.Name("exchangesim"),
		kong.Description("Simulated Binance, OKX and Coinbase venues that misbehave on command. Every flag can be set by the environment as well: --ca-file is EXCHANGESIM_CA_FILE."),
		kong.Help(help),
		kong.Writers(stdout, stdout),
		kong.Exit(func(int) { helped = true }),
		kong.Resolvers(fromEnv(getenv)),
	)
	if err != nil {
		return f, err
	}
	_, err = parser.Parse(args)
	if helped {
		return f, errHelp
	}
	if err == nil && f.Binance == "" && f.OKX == "" && f.Coinbase == "" {
		err = errors.New("no venue is left to simulate")
	}
	if err == nil && f.CAFile != "" && !f.TLS {
		err = errors.New("--ca-file needs --tls")
	}
	return f, err
}

// help prints the flags and the routes of the control endpoint, which keep their columns.
func help(options kong.HelpOptions, ctx *kong.Context) error {
	if err := kong.DefaultHelpPrinter(options, ctx); err != nil {
		return err
	}
	_, err := io.WriteString(ctx.Stdout, "\nControl endpoint:\n"+exchangesim.ControlHelp)
	return err
}

// fromEnv resolves flags from the given environment, so that a test has its own.
func fromEnv(getenv func(string) string) kong.Resolver {
	return kong.ResolverFunc(func(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
		name := "EXCHANGESIM_" + strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_"))
		if v := getenv(name); v != "" {
			return v, nil
		}
		return nil, nil
	})
}

// address says where a venue listens; "" means not at all.
func (f flags) address(venue string) (string, error) {
	switch venue {
	case "binance":
		return f.Binance, nil
	case "okx":
		return f.OKX, nil
	case "coinbase":
		return f.Coinbase, nil
	}
	return "", fmt.Errorf("no address for the venue %q", venue)
}
