package main

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel"

	"exchange-gateway/internal/market"
	"exchange-gateway/internal/tracing"
)

// startTracing makes the tracer that the environment asks for, nil if it asks for none, and what sends the last spans. That
// they were not sent is logged and no reason to fail.
func startTracing(ctx context.Context, env []string, log *slog.Logger) (t market.Tracer, stop func(), err error) {
	otel.SetErrorHandler(tracing.NewErrors(log)) // the SDK has one for the whole process
	tracer, err := tracing.New(ctx, env, thisBuild().Version)
	if err != nil || tracer == nil {
		return nil, func() {}, err
	}
	return tracer, func() {
		if err := tracer.Close(); err != nil {
			log.Warn("traces", slog.Any("err", err))
		}
	}, nil
}
