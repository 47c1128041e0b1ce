package app_test

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"exchange-gateway/cmd/gateway/app"
	"exchange-gateway/cmd/gateway/config"
	"exchange-gateway/internal/market"
)

// noRoute is a machine without a network.
type noRoute struct{}

func (noRoute) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("dial tcp: lookup: no such host")
}

// TestReach_oneSentenceWhereNothingAnswers: on a machine without a network the log had three long lines, and none of them said
// what to do.
func TestReach_oneSentenceWhereNothingAnswers(t *testing.T) {
	for _, c := range []struct {
		exchanges []market.ExchangeID
		want      string
	}{
		{[]market.ExchangeID{"binance", "okx", "coinbase"}, "no exchange reached: until one is, clients get errors"},
		{[]market.ExchangeID{"okx"}, "exchange not reached; it is asked again with the next request"},
	} {
		var lines bytes.Buffer
		conf := config.Default()
		conf.Exchanges = config.Exchanges{}
		for _, id := range c.exchanges {
			conf.Exchanges[id] = config.Exchange{}
		}
		a, err := app.New(conf, app.Options{
			Log: slog.New(slog.NewTextHandler(&lines, &slog.HandlerOptions{Level: slog.LevelWarn})), Transport: func(market.ExchangeID) http.RoundTripper { return noRoute{} },
		})
		if err != nil {
			t.Fatal(err)
		}
		lines.Reset()
		a.Start(t.Context())
		a.Reach(t.Context())
		if err := a.Close(t.Context()); err != nil {
			t.Error(err)
		}
		said := strings.Count(lines.String(), "reached")
		if said != 1 || !strings.Contains(lines.String(), c.want) {
			t.Errorf("%v: %d lines, want one with %q:\n%s", c.exchanges, said, c.want, lines.String())
		}
		if all := lines.String(); len(c.exchanges) > 1 && (!strings.Contains(all, "DNS") || !strings.Contains(all, "coinbase: unavailable")) {
			t.Errorf("it does not say what to check, or what happened: %s", all)
		}
	}
}

// TestRun_takenPorts: both are named at once, with what to do.
func TestRun_takenPorts(t *testing.T) {
	conf := config.Default()
	conf.Exchanges = config.Exchanges{"okx": {}}
	for _, addr := range []*string{&conf.Listen, &conf.AdminListen} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		*addr = l.Addr().String()
	}
	a, err := app.New(conf, app.Options{Transport: func(market.ExchangeID) http.RoundTripper { return noRoute{} }})
	if err != nil {
		t.Fatal(err)
	}
	err = a.Run(t.Context(), nil)
	if err == nil {
		t.Fatal("it runs on taken ports")
	}
	for _, want := range []string{conf.Listen + " is taken", "--listen ", "LISTEN=", conf.AdminListen + " is taken", "--admin-listen ", "ADMIN_LISTEN=", "address already in use"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
