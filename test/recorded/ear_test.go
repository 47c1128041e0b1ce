package recorded

import (
	"fmt"
	"sync"

	"github.com/shopspring/decimal"

	"exchange-gateway/internal/feed"
	"exchange-gateway/internal/market"
)

// everything is more levels than any book has.
const everything = 1 << 20

// ear is told all that happens to the books. Of each call that shows a book as live it checks that the exchange had exactly
// that book, and that who follows the calls has it too.
type ear struct {
	tape *tape
	cut  int

	mu    sync.Mutex
	line  int // of the tape, that was said last
	heard map[string]*heard
	wrong []string // the first few
}

var _ feed.Listener = (*ear)(nil)

// heard is what was told of one symbol.
type heard struct {
	loaded, changed, bests int
	states                 []string            // "live", "stale timeout", in order
	bids, asks             int                 // levels of the last Changed
	edges                  [2]*decimal.Decimal // up to where the last snapshot reaches, nil for all the way
	replica                *book
}

func newEar(p *tape, cut int) *ear { return &ear{tape: p, cut: cut, heard: make(map[string]*heard)} }

// maxWrong bounds what is kept of a test that fails.
const maxWrong = 5

func (e *ear) complain(format string, args ...any) {
	if len(e.wrong) < maxWrong {
		e.wrong = append(e.wrong, fmt.Sprintf(format, args...))
	}
}

func (e *ear) of(symbol string) *heard {
	h := e.heard[symbol]
	if h == nil {
		h = &heard{replica: newBook()}
		e.heard[symbol] = h
	}
	return h
}

// Loaded implements feed.Listener.
func (e *ear) Loaded(v feed.View) {
	e.mu.Lock()
	defer e.mu.Unlock()
	h := e.of(v.Symbol())
	h.loaded++
	h.replica = newBook()
	bids, asks := plain(v.Bids(nil, everything)), plain(v.Asks(nil, everything))
	h.replica.set(bids, asks)
	h.edges = [2]*decimal.Decimal{}
	for i, levels := range [2][]level{bids, asks} {
		if e.cut > 0 && len(levels) >= e.cut {
			h.edges[i] = &levels[len(levels)-1].price
		}
	}
	e.check("loaded", h, v)
}

// Changed implements feed.Listener.
func (e *ear) Changed(v feed.View, bids, asks []market.Level) {
	e.mu.Lock()
	defer e.mu.Unlock()
	h := e.of(v.Symbol())
	h.changed++
	h.bids, h.asks = len(bids), len(asks)
	h.replica.set(plain(bids), plain(asks))
	e.check("changed", h, v)
}

// BestChanged implements feed.Listener.
func (e *ear) BestChanged(v feed.View) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.of(v.Symbol()).bests++
}

// FreshnessChanged implements feed.Listener.
func (e *ear) FreshnessChanged(v feed.View) {
	e.mu.Lock()
	defer e.mu.Unlock()
	h, fresh := e.of(v.Symbol()), v.Freshness()
	s := string(fresh.State)
	if fresh.Reason != market.KindNone {
		s += " " + fresh.Reason.String()
	}
	h.states = append(h.states, s)
	if fresh.State == feed.StateLive {
		e.check("live", h, v)
	}
}

// check compares what is shown as live with the exchange's book of that version, and with that of who followed.
func (e *ear) check(call string, h *heard, v feed.View) {
	if v.Freshness().State != feed.StateLive {
		return
	}
	bids, asks := plain(v.Bids(nil, everything)), plain(v.Asks(nil, everything))
	truth := e.truth(v)
	if truth == nil {
		e.complain("%s at line %d: %s at %v is no book of the exchange", call, e.line, v.Symbol(), v.Sequence())
		return
	}
	for name, b := range map[string]*book{"the exchange's": truth, "the listener's": h.replica} {
		for _, d := range []string{
			differ("bid", bids, b.bids.within(h.edges[0])), differ("ask", asks, b.asks.within(h.edges[1])),
		} {
			if d != "" {
				e.complain("%s at line %d: %s at %v is not %s book: %s", call, e.line, v.Symbol(), v.Sequence(), name, d)
			}
		}
	}
}

// truth is the exchange's book of the version that is shown, nil for a version that it never had.
func (e *ear) truth(v feed.View) *book {
	if e.tape.numbered {
		return e.tape.versions[v.Symbol()][v.Sequence().Value]
	}
	return e.tape.book(v.Symbol(), e.line)
}
