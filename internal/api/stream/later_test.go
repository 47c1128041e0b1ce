package stream_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/api/stream"
	"exchange-gateway/internal/market"
)

// hung is a list of pairs of binance that does not answer before it is let go.
type hung struct {
	let   chan struct{}
	mu    sync.Mutex
	asked []string
}

func newHung() *hung { return &hung{let: make(chan struct{})} }

func (h *hung) listing(ctx context.Context, e market.ExchangeID, p market.Pair) (market.Listing, error) {
	if e != "binance" {
		return listing(ctx, e, p)
	}
	h.mu.Lock()
	h.asked = append(h.asked, p.Base)
	h.mu.Unlock()
	select {
	case <-h.let:
		return listing(ctx, e, p)
	case <-ctx.Done():
		return market.Listing{}, ctx.Err()
	}
}

func (h *hung) questions() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.asked)
}

func about(exchange, op, base string) string {
	return `{"op":"` + op + `","channel":"orderbook","exchange":"` + exchange + `","symbols":["` + base + `/USDT"],"depth":5}`
}

// While one exchange's list does not answer, the connection lives: pings are answered, nonsense is, and other exchanges are
// subscribed to. What was asked of the exchange that hangs is done in its order afterwards.
func TestLater_aListThatHangsKeepsNothingElseWaiting(t *testing.T) {
	h := newHung()
	r := newRig(t, func(c *stream.Config) { c.Listing = h.listing })
	c := r.raw(t)
	next := func() string {
		t.Helper()
		_ = c.SetReadDeadline(time.Now().Add(5 * time.Second)) // before listingBound is over
		op, payload, err := c.frame()
		if err != nil || op != opText {
			t.Fatalf("%d %v", op, err)
		}
		m := parse(t, string(payload))
		return strings.TrimSpace(m.Type + " " + m.Status + " " + m.Symbol)
	}
	text := func(want string) {
		t.Helper()
		if got := next(); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
	for _, m := range []string{about("binance", "subscribe", "A"), about("binance", "unsubscribe", "A"), about("binance", "subscribe", "B")} {
		c.put(masked(fin|opText, m))
	}
	until(t, "the list is asked", func() bool { return len(h.questions()) == 1 })
	c.put(masked(fin|opPing, "x"))
	if op, payload, err := c.frame(); op != opPong || string(payload) != "x" || err != nil {
		t.Fatalf("%d %q %v, want a pong", op, payload, err)
	}
	c.put(masked(fin|opText, `{"op":"ping"}`))
	text("heartbeat")
	c.put(masked(fin|opText, `{"op":"nonsense"}`))
	text("error")
	c.put(masked(fin|opText, about("okx", "subscribe", "BTC")))
	text("status live BTC/USDT")
	text("snapshot live BTC/USDT")
	if got := h.questions(); !slices.Equal(got, []string{"A"}) {
		t.Errorf("asked %q before the first was answered", got)
	}
	close(h.let)
	got := next()
	if got == "status syncing A/USDT" { // unless it was dropped by the end of its subscription
		got = next()
	}
	if got != "status unsubscribed A/USDT" {
		t.Errorf("got %q, want the end of A", got)
	}
	text("status syncing B/USDT")
	if watched, released := r.feed.counts(); watched != 3 || released != 1 {
		t.Errorf("watched %d, released %d", watched, released)
	}
}

// inBubble serves clients without sockets, with the list that hangs.
func inBubble(t *testing.T, h *hung) (*rig, *rawClient) {
	p := newPipes()
	r := serve(t, p, func(c *stream.Config) { c.Listing = h.listing })
	return r, upgrade(t, p.dial())
}

// Each message waits 10 s at most, however many came before it.
func TestLater_theWaitBeginsWithTheMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHung()
		_, c := inBubble(t, h)
		began := time.Now()
		const n = 5
		for i := range n {
			c.put(masked(fin|opText, about("binance", "subscribe", "A"+strconv.Itoa(i))))
			time.Sleep(time.Second)
		}
		for i := range n {
			_, payload, err := c.frame()
			if err != nil {
				t.Fatal(err)
			}
			m, want := parse(t, string(payload)), time.Duration(10+i)*time.Second
			if took := time.Since(began); m.Type != "error" || m.Symbol != "A"+strconv.Itoa(i)+"/USDT" || took < want || took > want+100*time.Millisecond {
				t.Errorf("after %v: %+v, want error %d after %v", took, m, i, want)
			}
		}
		c.put(masked(fin|opClose, ""))
		if code, reason := c.closed(); code != 1000 {
			t.Errorf("closed with %d %q", code, reason)
		}
	})
}

// A client that goes on asking of an exchange that hangs is closed at the bound; the questions end with it.
func TestLater_tooManyWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHung()
		r, c := inBubble(t, h)
		const most = 60
		for i := range 1 + most { // one is asked, the others wait
			c.put(masked(fin|opText, about("binance", "subscribe", "A"+strconv.Itoa(i))))
			time.Sleep(100 * time.Millisecond) // half the pace
		}
		synctest.Wait()
		if n := r.clients("websocket"); n != 1 {
			t.Fatalf("%d clients with %d messages that wait", n, most)
		}
		c.put(masked(fin|opText, about("binance", "subscribe", "Z")))
		if code, reason := c.closed(); code != 1008 || reason != "too many messages" {
			t.Errorf("closed with %d %q", code, reason)
		}
		_ = c.Close()
		synctest.Wait()
		if n := r.clients("websocket"); n != 0 {
			t.Errorf("%d clients are left", n)
		}
		if got := h.questions(); !slices.Equal(got, []string{"A0"}) {
			t.Errorf("asked for %q", got)
		}
		if got := r.ended("websocket", "misuse"); got != 1 {
			t.Errorf("%d ended by misuse", got)
		}
	})
}
