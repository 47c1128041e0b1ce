package main

import (
	"context"
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
)

// products is an exchange that speaks to streams as Coinbase's Advanced Trade. Its snapshots come by the stream: Binance's
// limit on those by REST would keep 300 pairs for minutes.
type products struct {
	server    *http.Server
	addr      string
	names     []string // "C0000-USD"
	serveDone chan error

	mu    sync.Mutex
	conns map[*productConn]struct{}
	over  bool
	all   sync.WaitGroup // of the goroutines that read from conns
}

type productConn struct {
	conn     net.Conn
	products []string
	beating  bool
	sequence int64 // of the next message: it counts for the whole connection
	text     []byte
	out      []byte
}

func startProducts(ctx context.Context, names []string) (*products, error) {
	p := &products{names: names, serveDone: make(chan error, 1), conns: map[*productConn]struct{}{}}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p.addr = l.Addr().String()
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: time.Minute}
	go func() { p.serveDone <- p.server.Serve(l) }()
	return p, nil
}

func (p *products) stop() {
	_ = p.server.Close() // nothing is in flight that anybody waits for
	p.mu.Lock()
	p.over = true
	for c := range p.conns {
		_ = c.conn.Close()
	}
	p.mu.Unlock()
	p.all.Wait()
	<-p.serveDone
}

// ServeHTTP answers the list of products and streams.
func (p *products) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/":
		p.stream(w, r)
	case strings.HasSuffix(r.URL.Path, "/products"):
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(p.list())
	default:
		http.NotFound(w, r)
	}
}

func (p *products) list() []byte {
	b := []byte(`{"products":[`)
	for i, name := range p.names {
		if i > 0 {
			b = append(b, ',')
		}
		base, quote, _ := strings.Cut(name, "-")
		b = fmt.Appendf(b, `{"product_id":%q,"product_type":"SPOT","base_currency_id":%q,"quote_currency_id":%q,"status":"online",`+
			`"price_increment":"0.01","base_increment":"0.00000001"}`, name, base, quote)
	}
	return fmt.Appendf(b, `],"num_products":%d}`, len(p.names))
}

// stream is one connection until it ends.
func (p *products) stream(w http.ResponseWriter, r *http.Request) {
	conn, _, _, err := ws.UpgradeHTTP(r, w)
	if err != nil {
		return // the gateway is told by the answer
	}
	defer conn.Close()
	c := &productConn{conn: conn}
	p.mu.Lock()
	if p.over {
		p.mu.Unlock()
		return
	}
	p.conns[c] = struct{}{}
	p.all.Add(1)
	p.mu.Unlock()
	defer p.all.Done()
	for {
		text, err := wsutil.ReadClientText(conn)
		if err != nil {
			p.mu.Lock()
			delete(p.conns, c)
			p.mu.Unlock()
			return
		}
		p.obey(c, text)
	}
}

// obey subscribes, and sends the snapshots and then what is subscribed now.
func (p *products) obey(c *productConn, text []byte) {
	var q struct {
		Type     string   `json:"type"`
		Channel  string   `json:"channel"`
		Products []string `json:"product_ids"`
	}
	if err := json.Unmarshal(text, &q); err != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case q.Channel == "heartbeats": // none are sent: there is always something else
		c.beating = true
	case q.Type == "subscribe":
		c.products = append(c.products, q.Products...)
		for _, name := range q.Products {
			c.send("l2_data", func(b []byte) []byte { return appendProduct(b, "snapshot", name, 1000, 0) })
		}
	default:
		c.products = slices.DeleteFunc(c.products, func(name string) bool { return slices.Contains(q.Products, name) })
	}
	c.send("subscriptions", func(b []byte) []byte {
		level2, err := json.Marshal(c.products)
		if err != nil {
			panic(err) // strings always have a JSON text
		}
		b = append(append(b, `{"subscriptions":{"level2":`...), level2...)
		if c.beating {
			b = append(b, `,"heartbeats":["heartbeats"]`...)
		}
		return append(b, '}', '}')
	})
}

// change sends a change of the best n levels of both sides to all books, a message for each.
func (p *products) change(n int, version int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		for _, name := range c.products {
			c.send("l2_data", func(b []byte) []byte { return appendProduct(b, "update", name, n, version) })
		}
	}
}

// send sends one message with one event. It leaves it to the reader to notice a connection that is gone.
func (c *productConn) send(channel string, event func([]byte) []byte) {
	c.text = append(append(c.text[:0], `{"channel":"`...), channel...)
	c.text = append(c.text, `","client_id":"","timestamp":"`...)
	c.text = time.Now().UTC().AppendFormat(c.text, time.RFC3339Nano)
	c.text = strconv.AppendInt(append(c.text, `","sequence_num":`...), c.sequence, 10)
	c.text = append(event(append(c.text, `,"events":[`...)), `]}`...)
	c.sequence++
	c.out = wsFrame(c.out[:0], c.text)
	_ = c.conn.SetWriteDeadline(time.Now().Add(patience))
	_, _ = c.conn.Write(c.out)
}

func appendProduct(b []byte, kind, name string, n int, version int64) []byte {
	b = fmt.Appendf(b, `{"type":%q,"product_id":%q,"updates":[`, kind, name)
	for i := range int64(n) {
		for _, side := range []struct {
			name  string
			cents int64
		}{{"bid", bestBid - i}, {"offer", bestAsk + i}} {
			b = fmt.Appendf(b, `{"side":%q,"event_time":"2026-11-30T01:00:00.123456Z","price_level":"%d.%02d","new_quantity":"0.%08d"},`,
				side.name, side.cents/100, side.cents%100, 58_849_577+7919*(i%4000)+version%9*100_003)
		}
	}
	return append(b[:len(b)-1], ']', '}')
}
