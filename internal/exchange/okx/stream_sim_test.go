package okx_test

import (
	"bytes"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/exchange/okx"
	"exchange-gateway/internal/exchangesim"
	"exchange-gateway/internal/market"
)

// keeper keeps local books over one connection to the simulated OKX, as a feed would: it subscribes anew what is lost, and
// compares what it holds with the truth of the simulator.
type keeper struct {
	t      *testing.T
	sim    *exchangesim.Venue
	conn   market.StreamConn
	raw    chan []byte
	books  map[string]*localBook
	lost   map[string]int // by symbol and kind
	counts map[market.StreamEventKind]int
	checks int
}

// keep runs do over a keeper of the books, all in a bubble; more is subscribed as well.
func keep(t *testing.T, symbols []string, more []market.StreamSub, do func(*keeper)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		sim, err := exchangesim.New(exchangesim.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer sim.Close()
		pipe, err := sim.StartPipe(t.Context(), sim.Venue("okx"), exchangesim.StartOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer pipe.Close()
		transport := &http.Transport{DialContext: pipe.DialContext}
		defer transport.CloseIdleConnections()
		v, err := okx.New(exchange.Config{StreamHosts: []string{"ws://okx.test"}, Transport: transport, Door: openDoor{}})
		if err != nil {
			t.Fatal(err)
		}
		conn, err := v.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		k := &keeper{
			t: t, sim: sim.Venue("okx"), conn: conn, raw: make(chan []byte), books: make(map[string]*localBook),
			lost: make(map[string]int), counts: make(map[market.StreamEventKind]int),
		}
		for _, s := range symbols {
			k.books[s] = &localBook{t: t}
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer close(k.raw)
			for {
				raw, err := conn.Read(t.Context())
				if err != nil {
					return
				}
				k.raw <- bytes.Clone(raw)
			}
		}()
		if err := conn.Subscribe(t.Context(), append(books(symbols...), more...)); err != nil {
			t.Fatal(err)
		}
		do(k)
		conn.Close()
		for range k.raw { // until the reader has ended
		}
		<-done
	})
}

// run follows the stream for a time.
func (k *keeper) run(d time.Duration) {
	k.t.Helper()
	end, tick := time.NewTimer(d), time.NewTicker(time.Second)
	defer end.Stop()
	defer tick.Stop()
	for {
		select {
		case <-end.C:
			return
		case <-tick.C:
			k.take(k.conn.Tick(time.Now()))
		case raw, ok := <-k.raw:
			if !ok {
				k.t.Fatal("the connection ended")
			}
			k.take(k.conn.Decode(raw, time.Now()))
		}
	}
}

func (k *keeper) take(events []market.StreamEvent) {
	k.t.Helper()
	for _, e := range events {
		k.counts[e.Kind]++
		b := k.books[e.Symbol]
		//exhaustive:ignore
		switch e.Kind {
		case market.StreamSnapshot, market.StreamUpdate, market.StreamVouch:
			b.take(e)
			if e.Kind == market.StreamSnapshot || k.counts[e.Kind]%10 == 0 {
				k.compare(e.Symbol, b)
			}
		case market.StreamLost:
			k.lost[e.Symbol+" "+failure(k.t, e.Err).Kind.String()]++
			if e.Remedy != market.RemedyResubscribe || e.Channel != market.StreamBook {
				k.t.Fatalf("%v", texts(events))
			}
			k.compare(e.Symbol, b)
			b.loaded = false
			subs := books(e.Symbol)
			if err := k.conn.Unsubscribe(k.t.Context(), subs); err != nil {
				k.t.Fatal(err)
			}
			if err := k.conn.Subscribe(k.t.Context(), subs); err != nil {
				k.t.Fatal(err)
			}
			return // the events are no longer valid
		case market.StreamRefused, market.StreamWanted:
			k.t.Fatalf("%v", texts(events))
		}
	}
}

// compare holds a book against the truth at its sequence.
func (k *keeper) compare(symbol string, b *localBook) {
	k.t.Helper()
	truth, err := k.sim.BookBySeq(symbol, b.sequence.Value, 400)
	if err != nil {
		k.t.Fatal(err)
	}
	k.checks++
	side := func(got map[string]market.Level, direction int, want []exchangesim.Level) {
		k.t.Helper()
		levels, _ := sorted(got, direction)
		if len(levels) != len(want) {
			k.t.Fatalf("%s #%d: %d levels, want %d", symbol, b.sequence.Value, len(levels), len(want))
		}
		for i, l := range levels {
			if !l.Price.Equal(market.MustNumber(want[i].Price)) || !l.Size.Equal(market.MustNumber(want[i].Size)) {
				k.t.Fatalf("%s #%d level %d: %v x %v, want %v", symbol, b.sequence.Value, i, l.Price, l.Size, want[i])
			}
		}
	}
	side(b.bids, -1, truth.Bids)
	side(b.asks, 1, truth.Asks)
}

// synced tells whether every book is held.
func (k *keeper) synced() {
	k.t.Helper()
	for symbol, b := range k.books {
		if !b.loaded {
			k.t.Errorf("%s is not back", symbol)
		}
	}
}

// TestStreamSimulated_quiet: minutes of a busy, a quiet and a one-sided book, without a loss; the keep-alive vouches for the
// quiet one and pings keep the connection.
func TestStreamSimulated_quiet(t *testing.T) {
	symbols := []string{"ETH-USDT", "LTC-EUR", "HALT-USDT", "DUST-ETH"}
	keep(t, symbols, bests(symbols...), func(k *keeper) {
		k.run(3 * time.Minute)
		k.synced()
		if len(k.lost) != 0 || k.counts[market.StreamAccepted] != 8 || k.counts[market.StreamVouch] < 2 || k.counts[market.StreamTop] < 100 || k.checks < 50 {
			t.Errorf("lost %v, events %v, compared %d times", k.lost, k.counts, k.checks)
		}
	})
}

// TestStreamSimulated_faults: after each fault the book is the truth again, and was at every moment that it was shown.
func TestStreamSimulated_faults(t *testing.T) {
	f := func(kind exchangesim.FaultKind, lost ...string) {
		t.Helper()
		// Without the best bid and ask: the fault would as well meet a message of theirs.
		keep(t, []string{"ETH-USDT", "SOL-USDT"}, nil, func(k *keeper) {
			k.run(3 * time.Second)
			k.synced()
			before := k.books["ETH-USDT"].sequence.Value
			if _, err := k.sim.Inject(exchangesim.Fault{Kind: kind, Class: exchangesim.ClassStream, Symbol: "ETH-USDT", Count: 1}); err != nil {
				t.Fatal(err)
			}
			k.run(5 * time.Second)
			k.synced()
			k.sim.ClearFaults()
			k.run(3 * time.Second)
			k.synced()
			reset := kind == exchangesim.FaultResetSequence || kind == exchangesim.FaultLostReset
			if after := k.books["ETH-USDT"].sequence.Value; (after < before) != reset {
				t.Errorf("%s: the sequence was %d and is %d", kind, before, after)
			}
			if len(k.lost) != len(lost) {
				t.Errorf("%s: lost %v, want %v", kind, k.lost, lost)
			}
			for _, l := range lost {
				if k.lost[l] == 0 {
					t.Errorf("%s: lost %v, want %v", kind, k.lost, lost)
				}
			}
		})
	}
	const eth = "ETH-USDT malformed"
	f(exchangesim.FaultGap, eth)
	f(exchangesim.FaultDuplicate)
	f(exchangesim.FaultReorder, eth)
	f(exchangesim.FaultMalformed, eth)
	f(exchangesim.FaultResetSequence)
	f(exchangesim.FaultLostReset, eth)
}
