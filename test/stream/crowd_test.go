package stream

import (
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/exchangesim"
)

// version is one version of a topic. Its window is the same for whoever holds it, however they came by it.
type version struct {
	topic topic
	epoch string
	seq   uint64
}

// crowd is a number of clients that come and go, and what they have been sent together.
type crowd struct {
	s      *stage
	draw   *rand.Rand
	topics []topic // that there are
	calm   atomic.Bool
	seed   maphash.Seed

	clients []*client       // that are connected now and read as fast as they can
	asked   map[*client]int // refusals that were looked at
	slow    *client         // reads with pauses until all is calm
	stalled *client         // reads nothing after a while
	stall   chan struct{}   // closed when stalled may read again
	came    int             // clients that there were
	looks   int             // at topics, whether they are as young as their status says

	mu       sync.Mutex
	versions map[version]uint64 // of windows
	repeats  int                // versions that were held by more than one, or twice
}

func newCrowd(s *stage, draw *rand.Rand, topics []topic) *crowd {
	return &crowd{
		s: s, draw: draw, topics: topics, seed: maphash.MakeSeed(), asked: map[*client]int{}, stall: make(chan struct{}),
		versions: map[version]uint64{},
	}
}

// saw compares the window of a version with that of everybody else who held it: a snapshot is the last one with all the
// updates since.
func (w *crowd) saw(t topic, h *held) error {
	if h.seq == 0 {
		return nil
	}
	var sum uint64 // of the levels, in any order
	for i, side := range []map[string]string{h.bids, h.asks} {
		for price, size := range side {
			sum += maphash.Comparable(w.seed, [3]string{"side"[i:], price, size})
		}
	}
	if t.channel == "ticker" {
		sum = maphash.Comparable(w.seed, h.top)
	}
	v := version{t, h.epoch, h.seq}
	w.mu.Lock()
	defer w.mu.Unlock()
	was, ok := w.versions[v]
	w.versions[v] = sum
	if !ok {
		return nil
	}
	if w.repeats++; was != sum {
		return fmt.Errorf("version %d of %+v in %s is not what another holds", h.seq, t, h.epoch)
	}
	return nil
}

// join connects one more client.
func (w *crowd) join(pause func()) *client {
	w.came++
	var c *client
	c = w.s.connectAs(pause, func(t topic, h *held) {
		if err := w.saw(t, h); err != nil {
			c.fail("%v", err)
		}
		if h.status == "unsubscribed" {
			delete(c.topics, t)
		}
	})
	return c
}

// come connects a client that reads as fast as it can.
func (w *crowd) come() {
	c := w.join(nil)
	w.clients = append(w.clients, c)
	for range 1 + w.draw.IntN(4) {
		w.want(c)
	}
}

// want subscribes a client to one more topic, if there is one left.
func (w *crowd) want(c *client) {
	t := w.topics[w.draw.IntN(len(w.topics))]
	if !slices.Contains(c.all(), t) {
		c.subscribe(t)
	}
}

// unwant ends one of a client's subscriptions that has begun.
func (w *crowd) unwant(c *client) {
	c.mu.Lock()
	var begun []topic
	for _, t := range w.topics {
		if h := c.topics[t]; h != nil && (h.status == "live" || h.status == "stale") {
			begun = append(begun, t)
		}
	}
	c.mu.Unlock()
	if len(begun) > 1 {
		c.send("unsubscribe", begun[w.draw.IntN(len(begun))])
	}
}

// leave lets one of the clients leave.
func (w *crowd) leave() {
	if len(w.clients) < 2 {
		return
	}
	i := w.draw.IntN(len(w.clients))
	w.clients[i].close()
	w.clients = slices.Delete(w.clients, i, i+1)
}

// everybody are all clients that read.
func (w *crowd) everybody() []*client { return append(slices.Clone(w.clients), w.slow) }

// retry subscribes anew what was refused: while an exchange's list of pairs cannot be had, nothing can be subscribed.
func (w *crowd) retry() {
	for _, c := range w.everybody() {
		c.mu.Lock()
		refused := c.refusals[w.asked[c]:]
		w.asked[c] = len(c.refusals)
		c.mu.Unlock()
		for _, m := range refused {
			if t := m.topic(); slices.Contains(w.topics, t) && slices.Contains(c.all(), t) {
				c.send("subscribe", t)
				continue
			}
			w.s.t.Errorf("refused: %+v", m)
		}
	}
}

// young checks that whatever a client holds as live was the exchange's book not longer ago than it may be vouched for.
func (w *crowd) young() {
	for _, c := range w.clients {
		c.mu.Lock()
		for t, h := range c.topics {
			if h.status != "live" || h.seq == 0 {
				continue
			}
			w.looks++
			if err := w.youngEnough(t, h); err != nil {
				c.fail("%+v is held as live: %v", t, err)
			}
		}
		c.mu.Unlock()
	}
}

// bridge is how much longer than its own word a book may be vouched for: what FaultOlder keeps back of a check by REST, and
// the time between two looks at it.
const bridge = 3 * time.Second

func (w *crowd) youngEnough(t topic, h *held) error {
	venue, oldest := w.s.venue(t.id), time.Now().Add(-vouchFor[t.id]-bridge)
	at, err := momentOf(venue, h)
	if err != nil {
		return err
	}
	// The next version of the exchange's may be no change of this window.
	old, err := venue.Book(h.symbol, oldest, max(t.depth, 1))
	if err != nil || !at.Before(old.Time) {
		return err
	}
	if t.channel == "ticker" {
		var top [4]string
		if len(old.Bids) > 0 {
			top[0], top[1] = old.Bids[0].Price, old.Bids[0].Size
		}
		if len(old.Asks) > 0 {
			top[2], top[3] = old.Asks[0].Price, old.Asks[0].Size
		}
		if top != h.top {
			return fmt.Errorf("it is of %v, and the exchange had another top at %v", at, oldest)
		}
		return nil
	}
	for _, err := range []error{
		sameSide("bids", h.bids, old.Bids, t.depth, h.complete), sameSide("asks", h.asks, old.Asks, t.depth, h.complete),
	} {
		if err != nil {
			return fmt.Errorf("it is of %v, and at %v: %w", at, oldest, err)
		}
	}
	return nil
}

// momentOf is when the exchange had the book that is held.
func momentOf(v *exchangesim.Venue, h *held) (time.Time, error) {
	if h.seqOf == nil {
		return *h.timeOf, nil
	}
	b, err := v.BookBySeq(h.symbol, *h.seqOf, 1)
	return b.Time, err
}

// begin connects the first clients.
func (w *crowd) begin() {
	for range 2 {
		w.come()
	}
	// Nothing waits at the gateway longer than the 10 s after which a client is given up, but longer than there is room for.
	lazy, rested := rand.New(rand.NewPCG(w.draw.Uint64(), 5)), time.Now() // of a goroutine of its own
	w.slow = w.join(func() {
		if !w.calm.Load() && time.Since(rested) > 5*time.Second {
			time.Sleep(time.Duration(2000+lazy.IntN(7000)) * time.Millisecond)
			rested = time.Now()
		}
	})
	w.slow.subscribe(w.topics...)
	reads := 5 + w.draw.IntN(20)
	w.stalled = w.join(func() {
		if reads--; reads < 0 {
			<-w.stall
		}
	})
	w.stalled.subscribe(w.topics...)
}

// step lets clients come, go, and change their minds.
func (w *crowd) step() {
	c := w.clients[w.draw.IntN(len(w.clients))]
	switch n := w.draw.IntN(8); {
	case n == 0 && w.came < 12:
		w.come()
	case n == 1:
		w.leave()
	case n < 5:
		w.want(c)
	case n < 7:
		w.unwant(c)
	}
	w.retry()
}

// look checks what is held now.
func (w *crowd) look() {
	synctest.Wait() // what was sent is read
	w.young()
}

// settle waits until everything is live for everybody, and tells how long that took.
func (w *crowd) settle(most time.Duration) time.Duration {
	w.calm.Store(true)
	began := time.Now()
	for {
		all := true
		for _, c := range w.everybody() {
			all = all && c.live()
		}
		if all {
			return time.Since(began)
		}
		if time.Since(began) > most {
			for _, c := range w.everybody() {
				w.s.t.Errorf("not live within %v: %v", most, c.states())
			}
			return most
		}
		w.retry()
		w.look()
		time.Sleep(time.Second)
	}
}

// end lets everybody go and counts what they were sent.
func (w *crowd) end(one *tally) {
	w.giveUp()
	one.clients, one.repeats, one.looks, one.stalled = w.came, w.repeats, w.looks, 1
	for _, c := range w.everybody() {
		c.mu.Lock()
		end := c.end
		c.mu.Unlock()
		if end != nil {
			w.s.t.Errorf("a client was given up: %v", end)
		}
		c.close()
		one.messages += c.received
		one.compared += compared(c)
		for _, h := range c.topics {
			one.conflated += int(h.conflated)
			for _, ch := range h.changes {
				if ch.status == "stale" {
					one.stale++
				}
			}
		}
	}
}

// giveUp checks that the gateway has given up who stopped reading, and nobody else.
func (w *crowd) giveUp() {
	if got, want := w.s.connected(), len(w.everybody()); got != want {
		w.s.t.Errorf("%d clients are connected, want %d", got, want)
	}
	// What is left to read ends in the middle of a message. The library gives one of which nothing came as an empty one.
	late := &deaf{TB: w.s.t}
	w.stalled.mu.Lock()
	w.stalled.t = late
	w.stalled.mu.Unlock()
	close(w.stall)
	<-w.stalled.done
	for _, text := range late.failures {
		if !strings.HasPrefix(text, "unexpected end of JSON input") {
			w.s.t.Error(text)
		}
	}
}

// connected is how many WebSocket clients the gateway says that it has.
func (s *stage) connected() int {
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, "http://localhost/metrics", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	rec := httptest.NewRecorder()
	s.app.Admin().ServeHTTP(rec, r)
	_, after, _ := strings.Cut(rec.Body.String(), "\ngateway_stream_clients{transport=\"websocket\"} ")
	text, _, _ := strings.Cut(after, "\n")
	n, err := strconv.Atoi(text)
	if err != nil {
		s.t.Fatalf("%d: no number of clients: %v", rec.Code, err)
	}
	return n
}
