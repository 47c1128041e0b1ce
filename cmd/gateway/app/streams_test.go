package app_test

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"testing"
	"time"

	"github.com/coder/websocket"

	"exchange-gateway/cmd/gateway/app"
	"exchange-gateway/cmd/gateway/config"
	"exchange-gateway/internal/market"
)

// A stopping gateway takes no new streams, tells those that are there to go, and does not wait for more than that.
func TestRun_tellsStreamsToGo(t *testing.T) {
	before := runtime.NumGoroutine()
	conf := config.Default()
	conf.Listen, conf.AdminListen, conf.StateDir = "127.0.0.1:0", "127.0.0.1:0", t.TempDir()
	conf.KeysFile = conf.StateDir + "/keys.yaml"
	conf.Exchanges["okx"] = config.Exchange{}
	a, err := app.New(conf, app.Options{Transport: func(market.ExchangeID) http.RoundTripper { return offline{} }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended, listening := make(chan error, 1), make(chan app.Addresses, 1)
	go func() { ended <- a.Run(ctx, func(at app.Addresses) { listening <- at }) }()
	url := "http://" + (<-listening).Public + "/v1/stream"
	dial := func() (*websocket.Conn, *http.Response, error) { return websocket.Dial(t.Context(), url, nil) }

	c, _, err := dial()
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseNow()
	if err := c.Write(t.Context(), websocket.MessageText, []byte(`{"op":"ping"}`)); err != nil {
		t.Fatal(err)
	}
	if _, text, err := c.Read(t.Context()); err != nil || string(text[:19]) != `{"type":"heartbeat"` {
		t.Fatalf("%s, %v", text, err)
	}
	began := time.Now()
	stop()
	until(t, func() bool { // a stream that comes now is sent elsewhere
		late, res, err := dial()
		if err == nil {
			_ = late.CloseNow()
		}
		return res != nil && res.StatusCode == http.StatusServiceUnavailable
	})
	_, _, err = c.Read(t.Context())
	if e, ok := errors.AsType[websocket.CloseError](err); !ok || e.Code != websocket.StatusGoingAway || e.Reason != "the gateway is stopping" {
		t.Errorf("closed with %v", err)
	}
	if err := <-ended; err != nil {
		t.Errorf("Run: %v", err)
	}
	if took := time.Since(began); took < time.Second || took > 5*time.Second {
		t.Errorf("stopped after %v, want about a second", took)
	}
	http.DefaultClient.CloseIdleConnections()
	until(t, func() bool { return runtime.NumGoroutine() <= before })
}
