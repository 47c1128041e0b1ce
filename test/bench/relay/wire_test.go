package relay_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"

	"exchange-gateway/internal/market"
)

// dialect is a book of an exchange as it comes on a connection.
type dialect struct {
	listing  market.Listing
	asks     int     // messages of ours before the exchange sends anything
	snapshot text    // of the stream; empty where snapshots come by REST
	changes  [2]text // of 20 levels, each undoes the other
	rest     []market.Level
	first    int64 // sequence of the snapshot
}

// text is a message around its sequences, which are written between its parts: the offset is added to the message's own.
type text struct {
	parts   []string
	offsets []int64
}

func (t *text) append(b []byte, sequence int64) []byte {
	for i, p := range t.parts {
		b = append(b, p...)
		if i < len(t.offsets) {
			b = strconv.AppendInt(b, sequence+t.offsets[i], 10)
		}
	}
	return b
}

// wire is the exchange's end of a connection in memory. It sends changes as they are allowed.
type wire struct {
	dialect *dialect
	allowed chan int
	closed  chan struct{}
	once    sync.Once
	asked   chan struct{} // a message of ours for each

	left     int // changes that may be sent
	sequence int64
	begun    bool
	payload  []byte
	frame    []byte
	rest     []byte // of frame
}

func newWire(d *dialect) *wire {
	return &wire{
		dialect: d, allowed: make(chan int, 1), closed: make(chan struct{}), asked: make(chan struct{}, 16), sequence: d.first,
	}
}

// RoundTrip answers the handshake.
func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusSwitchingProtocols, ProtoMajor: 1, ProtoMinor: 1, Request: r, Body: w,
		Header: http.Header{
			"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Accept": {acceptOf(r.Header.Get("Sec-Websocket-Key"))},
		},
	}, nil
}

// Write takes a message of ours, which the library writes at once.
func (w *wire) Write(b []byte) (int, error) {
	select {
	case w.asked <- struct{}{}:
	default:
	}
	return len(b), nil
}

func (w *wire) Close() error {
	w.once.Do(func() { close(w.closed) })
	return nil
}

// Read gives the next bytes of the exchange.
func (w *wire) Read(b []byte) (int, error) {
	if len(w.rest) == 0 {
		if err := w.next(); err != nil {
			return 0, err
		}
	}
	n := copy(b, w.rest)
	w.rest = w.rest[n:]
	return n, nil
}

func (w *wire) next() error {
	if !w.begun {
		w.begun = true
		for range w.dialect.asks {
			if err := wait(w, w.asked); err != nil {
				return err
			}
		}
		if len(w.dialect.snapshot.parts) > 0 {
			w.send(&w.dialect.snapshot)
			return nil
		}
	}
	for w.left == 0 {
		select {
		case w.left = <-w.allowed:
		case <-w.closed:
			return io.EOF
		}
	}
	w.left--
	w.sequence++
	w.send(&w.dialect.changes[w.sequence&1])
	return nil
}

func wait(w *wire, c chan struct{}) error {
	select {
	case <-c:
		return nil
	case <-w.closed:
		return io.EOF
	}
}

// send makes a frame of a message: RFC 6455 section 5.2, one unmasked text frame.
func (w *wire) send(t *text) {
	w.payload = t.append(w.payload[:0], w.sequence)
	w.frame = append(w.frame[:0], 0x81)
	if n := len(w.payload); n < 1<<16 {
		w.frame = binary.BigEndian.AppendUint16(append(w.frame, 126), uint16(n))
	} else {
		w.frame = binary.BigEndian.AppendUint64(append(w.frame, 127), uint64(n))
	}
	w.frame = append(w.frame, w.payload...)
	w.rest = w.frame
}

// door lets everything pass.
type door struct{}

func (door) Admit(context.Context, market.Call) error                 { return nil }
func (door) Observe(context.Context, market.Call, market.Observation) {}

// books answers by REST with the snapshot. The other questions are never asked.
type books struct {
	market.MarketData
	wire *wire
}

var errNoSnapshot = errors.New("this exchange sends its snapshots by stream")

func (b books) OrderBook(_ context.Context, l market.Listing, _ int) (*market.OrderBook, error) {
	d := b.wire.dialect
	if len(d.rest) == 0 {
		return nil, errNoSnapshot
	}
	half := len(d.rest) / 2
	levels, err := market.NewLevels(d.rest[:half], d.rest[half:])
	if err != nil {
		return nil, err
	}
	return &market.OrderBook{
		Exchange: l.Exchange, Pair: l.Pair, Symbol: l.Symbol, Levels: levels, Sequence: market.SequenceOf(d.first),
	}, nil
}
