package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"exchange-gateway/cmd/gateway/app"
	"exchange-gateway/cmd/gateway/config"
)

type serveCmd struct {
	settings `embed:""`
}

// Run serves until ctx ends.
func (s serveCmd) Run(ctx context.Context, sys system) error {
	var warnings []config.Warning // there is no log before the configuration
	conf, err := s.loadWith(sys, func(w config.Warning) { warnings = append(warnings, w) })
	if err != nil {
		return app.Check(conf, err, sys.program)
	}
	log, level := newLog(sys.err, conf.Log)
	warn := func(w config.Warning) {
		log.WarnContext(ctx, "a file was found in the working directory; the next release looks beside the configuration file alone",
			slog.String("setting", w.Setting), slog.String("used", w.Used), slog.String("move_to", w.Instead))
	}
	for _, w := range warnings {
		warn(w)
	}
	tracer, flush, err := startTracing(ctx, sys.env, log)
	if err != nil {
		return err
	}
	defer flush() // after the drain, and whatever ends it
	a, err := app.New(conf, app.Options{
		Log: log, Level: level, Version: thisBuild().Version, Program: sys.program, Tracer: tracer,
		Load: func() (config.Config, error) { return s.loadWith(sys, warn) },
	})
	if err != nil {
		return err
	}
	beside, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { tuneMemory(beside, sys.env) })
	running.Go(func() { reloadOnSignal(beside, a) })
	defer func() { stop(); running.Wait() }()
	err = a.Run(ctx, func(at app.Addresses) {
		log.InfoContext(ctx, "listening", slog.String("public", at.Public), slog.String("admin", at.Admin), slog.Bool("tls", at.TLS))
	})
	if err == nil {
		log.Info("stopped")
	}
	return err
}

// reloadOnSignal reads the configuration again at each SIGHUP, until ctx ends. What becomes of it is logged.
func reloadOnSignal(ctx context.Context, a *app.App) {
	hangups := make(chan os.Signal, 1) // further ones are one with it
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	for {
		select {
		case <-hangups:
			_ = a.ReloadBySignal(ctx) // it was logged: nobody waits for an answer
		case <-ctx.Done():
			return
		}
	}
}
