package demo

import (
	"fmt"
	"io"
	"sync"
	"time"

	"exchange-gateway/internal/market"
)

// voice writes lines for a person. Safe for concurrent use.
type voice struct {
	mu    sync.Mutex
	out   io.Writer
	start time.Time
}

func newVoice(out io.Writer) *voice { return &voice{out: out, start: time.Now()} }

// line says what happened, with the time since the start and whom it is about.
func (v *voice) line(who, format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	at := time.Since(v.start)
	fmt.Fprintf(v.out, "%02d:%02d  %-9s %s\n", int(at.Minutes()), int(at.Seconds())%60, who, fmt.Sprintf(format, args...))
}

// causeWords say why a circuit opened.
var causeWords = map[market.Cause]string{
	market.CauseConsecutive: "too many failures in a row",
	market.CauseRate:        "too many failures",
	market.CauseSlow:        "too many slow answers",
	market.CauseProbeFailed: "the probe failed",
	market.CauseProbeLost:   "the probe was never answered",
}

// event says what a circuit or gate did.
func (v *voice) event(e market.Event) {
	left := time.Until(e.Until).Round(100 * time.Millisecond)
	if e.Type == market.EventGate {
		v.line(string(e.Gate.Exchange), "gate closed (%s): nothing is sent for %v", e.Kind, left)
		return
	}
	who, what := string(e.Circuit.Exchange), market.ClassText(e.Circuit.Class)
	switch e.To {
	case market.CircuitOpen:
		v.line(who, "%s is failing: %s, the last one %s; calls fail at once, next try in %v", what, causeWords[e.Cause], e.Kind, left)
	case market.CircuitHalfOpen:
		v.line(who, "%s is tried: one request is on its way", what)
	case market.CircuitClosed:
		v.line(who, "%s answers again", what)
	}
}

// welcome says what can be tried.
func (v *voice) welcome(base, admin string, s scene) {
	v.mu.Lock()
	defer v.mu.Unlock()
	o := s.options
	fmt.Fprintf(v.out, `The gateway listens on %[1]s, in front of simulated exchanges in this process.
Every %[5]v one of them, in turn, has an outage of %[6]v. A bot reads each book twice a second and each balance every five
seconds. What it sees is below; it is silent while all is well.

The dashboard is %[2]s

Try in another terminal, before and during an outage:

  curl -i '%[1]s/v1/exchanges/okx/orderbook?symbol=BTC/USDT&depth=2'
  curl -N '%[1]s/v1/stream/orderbook?exchange=okx&symbol=BTC/USDT&depth=1'
  curl '%[1]s/v1/price?symbol=BTC/USDT&exchanges=okx,binance&max_age_ms=60000'
  curl '%[1]s/v1/exchanges/okx/balance?account=main' -H 'Authorization: Bearer %[3]s'
  curl '%[1]s/v1/exchanges/okx/status'
  curl %[2]s/metrics
  %[7]s status --admin %[2]s

Break one yourself (other kinds: curl %[4]s/):

  curl -X POST %[4]s/v1/faults/binance -d '{"kind":"hang","for":"30s"}'

Ctrl-C stops it.

`, base, admin, s.key.Reveal(), s.control, o.Every, o.Outage, o.Program)
}
