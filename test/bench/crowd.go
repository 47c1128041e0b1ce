package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"
)

// crowd are the subscribers of a gateway, in a process of their own and all read by one thread, so that they take as little
// as can be of the machine that the gateway is measured on. It is told what to do over HTTP.
type crowd struct {
	gateway string
	poll    *poller

	mu      sync.Mutex
	members map[int]*member // by file descriptor
	tally   tally
	stalled []net.Conn // connected, subscribed, and never read
}

// tally is what came since it was last asked for.
type tally struct {
	Frames  int   // updates
	Bytes   int64 // of them
	P50     time.Duration
	P99     time.Duration
	Reached int // members that got one
	Closed  int // connections that the gateway ended
	Resets  int // snapshots

	took []int32 // updates by their way in microseconds; the last place is for all that took longer
}

const slowest = 2_000_000 // microseconds

// member is one subscriber.
type member struct {
	fd     int
	rest   []byte // the beginning of a frame
	wanted int    // snapshots until it has all of its books
	got    int    // updates since the tally was last asked for
}

func newCrowd(gateway string) (*crowd, error) {
	p, err := newPoller()
	if err != nil {
		return nil, err
	}
	c := &crowd{gateway: gateway, poll: p, members: map[int]*member{}, tally: tally{took: make([]int32, slowest+1)}}
	go p.run(c.read) // as long as the process lives
	return c, nil
}

// ServeHTTP does what it is told.
func (c *crowd) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	var out any = struct{}{}
	var err error
	switch r.URL.Path {
	case "/join":
		n, _ := strconv.Atoi(q.Get("n")) // 0 joins nobody
		err = c.join(r.Context(), n, strings.Split(q.Get("symbols"), ","), q.Get("key"))
	case "/stall":
		err = c.stall(r.Context(), q.Get("symbols"), q.Get("key"))
	case "/release":
		c.release()
	case "/tally":
		out = c.take()
	default:
		err = errors.New("nothing is known of this")
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_ = json.NewEncoder(w).Encode(out) // who asked is gone
}

// dial connects one subscriber and subscribes it to books of 100 levels.
func (c *crowd) dial(ctx context.Context, symbols []string, key string) (net.Conn, error) {
	d := ws.Dialer{Header: ws.HandshakeHeaderHTTP{"Authorization": {key}}, ReadBufferSize: 1024, WriteBufferSize: 1024}
	conn, early, _, err := d.Dial(ctx, "ws://"+c.gateway+"/v1/stream")
	if err != nil {
		return nil, err
	}
	if early != nil {
		return nil, errors.New("the gateway spoke first")
	}
	text, err := json.Marshal(map[string]any{"op": "subscribe", "channel": "orderbook", "exchange": "binance", "symbols": symbols, "depth": 100})
	if err == nil {
		err = wsutil.WriteClientText(conn, text)
	}
	return conn, err
}

const together = 8 // handshakes at once

var errLate = errors.New("not everybody has a book after 60 s")

// join connects n more and waits until each has a snapshot of all of its books.
func (c *crowd) join(ctx context.Context, n int, symbols []string, key string) error {
	var all sync.WaitGroup
	errs := make(chan error, together)
	for i := range together {
		all.Go(func() {
			for range (n + i) / together {
				if err := c.one(ctx, symbols, key); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	all.Wait()
	select {
	case err := <-errs:
		return err
	default:
	}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		if c.settled() {
			return nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return errLate
}

func (c *crowd) one(ctx context.Context, symbols []string, key string) error {
	conn, err := c.dial(ctx, symbols, key)
	if err != nil {
		return err
	}
	defer conn.Close() // its descriptor was copied: the runtime's own poller is not to be woken by it
	c.mu.Lock()
	defer c.mu.Unlock()
	fd, err := c.poll.add(conn)
	if err != nil {
		return err
	}
	c.members[fd] = &member{fd: fd, wanted: len(symbols)}
	return nil
}

func (c *crowd) settled() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.members {
		if m.wanted > 0 {
			return false
		}
	}
	return true
}

// stallBuffer is what the kernel may hold at a subscriber that never reads: little, so that it is behind soon.
const stallBuffer = 4 << 10

// stall connects one that never reads.
func (c *crowd) stall(ctx context.Context, symbols, key string) error {
	conn, err := c.dial(ctx, strings.Split(symbols, ","), key)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stalled = append(c.stalled, conn)
	return conn.(*net.TCPConn).SetReadBuffer(stallBuffer)
}

// release closes those that never read.
func (c *crowd) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.stalled {
		_ = conn.Close() // nothing is waited for
	}
	c.stalled = nil
}

// take returns the tally and begins another.
func (c *crowd) take() tally {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.tally
	t.P50, t.P99 = t.quantile(50), t.quantile(99)
	for _, m := range c.members {
		if m.got > 0 {
			t.Reached++
		}
		m.got = 0
	}
	clear(t.took)
	c.tally = tally{took: t.took}
	return t
}

// quantile is the time that so many of a hundred updates took at most.
func (t *tally) quantile(percent int) time.Duration {
	left := (t.Frames*percent + 99) / 100
	for us, n := range t.took {
		if left -= int(n); left <= 0 {
			return time.Duration(us) * time.Microsecond
		}
	}
	return slowest * time.Microsecond
}

// read takes the bytes that came on a connection. It runs on the thread that reads.
func (c *crowd) read(fd int, b []byte, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.members[fd]
	if m == nil {
		return
	}
	if len(b) == 0 {
		c.tally.Closed++
		delete(c.members, fd)
		return
	}
	if len(m.rest) > 0 {
		m.rest = append(m.rest, b...)
		b = m.rest
	}
	for {
		text, rest, ok := cutFrame(b)
		if !ok {
			break
		}
		c.frame(m, text, now)
		b = rest
	}
	m.rest = append(m.rest[:0], b...)
}

// cutFrame cuts the first frame off, which a server does not mask: RFC 6455 section 5.2.
func cutFrame(b []byte) (text, rest []byte, ok bool) {
	if len(b) < 2 {
		return nil, b, false
	}
	n, head := int(b[1]&0x7f), 2
	switch {
	case n == 126 && len(b) >= 4:
		n, head = int(binary.BigEndian.Uint16(b[2:])), 4
	case n == 127 && len(b) >= 10:
		n, head = int(binary.BigEndian.Uint64(b[2:])), 10
	case n >= 126:
		return nil, b, false
	}
	if len(b) < head+n {
		return nil, b, false
	}
	return b[head : head+n], b[head+n:], true
}

var (
	updateHead   = []byte(`{"type":"update"`)
	snapshotHead = []byte(`{"type":"snapshot"`)
	sequenceKey  = []byte(`"exchange_seq":`)
)

// frame counts a message. The exchange's sequence of an update is the moment at which the exchange sent it.
func (c *crowd) frame(m *member, text []byte, now time.Time) {
	if bytes.HasPrefix(text, snapshotHead) {
		m.wanted--
		c.tally.Resets++
		return
	}
	if !bytes.HasPrefix(text, updateHead) {
		return
	}
	at := bytes.Index(text, sequenceKey)
	if at < 0 {
		return
	}
	sent := int64(0)
	for _, d := range text[at+len(sequenceKey):] {
		if d < '0' || d > '9' {
			break
		}
		sent = sent*10 + int64(d-'0')
	}
	m.got++
	c.tally.Frames++
	c.tally.Bytes += int64(len(text))
	c.tally.took[min(max(now.UnixMicro()-sent, 0), slowest)]++
}

// subscribers tells a crowd what to do.
type subscribers struct {
	*process
	key string
}

// startCrowd runs the subscribers of a gateway, or of who pushes at addr as it does.
func startCrowd(ctx context.Context, addr, authorization string) (*subscribers, error) {
	p, err := startPeer(ctx, "crowd", addr)
	if err != nil {
		return nil, err
	}
	return &subscribers{p, authorization}, nil
}

func (s *subscribers) tell(ctx context.Context, what string, query map[string]string) (t tally, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.addr+what, nil)
	if err != nil {
		return t, err
	}
	q := r.URL.Query()
	q.Set("key", s.key)
	for k, v := range query {
		q.Set(k, v)
	}
	r.URL.RawQuery = q.Encode()
	status, text, err := fetch(http.DefaultClient, r)
	if err != nil {
		return t, err
	}
	if status != http.StatusOK {
		return t, fmt.Errorf("subscribers: %s", text)
	}
	return t, json.Unmarshal(text, &t)
}

// join connects n more to the books given, "BTC/USDT", and returns when all have them.
func (s *subscribers) join(ctx context.Context, n int, symbols ...string) error {
	_, err := s.tell(ctx, "/join", map[string]string{"n": strconv.Itoa(n), "symbols": strings.Join(symbols, ",")})
	return err
}

// stall connects one that does not read.
func (s *subscribers) stall(ctx context.Context, symbol string) error {
	_, err := s.tell(ctx, "/stall", map[string]string{"symbols": symbol})
	return err
}

// release ends those that do not read.
func (s *subscribers) release(ctx context.Context) error {
	_, err := s.tell(ctx, "/release", nil)
	return err
}

// tally is what came since the last.
func (s *subscribers) tally(ctx context.Context) (tally, error) { return s.tell(ctx, "/tally", nil) }
