package main

import (
	"context"
	"time"

	"exchange-gateway/cmd/gateway/config"
	"exchange-gateway/cmd/gateway/demo"
)

type demoCmd struct {
	Listen      string        `default:"127.0.0.1:8080" placeholder:"ADDR" help:"Public listener, default ${default}."`
	AdminListen string        `default:"127.0.0.1:8081" placeholder:"ADDR" help:"Listener of the dashboard, metrics and probes, default ${default}."`
	Control     string        `default:"127.0.0.1:0" placeholder:"ADDR" help:"Where the simulated exchanges are told to misbehave, default a free port."`
	Every       time.Duration `default:"90s" help:"From one outage to the next, default ${default}."`
	Outage      time.Duration `default:"30s" help:"How long one lasts, default ${default}."`
	Set         []string      `sep:"none" placeholder:"PATH=VALUE" help:"Any setting of the configuration that is not the demo's own, for example cors_origins=http://127.0.0.1:3000. Repeatable."`
	ReadyFile   string        `placeholder:"FILE" help:"Written once everything listens: addresses and the demo's key as JSON, for scripts."`
	LogLevel    string        `default:"error" enum:"debug,info,warn,error" help:"What the gateway logs beside it: debug, info, warn or error; default ${default}."`
}

// Run shows the demo until ctx ends.
func (d demoCmd) Run(ctx context.Context, sys system) error {
	log, _ := newLog(sys.err, config.Log{Level: d.LogLevel, Format: "text"})
	return demo.Run(ctx, demo.Options{
		Out: sys.out, Log: log, Version: thisBuild().Version, Program: sys.name(),
		Listen: d.Listen, AdminListen: d.AdminListen, Control: d.Control, Every: d.Every, Outage: d.Outage,
		ReadyFile: d.ReadyFile, Set: d.Set,
	})
}
