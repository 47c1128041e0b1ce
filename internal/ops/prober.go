package ops

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// prober asks exchanges whose circuits are open on behalf of those who attend. A circuit is probed by the next call, and one that
// nobody calls stays open: who looks on would see an exchange in trouble that has long recovered. It belongs to Board.Run.
type prober struct {
	answers Answers
	log     *slog.Logger
	running sync.WaitGroup

	mu    sync.Mutex
	asked map[circuitClass]question // the newest of each exchange and class
}

// question is one that was put. There is one at a time, and the next one only for what was seen after its end.
type question struct {
	underWay bool
	ended    time.Time
}

// probed are the classes that are asked. Accounts are not, as a balance is nobody's business whom no client asks for one; streams
// connect by themselves.
var probed = [...]market.Class{market.ClassMarketData, market.ClassReference}

// probe puts one cheap question to each open circuit whose time is over. When that is, the circuit decides: it grows with every
// probe that fails. What is isolated or held is left alone. It does not wait for the answers.
func (p *prober) probe(ctx context.Context, m *moment) {
	for i := range m.overview.Exchanges {
		x := &m.overview.Exchanges[i]
		for _, class := range probed {
			if x.due(class) {
				p.ask(ctx, circuitClass{x.ID, class}, m.at)
			}
		}
	}
}

// due tells whether a circuit of a class is open, may be probed, and no hold is in force that could be about its calls.
func (x *Exchange) due(class market.Class) bool {
	for i := range x.Gates {
		if k := x.Gates[i].Scope; k != market.ScopeAccount && k != market.ScopeSymbol {
			return false
		}
	}
	for i := range x.Overrides {
		if v := &x.Overrides[i]; v.Kind == market.OverrideIsolate && (v.Class == "" || v.Class == class) {
			return false
		}
	}
	for i := range x.Circuits {
		if c := &x.Circuits[i]; c.Class == class && c.State == market.CircuitOpen && c.ProbeDue && !c.Isolated {
			return true
		}
	}
	return false
}

func (p *prober) ask(ctx context.Context, k circuitClass, seen time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if last := p.asked[k]; last.underWay || !seen.After(last.ended) {
		return
	}
	p.asked[k] = question{underWay: true}
	p.running.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, askTimeout)
		defer cancel()
		err := p.answers.Ask(ctx, k.exchange, k.class)
		p.log.LogAttrs(ctx, slog.LevelDebug, "circuit probed for those who watch", slog.String("exchange", string(k.exchange)),
			slog.String("class", string(k.class)), slog.Any("err", err))
		p.mu.Lock()
		defer p.mu.Unlock()
		p.asked[k] = question{ended: clock.Now()}
	})
}
