package tracing

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"exchange-gateway/internal/market"
)

// flushWithin bounds sending the last spans when the gateway stops.
const flushWithin = 2 * time.Second

// Tracer is a market.Tracer that tells a collector. Safe for concurrent use.
type Tracer struct {
	queue    sdk.SpanProcessor
	tracer   trace.Tracer
	exporter *exporter
}

var _ market.Tracer = (*Tracer)(nil)

// New makes a tracer if env, the environment of this process, asks for one, and returns nil otherwise. It opens no
// connection, but starts the goroutine that sends, which ends with Close. version is the gateway's own.
func New(ctx context.Context, env []string, version string) (*Tracer, error) {
	if wanted, err := asked(env); err != nil || !wanted {
		return nil, err
	}
	about, err := resource.New(ctx, // later ones win: OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES over our own
		resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", "exchange-gateway"), attribute.String("service.version", version)),
		resource.WithFromEnv(),
	)
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	otlp, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("exporter of traces: %w", err)
	}
	e := newExporter(otlp)
	queue := sdk.NewBatchSpanProcessor(e)
	p := sdk.NewTracerProvider(sdk.WithSpanProcessor(queue), sdk.WithResource(about))
	return &Tracer{queue: queue, tracer: p.Tracer("exchange-gateway", trace.WithInstrumentationVersion(version)), exporter: e}, nil
}

// Close sends what is left, for two seconds at most, and ends everything that New began. It is called once; spans that end
// later are dropped.
func (t *Tracer) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), flushWithin)
	defer cancel()
	err := t.queue.Shutdown(ctx) // not the provider's, which does nothing if ctx has ended
	t.exporter.cutOff()
	if err != nil {
		return fmt.Errorf("last traces not sent: %w", err)
	}
	return nil
}

// parentOf reads the W3C Trace Context of a client's request.
func parentOf(parent, state string) context.Context {
	ctx := context.Background()
	if parent == "" {
		return ctx
	}
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": parent, "tracestate": state})
}

// Request implements market.Tracer.
func (t *Tracer) Request(name, parent, state string, at time.Time) market.RequestSpan {
	_, span := t.tracer.Start(parentOf(parent, state), name, trace.WithTimestamp(at), trace.WithSpanKind(trace.SpanKindServer))
	return requestSpan{tracer: t.tracer, span: span}
}
