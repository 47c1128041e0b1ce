package tracing_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"exchange-gateway/internal/tracing"
)

// TestNew_offIsNothing: no tracer, and no goroutine of one.
func TestNew_offIsNothing(t *testing.T) {
	for name, env := range map[string][]string{
		"nothing asked": {"PATH=/bin"},
		"empty":         {"OTEL_EXPORTER_OTLP_ENDPOINT=", "OTEL_TRACES_EXPORTER="},
		"switched off":  {"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1", "OTEL_SDK_DISABLED=TRUE"},
		"no traces":     {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://127.0.0.1:1", "OTEL_TRACES_EXPORTER=none"},
		"other signals": {"OTEL_METRICS_EXPORTER=otlp", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=http://127.0.0.1:1"},
		"only a name":   {"OTEL_SERVICE_NAME=gateway", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"},
	} {
		synctest.Test(t, func(t *testing.T) { // fails for a goroutine that is left
			tracer, err := tracing.New(t.Context(), env, "v1")
			if tracer != nil || err != nil {
				t.Errorf("%s: %v, %v", name, tracer, err)
			}
		})
	}
}

func TestNew_refusesWhatItCannotDo(t *testing.T) {
	const secret = "hunter2"
	for want, env := range map[string][]string{
		"OTEL_TRACES_EXPORTER: the gateway knows otlp and none": {"OTEL_TRACES_EXPORTER=zipkin"},
		"OTEL_EXPORTER_OTLP_PROTOCOL: the gateway speaks http/protobuf only": {
			"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4317", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc",
		},
		"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: the gateway speaks http/protobuf only": {
			"OTEL_TRACES_EXPORTER=otlp", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/json", "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf",
		},
		"OTEL_EXPORTER_OTLP_ENDPOINT: not a URL such as http://collector:4318": {"OTEL_EXPORTER_OTLP_ENDPOINT=collector:4318/" + secret},
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: not a URL":                        {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://u:" + secret + "@"},
	} {
		tracer, err := tracing.New(t.Context(), env, "v1")
		if tracer != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v", want, tracer, err)
		}
		if err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("%v repeats what may be a password", err)
		}
	}
}
