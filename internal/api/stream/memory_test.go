package stream_test

import (
	"bytes"
	"io"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestMemory_ofAnIdleClient: heap and stacks together, with the test's own end of each connection, which is the smaller
// part. Clients are subscribed to a quiet book.
func TestMemory_ofAnIdleClient(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector takes memory of its own")
	}
	const clients, most = 1000, 16 << 10
	r := newRig(t)
	connect := func(n int) (conns []net.Conn) {
		for range n {
			conns = append(conns, r.idle(t))
		}
		return conns
	}
	warm := connect(50) // what is made once
	heap, rss := memory()
	conns := connect(clients)
	until(t, "all are connected", func() bool { return r.clients("websocket") == clients+len(warm) })
	heapAfter, rssAfter := memory()
	each := (heapAfter - heap) / clients
	t.Logf("%d bytes of heap and stacks a client, %d bytes of the process", each, (rssAfter-rss)/clients)
	if each > most {
		t.Errorf("an idle client takes %d bytes, want at most %d", each, most)
	}
	if n, _ := r.feed.counts(); n != clients+len(warm) {
		t.Errorf("%d subscriptions", n)
	}
	for _, c := range append(conns, warm...) {
		_ = c.Close()
	}
	until(t, "all are gone", func() bool { return r.clients("websocket") == 0 })
}

// idle subscribes and reads what comes at first.
func (r *rig) idle(t *testing.T) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	const handshake = "GET /v1/stream HTTP/1.1\r\nHost: gateway\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
	if _, err := conn.Write(append([]byte(handshake), masked(fin|opText, subscribeTo(5))...)); err != nil {
		t.Fatal(err)
	}
	var all []byte
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	for buf := make([]byte, 4096); !bytes.Contains(all, []byte(`"snapshot"`)); {
		n, err := conn.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, buf[:n]...)
	}
	return conn
}

// memory is what the heap and the stacks take now, and the process as a whole where the system tells (0 elsewhere).
func memory() (heapAndStacks, resident int) {
	for range 3 { // pools are emptied by the second collection
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc + m.StackInuse), residentBytes()
}

func residentBytes() int {
	f, err := os.Open("/proc/self/statm")
	if err != nil {
		return 0
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	pages, _ := strconv.Atoi(fields[1])
	return pages * os.Getpagesize()
}
