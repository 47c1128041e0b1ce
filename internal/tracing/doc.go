// Package tracing tells an OpenTelemetry collector of requests and of the attempts at exchanges that they led to: one span
// for each request, and one within it for each attempt. Whoever began a call that several wait for has its attempts. Nothing
// about it is sent to an exchange, and no span holds a pair, an account, a key or a URL.
//
// The OpenTelemetry SDK reads its OTEL_* variables from the environment of the process by itself; nothing else in the
// gateway does. Without them nothing is traced, and nothing of the SDK is made.
//
// No request waits for the collector. Spans that ended stand in a queue of 2,048 and leave in batches of 512, or every 5 s;
// what finds the queue full is dropped. One request to the collector takes 10 s at most, a batch with its repetitions 30 s.
// (OTEL_BSP_* and OTEL_EXPORTER_OTLP_TIMEOUT change that.)
package tracing
