package e2e_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"exchange-gateway/internal/cache/redistest"
	"exchange-gateway/internal/exchangesim"
)

const infoURL = "/compat/binance/api/v3/exchangeInfo"

// A bot that speaks Binance's dialect starts in an outage, just after the gateway did, and nobody asked for the list before it:
// the call that the gateway makes anyway left it, in the state directory or in Redis.
func TestExchangeInfo_inAnOutage(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	sim := simulate(t)
	life := before(t, sim, "--redis="+redis.Addr())
	g := life.serve(t)
	g.live("binance", pairOf("binance")) // which needs the list of pairs
	path := filepath.Join(life.state, "listings-binance.json.gz")
	eventually(t, 10*time.Second, "the list is in the state directory", func() bool { _, err := os.Stat(path); return err == nil })
	eventually(t, 10*time.Second, "and in Redis", func() bool { return redis.Do("EXISTS", "gw:whole:v1:{binance}") == "1" })
	said := time.Now()
	first := g.get(context.Background(), g.public+infoURL) // what was kept, byte for byte
	if first.status != http.StatusOK || !bytes.Contains(first.body, []byte(`"symbols":[`)) {
		t.Fatal(first)
	}
	if n := sim.counted("binance").ByPath["/api/v3/exchangeInfo"]; n != 1 {
		t.Errorf("Binance was asked %d times for its list, want once for the list of pairs and the bot", n)
	}
	g.kill()
	sim.breaks("binance", exchangesim.Fault{Kind: exchangesim.FaultReset})
	time.Sleep(2 * time.Second) // so that an age made anew would show

	serves := func(s setup) {
		t.Helper()
		g := s.serve(t)
		defer g.kill()
		a := g.get(context.Background(), g.public+infoURL)
		age, err := strconv.Atoi(a.header.Get("Age"))
		if a.status != http.StatusOK || err != nil || time.Duration(age)*time.Second < time.Since(said)-time.Second || age > 60 {
			t.Errorf("status %d, Age %q; it is at least %v old", a.status, a.header.Get("Age"), time.Since(said))
		}
		if !bytes.Equal(a.body, first.body) {
			t.Errorf("%d bytes, want the %d that Binance sent", len(a.body), len(first.body))
		}
	}
	elsewhere := func(s setup) setup {
		s.state = filepath.Join(t.TempDir(), "state")
		return s
	}
	alone := before(t, sim)
	alone.state = life.state
	serves(alone)           // the state directory without Redis
	serves(elsewhere(life)) // Redis without that state directory

	// More than a day old, it is the exchange's own error.
	var old bytes.Buffer
	z := gzip.NewWriter(&old)
	z.Comment = fmt.Sprintf("exchange-gateway list 1 binance %d", time.Now().Add(-25*time.Hour).UnixNano())
	z.Write(first.body)
	z.Close()
	late := elsewhere(before(t, sim))
	if err := os.MkdirAll(late.state, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(late.state, "listings-binance.json.gz"), old.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	g = late.serve(t)
	if a := g.get(context.Background(), g.public+infoURL); a.status < 500 || a.header.Get("Age") != "" {
		t.Errorf("a list of 25 h: status %d, Age %q", a.status, a.header.Get("Age"))
	}
}
