package night

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"exchange-gateway/cmd/gateway/app"
	"exchange-gateway/cmd/gateway/config"
	"exchange-gateway/internal/api/keys"
	"exchange-gateway/internal/exchangesim"
	"exchange-gateway/internal/market"
)

// The night in real time: each part of it 5 s instead of 10 min, and all times of the circuits shortened alike.
const (
	shortPart    = 5 * time.Second
	shortTimeout = 1500 * time.Millisecond // long enough for a busy machine, and the race detector, to answer when all is well
	shortOpen    = 100 * time.Millisecond  // the first open time
	shortMost    = time.Second             // the longest
	shortPace    = 50 * time.Millisecond
	// One open time takes at least 0.8 of its length: 3 that grow, then 15 s of 0.8 s each, and the parts' edges.
	shortProbes = 24
)

// TestNight_overSockets: the program as it runs, with listeners, in the same night at all three exchanges at once. Not only
// requests are counted but connections.
func TestNight_overSockets(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 20 s of real time")
	}
	n := newShortNight(t)
	for _, id := range ids {
		for _, pair := range n.pairs(id) {
			n.book(id, pair, false)
			time.Sleep(200 * time.Millisecond)
		}
		if a := n.get("/v1/exchanges/"+string(id)+"/balance", n.key); a.status != http.StatusOK {
			t.Fatalf("%s: balance before the night: %s", id, a.body)
		}
	}
	time.Sleep(1200 * time.Millisecond)
	goroutines := n.goroutines()

	for _, kind := range []exchangesim.FaultKind{exchangesim.FaultMaintenance, exchangesim.FaultHang, exchangesim.FaultReset} {
		for _, id := range ids {
			n.inject(id, exchangesim.Fault{Kind: kind})
		}
		n.part()
		for _, id := range ids {
			n.venue(id).ClearFaults()
		}
	}
	n.atTheExchanges()
	n.back()
	after := n.goroutines()
	t.Logf("%d book requests, %d balance requests refused; goroutines %d before, %d after", n.books.Load(), n.refused.Load(), goroutines, after)
	if after > goroutines+10 {
		t.Errorf("goroutines: %d before, %d after: want them within 10", goroutines, after)
	}
}

// goroutines counts them without those of our own idle connections to the gateway.
func (n *shortNight) goroutines() int {
	n.client.CloseIdleConnections()
	time.Sleep(500 * time.Millisecond)
	return runtime.NumGoroutine()
}

// shortNight is the program with its sockets.
type shortNight struct {
	*stage
	url            string
	client         *http.Client
	books, refused atomic.Int64

	opened map[market.CircuitID]exchangesim.Stats // what the exchange had seen when the circuit first opened
}

func newShortNight(t *testing.T) *shortNight {
	sim, err := exchangesim.New(exchangesim.Config{Instruments: thin()})
	if err != nil {
		t.Fatal(err)
	}
	n := &shortNight{
		stage:  &stage{t: t, sim: sim, log: newJournal(nil), conf: usual(t), opens: map[market.CircuitID]opening{}},
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}},
		opened: map[market.CircuitID]exchangesim.Stats{},
	}
	var servers []*exchangesim.Server
	class := config.Class{Timeout: shortTimeout, Deadline: 2 * shortTimeout, Window: 3 * shortTimeout, OpenMin: shortOpen, OpenMax: shortMost}
	for _, id := range ids {
		srv, err := sim.Start(t.Context(), n.venue(id), "127.0.0.1:0", exchangesim.StartOptions{})
		if err != nil {
			t.Fatal(err)
		}
		servers = append(servers, srv)
		e := n.conf.Exchanges[id]
		e.Hosts, e.AccountHosts = []string{srv.URL()}, []string{srv.URL()}
		e.MarketData, e.Account = class, class
		n.conf.Exchanges[id] = e
	}
	n.conf.Listen, n.conf.AdminListen = "127.0.0.1:0", "127.0.0.1:0"
	n.key = newKey(t, n.conf.KeysFile, keys.AccountRead)
	if n.app, err = app.New(n.conf, app.Options{Log: slog.New(n.log), Version: "test", Listener: n.hear}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ready, ended := make(chan app.Addresses, 1), make(chan error, 1)
	go func() { ended <- n.app.Run(ctx, func(a app.Addresses) { ready <- a }) }()
	select {
	case a := <-ready:
		n.url = "http://" + a.Public
	case err := <-ended:
		t.Fatal(err)
	}
	t.Cleanup(func() {
		n.client.CloseIdleConnections()
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		for _, srv := range servers {
			if err := srv.Close(); err != nil {
				t.Error(err)
			}
		}
		sim.Close()
	})
	return n
}

// hear keeps what an exchange had seen when one of its circuits first opened.
func (n *shortNight) hear(e market.Event) {
	if e.To != market.CircuitOpen {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, known := n.opened[e.Circuit]; !known {
		n.opened[e.Circuit] = n.venue(e.Circuit.Exchange).Stats()
		n.opens[e.Circuit] = opening{at: e.At}
	}
}

func (n *shortNight) pairs(id market.ExchangeID) []string { return n.stage.pairs(id, 4) }

// get asks over the socket.
func (n *shortNight) get(target, key string) answer {
	r, err := http.NewRequestWithContext(n.t.Context(), http.MethodGet, n.url+target, nil)
	if err != nil {
		n.t.Error(err)
		return answer{}
	}
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	res, err := n.client.Do(r)
	if err != nil {
		n.t.Error(err)
		return answer{}
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		n.t.Error(err)
	}
	return answer{res.StatusCode, res.Header, body}
}

// book asks for one and checks its label against the clock: an answer's age is that of the moment it was written, between
// the request and now.
func (n *shortNight) book(id market.ExchangeID, pair string, out bool) (live bool) {
	asked := time.Now()
	b, ok := decode[book](n.t, n.get(bookTarget(id, pair, ""), ""))
	if !ok {
		return false
	}
	n.books.Add(1)
	n.checkTruth(id, &b)
	// confirmed_at has whole milliseconds, and age_ms is rounded up.
	least, most := asked.Sub(b.Freshness.ConfirmedAt).Milliseconds()-1, time.Since(b.Freshness.ConfirmedAt).Milliseconds()+1
	if b.Freshness.AgeMS < least || b.Freshness.AgeMS > most {
		n.t.Errorf("%s %s: age_ms %d, want %d to %d", id, pair, b.Freshness.AgeMS, least, most)
	}
	if late := b.Freshness.AgeMS > n.conf.FreshFor.Milliseconds(); out && (b.Stale != late || b.Stale != (b.Freshness.Reason != nil)) {
		n.t.Errorf("%s %s: stale %v, %+v", id, pair, b.Stale, b.Freshness)
	}
	return !b.Stale
}

// part asks every exchange for a book and balances, 20 times a second, for one part of the night.
func (n *shortNight) part() {
	var callers sync.WaitGroup
	defer callers.Wait()
	start := time.Now()
	for i := 0; time.Since(start) < shortPart; i++ {
		for _, id := range ids {
			pairs := n.pairs(id)
			callers.Go(func() { n.book(id, pairs[i%len(pairs)], true) })
			callers.Go(func() {
				a := n.get("/v1/exchanges/"+string(id)+"/balance", n.key)
				n.refused.Add(1)
				var p problem
				if err := json.Unmarshal(a.body, &p); err != nil || a.status < 500 || a.retryAfter() < 1 || p.Exchange != string(id) {
					n.t.Errorf("%s: balance: %d %s, want an error with Retry-After", id, a.status, a.body)
				}
			})
		}
		time.Sleep(shortPace)
	}
}

// atTheExchanges compares what the exchanges saw after their circuits opened with what open circuits may let through.
func (n *shortNight) atTheExchanges() {
	n.t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, id := range ids {
		now := n.venue(id).Stats()
		for _, class := range []market.Class{market.ClassMarketData, market.ClassAccount} {
			then, ok := n.firstOpened(id, class)
			if !ok {
				n.t.Errorf("%s: the circuit of %s never opened", id, class)
				continue
			}
			sent := now.ByClass[string(class)] - then.ByClass[string(class)]
			n.t.Logf("%s %s: opened after %d requests, then %d", id, class, then.ByClass[string(class)], sent)
			if sent > shortProbes {
				n.t.Errorf("%s %s: %d requests after the circuit opened, want at most %d", id, class, sent, shortProbes)
			}
		}
		// Once the last of the circuits had opened, and what was under way then had settled: a probe dials its own
		// connection, and nothing else does.
		settled := n.lastOpened(id).Add(settling)
		dials, requests := 0, 0
		for _, at := range now.DialTimes {
			if at.After(settled) {
				dials++
			}
		}
		for _, r := range now.Log {
			if r.Time.After(settled) {
				requests++
			}
		}
		n.t.Logf("%s: %d connections and %d requests once all circuits were open", id, dials, requests)
		if dials > requests {
			n.t.Errorf("%s: %d connections for %d probes", id, dials, requests)
		}
	}
}

// settling is how long a connection that was asked for before a circuit opened may still take to be counted.
const settling = time.Second

func (n *shortNight) firstOpened(id market.ExchangeID, class market.Class) (exchangesim.Stats, bool) {
	for c, then := range n.opened {
		if c.Exchange == id && c.Class == class {
			return then, true
		}
	}
	return exchangesim.Stats{}, false
}

// lastOpened is when the last of an exchange's circuits first opened.
func (n *shortNight) lastOpened(id market.ExchangeID) (last time.Time) {
	for c, o := range n.opens {
		if c.Exchange == id && o.at.After(last) {
			last = o.at
		}
	}
	return last
}

// back waits until everything is live again: within one open time, and the time that a probe takes.
func (n *shortNight) back() {
	n.t.Helper()
	start := time.Now()
	waiting := map[market.ExchangeID]bool{}
	for _, id := range ids {
		waiting[id] = true
	}
	for len(waiting) > 0 && time.Since(start) < shortMost+shortTimeout+2*time.Second {
		for id := range waiting {
			if n.book(id, n.pairs(id)[0], false) && n.get("/v1/exchanges/"+string(id)+"/balance", n.key).status == http.StatusOK {
				n.t.Logf("%s: live again after %v", id, time.Since(start).Round(time.Millisecond))
				delete(waiting, id)
			}
		}
		time.Sleep(shortPace)
	}
	for id := range waiting {
		n.t.Errorf("%s: not live %v after it was back", id, time.Since(start))
	}
}
