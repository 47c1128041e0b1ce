package stream

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"exchange-gateway/internal/market"
)

// message is any message of the gateway's.
type message struct {
	Type           string            `json:"type"`
	Channel        string            `json:"channel"`
	Exchange       market.ExchangeID `json:"exchange"`
	Symbol         string            `json:"symbol"`
	ExchangeSymbol string            `json:"exchange_symbol"`
	Depth          int               `json:"depth"`
	Epoch          string            `json:"epoch"`
	Seq            uint64            `json:"seq"`
	PrevSeq        *uint64           `json:"prev_seq"`
	Status         string            `json:"status"`
	Reason         string            `json:"reason"`
	Since          *time.Time        `json:"since"`
	Complete       bool              `json:"complete"`
	ExchangeSeq    *int64            `json:"exchange_seq"`
	ExchangeTime   *time.Time        `json:"exchange_time"`
	ConfirmedAt    *time.Time        `json:"confirmed_at"`
	SentAt         time.Time         `json:"sent_at"`
	Conflated      uint64            `json:"conflated"`
	Bids           [][2]string       `json:"bids"`
	Asks           [][2]string       `json:"asks"`
	Bid            *string           `json:"bid"`
	BidVolume      *string           `json:"bidVolume"`
	Ask            *string           `json:"ask"`
	AskVolume      *string           `json:"askVolume"`
	Code           string            `json:"code"`
	Detail         string            `json:"detail"`
}

// topic is one thing that is subscribed to.
type topic struct {
	channel string
	id      market.ExchangeID
	pair    string
	depth   int // 0 for a ticker
}

func (m *message) topic() topic { return topic{m.Channel, m.Exchange, m.Symbol, m.Depth} }

// vouchFor is how long each exchange's word about a quiet book is believed.
var vouchFor = map[market.ExchangeID]time.Duration{"binance": time.Minute, "okx": 75 * time.Second, "coinbase": time.Minute}

// held is what a client holds of a topic, kept by nothing but the messages.
type held struct {
	symbol     string
	seq        uint64 // 0: nothing
	epoch      string
	status     string
	complete   bool
	bids, asks map[string]string // sizes by price
	top        [4]string         // of a ticker: bid, its size, ask, its size
	seqOf      *int64            // the exchange's sequence of what is held
	timeOf     *time.Time
	changes    []change // of status
	compared   int
	conflated  uint64
}

// change is when a topic was told to be in a status.
type change struct {
	at             time.Time
	status, reason string
}

// client is one client, of the WebSocket or of events, that checks every message that it gets.
type client struct {
	t      testing.TB
	conn   *websocket.Conn // nil for one of events
	hangUp func()
	truths map[market.ExchangeID]*truths
	done   chan struct{}
	pause  func()             // before each read; nil does not
	seen   func(topic, *held) // after each message of a topic, with what is held then, under mu; nil does nothing

	mu       sync.Mutex
	topics   map[topic]*held
	received int
	refusals []message // error messages
	wrong    int       // failures told: the first few say it all
	end      error     // of reading
}

// connect opens a client. It ends with the test, or by close.
func (s *stage) connect() *client { return s.connectAs(nil, nil) }

// connectAs opens a client that pauses before it reads, and whose messages are seen by another.
func (s *stage) connectAs(pause func(), seen func(topic, *held)) *client {
	s.t.Helper()
	conn, _, err := websocket.Dial(s.t.Context(), "ws://localhost/v1/stream", &websocket.DialOptions{HTTPClient: s.client})
	if err != nil {
		s.t.Fatal(err)
	}
	conn.SetReadLimit(1 << 20)
	c := s.newClient(func() { _ = conn.CloseNow() }) // the gateway has to bear it
	c.conn, c.pause, c.seen = conn, pause, seen
	go c.read()
	return c
}

func (s *stage) newClient(hangUp func()) *client {
	c := &client{
		t: s.t, hangUp: hangUp, done: make(chan struct{}), topics: map[topic]*held{}, truths: map[market.ExchangeID]*truths{},
	}
	for id := range s.taps {
		c.truths[id] = newTruths(s.venue(id))
	}
	s.t.Cleanup(c.close)
	return c
}

// close hangs up and waits until nothing is read any more.
func (c *client) close() {
	c.hangUp()
	<-c.done
}

func (c *client) send(op string, t topic) {
	c.t.Helper()
	text := fmt.Sprintf(`{"op":%q,"channel":%q,"exchange":%q,"symbols":[%q]`, op, t.channel, t.id, t.pair)
	if t.depth > 0 {
		text += fmt.Sprintf(`,"depth":%d`, t.depth)
	}
	if err := c.conn.Write(c.t.Context(), websocket.MessageText, []byte(text+"}")); err != nil {
		c.t.Error(err)
	}
}

func (c *client) subscribe(topics ...topic) {
	c.t.Helper()
	for _, t := range topics {
		c.mu.Lock()
		c.topics[t] = &held{status: "none"}
		c.mu.Unlock()
		c.send("subscribe", t)
	}
}

func (c *client) read() {
	defer close(c.done)
	for {
		if c.pause != nil {
			c.pause()
		}
		_, text, err := c.conn.Read(context.Background())
		c.mu.Lock()
		if err != nil {
			c.end = err
			c.mu.Unlock()
			return
		}
		c.take(text)
		c.mu.Unlock()
	}
}

// fail tells of a wrong message, and of no more than a few.
func (c *client) fail(format string, args ...any) {
	if c.wrong++; c.wrong <= 5 {
		c.t.Errorf(format, args...)
	}
}

func (c *client) take(text []byte) {
	var m message
	if err := json.Unmarshal(text, &m); err != nil {
		c.fail("%v: %.300s", err, text)
		return
	}
	c.received++
	switch m.Type {
	case "heartbeat":
		return
	case "error":
		c.refusals = append(c.refusals, m)
		return
	}
	h := c.topics[m.topic()]
	if h == nil {
		c.fail("a message of a topic that was not asked for: %.300s", text)
		return
	}
	if err := h.apply(&m); err != nil {
		c.fail("%s %s %d: %v: %.300s", m.Exchange, m.Symbol, m.Depth, err, text)
		return
	}
	if c.seen != nil {
		c.seen(m.topic(), h)
	}
	if h.seq == 0 || h.status != "live" {
		return
	}
	h.compared++
	if err := c.compare(h, &m); err != nil {
		c.fail("%s %s %s %d at %v (sequence %v, %v): %v", m.Type, m.Exchange, m.Symbol, m.Depth, m.SentAt, deref(h.seqOf), h.timeOf, err)
	}
}

func deref(n *int64) int64 {
	if n == nil {
		return -1
	}
	return *n
}

// apply brings what is held up to a message, and refuses one that does not follow.
func (h *held) apply(m *message) error {
	if m.Status != h.status {
		h.status = m.Status
		h.changes = append(h.changes, change{time.Now(), m.Status, m.Reason})
	}
	if m.Status == "live" && m.ConfirmedAt != nil {
		if age := m.SentAt.Sub(*m.ConfirmedAt); age < 0 || age > vouchFor[m.Exchange] {
			return fmt.Errorf("live, but confirmed %v before", age)
		}
	}
	h.symbol = m.ExchangeSymbol
	switch m.Type {
	case "status":
		if m.Status == "live" && m.Reason != "" || m.Status == "stale" && m.Reason == "" {
			return fmt.Errorf("the reason is %q", m.Reason)
		}
		return nil
	case "snapshot":
		if m.PrevSeq != nil || m.Seq <= h.seq && m.Epoch == h.epoch && m.Seq < h.seq {
			return fmt.Errorf("a snapshot after %d", h.seq)
		}
		h.bids, h.asks = map[string]string{}, map[string]string{}
	case "update":
		if m.PrevSeq == nil || *m.PrevSeq != h.seq || m.Seq != h.seq+1 || m.Epoch != h.epoch {
			return fmt.Errorf("does not follow %d of %s", h.seq, h.epoch)
		}
	default:
		return fmt.Errorf("an unknown type")
	}
	h.seq, h.epoch, h.complete, h.seqOf, h.timeOf = m.Seq, m.Epoch, m.Complete, m.ExchangeSeq, m.ExchangeTime
	h.conflated += m.Conflated
	if m.Channel == "ticker" {
		for i, n := range []*string{m.Bid, m.BidVolume, m.Ask, m.AskVolume} {
			if h.top[i] = ""; n != nil {
				h.top[i] = plain(*n)
			}
		}
		return nil
	}
	put := func(side map[string]string, levels [][2]string) {
		for _, l := range levels {
			if size := plain(l[1]); size == "0" {
				delete(side, plain(l[0]))
			} else {
				side[plain(l[0])] = size
			}
		}
	}
	put(h.bids, m.Bids)
	put(h.asks, m.Asks)
	return nil
}

// compare compares the whole window with the simulator's truth.
func (c *client) compare(h *held, m *message) error {
	deep := 1
	for t, other := range c.topics { // one truth for all topics of a book
		if t.id == m.Exchange && t.pair == m.Symbol && other.seq > 0 {
			deep = max(deep, t.depth)
		}
	}
	want, err := c.truths[m.Exchange].book(h.symbol, h.seqOf, h.timeOf, deep)
	if err != nil {
		return err
	}
	if m.Channel == "ticker" {
		var top [4]string
		if len(want.Bids) > 0 {
			top[0], top[1] = want.Bids[0].Price, want.Bids[0].Size
		}
		if len(want.Asks) > 0 {
			top[2], top[3] = want.Asks[0].Price, want.Asks[0].Size
		}
		if top != h.top {
			return fmt.Errorf("the top is %q, the exchange had %q", h.top, top)
		}
		return nil
	}
	if err := sameSide("bids", h.bids, want.Bids, m.Depth, h.complete); err != nil {
		return err
	}
	return sameSide("asks", h.asks, want.Asks, m.Depth, h.complete)
}

// status is that of a topic.
func (c *client) status(t topic) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.topics[t].status
}

// live tells whether every topic is.
func (c *client) live() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, h := range c.topics {
		if h.status != "live" || h.seq == 0 {
			return false
		}
	}
	return true
}

// told are the changes of status since some moment, of the topics of a pair, or of all if "", in order.
func (c *client) told(pair string, since time.Time) (out []change) {
	for _, t := range c.all() {
		if pair == "" || t.pair == pair {
			out = append(out, c.history(t, since)...)
		}
	}
	slices.SortStableFunc(out, func(a, b change) int { return a.at.Compare(b.at) })
	return out
}

// history are the changes of a topic's status since some moment, in order.
func (c *client) history(of topic, since time.Time) (out []change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, ch := range c.topics[of].changes {
		if !ch.at.Before(since) {
			out = append(out, ch)
		}
	}
	return out
}

// all are the topics that are subscribed.
func (c *client) all() []topic {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Keys(c.topics))
}

// comparisons is how often each topic was compared with the truth.
func (c *client) comparisons() map[topic]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := map[topic]int{}
	for t, h := range c.topics {
		all[t] = h.compared
	}
	return all
}

// states is how every topic stands, for failures.
func (c *client) states() map[topic]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := map[topic]string{}
	for t, h := range c.topics {
		all[t] = h.status
	}
	return all
}
