package exchangesim

import (
	"fmt"
	"sync"
	"time"
)

// State says whether an instrument trades.
type State int

// States of an instrument.
const (
	Trading  State = iota
	Paused         // listed, not tradable: HALT at Binance, suspend at OKX, cancel_only at Coinbase; the book stands still for a day
	Delisted       // BREAK at Binance with an empty book, gone at OKX, status delisted at Coinbase
)

// Shape says what a book looks like.
type Shape int

// Shapes of a book.
const (
	TwoSided Shape = iota
	BidsOnly
)

// Instrument describes one spot pair of a simulated venue. Numbers are plain decimals.
type Instrument struct {
	Symbol      string // the venue's own name
	Base, Quote string
	Tick, Lot   string
	Price       string        // around which the market moves
	Size        string        // a usual size of a level, in base units
	MinNotional string        // "" means "5"
	Calm        int64         // divides all moves of the price; 0 means 1
	Spread      int64         // largest spread in ticks; 0 means 1
	Gap         int64         // one tick in Gap holds a level; 0 means 2
	Levels      int           // most levels on a side; 0 means 1,200
	Every       time.Duration // how often the book changes; 0 means 100 ms
	State       State
	Shape       Shape
	Alias       string // Coinbase: the product whose book this one shows
}

// pair is an Instrument made ready for computing.
type pair struct {
	Instrument
	tick, lot unit
	price     int64  // in ticks
	size      int64  // in lots
	salt      uint64 // of this book
	trend     uint64 // of the price, shared by all pairs with this base, at all venues
	recorded  bool
	tape      *tape // its book is a recorded one

	mu   sync.Mutex
	eras []era // see reset
	room int64 // sequences of an era
	kept [2]keptBook
	keep int // which of them is overwritten next
}

func newPair(in Instrument, seed uint64) (*pair, error) {
	p := &pair{Instrument: in}
	p.MinNotional = orText(in.MinNotional, "5")
	p.Calm, p.Spread = max(in.Calm, 1), max(in.Spread, 1)
	p.Gap = orInt(in.Gap, 2)
	p.Levels = orInt(in.Levels, 1200)
	p.Every = orInt(in.Every, 100*time.Millisecond)
	if in.Symbol == "" || in.Base == "" || in.Quote == "" {
		return nil, fmt.Errorf("instrument %q: symbol, base and quote are needed", in.Symbol)
	}
	var err error
	if p.tick, err = parseUnit(in.Tick); err != nil {
		return nil, fmt.Errorf("instrument %s: tick: %w", in.Symbol, err)
	}
	if p.lot, err = parseUnit(in.Lot); err != nil {
		return nil, fmt.Errorf("instrument %s: lot: %w", in.Symbol, err)
	}
	if p.price, err = p.tick.count(in.Price); err != nil {
		return nil, fmt.Errorf("instrument %s: price: %w", in.Symbol, err)
	}
	if p.size, err = p.lot.count(in.Size); err != nil {
		return nil, fmt.Errorf("instrument %s: size: %w", in.Symbol, err)
	}
	if p.price < 8 || p.size < 8 || p.Every < time.Millisecond || p.Gap < 1 || p.Levels < 0 {
		return nil, fmt.Errorf("instrument %s: a price of 8 ticks, a size of 8 lots and a pace of 1 ms are the least", in.Symbol)
	}
	name := in.Symbol
	if in.Alias != "" {
		name = in.Alias // one book under two names
	}
	p.salt, p.trend = mix(seed, hashText(name)), mix(seed, hashText(in.Base+" trend"))
	if in.State == Paused {
		p.Every = 24 * time.Hour
	}
	return p, nil
}

func orText(s, def string) string {
	if s == "" {
		return def
	}
	return s
}

func orInt[T int | int64 | time.Duration](n, def T) T {
	if n == 0 {
		return def
	}
	return n
}

// hashText is FNV-1a.
func hashText(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}

// mix is one round of splitmix64 over both words: cheap, and good enough for a market.
func mix(a, b uint64) uint64 {
	x := a + 0x9e3779b97f4a7c15*(b+1)
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb
	return x ^ (x >> 31)
}
