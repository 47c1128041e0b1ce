package app_test

import (
	"context"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"exchange-gateway/cmd/gateway/app"
	"exchange-gateway/cmd/gateway/config"
	"exchange-gateway/internal/market"
)

// silent is an exchange that never answers.
type silent struct{}

func (silent) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// While requests drain, the admin listener still says that no more may be sent; it once closed with the public one.
func TestRun_saysNotReadyWhileItDrains(t *testing.T) {
	dir := t.TempDir()
	conf := config.Default()
	conf.Listen, conf.AdminListen, conf.StateDir, conf.KeysFile = "127.0.0.1:0", "127.0.0.1:0", dir, filepath.Join(dir, "keys.yaml")
	conf.Drain = 2 * time.Second
	conf.Exchanges["okx"] = config.Exchange{}
	a, err := app.New(conf, app.Options{Transport: func(market.ExchangeID) http.RoundTripper { return silent{} }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ready, ended, answered := make(chan app.Addresses, 1), make(chan error, 1), make(chan int, 1)
	go func() { ended <- a.Run(ctx, func(at app.Addresses) { ready <- at }) }()
	at := <-ready
	go func() {
		got, _ := ask(t, "http://"+at.Public+"/v1/exchanges/okx/orderbook?symbol=BTC/USDT")
		answered <- got
	}()
	// The listeners are real, and so is the clock.
	until(t, func() bool {
		_, body := ask(t, "http://"+at.Admin+"/metrics")
		return strings.Contains(body, "gateway_http_requests_in_flight 1\n")
	})
	stop()
	until(t, func() bool { return status(t, "http://"+at.Admin+"/readyz") != http.StatusOK })
	if got := status(t, "http://"+at.Admin+"/readyz"); got != http.StatusServiceUnavailable {
		t.Errorf("/readyz in the drain: %d, want 503", got)
	}
	if got := <-answered; got != http.StatusServiceUnavailable {
		t.Errorf("the request in flight got %d, want 503 at the end of the drain", got)
	}
	if err := <-ended; err != nil {
		t.Errorf("Run: %v", err)
	}
	if got := status(t, "http://"+at.Admin+"/readyz"); got != 0 {
		t.Errorf("/readyz after the end: %d", got)
	}
}

// until waits until ok.
func until(t *testing.T, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("waited for 10 s")
		}
	}
}

func status(t *testing.T, url string) int {
	t.Helper()
	got, _ := ask(t, url)
	return got
}

// ask gives the status and the body of an answer; the status is 0 if nobody listens.
func ask(t *testing.T, url string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodGet, url, nil)
	if err != nil {
		t.Error(err)
		return -1, ""
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, ""
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Error(err)
	}
	return res.StatusCode, string(body)
}
