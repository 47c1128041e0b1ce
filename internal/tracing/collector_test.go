package tracing_test

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// fakeCollector is an OpenTelemetry collector on loopback. It keeps what it is told.
type fakeCollector struct {
	url    string
	status int           // of its answers
	hang   chan struct{} // if not nil, it takes and answers nothing before this is closed

	mu      sync.Mutex
	headers []http.Header
	about   []*common.KeyValue
	spans   []*otlp.Span
}

func newCollector(t *testing.T, status int, hang chan struct{}) *fakeCollector {
	t.Helper()
	c := &fakeCollector{status: status, hang: hang}
	s := httptest.NewServer(c)
	t.Cleanup(s.Close)
	c.url = s.URL
	return c
}

func (c *fakeCollector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	c.headers = append(c.headers, r.Header)
	c.mu.Unlock()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return // the gateway gave up
	}
	if c.hang != nil {
		select {
		case <-c.hang:
		case <-r.Context().Done():
			return
		}
	}
	if c.status == http.StatusOK {
		if err := c.take(text, r); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	w.WriteHeader(c.status)
}

func (c *fakeCollector) take(text []byte, r *http.Request) error {
	if r.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(bytes.NewReader(text))
		if err != nil {
			return err
		}
		if text, err = io.ReadAll(z); err != nil {
			return err
		}
	}
	var told collector.ExportTraceServiceRequest
	if err := proto.Unmarshal(text, &told); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, rs := range told.GetResourceSpans() {
		c.about = rs.GetResource().GetAttributes()
		for _, ss := range rs.GetScopeSpans() {
			c.spans = append(c.spans, ss.GetSpans()...)
		}
	}
	return nil
}

// span is what a test says of a span: ids in hexadecimal, attributes in their text.
type span struct {
	Name, Trace, Parent, ID string
	Kind                    otlp.Span_SpanKind
	Failed                  string // the status's description, "" if it is not an error
	Took                    time.Duration
	Attrs                   map[string]string
}

// told are the spans so far, in the order of their beginnings.
func (c *fakeCollector) told() []span {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := slices.Clone(c.spans)
	slices.SortStableFunc(all, func(a, b *otlp.Span) int { return int(a.GetStartTimeUnixNano() - b.GetStartTimeUnixNano()) })
	out := make([]span, 0, len(all))
	for _, s := range all {
		x := span{
			Name: s.GetName(), Trace: hex.EncodeToString(s.GetTraceId()), ID: hex.EncodeToString(s.GetSpanId()),
			Parent: hex.EncodeToString(s.GetParentSpanId()), Kind: s.GetKind(), Attrs: texts(s.GetAttributes()),
			Took: time.Duration(s.GetEndTimeUnixNano() - s.GetStartTimeUnixNano()),
		}
		if s.GetStatus().GetCode() == otlp.Status_STATUS_CODE_ERROR {
			x.Failed = s.GetStatus().GetMessage()
		}
		out = append(out, x)
	}
	return out
}

// resource is what the spans say of who made them.
func (c *fakeCollector) resource() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return texts(c.about)
}

func texts(attrs []*common.KeyValue) map[string]string {
	out := make(map[string]string)
	for _, kv := range attrs {
		switch v := kv.GetValue().GetValue().(type) {
		case *common.AnyValue_StringValue:
			out[kv.GetKey()] = v.StringValue
		case *common.AnyValue_IntValue:
			out[kv.GetKey()] = strconv.FormatInt(v.IntValue, 10)
		case *common.AnyValue_BoolValue:
			out[kv.GetKey()] = map[bool]string{true: "true", false: "false"}[v.BoolValue]
		}
	}
	return out
}
