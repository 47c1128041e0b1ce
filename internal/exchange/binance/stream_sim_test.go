package binance_test

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/exchange/binance"
	"exchange-gateway/internal/exchange/exchangetest"
	"exchange-gateway/internal/exchangesim"
	"exchange-gateway/internal/market"
)

// simulated keeps books of a simulated Binance, which shares no code with the adapter, over connections in memory.
type simulated struct {
	t     *testing.T
	sim   *exchangesim.Venue
	venue *binance.Venue
	books map[string]*replica

	compared, asked, refreshed int
	retired                    bool
}

var simulatedPairs = []string{"BTCUSDT", "SHIBUSDT", "RUNEEUR"}

func newSimulated(t *testing.T) *simulated {
	t.Helper()
	sim, err := exchangesim.New(exchangesim.Config{Seed: 7})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sim.Close)
	x := &simulated{t: t, sim: sim.Venue("binance"), books: map[string]*replica{}}
	pipe, err := sim.StartPipe(t.Context(), x.sim, exchangesim.StartOptions{})
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DialContext: pipe.DialContext}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		if err := pipe.Close(); err != nil {
			t.Error(err)
		}
	})
	rig := exchangetest.NewRig(nil)
	x.venue = venueWith(t, exchange.Config{
		Door: rig, Transport: transport, Hosts: []string{"http://api.binance.com"}, StreamHosts: []string{"ws://stream.binance.com:9443"},
	})
	for _, s := range simulatedPairs {
		x.books[s] = &replica{}
	}
	return x
}

// connect opens a connection and reads it into a channel, which is closed at its end.
func (x *simulated) connect() (market.StreamConn, <-chan []byte) {
	x.t.Helper()
	conn, err := x.venue.Dial(x.t.Context())
	if err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(conn.Close)
	messages := make(chan []byte)
	go func() {
		defer close(messages)
		for {
			text, err := conn.Read(x.t.Context())
			if err != nil {
				return
			}
			select {
			case messages <- append([]byte(nil), text...):
			case <-x.t.Context().Done():
				return
			}
		}
	}()
	subs := append(subsOf(market.StreamBook, simulatedPairs...), subsOf(market.StreamBest, "SHIBUSDT")...)
	if err := conn.Subscribe(x.t.Context(), subs); err != nil {
		x.t.Fatal(err)
	}
	return conn, messages
}

// keep keeps the books for a while. Every book that is synced is the exchange's own at its sequence, all the time.
func (x *simulated) keep(conn market.StreamConn, messages <-chan []byte, d time.Duration) {
	x.t.Helper()
	end, tick := time.After(d), time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case text, ok := <-messages:
			if !ok {
				return
			}
			x.follow(conn.Decode(text, conn.LastFrame()))
		case now := <-tick.C:
			x.follow(conn.Tick(now))
			for symbol, b := range x.books {
				if b.wanted {
					x.load(conn, symbol)
				}
			}
		case <-end:
			return
		}
	}
}

// load asks for a snapshot and hands it over.
func (x *simulated) load(conn market.StreamConn, symbol string) {
	x.t.Helper()
	x.asked++
	book, err := x.venue.OrderBook(x.t.Context(), listing(symbol), x.venue.StreamRules().SnapshotDepth)
	if err != nil {
		x.t.Fatal(err)
	}
	x.books[symbol].wanted = false
	x.follow(conn.Load(book))
}

func (x *simulated) follow(events []market.StreamEvent) {
	x.t.Helper()
	touched := map[string]bool{}
	for _, e := range events {
		switch {
		case e.Kind == market.StreamRetiring:
			x.retired = true
		case e.Symbol == "":
			for _, b := range x.books {
				b.apply(x.t, e)
			}
		default:
			if e.Kind == market.StreamSnapshot && x.books[e.Symbol].synced {
				x.refreshed++
			}
			x.books[e.Symbol].apply(x.t, e)
			touched[e.Symbol] = true
		}
	}
	for symbol := range touched {
		// Each comparison costs milliseconds, and what is wrong once stays wrong.
		if b := x.books[symbol]; b.synced && (len(events) > 1 || b.applied%10 == 0) {
			x.compare(symbol, b)
		}
	}
}

// compare compares the best levels with the truth: beyond the snapshot nothing is known.
func (x *simulated) compare(symbol string, b *replica) {
	x.t.Helper()
	const depth = 20
	truth, err := x.sim.BookBySeq(symbol, b.id, depth)
	if err != nil {
		x.t.Fatal(err)
	}
	levels := b.levels(x.t)
	f := func(name string, own []market.Level, theirs []exchangesim.Level) {
		x.t.Helper()
		if len(own) < len(theirs) {
			x.t.Fatalf("%s at %d: %d %s, want %d", symbol, b.id, len(own), name, len(theirs))
		}
		for i, l := range theirs {
			if !own[i].Price.Equal(market.MustNumber(l.Price)) || !own[i].Size.Equal(market.MustNumber(l.Size)) {
				x.t.Fatalf("%s at %d: %s level %d is %v, want %v", symbol, b.id, name, i, own[i], l)
			}
		}
	}
	f("bid", levels.Bids(), truth.Bids)
	f("ask", levels.Asks(), truth.Asks)
	x.compared++
}

func (x *simulated) inject(f exchangesim.Fault) {
	x.t.Helper()
	if _, err := x.sim.Inject(f); err != nil {
		x.t.Fatal(err)
	}
}

// synced checks that all books are back.
func (x *simulated) synced() {
	x.t.Helper()
	for symbol, b := range x.books {
		if !b.synced {
			x.t.Errorf("%s is not synced", symbol)
		}
	}
}

func TestStream_simulated(t *testing.T) {
	t.Run("undisturbed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			x := newSimulated(t)
			conn, messages := x.connect()
			x.keep(conn, messages, 30*time.Second)
			x.synced()
			lost := 0
			for _, b := range x.books {
				lost += b.lost
			}
			if lost != 0 || x.compared < 30 {
				t.Errorf("%d comparisons, lost %d times", x.compared, lost)
			}
			x.load(conn, "BTCUSDT") // a refresh
			x.keep(conn, messages, 10*time.Second)
			same(t, "refreshed", x.refreshed, 1)
			x.synced()
		})
	})
	for name, c := range map[string]struct {
		fault exchangesim.Fault
		lost  int
	}{
		"a gap":             {exchangesim.Fault{Kind: exchangesim.FaultGap, Class: exchangesim.ClassStream, Symbol: "BTCUSDT", Count: 1}, 3},
		"a repeat":          {exchangesim.Fault{Kind: exchangesim.FaultDuplicate, Class: exchangesim.ClassStream, Symbol: "BTCUSDT", Count: 5}, 0},
		"half a message":    {exchangesim.Fault{Kind: exchangesim.FaultMalformed, Class: exchangesim.ClassStream, Symbol: "BTCUSDT", Count: 2}, 3},
		"order":             {exchangesim.Fault{Kind: exchangesim.FaultReorder, Class: exchangesim.ClassStream, Symbol: "BTCUSDT", Count: 3}, 3},
		"frozen for a time": {exchangesim.Fault{Kind: exchangesim.FaultFreeze, Symbol: "BTCUSDT", For: 5 * time.Second}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := newSimulated(t)
				conn, messages := x.connect()
				x.keep(conn, messages, 5*time.Second)
				x.synced()
				for range 3 {
					x.inject(c.fault)
					x.keep(conn, messages, 8*time.Second)
				}
				x.synced()
				if b := x.books["BTCUSDT"]; b.lost < c.lost || c.lost == 0 && b.lost != 0 {
					t.Errorf("lost %d times, want %d or more", b.lost, c.lost)
				}
				for _, s := range simulatedPairs[1:] {
					same(t, fmt.Sprintf("%s lost", s), x.books[s].lost, 0)
				}
			})
		})
	}
	t.Run("snapshots that are older than the stream", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			x := newSimulated(t)
			x.inject(exchangesim.Fault{Kind: exchangesim.FaultOlder, Class: exchangesim.ClassMarketData, Age: 5 * time.Second, Count: 6})
			conn, messages := x.connect()
			x.keep(conn, messages, 30*time.Second)
			x.synced()
			if x.asked < 6 {
				t.Errorf("%d snapshots were asked for", x.asked)
			}
		})
	})
	t.Run("an announced end", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			x := newSimulated(t)
			conn, messages := x.connect()
			x.keep(conn, messages, 5*time.Second)
			x.inject(exchangesim.Fault{Kind: exchangesim.FaultCut})
			x.keep(conn, messages, time.Minute)
			if _, open := <-messages; !x.retired || open {
				t.Errorf("announced %t, open %t", x.retired, open)
			}
		})
	})
}

// TestStream_simulatedRefusal: a pair that the exchange does not stream does not keep the others from it.
func TestStream_simulatedRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newSimulated(t)
		x.inject(exchangesim.Fault{Kind: exchangesim.FaultRefuse, Symbol: "RUNEEUR"})
		conn, messages := x.connect()
		refused := ""
		for refused == "" {
			for _, e := range conn.Decode(<-messages, time.Now()) {
				switch {
				case e.Kind == market.StreamRefused && e.Channel == market.StreamBook:
					refused = e.Symbol
				case e.Kind == market.StreamLost && e.Remedy == market.RemedyResubscribe && e.Channel == market.StreamBook:
					sub := subsOf(market.StreamBook, e.Symbol)
					if err := conn.Unsubscribe(t.Context(), sub); err != nil {
						t.Fatal(err)
					}
					if err := conn.Subscribe(t.Context(), sub); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		same(t, "refused", refused, "RUNEEUR")
	})
}
