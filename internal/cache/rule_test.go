package cache_test

import (
	"math"
	"testing"
	"time"

	"exchange-gateway/internal/market"
)

// step offers a book and says what is to become of it, and which bid and how old a copy stands then.
type step struct {
	book    []change
	verdict market.Verdict
	bid     string
	age     time.Duration
}

var venueTime = time.Date(2026, 11, 29, 2, 0, 0, 123_456_789, time.UTC)

func later(d time.Duration) change { return stamped(venueTime.Add(d)) }

func TestKeep_newerWins(t *testing.T) {
	const (
		stored, confirmed = market.VerdictStored, market.VerdictConfirmed
		older, reset      = market.VerdictOlder, market.VerdictReset
		shallow           = market.VerdictShallower
	)
	at := func(price string, changes ...change) []change { return append([]change{bid(t, price)}, changes...) }
	stories := map[string][]step{
		"the exchange's time decides over the sequence and over us": {
			{at("10", later(0), numbered(9), ago(2*time.Second)), stored, "10", 2 * time.Second},
			{at("11", later(time.Nanosecond), numbered(1), ago(4*time.Second)), stored, "11", 4 * time.Second},
			{at("12", later(0), numbered(99), ago(3*time.Second)), older, "11", 4 * time.Second},
		},
		"within one time the sequence decides": {
			{at("10", later(0), numbered(2), ago(3*time.Second)), stored, "10", 3 * time.Second},
			{at("11", later(0), numbered(1), ago(2*time.Second)), older, "10", 3 * time.Second},
			{at("12", later(0), numbered(3), ago(time.Second)), stored, "12", time.Second},
		},
		"without times the sequence decides, to its last digit": {
			{at("10", numbered(math.MaxInt64-1), ago(3*time.Second)), stored, "10", 3 * time.Second},
			{at("11", numbered(math.MaxInt64), ago(2*time.Second)), stored, "11", 2 * time.Second},
			{at("12", numbered(math.MaxInt64-1), ago(time.Second)), older, "11", 2 * time.Second},
		},
		"a sequence may be zero or less": {
			{at("10", numbered(-1), ago(3*time.Second)), stored, "10", 3 * time.Second},
			{at("11", numbered(0), ago(2*time.Second)), stored, "11", 2 * time.Second},
			{at("12", numbered(-1), ago(time.Second)), older, "11", 2 * time.Second},
		},
		"without either the later confirmation decides": {
			{at("10", ago(2*time.Second)), stored, "10", 2 * time.Second},
			{at("11", ago(3*time.Second)), older, "10", 2 * time.Second},
			{at("12", ago(time.Second)), stored, "12", time.Second},
		},
		"a time on one side alone decides nothing": {
			{at("10", later(time.Hour), ago(2*time.Second)), stored, "10", 2 * time.Second},
			{at("11", numbered(1), ago(time.Second)), stored, "11", time.Second},
		},
		"the same version is confirmed": {
			{at("10", later(0), ago(3*time.Second)), stored, "10", 3 * time.Second},
			{at("10", later(0), ago(time.Second)), confirmed, "10", time.Second},
		},
		"a confirmation that was overtaken does not age the book": {
			{at("10", later(0), ago(time.Second)), stored, "10", time.Second},
			{at("10", later(0), ago(3*time.Second)), confirmed, "10", time.Second},
		},
		"three older answers in a row over two seconds are a reset": {
			{at("10", numbered(1000), ago(9*time.Second)), stored, "10", 9 * time.Second},
			{at("11", numbered(1), ago(8*time.Second)), older, "10", 9 * time.Second},
			{at("12", numbered(2), ago(7*time.Second)), older, "10", 9 * time.Second},
			{at("13", numbered(3), ago(5500*time.Millisecond)), reset, "13", 5500 * time.Millisecond},
			{at("14", numbered(4), ago(5*time.Second)), stored, "14", 5 * time.Second},
			{at("11", numbered(1), ago(4*time.Second)), older, "14", 5 * time.Second}, // counted anew
			{at("11", numbered(1), ago(3*time.Second)), older, "14", 5 * time.Second},
			{at("15", numbered(1), ago(time.Second)), reset, "15", time.Second},
		},
		"a cache that flaps is no reset, however often it is met": {
			{at("10", later(time.Minute), ago(9*time.Second)), stored, "10", 9 * time.Second},
			{at("11", later(0), ago(8*time.Second)), older, "10", 9 * time.Second},
			{at("11", later(0), ago(7800*time.Millisecond)), older, "10", 9 * time.Second},
			{at("11", later(0), ago(7600*time.Millisecond)), older, "10", 9 * time.Second},
			{at("11", later(0), ago(7400*time.Millisecond)), older, "10", 9 * time.Second},
			{at("11", later(0), ago(7200*time.Millisecond)), older, "10", 9 * time.Second},
			{at("11", later(0), ago(6200*time.Millisecond)), older, "10", 9 * time.Second},
			{at("12", later(0), ago(5800*time.Millisecond)), reset, "12", 5800 * time.Millisecond},
		},
		"two older answers are no reset, however far apart": {
			{at("10", numbered(1000), ago(59*time.Second)), stored, "10", 59 * time.Second},
			{at("11", numbered(1), ago(50*time.Second)), older, "10", 59 * time.Second},
			{at("12", numbered(2), ago(10*time.Second)), older, "10", 59 * time.Second},
			{at("13", numbered(3), ago(9*time.Second)), reset, "13", 9 * time.Second},
		},
		"an equal answer between them ends the row, also one that was overtaken": {
			{at("10", numbered(1000), ago(20*time.Second)), stored, "10", 20 * time.Second},
			{at("11", numbered(1), ago(15*time.Second)), older, "10", 20 * time.Second},
			{at("11", numbered(2), ago(12*time.Second)), older, "10", 20 * time.Second},
			{at("10", numbered(1000), ago(21*time.Second)), confirmed, "10", 20 * time.Second},
			{at("11", numbered(3), ago(10*time.Second)), older, "10", 20 * time.Second},
			{at("11", numbered(4), ago(9*time.Second)), older, "10", 20 * time.Second},
			{at("10", numbered(1000), ago(8*time.Second)), confirmed, "10", 8 * time.Second},
			{at("11", numbered(5), ago(3*time.Second)), older, "10", 8 * time.Second},
			{at("11", numbered(6), ago(time.Second)), older, "10", 8 * time.Second},
		},
		"a newer answer that is shallower ends the row": {
			{[]change{deep(t, 50), numbered(1000), ago(800 * time.Millisecond)}, stored, "50000.50", 800 * time.Millisecond},
			{at("11", numbered(1), ago(700*time.Millisecond)), older, "50000.50", 800 * time.Millisecond},
			{at("11", numbered(2), ago(600*time.Millisecond)), older, "50000.50", 800 * time.Millisecond},
			{[]change{deep(t, 5), numbered(1001), ago(500 * time.Millisecond)}, shallow, "50000.50", 800 * time.Millisecond},
			{at("11", numbered(3), ago(-600*time.Millisecond)), older, "50000.50", 800 * time.Millisecond},
		},
		"a newer answer between them ends the row": {
			{at("10", numbered(1000), ago(7*time.Second)), stored, "10", 7 * time.Second},
			{at("11", numbered(1), ago(6*time.Second)), older, "10", 7 * time.Second},
			{at("11", numbered(1), ago(5*time.Second)), older, "10", 7 * time.Second},
			{at("12", numbered(1001), ago(4*time.Second)), stored, "12", 4 * time.Second},
			{at("11", numbered(1), ago(3*time.Second)), older, "12", 4 * time.Second},
			{at("11", numbered(1), ago(2*time.Second)), older, "12", 4 * time.Second},
		},
		"older answers that were overtaken are no reset": {
			{at("10", numbered(1000), ago(time.Second)), stored, "10", time.Second},
			{at("11", numbered(1), ago(4*time.Second)), older, "10", time.Second},
			{at("11", numbered(2), ago(3*time.Second)), older, "10", time.Second},
			{at("11", numbered(3), ago(2*time.Second)), older, "10", time.Second},
		},
		"a deeper copy within its bound stands against a shallower one": {
			{[]change{deep(t, 50), numbered(1), ago(500 * time.Millisecond)}, stored, "50000.50", 500 * time.Millisecond},
			{[]change{deep(t, 5), numbered(2), ago(0)}, shallow, "50000.50", 500 * time.Millisecond},
		},
		"a deeper copy past its bound gives way": {
			{[]change{deep(t, 50), numbered(1), ago(3 * time.Second)}, stored, "50000.50", 3 * time.Second},
			{at("10", numbered(2), ago(2*time.Second), asked(1)), stored, "10", 2 * time.Second},
		},
		"a short book that is whole is not shallower": {
			{[]change{deep(t, 50), numbered(1), ago(500 * time.Millisecond)}, stored, "50000.50", 500 * time.Millisecond},
			{at("10", numbered(2), ago(0), asked(20)), stored, "10", 0},
		},
		"the same version with fewer levels vouches for the deeper copy": {
			{[]change{deep(t, 50), numbered(1), ago(3 * time.Second)}, stored, "50000.50", 3 * time.Second},
			{[]change{deep(t, 5), numbered(1), ago(time.Second)}, confirmed, "50000.50", time.Second},
		},
		"an age that cannot be known is not kept": {
			{at("10", ago(2*time.Second)), stored, "10", 2 * time.Second},
			{at("11", ago(-time.Hour)), market.VerdictUnaged, "10", 2 * time.Second},
			{at("12", func(b *market.OrderBook) { b.ConfirmedAt = time.Time{} }), market.VerdictUnaged, "10", 2 * time.Second},
		},
	}
	for implementation, open := range keepers(t) {
		for name, steps := range stories {
			t.Run(implementation+"/"+name, func(t *testing.T) {
				k := open(t.Name())
				began := time.Now()
				for i, s := range steps {
					// The ages in a story count from now, not from when the table was written.
					if got := k.keep(t, book(t, s.book...)); got != string(s.verdict) {
						t.Fatalf("step %d: verdict = %s, want %s", i, got, s.verdict)
					}
					stands := k.stand(t)
					if got := stands.Bids()[0].Price.String(); got != s.bid {
						t.Errorf("step %d: bid = %s, want %s", i, got, s.bid)
					}
					age, known := stands.Age(time.Now())
					if off := age - s.age; !known || off < 0 || off > 450*time.Millisecond+time.Since(began) {
						t.Errorf("step %d: age = %v, %v, want %v", i, age, known, s.age)
					}
				}
			})
		}
	}
}

func asked(depth int) change { return func(b *market.OrderBook) { b.Depth = depth } }
