package ops_test

import (
	"fmt"
	"testing"
	"time"

	"exchange-gateway/internal/market"
	"exchange-gateway/internal/ops"
)

// BenchmarkWithheld is what every read of a book pays: while nothing is withheld, and while something is.
func BenchmarkWithheld(b *testing.B) {
	r := newRig("b1", nil)
	ask := func(b *testing.B) {
		for b.Loop() {
			if _, ok := r.overrides.Withheld(okx, btc); ok {
				b.Fatal("it is withheld")
			}
		}
	}
	b.Run("nothing", ask)
	eth := market.Pair{Base: "ETH", Quote: "USDT"}
	if _, err := r.desk.Do(b.Context(), ops.Order{Verb: market.VerbWithhold, Exchange: okx, Pair: eth, Reason: "r", Actor: "a"}); err != nil {
		b.Fatal(err)
	}
	b.Run("another", ask)
}

// busy is a gateway in full use: 200 books, every circuit, sixty samples of each exchange.
func busy() *rig {
	r := newRig("b1", nil)
	for i := range 200 {
		r.answers.served = append(r.answers.served, market.ServedBook{
			Exchange: okx, Pair: market.Pair{Base: fmt.Sprint("C", i), Quote: "USDT"}, Source: "rest", ConfirmedAt: time.Now(),
			ServedAt: time.Now(), Bid: market.Some(market.MustNumber("64073.00")), Ask: market.Some(market.MustNumber("64073.10")),
		})
	}
	for i := range 1000 {
		r.guard.trip(okx, market.CircuitState([]string{"open", "closed"}[i%2]), market.CircuitOpen)
	}
	return r
}

// BenchmarkOverview is one build with its encoding, as happens once a second while somebody watches.
func BenchmarkOverview(b *testing.B) {
	r := busy()
	b.Run("build", func(b *testing.B) {
		for b.Loop() {
			r.board.Rebuild()
		}
	})
	b.Run("build and encode", func(b *testing.B) {
		size := 0
		for b.Loop() {
			r.board.Rebuild()
			size = len(r.board.Snapshot())
		}
		b.ReportMetric(float64(size), "bytes")
	})
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			r.board.Snapshot()
		}
	})
}

// BenchmarkEvent is one event from the guard to the queues of fifty watchers.
func BenchmarkEvent(b *testing.B) {
	r := newRig("b1", nil)
	var watchers []*ops.Watcher
	for range 50 {
		w, err := r.board.Watch("")
		if err != nil {
			b.Fatal(err)
		}
		defer w.Close()
		watchers = append(watchers, w)
	}
	seq := uint64(0)
	for b.Loop() {
		seq++
		r.journal.Listen(market.Event{Boot: "b1", Seq: seq, At: time.Now(), Type: market.EventCircuit})
		for _, w := range watchers {
			if _, err := w.Next(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	}
}
