package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/user"
	"strings"
	"time"

	"exchange-gateway/cmd/gateway/opscli"
	"exchange-gateway/internal/market"
	"exchange-gateway/internal/ops"
)

// opsFlags say which gateway is meant, who asks, and how its answer is written.
type opsFlags struct {
	Config  string `short:"c" placeholder:"FILE" help:"The gateway's YAML file, for its admin address. Also GATEWAY_CONFIG."`
	Admin   string `placeholder:"URL" help:"The gateway's admin listener, default from the configuration: http://127.0.0.1:8081."`
	KeyFile string `placeholder:"FILE" help:"File with an ops key. Also GATEWAY_OPS_KEY_FILE, or the key itself in GATEWAY_OPS_KEY."`
	Output  string `short:"o" enum:"table,json" default:"table" placeholder:"FORMAT" help:"table or json, default table."`
}

func (f opsFlags) client(sys system) (*opscli.Client, error) {
	key, err := keyOf(f.KeyFile, sys.env, "GATEWAY_OPS_KEY")
	if err != nil {
		return nil, err
	}
	base := strings.TrimRight(f.Admin, "/")
	if base == "" {
		conf, err := settings{Config: f.Config}.load(sys)
		if err != nil {
			return nil, err
		}
		base, transport, err := ownListener(&conf, func(why error) error { return why })
		if err != nil {
			return nil, err
		}
		return &opscli.Client{Base: base, Key: key, Transport: transport}, nil
	}
	if !strings.HasPrefix(base, "http://") && !strings.HasPrefix(base, "https://") {
		return nil, fmt.Errorf("--admin %s: write a URL, for example http://127.0.0.1:8081", f.Admin)
	}
	return &opscli.Client{Base: base, Key: key}, nil
}

func (f opsFlags) json() bool { return f.Output == "json" }

// Exit codes beyond 1 (it could not be done) and 2 (the command line makes no sense): what `status` found.
const (
	exitDegraded = 3
	exitDown     = 4
)

// exitError ends the program with a code and says nothing: it was said.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

type statusCmd struct {
	opsFlags `embed:""`

	Exchange string `arg:"" optional:"" help:"One exchange, with its budgets and last failures."`
}

// Help is shown by `gateway status --help`.
func (statusCmd) Help() string {
	return "Exit code 0: clients get live answers, nobody asks, or somebody wanted it so; 3: some get stale answers or errors of an exchange; " +
		"4: no exchange answers; 1: the gateway did not say."
}

// Run asks a gateway how it stands.
func (c statusCmd) Run(ctx context.Context, sys system) error {
	client, err := c.client(sys)
	if err != nil {
		return err
	}
	text, o, err := client.Overview(ctx)
	if err != nil {
		return err
	}
	level := o.Level
	if c.Exchange != "" {
		x, err := find(o, c.Exchange)
		if err != nil {
			return err
		}
		level = x.Level
		if c.json() {
			if text, err = json.Marshal(x); err != nil {
				return err
			}
		}
	}
	if c.json() {
		_, err = fmt.Fprintf(sys.out, "%s\n", text)
	} else {
		err = opscli.WriteStatus(sys.out, o, market.ExchangeID(c.Exchange), colourful(sys))
	}
	switch {
	case err != nil:
		return err
	case level == ops.LevelDown && c.Exchange == "":
		return exitError(exitDown)
	case level == ops.LevelDegraded, level == ops.LevelDown:
		return exitError(exitDegraded)
	}
	return nil
}

func find(o *ops.Overview, id string) (*ops.Exchange, error) {
	var names []string
	for i := range o.Exchanges {
		if string(o.Exchanges[i].ID) == id {
			return &o.Exchanges[i], nil
		}
		names = append(names, string(o.Exchanges[i].ID))
	}
	return nil, fmt.Errorf("exchange %q is not one of this gateway's; they are %s", id, strings.Join(names, ", "))
}

// colourful: on a terminal, unless the reader does not want it (no-color.org).
func colourful(sys system) bool { return lookup(sys.env, "NO_COLOR") == "" && isTerminal(sys.out) }

// orderFlags are common to all orders.
type orderFlags struct {
	opsFlags `embed:""`

	Reason string `required:"" placeholder:"TEXT" help:"Why; it is kept in the audit."`
	As     string `placeholder:"NAME" help:"Your name, where the gateway has no ops key; default your login name."`
}

// lastsFlags are those of what ends by itself.
type lastsFlags struct {
	For   *time.Duration `placeholder:"45m" xor:"end" help:"How long, default 1h, at most 24h."`
	Until string         `placeholder:"04:30" xor:"end" help:"Until when instead: the next 04:30 on your clock, or RFC 3339."`
}

// into writes how long an order lasts.
func (f lastsFlags) into(o *opscli.Order, now time.Time) error {
	switch {
	case f.For != nil && *f.For <= 0:
		return errors.New("--for: it must be more than nothing, for example 45m")
	case f.For != nil:
		o.For = f.For.String()
	case f.Until != "":
		until, err := parseUntil(f.Until, now)
		if err != nil {
			return err
		}
		o.Until = until.Format(time.RFC3339)
	}
	return nil
}

// parseUntil reads a time of day as the next one on the reader's clock, or RFC 3339.
func parseUntil(text string, now time.Time) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	clock, err := time.Parse("15:04", text)
	if err != nil {
		return time.Time{}, fmt.Errorf("--until %s: write a time of day, for example 04:30, or RFC 3339", text)
	}
	now = now.Local()
	t := time.Date(now.Year(), now.Month(), now.Day(), clock.Hour(), clock.Minute(), 0, 0, time.Local)
	if !t.After(now) {
		t = time.Date(now.Year(), now.Month(), now.Day()+1, clock.Hour(), clock.Minute(), 0, 0, time.Local)
	}
	return t, nil
}

// give has an order carried out and writes what became of it.
func (f orderFlags) give(ctx context.Context, sys system, verb market.Verb, o opscli.Order) error {
	client, err := f.client(sys)
	if err != nil {
		return err
	}
	o.Reason = f.Reason
	if needed, err := client.NeedsName(ctx); err != nil {
		return err
	} else if needed {
		if o.Actor, err = f.actor(sys.env, user.Current); err != nil {
			return err
		}
	} else if f.As != "" {
		fmt.Fprintf(sys.err, "Warning: --as %q is not used: this gateway has ops keys, and the audit names the key that acts.\n", f.As)
	}
	text, out, err := client.Do(ctx, verb, o)
	if err != nil {
		return err
	}
	if f.json() {
		_, err = fmt.Fprintf(sys.out, "%s\n", text)
		return err
	}
	return opscli.WriteOutcome(sys.out, out)
}

// actor is who gives an order, for the audit. A service or a container often has no $USER.
func (f orderFlags) actor(env []string, login func() (*user.User, error)) (string, error) {
	if name := cmp.Or(f.As, lookup(env, "USER")); name != "" {
		return name, nil
	}
	u, err := login()
	if err != nil || u.Username == "" {
		return "", errors.New("the audit keeps who gave an order, and this process has no login name: write yours, with --as NAME")
	}
	return u.Username, nil
}

type isolateCmd struct {
	orderFlags `embed:""`
	lastsFlags `embed:""`

	Exchange string `arg:"" help:"Which one."`
	Class    string `enum:",market_data,reference,account,stream" default:"" placeholder:"CLASS" help:"Only this kind of work: market_data, reference, account or stream."`
}

// Run isolates an exchange: it gets no request at all.
func (c isolateCmd) Run(ctx context.Context, sys system) error {
	o := opscli.Order{Exchange: c.Exchange, Class: c.Class}
	if err := c.into(&o, time.Now()); err != nil {
		return err
	}
	return c.give(ctx, sys, market.VerbIsolate, o)
}

type releaseCmd struct {
	orderFlags `embed:""`

	Exchange string `arg:"" help:"Which one."`
	Symbol   string `arg:"" optional:"" help:"A withheld pair; without it and --class everything on the exchange ends."`
	Class    string `enum:",market_data,reference,account,stream" default:"" placeholder:"CLASS" help:"Only the isolation of this kind of work."`
}

// Run ends what isolate or withhold began.
func (c releaseCmd) Run(ctx context.Context, sys system) error {
	return c.give(ctx, sys, market.VerbRelease, opscli.Order{Exchange: c.Exchange, Class: c.Class, Symbol: c.Symbol})
}

type probeCmd struct {
	orderFlags `embed:""`

	Exchange string `arg:"" help:"Which one."`
	Class    string `enum:",market_data,reference,account,stream" default:"" placeholder:"CLASS" help:"Only this kind of work."`
}

// Run asks an exchange whose circuit is open now, instead of when its time is over.
func (c probeCmd) Run(ctx context.Context, sys system) error {
	return c.give(ctx, sys, market.VerbProbe, opscli.Order{Exchange: c.Exchange, Class: c.Class})
}

type withholdCmd struct {
	orderFlags `embed:""`
	lastsFlags `embed:""`

	Exchange string `arg:"" help:"Which one."`
	Symbol   string `arg:"" optional:"" help:"Only this pair, for example BTC/USDT."`
}

// Run has reads of a pair or an exchange answered with 503.
func (c withholdCmd) Run(ctx context.Context, sys system) error {
	o := opscli.Order{Exchange: c.Exchange, Symbol: c.Symbol}
	if err := c.into(&o, time.Now()); err != nil {
		return err
	}
	return c.give(ctx, sys, market.VerbWithhold, o)
}

type purgeCmd struct {
	orderFlags `embed:""`

	Exchange string `arg:"" help:"Which one."`
	Symbol   string `arg:"" help:"Which book, for example BTC/USDT."`
}

// Run drops every copy of a book.
func (c purgeCmd) Run(ctx context.Context, sys system) error {
	return c.give(ctx, sys, market.VerbPurge, opscli.Order{Exchange: c.Exchange, Symbol: c.Symbol})
}

type reloadCmd struct {
	orderFlags `embed:""`
}

// Run has the gateway read its configuration again.
func (c reloadCmd) Run(ctx context.Context, sys system) error {
	return c.give(ctx, sys, market.VerbReload, opscli.Order{})
}

type eventsCmd struct {
	opsFlags `embed:""`

	Follow   bool          `short:"f" help:"Go on with those that come, until Ctrl-C; lost connections are made again."`
	Since    time.Duration `placeholder:"2h" help:"Only those of so long ago or later, default all of 24 hours."`
	Exchange string        `placeholder:"EXCHANGE" help:"Only those about this exchange."`
	Type     []string      `enum:"circuit,gate,action,override,maintenance" placeholder:"TYPE" help:"Only circuit, gate, action, override or maintenance. Repeatable."`
}

// Run writes what happened, oldest first.
func (c eventsCmd) Run(ctx context.Context, sys system) error {
	client, err := c.client(sys)
	if err != nil {
		return err
	}
	filter := opscli.Filter{Exchange: market.ExchangeID(c.Exchange), Types: c.Type}
	if c.Since > 0 {
		filter.After = time.Now().Add(-c.Since)
	}
	// A reader that went away (a closed pipe) ends the command.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	write := func(ev market.Event) {
		if !filter.Shows(&ev) {
			return
		}
		line := opscli.EventLine(&ev)
		if c.json() {
			text, err := json.Marshal(ev)
			if err != nil {
				cancel(err)
				return
			}
			line = string(text)
		}
		if _, err := fmt.Fprintln(sys.out, line); err != nil {
			cancel(err)
		}
	}
	err = client.Follow(ctx, c.Follow, opscli.Follower{
		Event: write,
		Lost: func(why error) {
			fmt.Fprintf(sys.err, "lost the gateway at %s: %v; trying again\n", time.Now().Format("15:04:05"), why)
		},
		Back: func(away time.Duration) {
			fmt.Fprintf(sys.err, "it is back after %v; nothing that it knows was missed\n", away.Round(time.Second))
		},
		Since: func(t time.Time) {
			if !c.json() {
				fmt.Fprintf(sys.err, "events are known since %s\n", t.Local().Format("2 Jan 15:04:05 MST"))
			}
		},
	})
	if why := context.Cause(ctx); err == nil && why != nil && !errors.Is(why, context.Canceled) {
		return why
	}
	return err
}
