package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"

	"exchange-gateway/internal/market"
)

// streams are the exchange's connections of streams and the books that change on them. A book's ids are moments in
// microseconds, which Binance's rules allow: what a client gets tells when the exchange sent it.
type streams struct {
	mu    sync.Mutex
	conns map[*streamConn]struct{}
	books map[string]*streamedBook // by symbol
	over  bool
	all   sync.WaitGroup // of the goroutines that read from conns
	text  []byte
}

type streamConn struct {
	conn  net.Conn
	names map[string]bool // of streams
}

// streamedBook is a book whose levels keep their prices and change their sizes.
type streamedBook struct {
	last     int64
	versions [1000]int64 // of both levels at a place, by place
}

func newStreams() *streams {
	return &streams{conns: map[*streamConn]struct{}{}, books: map[string]*streamedBook{}}
}

const patience = 10 * time.Second // of a write to the gateway

// serve is one connection until it ends.
func (s *streams) serve(w http.ResponseWriter, r *http.Request) {
	conn, _, _, err := ws.UpgradeHTTP(r, w)
	if err != nil {
		return // the gateway is told by the answer
	}
	defer conn.Close()
	c := &streamConn{conn: conn, names: map[string]bool{}}
	s.mu.Lock()
	if s.over {
		s.mu.Unlock()
		return
	}
	s.conns[c] = struct{}{}
	s.all.Add(1)
	s.mu.Unlock()
	defer s.all.Done()
	for {
		text, err := wsutil.ReadClientText(conn)
		if err != nil {
			s.mu.Lock()
			delete(s.conns, c)
			s.mu.Unlock()
			return
		}
		s.obey(c, text)
	}
}

// obey starts and ends streams.
func (s *streams) obey(c *streamConn, text []byte) {
	var q struct {
		Method string          `json:"method"`
		Params []string        `json:"params"`
		ID     json.RawMessage `json:"id"`
	}
	if err := json.Unmarshal(text, &q); err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range q.Params {
		if q.Method == "SUBSCRIBE" {
			c.names[name] = true
		} else {
			delete(c.names, name)
		}
	}
	c.write(wsFrame(nil, fmt.Appendf(nil, `{"result":null,"id":%s}`, q.ID)))
}

// write leaves it to the reader to notice a connection that is gone.
func (c *streamConn) write(b []byte) {
	_ = c.conn.SetWriteDeadline(time.Now().Add(patience))
	_, _ = c.conn.Write(b)
}

// wsFrame appends an unmasked text frame.
func wsFrame(b, text []byte) []byte {
	h := ws.Header{Fin: true, OpCode: ws.OpText, Length: int64(len(text))}
	n := ws.HeaderSize(h)
	b = slices.Grow(b, n+len(text))
	head := sliceWriter{b[len(b):]}
	_ = ws.WriteHeader(&head, h) // there is room
	return append(b[:len(b)+n], text...)
}

type sliceWriter struct{ b []byte }

func (w *sliceWriter) Write(p []byte) (int, error) { return copy(w.b[:cap(w.b)], p), nil }

// close ends all connections and waits for that.
func (s *streams) close() {
	s.mu.Lock()
	s.over = true
	for c := range s.conns {
		_ = c.conn.Close()
	}
	s.mu.Unlock()
	s.all.Wait()
}

// book is the book of a symbol, which began to change when it was first asked for. The caller holds the lock.
func (s *streams) book(symbol string) *streamedBook {
	b := s.books[symbol]
	if b == nil {
		b = &streamedBook{last: time.Now().UnixMicro()}
		s.books[symbol] = b
	}
	return b
}

// change sends a run of changes of the best n levels of both sides of a book, in one write.
func (s *streams) change(symbol string, n, run int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, out := s.book(symbol), []byte(nil)
	for range run {
		s.text = b.change(s.text[:0], symbol, n)
		out = wsFrame(out, s.text)
	}
	name := strings.ToLower(symbol) + "@depth@100ms"
	for c := range s.conns {
		if c.names[name] {
			c.write(out)
		}
	}
}

func (b *streamedBook) change(text []byte, symbol string, n int) []byte {
	now := time.Now()
	text = fmt.Appendf(text, `{"stream":"%s@depth@100ms","data":{"e":"depthUpdate","E":%d,"s":"%s","U":%d,"u":`,
		strings.ToLower(symbol), now.UnixMilli(), symbol, b.last+1)
	b.last = max(b.last+1, now.UnixMicro())
	text = strconv.AppendInt(text, b.last, 10)
	for i := range n {
		b.versions[i]++
	}
	text = b.appendSide(append(text, `,"b":[`...), n, bestBid, -1)
	text = b.appendSide(append(text, `],"a":[`...), n, bestAsk, 1)
	return append(text, `]}}`...)
}

// snapshot is the book's answer by REST.
func (s *streams) snapshot(symbol string, n int) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.book(symbol)
	text := fmt.Appendf(nil, `{"lastUpdateId":%d,"bids":[`, b.last)
	text = b.appendSide(text, n, bestBid, -1)
	text = b.appendSide(append(text, `],"asks":[`...), n, bestAsk, 1)
	return append(text, `]}`...)
}

func (b *streamedBook) appendSide(text []byte, n int, price, step int64) []byte {
	return appendSide(text, n, price, step, func(i int) int64 { return b.versions[i] })
}

// Best prices in cents.
const bestBid, bestAsk = 64_073_00, 64_073_10

// appendSide writes n levels with eight decimals; the sizes of two versions differ.
func appendSide(text []byte, n int, price, step int64, version func(place int) int64) []byte {
	for i := range n {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, '[', '"')
		text = market.NewNumber((price+int64(i)*step)*1_000_000, -8).AppendText(text)
		text = append(text, '"', ',', '"')
		text = market.NewNumber(58_849_577+7919*int64(i)+version(i)%9*100_003, -8).AppendText(text)
		text = append(text, '"', ']')
	}
	return text
}
