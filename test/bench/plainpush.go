package main

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// plainPush pushes as is usual: a queue and a goroutine for each subscriber, one write for each message, by the library that
// the gateway uses towards exchanges. Whoever subscribes to anything gets everything.
type plainPush struct {
	mu      sync.Mutex
	clients map[chan []byte]struct{}
}

const plainQueue = 16 // messages; what does not fit is left out

func (p *plainPush) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/play" {
		p.play(r)
		return
	}
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return // the client is told by the answer
	}
	defer func() { _ = conn.CloseNow() }()
	if _, _, err := conn.Read(r.Context()); err != nil { // what is subscribed to makes no difference
		return
	}
	ctx := conn.CloseRead(r.Context())
	queue := make(chan []byte, plainQueue)
	queue <- []byte(`{"type":"snapshot"}`)
	p.mu.Lock()
	p.clients[queue] = struct{}{}
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.clients, queue)
		p.mu.Unlock()
	}()
	for {
		select {
		case text := <-queue:
			if conn.Write(ctx, websocket.MessageText, text) != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// play pushes n messages of so many bytes, one at each beat.
func (p *plainPush) play(r *http.Request) {
	q := r.URL.Query()
	n, _ := strconv.Atoi(q.Get("n")) // what is no number pushes nothing
	size, _ := strconv.Atoi(q.Get("size"))
	beat, _ := time.ParseDuration(q.Get("beat"))
	for begin, i := time.Now(), 0; i < n; i++ {
		sleepUntil(begin.Add(time.Duration(i) * beat))
		text := fmt.Appendf(nil, `{"type":"update","exchange_seq":%d,"pad":"`, time.Now().UnixMicro())
		text = append(text, strings.Repeat("x", max(size-len(text)-2, 0))+`"}`...)
		p.mu.Lock()
		for queue := range p.clients {
			select {
			case queue <- text:
			default:
			}
		}
		p.mu.Unlock()
	}
}
