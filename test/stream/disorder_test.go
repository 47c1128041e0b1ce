package stream

import (
	"fmt"
	"math/rand/v2"
	"time"

	"exchange-gateway/internal/exchangesim"
	"exchange-gateway/internal/market"
)

// disorder is what goes wrong at the exchanges of a schedule.
type disorder struct {
	s           *stage
	draw        *rand.Rand
	on          []market.ExchangeID
	instruments map[string][]exchangesim.Instrument
	from        time.Time // nothing goes wrong before

	injected        int
	refused         bool                       // a subscription may have been
	limited         map[market.ExchangeID]bool // answered that it was asked too much, though it was not
	said            []string                   // what was done, for failures
	reads, streamed int
}

func (d *disorder) begin(after time.Duration) { d.from = time.Now().Add(after) }

// The sorts of faults. All last for a while that is drawn, and some meet one symbol.
var (
	ofMessages = []exchangesim.FaultKind{
		exchangesim.FaultGap, exchangesim.FaultDuplicate, exchangesim.FaultReorder, exchangesim.FaultMalformed, exchangesim.FaultCrossed,
	}
	ofStreams = []exchangesim.FaultKind{
		exchangesim.FaultSilent, exchangesim.FaultFreeze, exchangesim.FaultHalfOpen, exchangesim.FaultStorm, exchangesim.FaultCut,
	}
	ofExchanges = []exchangesim.FaultKind{
		exchangesim.FaultMaintenance, exchangesim.FaultUnavailable, exchangesim.FaultReset, exchangesim.FaultClose, exchangesim.FaultHang,
		exchangesim.FaultRateLimit, exchangesim.FaultBan,
	}
	ofRequests = []exchangesim.FaultKind{
		exchangesim.FaultUnavailable, exchangesim.FaultHang, exchangesim.FaultHangBody, exchangesim.FaultReset, exchangesim.FaultResetBody,
		exchangesim.FaultTruncate, exchangesim.FaultCutJSON, exchangesim.FaultWrongJSON, exchangesim.FaultEmpty, exchangesim.FaultLatency,
		exchangesim.FaultOlder, exchangesim.FaultCached, exchangesim.FaultCrossed, exchangesim.FaultNegative, exchangesim.FaultRateLimit,
	}
)

// step makes something go wrong, most times.
func (d *disorder) step() {
	if time.Now().Before(d.from) || d.draw.IntN(3) == 0 {
		return
	}
	id := d.on[d.draw.IntN(len(d.on))]
	pick := func(of []exchangesim.FaultKind) exchangesim.Fault {
		return exchangesim.Fault{Kind: of[d.draw.IntN(len(of))]}
	}
	seconds := func(least, most int) time.Duration { return time.Duration(least+d.draw.IntN(most-least)) * time.Second }
	var f exchangesim.Fault
	switch n := d.draw.IntN(20); {
	case n < 8:
		f = pick(ofMessages)
		f.Class = exchangesim.ClassStream
		if d.draw.IntN(2) == 0 {
			f.Count = 1 + d.draw.IntN(3)
		} else {
			f.For, f.Percent, f.Seed = seconds(1, 10), 30, d.draw.Uint64()
		}
		if d.draw.IntN(2) == 0 {
			f.Symbol = d.symbol(id)
		}
	case n < 13:
		f = pick(ofStreams)
		f.For = seconds(1, 90)
		//exhaustive:ignore
		switch f.Kind {
		case exchangesim.FaultFreeze:
			f.Symbol = d.symbol(id)
		case exchangesim.FaultStorm:
			f.For = seconds(2, 20)
		case exchangesim.FaultCut:
			f.Latency = seconds(1, 30)
		}
	case n < 15:
		f = pick(ofExchanges)
		f.For = seconds(1, 40)
		if f.Kind == exchangesim.FaultBan || f.Kind == exchangesim.FaultRateLimit {
			f.For, f.RetryAfter = seconds(1, 15), 15*time.Second
		}
	case n < 18:
		f = pick(ofRequests)
		f.Class, f.For, f.Latency, f.RetryAfter = exchangesim.ClassMarketData, seconds(1, 60), time.Second, 5*time.Second
		if d.draw.IntN(2) == 0 {
			f.Percent, f.Seed = 50, d.draw.Uint64()
		}
	case n < 19 && id == "okx":
		f = pick([]exchangesim.FaultKind{exchangesim.FaultResetSequence, exchangesim.FaultLostReset})
		f.Symbol = d.symbol(id)
	default:
		f = exchangesim.Fault{Kind: exchangesim.FaultRefuse, Count: 1, For: 20 * time.Second}
		if d.draw.IntN(4) > 0 {
			return // it takes ten minutes to get over
		}
		d.refused = true
	}
	if f.Kind == exchangesim.FaultBan || f.Kind == exchangesim.FaultRateLimit {
		d.limited[id] = true
	}
	d.injected++
	d.said = append(d.said, fmt.Sprintf("%s %s: %+v", time.Now().Format("15:04:05"), id, f))
	d.s.inject(id, f)
}

func (d *disorder) symbol(id market.ExchangeID) string {
	all := d.instruments[string(id)]
	return all[d.draw.IntN(len(all))].Symbol
}

// read reads a book by REST, now and then, and checks it.
func (d *disorder) read() {
	if d.draw.IntN(3) > 0 {
		return
	}
	id := d.on[d.draw.IntN(len(d.on))]
	all := d.instruments[string(id)]
	in := all[d.draw.IntN(len(all))]
	a, err := d.s.read(id, in.Base+"/"+in.Quote, 20)
	if err == nil {
		err = a.check(newTruths(d.s.venue(id)), 20)
	}
	if err != nil {
		d.s.t.Errorf("a book of %s by REST at %v: %v: %+v", id, time.Now(), err, a)
	}
	if d.reads++; a.Freshness.Source == "stream" {
		d.streamed++
	}
}

// end ends all faults.
func (d *disorder) end() {
	for _, id := range d.on {
		d.s.venue(id).ClearFaults()
	}
	d.said = append(d.said, time.Now().Format("15:04:05")+" the end of all faults")
}

// modest checks that no exchange was asked more than it allows, whatever went wrong.
func (d *disorder) modest() {
	for _, id := range d.on {
		if n := d.s.taps[id].since(time.Time{}); n.refused > 0 && !d.limited[id] {
			d.s.t.Errorf("%s refused %d times to answer so many questions: %+v", id, n.refused, n)
		}
	}
}

// patience is how long after the end of all faults everything is live again.
func (d *disorder) patience() time.Duration {
	if d.refused {
		return refusedFor + backWithin
	}
	return backWithin
}
