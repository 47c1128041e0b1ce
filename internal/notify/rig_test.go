package notify_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"exchange-gateway/internal/market"
	"exchange-gateway/internal/notify"
)

const address = "https://hooks.example.com/services/T0/B0/not-a-secret"

// receiver answers like Slack, or as it is told, and keeps what it was sent and when.
type receiver struct {
	mu     sync.Mutex
	answer func(ctx context.Context, n int) (*http.Response, error) // of the nth request, nil for 200
	texts  []string
	times  []time.Time
}

func (r *receiver) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	var message struct{ Text string }
	if err := json.Unmarshal(body, &message); err != nil {
		return nil, err
	}
	if req.Method != http.MethodPost || req.URL.String() != address || req.Header.Get("Content-Type") != "application/json" {
		return nil, errors.New("not what a webhook takes")
	}
	r.mu.Lock()
	r.texts, r.times = append(r.texts, message.Text), append(r.times, time.Now())
	n, answer := len(r.texts), r.answer
	r.mu.Unlock()
	if answer != nil {
		return answer(req.Context(), n)
	}
	return status(200), nil
}

// got is what came since the last call.
func (r *receiver) got() (texts []string) {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	texts, r.texts = r.texts, nil
	return texts
}

func status(code int, header ...string) *http.Response {
	h := http.Header{}
	for i := 0; i+1 < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &http.Response{StatusCode: code, Header: h, Body: io.NopCloser(strings.NewReader("ok"))}
}

// rig is a webhook that runs, in a bubble.
type rig struct {
	*notify.Webhook
	receiver *receiver
	reg      *prometheus.Registry
	log      *strings.Builder
	stop     func() time.Duration
}

func start(t *testing.T, changes ...func(*notify.Config)) *rig {
	t.Helper()
	r := &rig{receiver: &receiver{}, reg: prometheus.NewRegistry(), log: &strings.Builder{}}
	cfg := notify.Config{
		URL: market.NewSecret(address), Instance: "gw-1", Client: &http.Client{Transport: r.receiver},
		Log: slog.New(slog.NewTextHandler(r.log, nil)), Metrics: r.reg,
	}
	for _, c := range changes {
		c(&cfg)
	}
	w, err := notify.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r.Webhook = w
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	r.stop = sync.OnceValue(func() time.Duration {
		begun := time.Now()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run = %v", err)
		}
		return time.Since(begun)
	})
	t.Cleanup(func() {
		r.stop()
		if strings.Contains(r.log.String(), "not-a-secret") || strings.Contains(r.log.String(), "hooks.example.com") {
			t.Errorf("the address was logged:\n%s", r.log)
		}
	})
	return r
}

func (r *rig) counts(t *testing.T, sent, failed, dropped int) {
	t.Helper()
	synctest.Wait()
	want := fmt.Sprintf(`
# HELP gateway_notifications_total Messages to the webhook that were sent or given up as failed, and news dropped because too many waited.
# TYPE gateway_notifications_total counter
gateway_notifications_total{result="dropped"} %d
gateway_notifications_total{result="failed"} %d
gateway_notifications_total{result="sent"} %d
`, dropped, failed, sent)
	if err := testutil.GatherAndCompare(r.reg, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

func one(t *testing.T, got []string, want string) {
	t.Helper()
	if len(got) != 1 || got[0] != want {
		t.Errorf("messages %q, want one: %q", got, want)
	}
}
