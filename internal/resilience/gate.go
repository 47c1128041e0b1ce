package resilience

import (
	"time"

	"exchange-gateway/internal/market"
)

// Bounds and defaults of holds.
const (
	// minHold is the shortest hold: "Retry-After: 0" is not an invitation.
	minHold = time.Second
	// maxHold is the longest hold that is believed, also of a record that was kept: Binance's longest ban.
	maxHold = 3 * 24 * time.Hour
	// A refusal that does not say how far it is to be believed or how it grows is treated like the limits of exchanges
	// that document nothing: at most a minute, 2 s doubling to 30 s.
	defaultClamp = time.Minute
	defaultFirst = 2 * time.Second
	defaultMost  = 30 * time.Second
	// healthySpell is the least time that a gate has to have been open, without a refusal, before a good answer takes its
	// growth back; a longer hold needs as long a spell as it lasted. An exchange that lets one request through between
	// two refusals has not recovered, and a ban of a day is not forgotten after a minute.
	healthySpell = time.Minute
	// badFor is how long after its gate opened a symbol that has not been asked again still counts as broken.
	badFor = 30 * time.Second
)

// gate is "not before until, because kind", for one scope of one exchange.
type gate struct {
	kind     market.Kind
	until    int64 // requests pass again; zero if it has never closed
	closedAt int64 // the last time that it closed while open
	step     int   // closed so often since the last healthy spell
	strikes  int   // such answers in a row
	reach    int64 // the end that is written down
	written  <-chan struct{}
}

// refused takes note of one refusal, and tells whether the gate closed or its end moved. A gate only ever extends. An
// answer to a request that was sent before it opened again is part of the same refusal: it may know of a later end, but
// it is no second offence, so 50 calls in flight do not make 2 s into 30.
func (g *gate) refused(r *market.Refusal, kind market.Kind, ends, sent, now int64) bool {
	g.strikes++
	if g.strikes < r.After {
		return false
	}
	again := g.step == 0 || sent >= g.until
	var until int64
	switch {
	case !r.NotBefore.IsZero():
		until = min(max(ends, now+int64(minHold)), now+int64(clampOf(r)))
	case again:
		until = now + int64(grown(r, g.step))
	case now >= g.until: // it took so long that the gate has opened since: the same hold once more
		until = now + int64(grown(r, g.step-1))
	}
	if again {
		g.step++
	}
	if until <= g.until {
		return false
	}
	if now >= g.until {
		g.closedAt = now
	}
	g.kind, g.until = kind, until
	return true
}

// good takes note of a good answer, and tells whether there is nothing left to remember. One to a request that was sent
// before the gate opened proves nothing.
func (g *gate) good(sent, now int64) bool {
	if sent < g.until {
		return false
	}
	g.strikes = 0
	return g.step == 0 || g.healthy(now)
}

// healthy tells whether the gate has been open long enough for its growth to be forgotten.
func (g *gate) healthy(now int64) bool {
	return now-g.until >= max(int64(healthySpell), g.until-g.closedAt)
}

// bad tells whether the last answer of the scope was a refusal, not long ago.
func (g *gate) bad(now int64) bool { return g.strikes > 0 && now < g.until+int64(badFor) }

func clampOf(r *market.Refusal) time.Duration {
	if r.Clamp <= 0 {
		return defaultClamp
	}
	return min(r.Clamp, maxHold)
}

// grown is the hold after so many closings in a row.
func grown(r *market.Refusal, step int) time.Duration {
	first, most := r.First, r.Max
	fill(&first, defaultFirst)
	fill(&most, max(first, defaultMost))
	most = min(most, maxHold)
	for range step {
		if first >= most {
			break
		}
		first *= 2
	}
	return max(min(first, most), minHold)
}
