package tracing

import (
	"context"

	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// exporter is the SDK's own with an end: the SDK's shutdown gives up waiting when its time is over and leaves behind the
// goroutine that sends, for as long as the collector keeps it.
type exporter struct {
	sdk.SpanExporter
	life  context.Context
	end   context.CancelFunc
	ended chan struct{} // closed when nothing is sent any more
}

func newExporter(e sdk.SpanExporter) *exporter {
	x := &exporter{SpanExporter: e, ended: make(chan struct{})}
	x.life, x.end = context.WithCancel(context.Background())
	return x
}

// ExportSpans implements sdktrace.SpanExporter.
func (x *exporter) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	if err := x.life.Err(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(x.life, cancel)()
	return x.SpanExporter.ExportSpans(ctx, spans)
}

// Shutdown implements sdktrace.SpanExporter. The SDK calls it once, when its queue is empty.
func (x *exporter) Shutdown(ctx context.Context) error {
	defer close(x.ended)
	return x.SpanExporter.Shutdown(ctx)
}

// cutOff ends what is being sent and waits for that. It is for after the SDK's shutdown.
func (x *exporter) cutOff() {
	x.end()
	<-x.ended
}
