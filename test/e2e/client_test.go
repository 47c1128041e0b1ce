package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"exchange-gateway/client"
	"exchange-gateway/internal/exchangesim"
)

// demonstration is a running `gateway demo` without an outage of its own.
type demonstration struct {
	*venues
	Public, Control, Key string
}

func demonstrate(t *testing.T) *demonstration {
	t.Helper()
	ready := filepath.Join(t.TempDir(), "ready.json")
	p := launch(t, "gateway", []string{"TMPDIR=" + t.TempDir()}, "demo", "--every=24h", "--listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0", "--ready-file="+ready)
	d := &demonstration{}
	eventually(t, 20*time.Second, "the demo is ready", func() bool {
		if p.ended() {
			t.Fatalf("the demo ended with %d: %s", p.code, p.log.String())
		}
		text, err := os.ReadFile(ready)
		return err == nil && json.Unmarshal(text, d) == nil
	})
	d.venues = &venues{process: p, urls: map[string]string{"control": d.Control}}
	return d
}

func (d *demonstration) client(base string) *client.Client {
	d.t.Helper()
	c, err := client.New(base, client.Options{Key: client.Key(d.Key)})
	if err != nil {
		d.t.Fatal(err)
	}
	return c
}

// follower follows one pair with the Go client and compares every live version with the exchange's own book.
type follower struct {
	t      *testing.T
	watch  *client.Watch
	truths *truths

	mu       sync.Mutex
	compared int // live versions
	wrong    int
	states   []string // as they changed: a status with its reason, "heard", "lost"
}

const followDepth = 20

func (d *demonstration) follow(base, exchange string) *follower {
	d.t.Helper()
	w, err := d.client(base).Watch(d.t.Context(), client.Subscription{Exchange: exchange, Symbols: []string{pairOf(exchange)}, Depth: followDepth})
	if err != nil {
		d.t.Fatal(err)
	}
	f := &follower{t: d.t, watch: w, truths: newTruths(d.venues, followDepth)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.run()
	}()
	d.t.Cleanup(func() {
		_ = w.Close() // it returns nil
		<-done
	})
	return f
}

func (f *follower) run() {
	for {
		e, err := f.watch.Next(context.Background()) // until the watch is closed
		if err != nil {
			if !errors.Is(err, client.ErrClosed) {
				f.t.Error(err)
			}
			return
		}
		f.mu.Lock()
		f.note(e)
		f.mu.Unlock()
	}
}

func (f *follower) note(e client.Event) {
	switch e := e.(type) {
	case *client.Connection:
		f.states = append(f.states, map[bool]string{true: "heard", false: "lost"}[e.Connected])
	case *client.StreamStatus:
		f.states = append(f.states, strings.TrimSpace(e.Freshness.Status+" "+e.Freshness.Reason))
	case *client.StreamError:
		f.states = append(f.states, "error "+string(e.Err.Code))
	case *client.StreamBook:
		if e.Freshness.Stale {
			return // its levels are the last ones, and are not said to be more
		}
		f.compared++
		if err := f.truths.same(e); err != nil {
			if f.wrong++; f.wrong <= 3 { // the first few say it all
				f.t.Errorf("%s %s of %s, version %d: %v", e.Exchange, e.Symbol, e.Epoch, e.Seq, err)
			}
		}
	}
}

// same compares a client's book with the exchange's own.
func (x *truths) same(b *client.StreamBook) error {
	bids, asks := map[string]string{}, map[string]string{}
	change(bids, pairs(b.Bids))
	change(asks, pairs(b.Asks))
	m := message{Exchange: b.Exchange, ExchangeSymbol: b.ExchangeSymbol, ExchangeSeq: b.Nonce, Depth: b.Depth, Complete: b.Complete}
	if !b.ExchangeTime.IsZero() {
		m.ExchangeTime = b.ExchangeTime.UTC().Format(time.RFC3339Nano)
	}
	return x.compare(&m, bids, asks)
}

func pairs(levels []client.Level) (all [][2]string) {
	for _, l := range levels {
		all = append(all, [2]string{string(l.Price), string(l.Size)})
	}
	return all
}

// counts are the versions that were compared, and the changes of state.
func (f *follower) counts() (compared int, states []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.compared, slices.Clone(f.states)
}

// forget begins with the states anew.
func (f *follower) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.states = nil
}

// Whatever the network does between a client and its gateway, each book that the client shows as live is the exchange's own,
// and none is shown as live while the gateway is not heard.
func TestClient_booksAreTheExchangesOwn_afterEveryCut(t *testing.T) {
	t.Parallel()
	const cuts = 10
	d := demonstrate(t)
	r := between(t, d.Public)
	var all []*follower
	for _, id := range ids() {
		all = append(all, d.follow(r.base(), id))
	}
	for round := range cuts + 1 {
		for i, f := range all {
			before, _ := f.counts()
			eventually(t, 60*time.Second, ids()[i]+": live versions are compared", func() bool {
				now, _ := f.counts()
				return now >= before+3
			})
		}
		if round == cuts {
			break
		}
		if n := r.cut(); n == 0 {
			t.Error("there was no connection to cut")
		}
		for i, f := range all {
			eventually(t, 60*time.Second, ids()[i]+": the client tells that the gateway is lost", func() bool {
				_, states := f.counts()
				b, ok := f.watch.Book(pairOf(ids()[i]))
				return slices.Contains(states, "stale "+client.ReasonDisconnected) && ok && b.Freshness.Stale && b.Freshness.Reason == client.ReasonDisconnected
			})
			f.forget()
		}
		r.heal()
	}
	for i, f := range all {
		compared, _ := f.counts()
		t.Logf("%s: %d live versions compared over %d connections, %d wrong", ids()[i], compared, cuts+1, f.wrong)
	}
}

// An outage of an exchange is told: streams and books are stale with the reason and the true age, errors are typed, and
// balances are errors. Afterwards all is live again by itself.
func TestClient_outage(t *testing.T) {
	t.Parallel()
	d := demonstrate(t)
	c := d.client(d.Public)
	f := d.follow(d.Public, "okx")
	state := func() string {
		_, states := f.counts()
		if len(states) == 0 {
			return ""
		}
		return states[len(states)-1]
	}
	eventually(t, 30*time.Second, "the stream is live", func() bool { return state() == "live" })
	if b, err := c.Balance(t.Context(), "okx"); err != nil || len(b.Balances) == 0 || b.Account != "main" {
		t.Errorf("a balance while all is well: %+v, %v", b, err)
	}

	d.breaks("okx", exchangesim.Fault{Kind: exchangesim.FaultReset})
	d.breaks("okx", exchangesim.Fault{Kind: exchangesim.FaultStorm, For: time.Second})
	eventually(t, 60*time.Second, "the stream is stale, and says why", func() bool { return strings.HasPrefix(state(), "stale ") })
	var stale *client.OrderBook
	eventually(t, 60*time.Second, "a stale book by request", func() bool {
		b, err := c.OrderBook(t.Context(), "okx", "BTC/USDT", client.Depth(5))
		if err != nil {
			t.Fatalf("a book that is held, in an outage: %v", err)
		}
		stale = b
		return b.Freshness.Stale
	})
	fresh := stale.Freshness
	if fresh.Reason == "" || fresh.Status != client.StatusStale || fresh.ConfirmedAt.IsZero() || fresh.AgeNow(time.Now()) < fresh.Age || len(stale.Bids) != 5 {
		t.Errorf("the stale book: %+v", stale)
	}
	if held, ok := f.watch.Book("BTC/USDT"); !ok || !held.Freshness.Stale || held.Freshness.Reason == "" || held.Since.IsZero() {
		t.Errorf("the streamed book: %+v %v", held, ok)
	}
	for what, ask := range map[string]func() error{
		"a live book":  func() error { _, err := c.OrderBook(t.Context(), "okx", "BTC/USDT", client.RequireLive); return err },
		"a young book": func() error { _, err := c.OrderBook(t.Context(), "okx", "BTC/USDT", client.MaxAge(0)); return err },
		"a balance":    func() error { _, err := c.Balance(t.Context(), "okx"); return err },
	} {
		var e *client.Error
		if err := ask(); !errors.As(err, &e) || !e.Retryable || e.RetryAfter < time.Second || e.Exchange != "okx" || e.Code == "" || e.RequestID == "" {
			t.Errorf("%s in an outage: %v", what, err)
		}
	}
	eventually(t, 60*time.Second, "the circuit of balances opens, and is a typed error", func() bool {
		_, err := c.Balance(t.Context(), "okx")
		var e *client.Error
		return errors.Is(err, client.ErrCircuitOpen) && errors.As(err, &e) && e.Circuit == "open" && e.RetryAfter >= time.Second
	})
	if p, err := c.Price(t.Context(), "BTC/USDT", []string{"okx", "binance"}); err != nil || p.Exchange != "binance" || !p.Fallback || p.Passed[0].Err == nil {
		t.Errorf("a price with a fallback: %+v, %v", p, err)
	}

	d.heals("okx")
	eventually(t, 120*time.Second, "the stream is live again", func() bool { return state() == "live" })
	eventually(t, 120*time.Second, "the book is live again", func() bool {
		b, err := c.OrderBook(t.Context(), "okx", "BTC/USDT")
		return err == nil && !b.Freshness.Stale
	})
	if compared, states := f.counts(); compared == 0 || slices.Contains(states, "lost") {
		t.Errorf("%d versions compared; %v", compared, states)
	}
}

// Every route answers the client in its own types.
func TestClient_everyRoute(t *testing.T) {
	t.Parallel()
	d := demonstrate(t)
	c, ctx := d.client(d.Public), t.Context()
	if x, err := c.Exchanges(ctx); err != nil || len(x.Exchanges) != 3 || !x.Exchanges[0].Has["watchOrderBook"] {
		t.Errorf("exchanges: %+v, %v", x, err)
	}
	b, err := c.OrderBook(ctx, "binance", "BTC-USDT", client.Depth(7))
	if err != nil || b.Symbol != "BTC/USDT" || len(b.Bids) != 7 || len(b.Asks) != 7 || b.Nonce == nil || b.Freshness.Source == "" {
		t.Errorf("order book: %+v, %v", b, err)
	}
	if x, err := c.Ticker(ctx, "binance", "BTC/USDT"); err != nil || !x.Bid.Known() || !x.Mid.Known() {
		t.Errorf("ticker: %+v, %v", x, err)
	}
	if all, err := c.Tickers(ctx, "binance", "BTC/USDT", "NO/SUCH"); err != nil || len(all) != 2 || all[0].Ticker == nil || all[1].Err == nil {
		t.Errorf("tickers: %+v, %v", all, err)
	}
	if m, err := c.Markets(ctx, "coinbase"); err != nil || len(m.Markets) == 0 || !m.Markets[0].Tick.Known() {
		t.Errorf("markets: %+v, %v", m, err)
	}
	if st, err := c.Status(ctx, "okx"); err != nil || st.Exchange != "okx" || len(st.Circuits) == 0 {
		t.Errorf("status: %+v, %v", st, err)
	}
	if all, err := c.OrderBooks(ctx, "BTC/USDT", client.Depth(3)); err != nil || len(all.Venues) != 3 || all.BestBid == nil {
		t.Errorf("order books: %+v, %v", all, err)
	}
	if o, err := c.Circuits(ctx); err != nil || len(o.Exchanges) != 3 || o.Headline == "" || len(o.Exchanges[0].Circuits) == 0 {
		t.Errorf("circuits: %+v, %v", o, err)
	}
	if rows, err := c.Errors(ctx); err != nil || len(rows) < 40 {
		t.Errorf("errors: %d, %v", len(rows), err)
	}
	if _, err := c.OrderBook(ctx, "okx", "NO/SUCH"); !errors.Is(err, client.ErrSymbolUnknown) {
		t.Errorf("a pair that is not there: %v", err)
	}
	stranger, err := client.New(d.Public, client.Options{Key: "gw_demo_0000000000000000000000fake"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stranger.Exchanges(ctx); !errors.Is(err, client.ErrUnauthenticated) {
		t.Errorf("a wrong key: %v", err)
	}
	w, err := stranger.Watch(ctx, client.Subscription{Exchange: "okx", Symbols: []string{"BTC/USDT"}})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for err == nil {
		_, err = w.Next(ctx)
	}
	if !errors.Is(err, client.ErrUnauthenticated) {
		t.Errorf("a stream with a wrong key: %v", err)
	}
}

// `gateway book` says the same to a person, and to a script by its exit code.
func TestBookCommand(t *testing.T) {
	t.Parallel()
	d := demonstrate(t)
	env := []string{"GATEWAY_URL=" + d.Public, "GATEWAY_KEY=" + d.Key}
	eventually(t, 30*time.Second, "a live book", func() bool { return run(t, "gateway", env, "book", "okx", "BTC/USDT").code == 0 })
	says(t, run(t, "gateway", env, "book", "okx", "BTC/USDT", "--depth=2"), 0, "okx BTC/USDT  LIVE", "mid ", "spread ", "bid | ask")
	says(t, run(t, "gateway", env, "book", "okx", "NO/SUCH"), 1, "NO/SUCH")
	says(t, run(t, "gateway", nil, "book", "okx", "BTC/USDT", "--gateway=http://127.0.0.1:1"), 1, "gateway not heard")

	watch := launch(t, "gateway", env, "book", "okx", "BTC/USDT", "--watch")
	objects := launch(t, "gateway", env, "book", "okx", "BTC/USDT", "--watch", "-o", "json")
	eventually(t, 30*time.Second, "a line for each change", func() bool { return len(lines(watch.out.String(), "okx BTC/USDT bid ", "LIVE")) > 3 })
	d.breaks("okx", exchangesim.Fault{Kind: exchangesim.FaultReset})
	d.breaks("okx", exchangesim.Fault{Kind: exchangesim.FaultStorm, For: time.Second})
	eventually(t, 60*time.Second, "the watch says that the book is stale, since when and why", func() bool {
		return len(lines(watch.out.String(), "okx BTC/USDT STALE since ", ": ", "confirmed ")) > 0
	})
	eventually(t, 60*time.Second, "exit 3: a stale book", func() bool {
		p := run(t, "gateway", env, "book", "okx", "BTC/USDT")
		return p.code == 3 && strings.Contains(p.out.String(), "STALE")
	})
	eventually(t, 60*time.Second, "exit 4: no book, and the circuit is open", func() bool {
		return run(t, "gateway", env, "book", "okx", "BTC/USDT", "--max-age=0s").code == 4
	})
	watch.signal(syscall.SIGINT)
	if code := watch.wait(10 * time.Second); code != 0 {
		t.Errorf("Ctrl-C: exit %d: %s", code, watch.log.String())
	}
	d.signal(syscall.SIGINT)
	eventually(t, 60*time.Second, "the other watch says that the gateway is lost", func() bool {
		return len(lines(objects.out.String(), `"type":"connection","connected":false`)) > 0
	})
	objects.signal(syscall.SIGINT)
	if code := objects.wait(10 * time.Second); code != 0 {
		t.Errorf("Ctrl-C: exit %d: %s", code, objects.log.String())
	}
	for line := range strings.Lines(objects.out.String()) {
		var o struct{ Type string }
		if err := json.Unmarshal([]byte(line), &o); err != nil || o.Type == "" {
			t.Errorf("%q is no object: %v", line, err)
		}
	}
}
