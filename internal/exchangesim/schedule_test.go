package exchangesim_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/exchangesim"
)

func schedule(t *testing.T, text string) exchangesim.Schedule {
	t.Helper()
	var s exchangesim.Schedule
	if err := s.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSchedule_repeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := newSim(t, exchangesim.Config{Unlimited: true})
		b, o := inMemory(t, sim.Venue("binance")), inMemory(t, sim.Venue("okx"))
		if err := sim.StartSchedule(schedule(t, `{"every":"60s","steps":[
			{"after":"30s","venue":"okx","for":"20s","fault":{"kind":"maintenance"}},
			{"after":"10s","venue":"binance","for":"10s","fault":{"kind":"unavailable","class":"market_data"}}]}`)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // not on the seconds at which things happen
		var got [2]string
		for range 24 {
			for i, c := range []client{b, o} {
				got[i] += fmt.Sprint(c.get(bookPaths[[]string{"binance", "okx"}[i]]).status / 100)
			}
			time.Sleep(5 * time.Second)
		}
		if want := "225522222222225522222222"; got[0] != want {
			t.Errorf("binance %s, want %s", got[0], want)
		}
		if want := "222222555522222222555522"; got[1] != want {
			t.Errorf("okx     %s, want %s", got[1], want)
		}
		time.Sleep(12 * time.Second)
		sim.StopSchedules()
		b.get(bookPaths["binance"]).want(t, 200, "bids") // its fault ended with it
	})
}

func TestSchedule_runsOnceAndLingers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := newSim(t, exchangesim.Config{})
		if err := sim.Run(t.Context(), schedule(t, `{"steps":[{"after":"1s","venue":"okx","for":"2s","fault":{"kind":"hang"}}]}`)); err != nil {
			t.Errorf("a schedule that is over: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		err := sim.Run(ctx, schedule(t, `{"steps":[{"venue":"okx","fault":{"kind":"hang"}}]}`))
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Minute || len(sim.Venue("okx").Faults()) != 0 {
			t.Errorf("a step without an end: %v after %v, %d faults left", err, time.Since(start), len(sim.Venue("okx").Faults()))
		}
	})
}

func TestSchedule_playsTheRelay(t *testing.T) {
	sim, relay, c := relayed(t)
	done := make(chan error)
	go func() {
		done <- sim.Run(t.Context(), schedule(t, `{"steps":[{"venue":"okx","for":"100ms","relay":"drop"}]}`))
	}()
	for relay.Stats().State != exchangesim.RelayDrop {
		time.Sleep(time.Millisecond)
	}
	c.get(bookPaths["okx"]).want(t, 200, "bids") // comes with the healing
	if err := <-done; err != nil || relay.Stats().State != exchangesim.RelayForward {
		t.Errorf("%v, state %s", err, relay.Stats().State)
	}
}

func TestSchedule_refusesNonsense(t *testing.T) {
	sim := newSim(t, exchangesim.Config{})
	for text, part := range map[string]string{
		`{"steps":[]}`: "1 to 1000 steps",
		`{"steps":[{"venue":"kraken","fault":{"kind":"hang"}}]}`:                                   "no venue",
		`{"steps":[{"venue":"okx"}]}`:                                                              "either a fault or a relay",
		`{"steps":[{"venue":"okx","relay":"drop"}]}`:                                               "no relay",
		`{"every":"5s","steps":[{"after":"4s","for":"2s","venue":"okx","fault":{"kind":"hang"}}]}`: "shorter than the round",
		`{"steps":[{"after":"-4s","venue":"okx","fault":{"kind":"hang"}}]}`:                        "must not be negative",
	} {
		if err := sim.StartSchedule(schedule(t, text)); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v, want %s", text, err, part)
		}
	}
	var s exchangesim.Schedule
	for _, text := range []string{`{"step":[]}`, `{"steps":[{"after":"soon"}]}`, `{"steps":[{"venue":"okx","fault":{"kind":"other"}}]}`, `[]`, `{} {}`} {
		if err := s.UnmarshalJSON([]byte(text)); err == nil {
			t.Errorf("%s was taken", text)
		}
	}
	sim.Close()
	if err := sim.StartSchedule(schedule(t, `{"steps":[{"venue":"okx","fault":{"kind":"hang"}}]}`)); err == nil {
		t.Error("a closed simulator started a schedule")
	}
}
