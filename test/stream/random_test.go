package stream

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/exchangesim"
	"exchange-gateway/internal/market"
)

const (
	// seedsByDefault is how many schedules are tried; STREAM_SEEDS says another number. The schedule of one seed alone:
	// -run 'TestRandom/all/^17$'.
	seedsByDefault = 100
	// backWithin is within what time everything is live again once all faults have ended: a book's backoff has come to a
	// minute at most, and the circuit of streams to no more; then come a connection and a snapshot. 74 s were the most in 1,000.
	backWithin = 2 * time.Minute
	// refusedFor is how long a subscription is not tried again that the exchange refused.
	refusedFor = 10 * time.Minute
)

// TestRandom: whatever goes wrong, in whatever order, while clients come and go: what they hold as live was the exchange's
// book, not longer ago than it may be vouched for; versions follow one another without a gap, and a snapshot is what all
// updates since the last one make of that; once all faults have ended everything is live again.
func TestRandom(t *testing.T) {
	seeds := seedsByDefault
	if text := os.Getenv("STREAM_SEEDS"); text != "" {
		var err error
		if seeds, err = strconv.Atoi(text); err != nil || seeds < 1 {
			t.Fatalf("STREAM_SEEDS is %q", text)
		}
	}
	var mu sync.Mutex
	var all tally
	t.Run("all", func(t *testing.T) {
		for seed := range seeds {
			t.Run(strconv.Itoa(seed), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					one := random(t, uint64(seed))
					mu.Lock()
					defer mu.Unlock()
					all.add(one)
				})
			})
		}
	})
	t.Logf("%d schedules with %d faults: %+v", seeds, all.faults, all)
	if all.seeds == seeds && seeds >= seedsByDefault {
		all.judge(t)
	}
}

// tally is what came of schedules.
type tally struct {
	seeds, faults, clients, messages, compared, repeats, looks, stale, reads, streamed, conflated, stalled int
	back                                                                                                   time.Duration // the longest, of those without a refused subscription
}

func (a *tally) add(b tally) {
	a.seeds++
	a.faults += b.faults
	a.clients += b.clients
	a.messages += b.messages
	a.compared += b.compared
	a.repeats += b.repeats
	a.looks += b.looks
	a.stale += b.stale
	a.reads += b.reads
	a.streamed += b.streamed
	a.conflated += b.conflated
	a.stalled += b.stalled
	a.back = max(a.back, b.back)
}

// judge fails where the schedules did not bring about what they are for.
func (a *tally) judge(t *testing.T) {
	for name, n := range map[string]int{
		"comparisons": a.compared / 100, "versions held twice": a.repeats / 100, "looks": a.looks / 100, "changes to stale": a.stale / 2,
		"reads from the stream": a.streamed / 5, "versions conflated": a.conflated, "clients that were given up": a.stalled,
	} {
		if n < a.seeds/4 {
			t.Errorf("hardly any %s: %d", name, n)
		}
	}
}

// random plays the schedule of a seed.
func random(t *testing.T, seed uint64) tally {
	draw := rand.New(rand.NewPCG(seed, 3))
	on, instruments := drawMarket(draw)
	s := newStage(t, setting{only: on, sim: exchangesim.Config{Seed: seed, Instruments: instruments}})
	d := &disorder{s: s, draw: draw, on: on, instruments: instruments, limited: map[market.ExchangeID]bool{}}
	w := newCrowd(s, draw, topicsOf(on, instruments, draw))
	w.begin()
	ends, next := time.Now().Add(time.Duration(100+draw.IntN(80))*time.Second), time.Now()
	d.begin(10 * time.Second)
	for time.Now().Before(ends) {
		if !time.Now().Before(next) {
			next = time.Now().Add(time.Duration(500+draw.IntN(6000)) * time.Millisecond)
			d.step()
			w.step()
		}
		w.look()
		d.read()
		time.Sleep(time.Second)
	}
	d.end()
	back := w.settle(d.patience())
	for range 10 { // it stays so
		time.Sleep(time.Second)
		w.look()
		d.read()
	}
	d.modest()
	if d.refused {
		back = 0 // what the exchange refuses is bounded by when it is tried again
	}
	one := tally{faults: d.injected, back: back, reads: d.reads, streamed: d.streamed}
	w.end(&one)
	s.stop()
	if t.Failed() {
		t.Logf("seed %d on %v: %v", seed, on, d.said)
	}
	return one
}

// drawMarket draws the exchanges and their pairs: small books that change at every pace.
func drawMarket(draw *rand.Rand) (on []market.ExchangeID, all map[string][]exchangesim.Instrument) {
	all = map[string][]exchangesim.Instrument{}
	paces := []time.Duration{300 * time.Millisecond, 700 * time.Millisecond, 2 * time.Second, 7 * time.Second, 50 * time.Second, 24 * time.Hour}
	for _, i := range draw.Perm(len(ids))[:1+draw.IntN(len(ids))] {
		id := ids[i]
		on = append(on, id)
		for n := range 2 + draw.IntN(3) {
			in := instrument(id, fmt.Sprintf("%c%c%c/USDT", 'A'+n, 'A'+n, 'A'+n), 3+draw.IntN(60), paces[draw.IntN(len(paces))])
			if draw.IntN(8) == 0 {
				in.Shape = exchangesim.BidsOnly
			}
			all[string(id)] = append(all[string(id)], in)
		}
	}
	return on, all
}

// topicsOf draws what clients may subscribe to: several topics of each pair.
func topicsOf(on []market.ExchangeID, all map[string][]exchangesim.Instrument, draw *rand.Rand) (out []topic) {
	depths := []int{1, 5, 20, 50, 100}
	for _, id := range on {
		for _, in := range all[string(id)] {
			pair := in.Base + "/" + in.Quote
			out = append(out, topic{"ticker", id, pair, 0})
			for _, i := range draw.Perm(len(depths))[:2] {
				out = append(out, topic{"orderbook", id, pair, depths[i]})
			}
		}
	}
	return out
}
