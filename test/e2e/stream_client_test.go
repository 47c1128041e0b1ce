package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"exchange-gateway/internal/exchangesim"
)

// streaming lets the gateway stream from the simulated exchanges.
func (s setup) streaming(v *venues) setup {
	for _, id := range ids() {
		if at := v.urls[id]; at != "" {
			s = s.with("exchanges." + id + ".stream_hosts=ws" + strings.TrimPrefix(at, "http")) // https: wss
		}
	}
	return s
}

// warm keeps the busy pair of each simulated exchange streamed.
func (s setup) warm(v *venues) setup {
	for _, id := range ids() {
		if v.urls[id] != "" {
			s = s.with("exchanges." + id + ".warm=" + pairOf(id))
		}
	}
	return s
}

// topic is what a client is subscribed to. The depth of a ticker is 0.
type topic struct {
	channel, exchange, pair string
	depth                   int
}

func (of topic) request(op string) string {
	depth := ""
	if of.depth > 0 {
		depth = fmt.Sprintf(`,"depth":%d`, of.depth)
	}
	return fmt.Sprintf(`{"op":%q,"channel":%q,"exchange":%q,"symbols":[%q]%s}`, op, of.channel, of.exchange, of.pair, depth)
}

// message is what the gateway sends.
type message struct {
	Type, Channel, Exchange, Symbol string
	Depth                           int
	ExchangeSymbol                  string `json:"exchange_symbol"`
	Epoch                           string
	Seq                             uint64
	PrevSeq                         *uint64 `json:"prev_seq"`
	Status                          string
	Reason                          *string
	Complete                        bool
	ExchangeSeq                     *int64 `json:"exchange_seq"`
	ExchangeTime                    string `json:"exchange_time"`
	Conflated                       int
	Bids, Asks                      [][2]string
	Bid, BidVolume, Ask, AskVolume  *string
	Code, Detail                    string
}

func (m *message) topic() topic { return topic{m.Channel, m.Exchange, m.Symbol, m.Depth} }

// shown is what a client holds of a topic, by the messages alone.
type shown struct {
	status     string
	epoch      string
	seq        uint64 // 0: nothing is held
	bids, asks map[string]string
	last       message // of those with levels
	compared   int     // live versions, of which each was compared with the exchange's own
	snapshots  int
	changes    []string // of status
}

// watcher is a client of /v1/stream that checks each message.
type watcher struct {
	t      *testing.T
	conn   *websocket.Conn
	truths *truths
	done   chan struct{} // nothing is read any more
	end    error         // why; read after done

	mu     sync.Mutex
	topics map[topic]*shown
	wrong  int
}

// watch connects a client and subscribes it. It is closed when the test ends. Without exchanges to ask for their books the
// messages have to follow one another, and no more.
func (g *gateway) watch(t *testing.T, sim *venues, topics ...topic) *watcher {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(g.public, "http")+"/v1/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	conn.SetReadLimit(1 << 20)
	w := &watcher{t: t, conn: conn, done: make(chan struct{}), topics: map[topic]*shown{}}
	deep := 1
	for _, of := range topics {
		w.topics[of] = &shown{}
		deep = max(deep, of.depth)
	}
	if sim != nil {
		w.truths = newTruths(sim, deep)
	}
	go w.read()
	t.Cleanup(func() {
		_ = conn.CloseNow() // it may be closed
		<-w.done
	})
	for _, of := range topics {
		if err := conn.Write(ctx, websocket.MessageText, []byte(of.request("subscribe"))); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func (w *watcher) read() {
	defer close(w.done)
	for {
		_, text, err := w.conn.Read(context.Background())
		if err != nil {
			w.end = err
			return
		}
		w.mu.Lock()
		if err := w.take(text); err != nil {
			if w.wrong++; w.wrong <= 3 { // the first few say it all
				w.t.Errorf("%v: %.300s", err, text)
			}
		}
		w.mu.Unlock()
	}
}

// take applies a message and compares what is held then with the exchange's own book.
func (w *watcher) take(text []byte) error {
	var m message
	if err := json.Unmarshal(text, &m); err != nil {
		return err
	}
	if m.Type == "heartbeat" {
		return nil
	}
	h := w.topics[m.topic()]
	if h == nil {
		return fmt.Errorf("nothing that was asked for")
	}
	if m.Status != h.status {
		h.status = m.Status
		h.changes = append(h.changes, m.Status)
	}
	switch m.Type {
	case "status":
		return nil
	case "snapshot":
		if m.PrevSeq != nil || m.Seq == 0 {
			return fmt.Errorf("a snapshot with these numbers")
		}
		h.bids, h.asks = map[string]string{}, map[string]string{}
		h.snapshots++
	case "update":
		if m.PrevSeq == nil || *m.PrevSeq != h.seq || m.Seq != h.seq+1 || m.Epoch != h.epoch {
			return fmt.Errorf("does not follow %d of %s", h.seq, h.epoch)
		}
	default:
		return fmt.Errorf("an unknown type")
	}
	h.epoch, h.seq, h.last = m.Epoch, m.Seq, m
	if m.Channel == "ticker" {
		m.Bids, m.Asks = oneLevel(m.Bid, m.BidVolume), oneLevel(m.Ask, m.AskVolume)
		h.bids, h.asks = map[string]string{}, map[string]string{}
	}
	change(h.bids, m.Bids)
	change(h.asks, m.Asks)
	if h.status != "live" {
		return nil
	}
	h.compared++
	if w.truths == nil {
		return nil
	}
	return w.truths.compare(&m, h.bids, h.asks)
}

// oneLevel is a side of a ticker as levels.
func oneLevel(price, size *string) [][2]string {
	if price == nil || size == nil {
		return nil
	}
	return [][2]string{{*price, *size}}
}

// change puts changed levels into a side.
func change(side map[string]string, levels [][2]string) {
	for _, l := range levels {
		if size := plain(l[1]); size == "0" {
			delete(side, plain(l[0]))
		} else {
			side[plain(l[0])] = size
		}
	}
}

// plain is a number as the simulator spells it: without trailing zeros.
func plain(number string) string {
	if strings.Contains(number, ".") {
		number = strings.TrimRight(strings.TrimRight(number, "0"), ".")
	}
	return number
}

// all tells whether something is so for every topic.
func (w *watcher) all(so func(topic, *shown) bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for of, h := range w.topics {
		if !so(of, h) {
			return false
		}
	}
	return true
}

// live waits until every topic is.
func (w *watcher) live(within time.Duration) {
	w.t.Helper()
	took := eventually(w.t, within, "every subscription is live", func() bool {
		return w.all(func(_ topic, h *shown) bool { return h.status == "live" && h.seq > 0 })
	})
	w.t.Logf("%d subscriptions live after %v", len(w.topics), took.Round(time.Millisecond))
}

// compared waits until n versions more of each book were compared, and of each ticker, which may not change, any.
func (w *watcher) compared(n int, within time.Duration) {
	w.t.Helper()
	before := map[topic]int{}
	w.all(func(of topic, h *shown) bool { before[of] = h.compared; return true })
	eventually(w.t, within, "every book was compared", func() bool {
		return w.all(func(of topic, h *shown) bool { return of.depth <= 1 && h.compared > 0 || h.compared >= before[of]+n })
	})
}

// truths are the books that the simulated exchanges really had. That of each symbol asked for last is kept, since several
// topics show it.
type truths struct {
	sim   *venues
	depth string
	last  map[string]*truth
}

type truth struct {
	query string
	book  exchangesim.Book
}

// newTruths asks for books as deep as anything that is compared.
func newTruths(sim *venues, depth int) *truths {
	return &truths{sim: sim, depth: strconv.Itoa(depth), last: map[string]*truth{}}
}

// at is the book of an exchange at a sequence, or at a moment where it has none.
func (x *truths) at(exchange, symbol string, seq *int64, moment string) exchangesim.Book {
	query := url.Values{"symbol": {symbol}, "depth": {x.depth}}
	if seq != nil {
		query.Set("seq", strconv.FormatInt(*seq, 10))
	} else {
		query.Set("at", moment)
	}
	last := x.last[exchange+symbol]
	if last == nil || last.query != query.Encode() {
		last = &truth{query: query.Encode()}
		x.sim.control("GET", "/v1/book/"+exchange+"?"+last.query, nil, &last.book)
		x.last[exchange+symbol] = last
	}
	return last.book
}

func (x *truths) compare(m *message, bids, asks map[string]string) error {
	depth := max(m.Depth, 1)
	if m.ExchangeSeq == nil && m.ExchangeTime == "" {
		return fmt.Errorf("a book with neither sequence nor time")
	}
	want := x.at(m.Exchange, m.ExchangeSymbol, m.ExchangeSeq, m.ExchangeTime)
	complete := m.Complete || m.Channel == "ticker"
	if err := sameSide(bids, want.Bids, depth, complete); err != nil {
		return fmt.Errorf("bids: %w", err)
	}
	if err := sameSide(asks, want.Asks, depth, complete); err != nil {
		return fmt.Errorf("asks: %w", err)
	}
	return nil
}

// sameSide compares a side with the first levels of the exchange's. One that is not complete may end before.
func sameSide(own map[string]string, theirs []exchangesim.Level, depth int, complete bool) error {
	n := min(depth, len(theirs))
	if len(own) > n || complete && len(own) < n || len(own) == 0 && n > 0 {
		return fmt.Errorf("%d levels (complete: %v), the exchange had %d", len(own), complete, n)
	}
	for _, l := range theirs[:len(own)] {
		if size, ok := own[l.Price]; !ok || size != l.Size {
			return fmt.Errorf("%q at %s, the exchange had %s", size, l.Price, l.Size)
		}
	}
	return nil
}
