package main

import (
	"context"
	"log/slog"

	"exchange-gateway/cmd/gateway/app"
)

type serveCmd struct {
	settings `embed:""`
}

// Run serves until ctx ends.
func (s serveCmd) Run(ctx context.Context, sys system) error {
	conf, err := s.load(sys)
	if err != nil {
		return err
	}
	log := newLog(sys.err, conf.Log)
	a, err := app.New(conf, app.Options{Log: log, Version: thisBuild().Version})
	if err != nil {
		return err
	}
	tuned := make(chan struct{})
	tuning, stop := context.WithCancel(ctx)
	go func() {
		defer close(tuned)
		tuneMemory(tuning, sys.env)
	}()
	defer func() { stop(); <-tuned }()
	err = a.Run(ctx, func(at app.Addresses) {
		log.InfoContext(ctx, "listening", slog.String("public", at.Public), slog.String("admin", at.Admin), slog.Bool("tls", at.TLS))
	})
	if err == nil {
		log.Info("stopped")
	}
	return err
}
