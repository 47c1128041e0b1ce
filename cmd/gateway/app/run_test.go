package app_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"exchange-gateway/cmd/gateway/app"
	"exchange-gateway/cmd/gateway/config"
	"exchange-gateway/internal/market"
)

// offline is a transport to nowhere.
type offline struct{}

func (offline) RoundTrip(*http.Request) (*http.Response, error) { return nil, errors.New("offline") }

// A stopping gateway says that it is not ready, on both listeners, before it closes them.
func TestRun_isNotReadyBeforeItIsGone(t *testing.T) {
	conf := config.Default()
	conf.Listen, conf.AdminListen, conf.StateDir = "127.0.0.1:0", "127.0.0.1:0", t.TempDir()
	conf.KeysFile = conf.StateDir + "/keys.yaml"
	for _, id := range app.ExchangeIDs() {
		conf.Exchanges[id] = config.Exchange{}
	}
	a, err := app.New(conf, app.Options{Transport: func(market.ExchangeID) http.RoundTripper { return offline{} }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	listening := make(chan app.Addresses, 1)
	go func() { ended <- a.Run(ctx, func(at app.Addresses) { listening <- at }) }()
	at := <-listening
	ready := func(addr string) string {
		res, err := http.Get("http://" + addr + "/readyz")
		if err != nil {
			return err.Error()
		}
		defer res.Body.Close()
		body, _ := io.ReadAll(res.Body)
		return res.Status + " " + string(body)
	}
	for _, addr := range []string{at.Public, at.Admin} {
		if got := ready(addr); !strings.HasPrefix(got, "200") {
			t.Errorf("before: %s", got)
		}
	}
	began := time.Now()
	stop()
	for !strings.HasPrefix(ready(at.Public), "503") {
		if time.Since(began) > 900*time.Millisecond {
			t.Fatal("the public listener never said that it is not ready")
		}
	}
	if got := ready(at.Admin); !strings.HasPrefix(got, "503") {
		t.Errorf("admin while stopping: %s", got)
	}
	if err := <-ended; err != nil {
		t.Errorf("run = %v", err)
	}
	if took := time.Since(began); took < time.Second || took > 5*time.Second {
		t.Errorf("stopped after %v, want about a second", took)
	}
}
