package tracing

import (
	"context"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"exchange-gateway/internal/market"
)

// requestSpan is the span of one request. Its attributes are named like the fields of the log, save where OpenTelemetry has
// a name for the same.
type requestSpan struct {
	tracer trace.Tracer
	span   trace.Span
}

// TraceID implements market.RequestSpan.
func (s requestSpan) TraceID() string { return s.span.SpanContext().TraceID().String() }

// End implements market.RequestSpan. As OpenTelemetry has it, a request that the client got wrong is no error of the server.
func (s requestSpan) End(at time.Time, a market.Answered) {
	defer s.span.End(trace.WithTimestamp(at))
	if !s.span.IsRecording() {
		return
	}
	attrs := make([]attribute.KeyValue, 0, 8)
	attrs = append(attrs,
		attribute.String("request_id", a.RequestID),
		attribute.String("http.request.method", a.Method),
		attribute.Int("http.response.status_code", a.Status),
	)
	if a.Exchange != "" {
		attrs = append(attrs, attribute.String("exchange", string(a.Exchange)))
	}
	if a.Source != "" {
		attrs = append(attrs, attribute.String("source", a.Source), attribute.Bool("stale", a.Stale))
	}
	if a.Code != "" {
		attrs = append(attrs, attribute.String("code", a.Code))
	}
	if a.Kind != market.KindNone {
		attrs = append(attrs, attribute.String("kind", a.Kind.String()))
	}
	s.span.SetAttributes(attrs...)
	if a.Status >= http.StatusInternalServerError {
		s.span.SetStatus(codes.Error, a.Code)
	}
}

// Attempt implements market.Span. An attempt whose caller left is no error of the exchange.
func (s requestSpan) Attempt(a market.Attempted) {
	if !s.span.SpanContext().IsSampled() {
		return
	}
	attrs := make([]attribute.KeyValue, 0, 6)
	attrs = append(attrs,
		attribute.String("exchange", string(a.Exchange)),
		attribute.String("class", string(a.Class)),
		attribute.Int("attempt", a.Number),
		attribute.Bool("probe", a.Probe),
	)
	if a.Kind != market.KindNone {
		attrs = append(attrs, attribute.String("kind", a.Kind.String()))
	}
	if a.Status != 0 {
		attrs = append(attrs, attribute.Int("http.response.status_code", a.Status))
	}
	_, span := s.tracer.Start(trace.ContextWithSpan(context.Background(), s.span), string(a.Op),
		trace.WithTimestamp(a.Began), trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attrs...))
	if a.Kind != market.KindNone && a.Kind != market.KindCanceled {
		span.SetStatus(codes.Error, a.Kind.String())
	}
	span.End(trace.WithTimestamp(a.Ended))
}
