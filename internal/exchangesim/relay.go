package exchangesim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// RelayState is what a relay does with bytes.
type RelayState string

// States of a relay.
const (
	RelayForward RelayState = "forward"
	// RelayDrop loses packets silently: nothing is read or forwarded in either direction, and no FIN or RST is passed on. New
	// connections are still accepted (the kernel does that) and wait. What was under way arrives after the healing, as TCP would
	// repeat it.
	RelayDrop RelayState = "drop"
	// RelayHang accepts new connections and leaves them there; those that exist go on.
	RelayHang RelayState = "hang"
)

// maxRelayed bounds the open connections of a relay; one more is reset at once.
const maxRelayed = 1000

// Relay forwards TCP connections to a venue's listener, or fails to, on command.
type Relay struct {
	ln     net.Listener
	target string
	cancel context.CancelFunc
	ctx    context.Context
	busy   sync.WaitGroup

	mu      sync.Mutex
	state   RelayState
	changed chan struct{} // closed at the next change of state
	open    map[*relayed]struct{}
	dials   []time.Time
	total   int
}

// relayed is one connection through a relay.
type relayed struct {
	client net.Conn
	done   chan struct{}
	once   sync.Once

	mu       sync.Mutex
	upstream net.Conn
}

// StartRelay listens on addr and forwards to target, the address of a [Server] of the venue. It ends with ctx, Close or [Sim.Close].
func (s *Sim) StartRelay(ctx context.Context, v *Venue, addr, target string) (*Relay, error) {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("relay of %s: %w", v.id, err)
	}
	r := &Relay{ln: ln, target: target, state: RelayForward, changed: make(chan struct{}), open: map[*relayed]struct{}{}}
	r.ctx, r.cancel = context.WithCancel(ctx)
	s.mu.Lock()
	if s.closed || s.relays[v.id] != nil {
		s.mu.Unlock()
		r.cancel()
		return nil, errors.Join(fmt.Errorf("relay of %s: there is one already, or the simulator is closed", v.id), ln.Close())
	}
	s.relays[v.id] = r
	s.mu.Unlock()
	context.AfterFunc(r.ctx, r.tearDown)
	r.busy.Go(r.accept)
	return r, nil
}

// Addr is the address that the relay listens on.
func (r *Relay) Addr() string { return r.ln.Addr().String() }

// Set changes the state.
func (r *Relay) Set(state RelayState) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state = state
	close(r.changed)
	r.changed = make(chan struct{})
}

// Reset cuts all open connections with RSTs, on both sides.
func (r *Relay) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.open {
		c.cut()
	}
}

// RelayStats is what a relay has seen.
type RelayStats struct {
	State     RelayState  `json:"state"`
	Addr      string      `json:"addr"`
	Dials     int         `json:"dials"` // connections accepted
	Open      int         `json:"open"`
	DialTimes []time.Time `json:"dial_times,omitempty"` // the last 1,000
}

// Stats gives a copy of the relay's counts.
func (r *Relay) Stats() RelayStats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return RelayStats{r.state, r.Addr(), r.total, len(r.open), append([]time.Time(nil), r.dials...)}
}

// Close resets all connections and waits for their goroutines.
func (r *Relay) Close() {
	r.cancel()
	r.tearDown()
	r.busy.Wait()
}

func (r *Relay) tearDown() {
	_ = r.ln.Close() // a second close says that it is closed
	r.Reset()
}

func (r *Relay) accept() {
	for {
		conn, err := r.ln.Accept()
		if err != nil {
			return // closed; other errors of a loopback listener do not pass either
		}
		c := &relayed{client: conn, done: make(chan struct{})}
		if r.admit(c) {
			r.busy.Go(func() { r.run(c) })
		} else {
			c.cut()
		}
	}
}

func (r *Relay) admit(c *relayed) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.total++
	r.dials = append(r.dials, time.Now())
	if n := len(r.dials); n > 1000 {
		r.dials = append([]time.Time(nil), r.dials[n-1000:]...)
	}
	if r.ctx.Err() != nil || len(r.open) >= maxRelayed {
		return false
	}
	r.open[c] = struct{}{}
	return true
}

// run takes one connection from its start to its end.
func (r *Relay) run(c *relayed) {
	defer func() {
		r.mu.Lock()
		delete(r.open, c)
		r.mu.Unlock()
		c.cut()
	}()
	if !r.pass(c, func(s RelayState) bool { return s == RelayForward }) {
		return
	}
	var d net.Dialer
	up, err := d.DialContext(r.ctx, "tcp", r.target)
	if err != nil || !c.attach(up) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { r.copy(c, up, c.client) })
	both.Go(func() { r.copy(c, c.client, up) })
	both.Wait()
}

// pass waits until the state allows to go on. It is false if the connection or the relay ended.
func (r *Relay) pass(c *relayed, allows func(RelayState) bool) bool {
	for {
		r.mu.Lock()
		state, changed := r.state, r.changed
		r.mu.Unlock()
		if allows(state) {
			return true
		}
		select {
		case <-changed:
		case <-c.done:
			return false
		case <-r.ctx.Done():
			return false
		}
	}
}

// copy forwards one direction. What it has read when the drop begins is held back.
func (r *Relay) copy(c *relayed, dst, src net.Conn) {
	flows := func(s RelayState) bool { return s != RelayDrop }
	buf := make([]byte, 32<<10)
	for {
		if !r.pass(c, flows) {
			return
		}
		n, err := src.Read(buf)
		if !r.pass(c, flows) {
			return
		}
		if n > 0 {
			if _, werr := dst.Write(buf[:n]); werr != nil {
				c.cut()
				return
			}
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			if t, ok := dst.(*net.TCPConn); ok {
				_ = t.CloseWrite() // pass the FIN on; a failure means that the other side is gone too
			}
			return
		default:
			c.cut()
			return
		}
	}
}

// attach notes the upstream side; it is false, and the connection closed, if the relayed one was cut meanwhile.
func (c *relayed) attach(up net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.done:
		_ = up.Close() // unused
		return false
	default:
	}
	c.upstream = up
	return true
}

// cut ends both sides with RSTs.
func (c *relayed) cut() {
	c.once.Do(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		close(c.done)
		resetConn(c.client)
		if c.upstream != nil {
			resetConn(c.upstream)
		}
	})
}
