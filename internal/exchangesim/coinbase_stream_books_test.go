package exchangesim_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/exchangesim"
)

func thinPairs() map[string][]exchangesim.Instrument {
	pair := exchangesim.Instrument{Symbol: "AAA-USD", Base: "AAA", Quote: "USD", Tick: "0.01", Lot: "0.0001", Price: "3000", Size: "4", Levels: 60}
	of := func(symbol string, change func(*exchangesim.Instrument)) exchangesim.Instrument {
		p := pair
		p.Symbol, p.Base = symbol, strings.TrimSuffix(symbol, "-USD")
		change(&p)
		return p
	}
	return map[string][]exchangesim.Instrument{"coinbase": {
		pair, of("BBB-USD", func(*exchangesim.Instrument) {}),
		of("SLOW-USD", func(p *exchangesim.Instrument) { p.Every = 30 * time.Second }),
		of("DUST-USD", func(p *exchangesim.Instrument) { p.Every, p.Shape = 5*time.Second, exchangesim.BidsOnly }),
		of("HALT-USD", func(p *exchangesim.Instrument) { p.State = exchangesim.Paused }),
	}}
}

func TestCoinbaseStream_books(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := newSim(t, exchangesim.Config{Seed: 2, Instruments: thinPairs()})
		r := dialAT(t, sim, piped(t, sim, "coinbase"))
		products := r.v.Symbols()
		r.send("subscribe", "level2", products...)
		for len(r.books) < len(products) {
			if m := r.next(time.Second); m.Channel != "l2_data" || m.Events[0].Type != "snapshot" {
				t.Fatalf("%+v before all snapshots", m)
			}
		}
		if r.expected >= int64(len(products)) {
			t.Fatalf("%d messages for %d snapshots, want some to share one", r.expected, len(products))
		}
		if m := r.next(time.Second); m.Channel != "subscriptions" || fmt.Sprint(m.Events[0].Subscriptions) != "map[level2:["+strings.Join(products, " ")+"]]" {
			t.Fatalf("%+v", m)
		}
		r.send("subscribe", "heartbeats")
		changed, beats := map[string]int{}, 0
		for end := time.Now().Add(35 * time.Second); time.Now().Before(end); {
			m := r.next(2 * time.Second)
			for _, e := range m.Events {
				changed[e.Product]++
			}
			if m.Channel == "heartbeats" {
				beats++
			}
		}
		if !r.shuffled || r.joint == 0 || beats < 34 || beats > 36 || changed["AAA-USD"] < 300 || changed["BBB-USD"] < 300 ||
			changed["SLOW-USD"] != 1 || changed["DUST-USD"] < 6 || changed["HALT-USD"] != 0 {
			t.Fatalf("shuffled %v, %d messages of several products, %d heartbeats, updates %v", r.shuffled, r.joint, beats, changed)
		}
	})
}

func TestCoinbaseStream_deepBook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := newSim(t, exchangesim.Config{})
		r := dialAT(t, sim, piped(t, sim, "coinbase"))
		r.send("subscribe", "level2", "BTC-USD", "ETH-USD", "DUST-BTC")
		for range 2 {
			if m := r.next(time.Second); len(m.Events) != 1 {
				t.Fatalf("%d snapshots in one message", len(m.Events))
			}
		}
		for range 8 {
			r.next(time.Second)
		}
		if b := r.books["BTC-USD"]; len(b.bids) != 5000 || len(b.asks) != 5000 {
			t.Fatalf("%d bids and %d asks", len(b.bids), len(b.asks))
		}
	})
}

func TestCoinbaseStream_alias(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := newSim(t, exchangesim.Config{})
		r := dialAT(t, sim, piped(t, sim, "coinbase"))
		r.send("subscribe", "level2", "BTC-USDC")
		if m := r.until("subscriptions", time.Second); fmt.Sprint(m.Events[0].Subscriptions) != "map[level2:[BTC-USDC]]" {
			t.Fatalf("%+v", m)
		}
		for range 3 {
			if m := r.next(time.Second); m.Events[0].Product != "BTC-USD" {
				t.Fatalf("%+v", m)
			}
		}
		r.send("unsubscribe", "level2", "BTC-USDC")
		r.until("subscriptions", time.Second)
		r.ws.silence(time.Second)
	})
}

func TestCoinbaseStream_cap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var pairs []exchangesim.Instrument
		var names []string
		for i := range 31 {
			names = append(names, fmt.Sprintf("A%d-USD", i))
			pairs = append(pairs, exchangesim.Instrument{
				Symbol: names[i], Base: fmt.Sprintf("A%d", i), Quote: "USD", Tick: "0.01", Lot: "0.01", Price: "100", Size: "5", Levels: 20,
			})
		}
		sim := newSim(t, exchangesim.Config{Instruments: map[string][]exchangesim.Instrument{"coinbase": pairs}})
		r := dialAT(t, sim, piped(t, sim, "coinbase"))
		r.send("subscribe", "level2", names...)
		if m := r.until("error", time.Second); m.Message != "too many L2 streams requested in a single session" {
			t.Fatalf("refused with %q", m.Message)
		}
		if m := r.until("subscriptions", time.Second); len(m.Events[0].Subscriptions["level2"]) != 30 {
			t.Fatalf("%+v", m)
		}
		for range 100 {
			r.next(time.Second)
		}
		if len(r.books) != 30 || r.joint == 0 {
			t.Fatalf("%d books, %d messages of several", len(r.books), r.joint)
		}
		r.send("unsubscribe", "level2", names[0])
		r.until("subscriptions", time.Second)
		r.send("subscribe", "level2", names[30])
		if m := r.until("subscriptions", time.Second); len(m.Events[0].Subscriptions["level2"]) != 30 || len(r.books) != 31 {
			t.Fatalf("%d books, %+v", len(r.books), m)
		}
	})
}

func TestCoinbaseStream_gap(t *testing.T) {
	for _, kind := range []exchangesim.FaultKind{exchangesim.FaultGap, exchangesim.FaultDuplicate, exchangesim.FaultReorder} {
		t.Run(string(kind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sim := newSim(t, exchangesim.Config{Instruments: thinPairs()})
				r := dialAT(t, sim, piped(t, sim, "coinbase"))
				r.send("subscribe", "level2", "AAA-USD")
				r.until("subscriptions", time.Second)
				if _, err := r.v.Inject(exchangesim.Fault{Kind: kind, Symbol: "AAA-USD", Count: 1}); err != nil {
					t.Fatal(err)
				}
				var steps []int64
				for range 4 {
					m := parse[atMessage](t, r.ws.want("l2_data", time.Second))
					steps = append(steps, *m.Sequence-r.expected)
				}
				want := map[exchangesim.FaultKind]string{
					exchangesim.FaultGap: "[1 2 3 4]", exchangesim.FaultDuplicate: "[0 0 1 2]", exchangesim.FaultReorder: "[1 0 2 3]",
				}[kind]
				if fmt.Sprint(steps) != want {
					t.Fatalf("sequences %v, want %s", steps, want)
				}
			})
		})
	}
}

func TestCoinbaseStream_freeze(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := newSim(t, exchangesim.Config{Instruments: thinPairs()})
		r := dialAT(t, sim, piped(t, sim, "coinbase"))
		r.send("subscribe", "level2", "AAA-USD", "BBB-USD")
		r.send("subscribe", "heartbeats")
		r.until("heartbeats", 2*time.Second)
		id, err := r.v.Inject(exchangesim.Fault{Kind: exchangesim.FaultFreeze, Symbol: "BBB-USD"})
		if err != nil {
			t.Fatal(err)
		}
		of := func(d time.Duration) (n int) {
			for end := time.Now().Add(d); time.Now().Before(end); {
				for _, e := range r.next(time.Second).Events {
					if e.Product == "BBB-USD" {
						n++
					}
				}
			}
			return n
		}
		of(200 * time.Millisecond) // what was under way
		if n := of(10 * time.Second); n != 0 {
			t.Fatalf("%d events of a frozen product", n)
		}
		r.v.Remove(id)
		if n := of(2 * time.Second); n == 0 {
			t.Fatal("no event after the thaw")
		}
	})
}
