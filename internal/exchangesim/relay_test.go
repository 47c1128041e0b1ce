package exchangesim_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"exchange-gateway/internal/exchangesim"
)

// relayed starts OKX behind a relay over TLS, with a client of the relay.
func relayed(t *testing.T) (*exchangesim.Sim, *exchangesim.Relay, client) {
	t.Helper()
	sim := newSim(t, exchangesim.Config{Unlimited: true})
	v := sim.Venue("okx")
	srv, c := start(t, sim, v, exchangesim.StartOptions{TLS: true})
	relay, err := sim.StartRelay(t.Context(), v, "127.0.0.1:0", srv.Addr())
	if err != nil {
		t.Fatal(err)
	}
	c.base = "https://" + relay.Addr()
	return sim, relay, c
}

func TestRelay_dropsSilentlyAndHeals(t *testing.T) {
	_, relay, c := relayed(t)
	c.get(bookPaths["okx"]).want(t, 200, "bids")

	relay.Set(exchangesim.RelayDrop)
	for range 2 { // on the kept connection, and on a fresh one
		ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
		r := c.do(ctx, bookPaths["okx"], nil)
		cancel()
		if !errors.Is(r.err, context.DeadlineExceeded) {
			t.Fatalf("err = %v, want silence", r.err)
		}
	}
	if s := relay.Stats(); s.State != exchangesim.RelayDrop || s.Dials != 2 {
		t.Errorf("%+v, want 2 dials", s)
	}
	relay.Set(exchangesim.RelayForward)
	c.get(bookPaths["okx"]).want(t, 200, "bids")
}

func TestRelay_deliversAfterHealingWhatWasUnderWay(t *testing.T) {
	sim, relay, c := relayed(t)
	c.get(bookPaths["okx"]).want(t, 200, "bids")
	sim.Venue("okx").ResetStats()
	relay.Set(exchangesim.RelayDrop)
	var wait sync.WaitGroup
	wait.Go(func() { c.do(t.Context(), bookPaths["okx"], nil).want(t, 200, "bids") })
	time.Sleep(50 * time.Millisecond) // real time: nothing may arrive meanwhile
	if n := sim.Venue("okx").Requests(""); n != 0 {
		t.Errorf("%d requests passed a relay that drops", n)
	}
	relay.Set(exchangesim.RelayForward)
	wait.Wait()
}

// until waits for what happens behind a real socket, where no fake clock runs.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited 10 s for %s", what)
		}
	}
}

func TestRelay_resetsAndHangs(t *testing.T) {
	_, relay, c := relayed(t)
	c.get(bookPaths["okx"]).want(t, 200, "bids")

	relay.Set(exchangesim.RelayHang)
	c.get(bookPaths["okx"]).want(t, 200, "bids") // the kept connection goes on
	c.http.Transport.(*http.Transport).CloseIdleConnections()
	ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
	defer cancel()
	if r := c.do(ctx, bookPaths["okx"], nil); !errors.Is(r.err, context.DeadlineExceeded) {
		t.Errorf("a new connection: err = %v, want silence", r.err)
	}
	relay.Set(exchangesim.RelayForward)

	c.http.Transport.(*http.Transport).CloseIdleConnections()
	relay.Set(exchangesim.RelayDrop)
	dials := relay.Stats().Dials
	failed := make(chan error)
	go func() { failed <- c.do(t.Context(), bookPaths["okx"], nil).err }()
	until(t, "a dial", func() bool { return relay.Stats().Dials > dials })
	relay.Reset()
	if err := <-failed; !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, os.ErrClosed) && !strings.Contains(err.Error(), "EOF") {
		t.Errorf("err = %v, want a reset", err)
	}
	relay.Set(exchangesim.RelayForward)
	c.get(bookPaths["okx"]).want(t, 200, "bids")
}

func TestRelay_isOnePerVenue(t *testing.T) {
	sim, relay, _ := relayed(t)
	if _, err := sim.StartRelay(t.Context(), sim.Venue("okx"), "127.0.0.1:0", "127.0.0.1:1"); err == nil {
		t.Error("a second relay was started")
	}
	if sim.Relay("okx") != relay || sim.Relay("binance") != nil {
		t.Error("Relay does not find the relay")
	}
}
