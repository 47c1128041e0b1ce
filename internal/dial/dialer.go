package dial

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"exchange-gateway/internal/clock"
)

// Bounds of one dial. RFC 8305 recommends 250 ms between attempts; its bound on their number is ours.
const (
	maxDelay     = 250 * time.Millisecond
	maxAddresses = 4
)

// Dialer connects to the first address of a name that answers (RFC 8305): the next one is tried when one fails, or has not
// answered for a quarter of a second. net.Dialer gives each address 2 s at least and so, within a shorter timeout, never
// tries a second one of the same family. A Dialer must not be copied after its first use; it is safe for concurrent use.
type Dialer struct {
	// Timeout bounds the lookup and all addresses together. It must be set.
	Timeout   time.Duration
	KeepAlive time.Duration // as in net.Dialer
	// Log gets a line when a connection was made though an address of the name was not reached, at most one a minute for each
	// name. Nil discards.
	Log *slog.Logger
	// Shortage is told when this machine was short of something. Nil: nobody is.
	Shortage *Shortage

	// Lookup and Connect replace the resolver and the socket in tests.
	Lookup  func(ctx context.Context, network, host string) ([]netip.Addr, error)
	Connect func(ctx context.Context, network, address string) (net.Conn, error)

	warned warnings
}

// DialContext connects to an address as net.Dialer does. All that it starts has ended when it returns. Its error names each
// address that was tried.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.Timeout)
	defer cancel()
	conn, err := d.dial(ctx, network, address)
	if Local(err) {
		d.Shortage.Note()
	}
	return conn, err
}

func (d *Dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	family, tcp := strings.CutPrefix(network, "tcp")
	host, port, err := net.SplitHostPort(address)
	if !tcp || err != nil || host == "" {
		return d.connect(ctx, network, address) // a socket of this machine, or an address that net has to refuse
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return d.connect(ctx, network, address)
	}
	found, err := d.lookup(ctx, "ip"+family, host)
	if err == nil {
		err = ctx.Err() // the lookup took all the time that there was
	}
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	r := race{dialer: d, network: network, results: make(chan try, maxAddresses)}
	for _, a := range inOrder(found) {
		r.addresses = append(r.addresses, net.JoinHostPort(a.String(), port))
	}
	conn, missed := r.run(ctx)
	if conn == nil {
		return nil, &Error{address: address, tries: missed}
	}
	if len(missed) > 0 {
		d.warn(ctx, host, conn, missed)
	}
	return conn, nil
}

func (d *Dialer) connect(ctx context.Context, network, address string) (net.Conn, error) {
	if d.Connect != nil {
		return d.Connect(ctx, network, address)
	}
	plain := net.Dialer{KeepAlive: d.KeepAlive}
	return plain.DialContext(ctx, network, address)
}

func (d *Dialer) lookup(ctx context.Context, network, host string) ([]netip.Addr, error) {
	lookup := d.Lookup
	if lookup == nil {
		lookup = net.DefaultResolver.LookupNetIP
	}
	found, err := lookup(ctx, network, host)
	if err == nil && len(found) == 0 {
		err = &net.DNSError{Err: "no address", Name: host, IsNotFound: true}
	}
	return found, err
}

// delay is how long an address is waited for before the next one is tried beside it: short enough that all of them are tried
// within the timeout.
func (d *Dialer) delay() time.Duration { return min(maxDelay, d.Timeout/maxAddresses) }

// inOrder is the order in which addresses are tried: as the resolver prefers them, the families in turn, beginning with that
// of the first one, so that a family without a route costs one delay.
func inOrder(found []netip.Addr) []netip.Addr {
	var first, second []netip.Addr
	seen := make(map[netip.Addr]bool, len(found))
	for _, a := range found {
		a = a.Unmap()
		switch {
		case seen[a]:
			continue
		case len(first) == 0 || a.Is4() == first[0].Is4():
			first = append(first, a)
		default:
			second = append(second, a)
		}
		seen[a] = true
	}
	order := make([]netip.Addr, 0, maxAddresses)
	for i := 0; len(order) < maxAddresses && i < max(len(first), len(second)); i++ {
		if i < len(first) {
			order = append(order, first[i])
		}
		if i < len(second) && len(order) < maxAddresses {
			order = append(order, second[i])
		}
	}
	return order
}

// race tries addresses one after the other and side by side.
type race struct {
	dialer    *Dialer
	network   string
	addresses []string
	started   int
	results   chan try // as many as are started fit
}

// try is what came of one address.
type try struct {
	address string
	conn    net.Conn
	err     error
}

var errOutrun = errors.New("no answer yet when another address of the name answered")

// run returns the connection to the first address that answers and what came of those tried before it; no connection, if none
// answers. All attempts have ended then.
func (r *race) run(ctx context.Context) (conn net.Conn, missed []try) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	delay := r.dialer.delay()
	running := r.start(ctx)
	timer := time.NewTimer(delay)
	defer timer.Stop()
	for running > 0 {
		select {
		case <-timer.C:
			running += r.start(ctx)
			timer.Reset(delay)
		case t := <-r.results:
			running--
			switch {
			case conn != nil && t.err == nil:
				_ = t.conn.Close() // two answered at once, and one is needed
			case conn != nil:
				missed = append(missed, try{address: t.address, err: errOutrun})
			case t.err == nil:
				conn = t.conn
				cancel()
				timer.Stop()
			default:
				missed = append(missed, t)
				running += r.start(ctx)
				timer.Reset(delay)
			}
		}
	}
	return conn, missed
}

// start tries the next address and returns how many it has started.
func (r *race) start(ctx context.Context) int {
	if r.started == len(r.addresses) || ctx.Err() != nil {
		return 0
	}
	address := r.addresses[r.started]
	r.started++
	go func() { // run waits for its result
		conn, err := r.dialer.connect(ctx, r.network, address)
		r.results <- try{address: address, conn: conn, err: err}
	}()
	return 1
}

// maxWarned is of how many names it is remembered when they were last warned of; more than are configured.
const maxWarned = 256

// warnings are when each name was last warned of.
type warnings struct {
	mu sync.Mutex
	at map[string]time.Time
}

// due tells whether a name may be warned of now.
func (w *warnings) due(host string, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if at, ok := w.at[host]; ok && now.Sub(at) < time.Minute {
		return false
	}
	if w.at == nil || len(w.at) >= maxWarned {
		w.at = make(map[string]time.Time) // too many names: some are warned of again early
	}
	w.at[host] = now
	return true
}

func (d *Dialer) warn(ctx context.Context, host string, conn net.Conn, missed []try) {
	if d.Log == nil || !d.warned.due(host, clock.Now()) {
		return
	}
	var used string
	if a := conn.RemoteAddr(); a != nil {
		used = a.String()
	}
	d.Log.WarnContext(ctx, "address not reached, another one of the name is used", slog.String("host", host),
		slog.String("used", used), slog.Any("err", &Error{address: host, tries: missed}))
}
