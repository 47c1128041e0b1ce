package app

import (
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/dial"
)

// Bounds of the connections of the two listeners. An idle one costs about 10 KB and is closed after two minutes.
const (
	maxPublic, maxAdmin   = 20_000, 1_024
	leastPublic           = 4
	leastAdmin            = 4
	leastRest, mostOfRest = 16, 1_024
)

// connections is how the descriptors of the process are shared out: each listener holds at most so many connections, and what
// is left is for connections to exchanges and to Redis, and for files.
type connections struct{ public, admin int }

// share shares out descriptors; 0 are as many as anybody wants. A sixteenth is the admin listener's, a third is kept for the
// rest: whoever takes every connection of the public listener can neither shut operators out nor cut the gateway off from the
// exchanges.
func share(descriptors uint64) connections {
	if descriptors == 0 || descriptors > maxPublic+maxAdmin+mostOfRest {
		return connections{public: maxPublic, admin: maxAdmin}
	}
	n := int(descriptors) // at most their sum, as it is known here
	admin := min(max(n/16, leastAdmin), maxAdmin)
	rest := min(max(n/3, leastRest), mostOfRest)
	return connections{public: min(max(n-admin-rest, leastPublic), maxPublic), admin: admin}
}

// limitConfig is what bounds one listener.
type limitConfig struct {
	name string // of the listener, for the log
	most int    // connections at once
	// perAddress is how many of them one address may have, or an IPv6 network of 64 bits; 0 does not count addresses. Those of
	// this machine are not counted: all its programs share them.
	perAddress int
	shortage   *dial.Shortage
	log        *slog.Logger
}

// limit bounds the connections of a listener that are open at once. Further ones wait in the kernel's queue until one closes;
// one of an address that has as many as it may have is closed at once, or it would keep others waiting. Both are logged once a
// minute. An error of accepting is logged and tried again: the listener lasts until it is closed. Unlike netutil.LimitListener
// its connections show the one below, whose send buffer streams have to bound.
func limit(l net.Listener, c limitConfig) net.Listener {
	return &limited{
		Listener: l, limitConfig: c, slots: make(chan struct{}, c.most), done: make(chan struct{}), held: make(map[netip.Addr]int),
	}
}

type limited struct {
	net.Listener
	limitConfig
	slots chan struct{}
	done  chan struct{}
	once  sync.Once

	// Used by Accept alone, which one goroutine calls.
	full, crowded, failed seldom

	mu   sync.Mutex
	held map[netip.Addr]int // connections by address; no more entries than slots
}

// Accept implements net.Listener. It fails only when the listener is closed.
func (l *limited) Accept() (net.Conn, error) {
	for {
		if err := l.enter(); err != nil {
			return nil, err
		}
		conn, err := l.accept()
		if err != nil {
			<-l.slots
			return nil, err
		}
		if from, ok := l.count(conn); ok {
			return &slotted{Conn: conn, listener: l, from: from}, nil
		}
		_ = conn.Close() // nothing was said on it
		<-l.slots
	}
}

// enter waits for a slot.
func (l *limited) enter() error {
	select {
	case l.slots <- struct{}{}:
		return nil
	default:
	}
	if n, ok := l.full.due(clock.Now()); ok {
		l.log.Warn("the listener holds as many connections as it may, further ones wait until one is closed",
			slog.String("listener", l.name), slog.Int("bound", l.most), slog.Int("omitted", n))
	}
	select {
	case l.slots <- struct{}{}:
		return nil
	case <-l.done:
		return net.ErrClosed
	}
}

// Pauses between two tries to accept a connection, as net/http has them.
const acceptPause, maxAcceptPause = 5 * time.Millisecond, time.Second

// accept waits for a connection. What fails, fails for a while: descriptors, memory, or a peer that left before it was accepted.
func (l *limited) accept() (net.Conn, error) {
	for pause := acceptPause; ; pause = min(2*pause, maxAcceptPause) {
		conn, err := l.Listener.Accept()
		if err == nil {
			return conn, nil
		}
		select {
		case <-l.done:
			return nil, net.ErrClosed
		default:
		}
		if dial.Local(err) {
			l.shortage.Note()
		}
		if n, ok := l.failed.due(clock.Now()); ok {
			l.log.Warn("connection not accepted, it is tried again", slog.String("listener", l.name), slog.Any("err", err), slog.Int("omitted", n))
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-l.done:
			t.Stop()
			return nil, net.ErrClosed
		}
	}
}

// count counts a connection on the account of its address. It is false if that has as many as it may have.
func (l *limited) count(conn net.Conn) (from netip.Addr, ok bool) {
	if l.perAddress == 0 {
		return netip.Addr{}, true
	}
	if from = origin(conn); !from.IsValid() || from.IsLoopback() {
		return netip.Addr{}, true
	}
	l.mu.Lock()
	n := l.held[from]
	if ok = n < l.perAddress; ok {
		l.held[from]++
	}
	l.mu.Unlock()
	if ok {
		return from, true
	}
	if n, due := l.crowded.due(clock.Now()); due {
		l.log.Warn("connection closed, its address has as many as one may have", slog.String("listener", l.name),
			slog.String("address", from.String()), slog.Int("bound", l.perAddress), slog.Int("omitted", n))
	}
	return from, false
}

// origin is the address at the other end, of IPv6 its network: whoever has one of its addresses has them all.
func origin(conn net.Conn) netip.Addr {
	tcp, ok := conn.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	a := tcp.AddrPort().Addr().Unmap().WithZone("")
	if !a.Is6() || a.IsLoopback() {
		return a
	}
	return netip.PrefixFrom(a, 64).Masked().Addr()
}

func (l *limited) leave(from netip.Addr) {
	if from.IsValid() {
		l.mu.Lock()
		if l.held[from]--; l.held[from] == 0 {
			delete(l.held, from)
		}
		l.mu.Unlock()
	}
	<-l.slots
}

// Close implements net.Listener.
func (l *limited) Close() error {
	l.once.Do(func() { close(l.done) })
	return l.Listener.Close()
}

// slotted gives its slot back when it closes.
type slotted struct {
	net.Conn
	listener *limited
	from     netip.Addr // not valid if it is not counted
	once     sync.Once
}

// Close implements net.Conn.
func (c *slotted) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { c.listener.leave(c.from) })
	return err
}

// NetConn is the connection itself.
func (c *slotted) NetConn() net.Conn { return c.Conn }

// seldom lets one line a minute through.
type seldom struct {
	last    time.Time
	omitted int
}

// due tells whether a line may be written now, and how many were not since the last one.
func (s *seldom) due(now time.Time) (omitted int, ok bool) {
	if !s.last.IsZero() && now.Sub(s.last) < time.Minute {
		s.omitted++
		return 0, false
	}
	omitted, s.omitted, s.last = s.omitted, 0, now
	return omitted, true
}
