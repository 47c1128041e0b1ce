package e2e_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// events are the server-sent events of one connection: the names of all, the data of the last, and how it ended.
type events struct {
	names []string
	last  string
	err   error // nil: the response is whole
}

// listen reads server-sent events to their end. The first event is announced on begun.
func (g *gateway) listen(ctx context.Context, exchange, pair string, begun chan<- struct{}) (e events) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, g.public+"/v1/stream/orderbook?depth=20&exchange="+exchange+"&symbol="+pair, nil)
	if err != nil {
		return events{err: err}
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return events{err: err}
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if name, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			if e.names = append(e.names, name); name == "snapshot" {
				begun <- struct{}{}
			}
		}
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			e.last = data
		}
	}
	e.err = lines.Err() // a chunked body that is cut says so
	return e
}

// SIGTERM with clients connected: each is told, nothing is cut, and the exit is clean.
func TestTerminate_withStreams(t *testing.T) {
	t.Parallel()
	sim := simulate(t)
	g := before(t, sim).streaming(sim).warm(sim).serve(t)
	var clients []*watcher
	for range 4 {
		clients = append(clients, g.watch(t, nil)) // one that is subscribed to nothing
		for _, id := range ids() {
			w := g.watch(t, nil, topic{"orderbook", id, pairOf(id), 50}, topic{"ticker", id, pairOf(id), 0})
			w.live(15 * time.Second)
			clients = append(clients, w)
		}
	}
	ended, begun := make(chan events, len(ids())), make(chan struct{}, 64)
	for _, id := range ids() {
		go func() { ended <- g.listen(t.Context(), id, pairOf(id), begun) }()
	}
	for range ids() {
		<-begun
	}
	for _, w := range clients {
		w.compared(2, 10*time.Second)
	}

	start := time.Now()
	g.signal(syscall.SIGTERM)
	code := g.wait(15 * time.Second)
	spent := time.Since(start)
	if code != 0 || spent > 5*time.Second { // all of them listen: nothing is to be waited for but the second in which it is not ready
		t.Errorf("exit %d after %v", code, spent)
	}
	t.Logf("%d clients of WebSocket and %d of events: stopped after %v", len(clients), len(ids()), spent.Round(time.Millisecond))
	for i, w := range clients {
		select {
		case <-w.done:
		case <-time.After(5 * time.Second):
			t.Fatalf("client %d: not closed", i)
		}
		closed, ok := errors.AsType[websocket.CloseError](w.end)
		if !ok || closed.Code != websocket.StatusGoingAway || closed.Reason != "the gateway is stopping" {
			t.Errorf("client %d: %v, want 1001 with a reason", i, w.end)
		}
	}
	for range ids() {
		e := <-ended
		n := len(e.names)
		if e.err != nil || n < 3 || e.names[n-1] != "close" || slices.Index(e.names, "close") != n-1 || !strings.Contains(e.last, "the gateway is stopping") {
			t.Errorf("events ended with %v: %d of them, the last %q", e.err, n, e.last)
		}
	}
	log := g.log.String()
	if len(lines(log, `"msg":"stopped"`)) != 1 || strings.Contains(log, "cut off") {
		t.Error("the log does not say that all went well")
	}
}

// SIGTERM with a client that does not read: whoever does is told at once, the exit is within the bound, and it is clean.
func TestTerminate_withAStreamThatIsNotRead(t *testing.T) {
	t.Parallel()
	sim := simulate(t)
	g := before(t, sim).streaming(sim).warm(sim).serve(t)
	w := g.watch(t, nil, topic{"orderbook", "okx", "BTC/USDT", 20})
	w.live(15 * time.Second)
	g.deaf(t).fill(t)
	time.Sleep(3 * time.Second) // there is no more room for it

	start := time.Now()
	g.signal(syscall.SIGTERM)
	select {
	case <-w.done:
	case <-time.After(5 * time.Second):
		t.Fatal("the client that reads is not closed")
	}
	told := time.Since(start)
	code := g.wait(15 * time.Second)
	spent := time.Since(start)
	t.Logf("the client that reads was told after %v, all stopped after %v", told.Round(time.Millisecond), spent.Round(time.Millisecond))
	if closed, ok := errors.AsType[websocket.CloseError](w.end); !ok || closed.Code != websocket.StatusGoingAway || told > 3*time.Second {
		t.Errorf("the client that reads: %v after %v", w.end, told)
	}
	if code != 0 || spent > 10*time.Second {
		t.Errorf("exit %d after %v, want 0 within 10 s", code, spent)
	}
}

// deafClient is a connection to /v1/stream by hand, whose reader takes nothing until it is asked to.
type deafClient struct {
	conn net.Conn
	in   *bufio.Reader
}

// deaf connects a client that will not read. Its kernel has the usual room for what it does not read: with less than a
// segment of the loopback, 64 KiB, the rest would come by the probes of a closed window, seconds apart.
func (g *gateway) deaf(t *testing.T) *deafClient {
	t.Helper()
	conn, err := net.DialTimeout("tcp", strings.TrimPrefix(g.public, "http://"), 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // it may be closed
	if _, err := io.WriteString(conn, "GET /v1/stream HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	d := &deafClient{conn: conn, in: bufio.NewReader(conn)}
	res, err := http.ReadResponse(d.in, nil)
	if err != nil || res.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("handshake: %v %v", res, err)
	}
	return d
}

// say sends a text of less than 126 bytes as a client has to: masked, here with zeros.
func (d *deafClient) say(text string) error {
	_, err := d.conn.Write(append([]byte{0x81, 0x80 | byte(len(text)), 0, 0, 0, 0}, text...))
	return err
}

// fill subscribes to more than the kernels hold: 240 KB at once, and about 60 KB in each second after.
func (d *deafClient) fill(t *testing.T) {
	t.Helper()
	for _, id := range ids() {
		for _, pair := range []string{"BTC/USDT", "ETH/USDT", "SOL/USDT", "ETH/BTC"} {
			if err := d.say(topic{"orderbook", id, pair, 400}.request("subscribe")); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// rest reads all messages that are left, and gives the code and the reason of the close frame behind them.
func (d *deafClient) rest(within time.Duration) (frames, bytes int, closed string, err error) {
	if err := d.conn.SetReadDeadline(time.Now().Add(within)); err != nil {
		return 0, 0, "", err
	}
	for ; ; frames++ {
		var head [2]byte
		if _, err := io.ReadFull(d.in, head[:]); err != nil {
			return frames, bytes, "", fmt.Errorf("after %d frames: %w", frames, err)
		}
		size := uint64(head[1]) // of a server, so nothing is masked
		switch size {
		case 126:
			var more [2]byte
			_, err = io.ReadFull(d.in, more[:])
			size = uint64(binary.BigEndian.Uint16(more[:]))
		case 127:
			var more [8]byte
			_, err = io.ReadFull(d.in, more[:])
			size = binary.BigEndian.Uint64(more[:])
		}
		if err != nil || size > 1<<20 {
			return frames, bytes, "", fmt.Errorf("frame %d of %d bytes: %w", frames, size, err)
		}
		text := make([]byte, size)
		if _, err := io.ReadFull(d.in, text); err != nil {
			return frames, bytes, "", fmt.Errorf("within frame %d: %w", frames, err)
		}
		if head[0] == 0x88 && size >= 2 {
			return frames, bytes, fmt.Sprintf("%d %s", binary.BigEndian.Uint16(text), text[2:]), nil
		}
		bytes += len(text)
		if head[0] != 0x81 || !json.Valid(text) {
			return frames, bytes, "", fmt.Errorf("frame %d is no message: %x %.100q", frames, head, text)
		}
	}
}

// A client that stops reading is closed within its bound, told why, and keeps nobody waiting.
func TestStreams_readerThatStops(t *testing.T) {
	t.Parallel()
	sim := simulate(t)
	g := before(t, sim).streaming(sim).warm(sim).serve(t)
	var heard []topic
	for _, id := range ids() {
		heard = append(heard, topic{"orderbook", id, pairOf(id), 20})
	}
	w := g.watch(t, sim, heard...)
	w.live(15 * time.Second)
	slow := func() string { return g.metric(`gateway_stream_clients_ended_total{end="slow",transport="websocket"}`) }
	if n := slow(); n != "0" {
		t.Fatalf("%s clients were too slow before there was one", n)
	}
	// The goodbye is given a second to be written. On a machine that stalls for as long it may be cut, so one of two will do.
	for try := 1; ; try++ {
		d := g.deaf(t)
		start := time.Now()
		d.fill(t)
		eventually(t, 30*time.Second, "the client that does not read is ended", func() bool { return slow() == strconv.Itoa(try) })
		took := time.Since(start)
		frames, size, closed, err := d.rest(15 * time.Second)
		t.Logf("ended %v after it stopped reading, with %q after %d messages of %d bytes: %v", took.Round(time.Millisecond), closed, frames, size, err)
		if took < 10*time.Second || took > 20*time.Second {
			t.Errorf("ended after %v, want 10 s from when there was no more room", took)
		}
		if try == 1 && errors.Is(err, io.ErrUnexpectedEOF) {
			continue
		}
		if err != nil || closed != "1008 the client reads too slowly" || frames == 0 {
			t.Errorf("%d messages and %q: %v", frames, closed, err)
		}
		break
	}
	w.all(func(of topic, h *shown) bool {
		// A snapshot more would mean that it fell behind as well.
		if h.status != "live" || h.snapshots != 1 || h.compared < 20 {
			t.Errorf("%v beside it: %d versions, %d snapshots, status %v", of, h.compared, h.snapshots, h.changes)
		}
		return true
	})
}
