package stream

import (
	"time"

	"exchange-gateway/internal/exchangesim"
	"exchange-gateway/internal/market"
)

// by is a value for each exchange; one that is missing is zero, and in the bounds of being live again a row that there is not.
type by[T any] map[market.ExchangeID]T

func each[T any](v T) by[T] { return by[T]{"binance": v, "okx": v, "coinbase": v} }

// row is a fault at one exchange or several, with what differs between them.
type row struct {
	faultCase
	stale, live                  by[time.Duration]
	connects, snapshots, refused by[int]
	faults                       []exchangesim.Fault
	symbol                       bool // the first fault meets the one symbol alone
}

// faultCases are the rows of the table.
func faultCases() (all []faultCase) {
	for _, r := range rows() {
		for _, id := range ids {
			c := r.faultCase
			live, ok := r.live[id]
			if !ok {
				continue
			}
			c.id, c.stale, c.live = id, r.stale[id], live
			c.connects, c.snapshots, c.refused = r.connects[id], r.snapshots[id], r.refused[id]
			c.faults = append(c.faults, r.faults...)
			if r.symbol {
				c.faults[0].Symbol = symbolOf(id, c.subject().pair)
			}
			all = append(all, c)
		}
	}
	return all
}

func rows() []row {
	const class, s = exchangesim.ClassStream, time.Second
	type faults = []exchangesim.Fault
	// Binance's book starts anew with a REST snapshot; OKX's with the subscription; Coinbase counts the frames of a
	// connection, so that only a new one helps.
	once, anew := by[int]{"binance": 1}, by[int]{"coinbase": 1}
	// A connection on which nothing comes is found out by a ping, or the heartbeats that are missing.
	quiet := each(10 * s)
	frozen := by[time.Duration]{"binance": 60 * s, "okx": 75 * s, "coinbase": 60 * s}
	limited := faults{{Kind: exchangesim.FaultRateLimit, Class: class, For: 40 * s}, {Kind: exchangesim.FaultReset, Class: class, For: time.Millisecond}}
	// After an outage the stream circuit lets a probe through within its longest open time, 60 s.
	return []row{
		// Single messages. What is missing shows with the next message.
		{
			faultCase: faultCase{name: "gap", books: true}, symbol: true, faults: faults{{Kind: exchangesim.FaultGap, Count: 1}},
			stale: each(step), live: each(5 * s), connects: anew, snapshots: once,
		},
		{
			faultCase: faultCase{name: "gap of two channels"}, symbol: true, faults: faults{{Kind: exchangesim.FaultGap, Count: 4}},
			stale: each(4 * step), live: each(5 * s), connects: by[int]{"coinbase": 3}, snapshots: once,
		},
		{
			faultCase: faultCase{name: "duplicate", lasts: 10 * s, alone: true}, faults: faults{{Kind: exchangesim.FaultDuplicate, For: 10 * s}},
			live: each(s),
		},
		{
			faultCase: faultCase{name: "reorder", books: true}, symbol: true, faults: faults{{Kind: exchangesim.FaultReorder, Count: 1}},
			stale: each(step), live: each(5 * s), connects: anew, snapshots: once,
		},
		{
			faultCase: faultCase{name: "malformed", books: true}, symbol: true, faults: faults{{Kind: exchangesim.FaultMalformed, Count: 1}},
			stale: each(time.Millisecond), live: each(5 * s), connects: anew, snapshots: once,
		},
		{
			faultCase: faultCase{name: "crossed", alone: true, books: true}, symbol: true, faults: faults{{Kind: exchangesim.FaultCrossed, Class: class, Count: 1}},
			stale: each(time.Millisecond), live: each(5 * s), snapshots: once,
		},
		{ // all of it: a book that is lost often is waited for longer each time
			faultCase: faultCase{name: "lossy", lasts: 120 * s, flaps: true},
			faults: faults{
				{Kind: exchangesim.FaultGap, Percent: 10, Seed: 1, For: 120 * s},
				{Kind: exchangesim.FaultReorder, Percent: 10, Seed: 2, For: 120 * s},
				{Kind: exchangesim.FaultDuplicate, Percent: 10, Seed: 3, For: 120 * s},
				{Kind: exchangesim.FaultMalformed, Percent: 5, Seed: 4, For: 120 * s},
			},
			stale: each(120 * s), live: each(65 * s), connects: by[int]{"okx": 10, "coinbase": 20}, snapshots: by[int]{"binance": 30, "okx": 10},
		},

		// Silence.
		{
			faultCase: faultCase{name: "silent", lasts: 100 * s}, faults: faults{{Kind: exchangesim.FaultSilent, For: 100 * s}},
			stale: quiet, live: each(35 * s), connects: each(15), snapshots: by[int]{"binance": 5},
		},
		{
			faultCase: faultCase{name: "half_open", lasts: 100 * s, heals: true}, faults: faults{{Kind: exchangesim.FaultHalfOpen, For: 100 * s}},
			stale: quiet, live: each(60 * s), connects: each(1), snapshots: by[int]{"binance": 4},
		},
		{ // the connection may be dead for ever: another one takes its place while it lasts
			faultCase: faultCase{name: "half_open, long", lasts: 200 * s, heals: true}, faults: faults{{Kind: exchangesim.FaultHalfOpen, For: 200 * s}},
			stale: by[time.Duration]{"binance": 60 * s}, live: by[time.Duration]{"binance": 10 * s},
			connects: by[int]{"binance": 1}, snapshots: by[int]{"binance": 3},
		},
		{
			faultCase: faultCase{name: "silent, one connection", lasts: 200 * s, heals: true},
			faults:    faults{{Kind: exchangesim.FaultSilent, Count: 1, For: 200 * s}},
			stale:     by[time.Duration]{"binance": 60 * s}, live: by[time.Duration]{"binance": 10 * s},
			connects: by[int]{"binance": 1}, snapshots: by[int]{"binance": 3},
		},
		{ // a snapshot by REST is believed like any event of a book's own: no longer than that
			faultCase: faultCase{name: "freeze", lasts: 120 * s, alone: true, flaps: true}, symbol: true, faults: faults{{Kind: exchangesim.FaultFreeze, For: 120 * s}},
			stale: frozen, live: each(65 * s), snapshots: by[int]{"binance": 6, "okx": 6},
		},

		// Connections.
		{
			faultCase: faultCase{name: "storm", lasts: 20 * s, flaps: true}, faults: faults{{Kind: exchangesim.FaultStorm, For: 20 * s}},
			stale: each(time.Millisecond), live: each(65 * s), connects: each(12), snapshots: by[int]{"binance": 24},
		},
		{ // announced by Binance and OKX, not by Coinbase
			faultCase: faultCase{name: "cut", lasts: 90 * s, heals: true}, faults: faults{{Kind: exchangesim.FaultCut, For: 90 * s}},
			stale: by[time.Duration]{"coinbase": time.Millisecond}, live: each(5 * s), connects: each(1), snapshots: by[int]{"binance": 2},
		},
		{ // before the connection that takes its place has its books: a snapshot of Binance's waits for a change
			faultCase: faultCase{name: "cut at once", lasts: 10 * s, heals: true},
			faults:    faults{{Kind: exchangesim.FaultCut, Latency: time.Millisecond, For: 10 * s}},
			stale:     by[time.Duration]{"binance": 10 * time.Millisecond}, live: by[time.Duration]{"binance": 5 * s},
			connects: each(2), snapshots: by[int]{"binance": 4},
		},

		// Subscriptions.
		{ // tried again after ten minutes
			faultCase: faultCase{name: "refuse_subscription", lasts: 60 * s, late: true, alone: true}, symbol: true,
			faults: faults{{Kind: exchangesim.FaultRefuse, For: 60 * s}},
			stale:  each(20 * s), live: each(10 * time.Minute), snapshots: by[int]{"binance": 2},
		},

		// Numbers.
		{
			faultCase: faultCase{name: "reset_sequence", alone: true}, symbol: true, faults: faults{{Kind: exchangesim.FaultResetSequence}},
			live: by[time.Duration]{"okx": s},
		},
		{
			faultCase: faultCase{name: "lost_reset", alone: true}, symbol: true, faults: faults{{Kind: exchangesim.FaultLostReset}},
			stale: by[time.Duration]{"okx": 2 * step}, live: by[time.Duration]{"okx": 5 * s},
		},
		{ // of REST: a snapshot that is older than the changes cannot be used
			faultCase: faultCase{name: "old snapshot", lasts: 20 * s, heals: true, alone: true, books: true}, symbol: true, faults: faults{
				{Kind: exchangesim.FaultGap, Count: 1}, {Kind: exchangesim.FaultOlder, Class: exchangesim.ClassMarketData, Age: 2 * s, For: 20 * s},
			},
			stale: by[time.Duration]{"binance": 3 * step}, live: by[time.Duration]{"binance": 10 * s}, snapshots: by[int]{"binance": 5},
		},
		{
			faultCase: faultCase{name: "old answers", lasts: 100 * s, alone: true, restLives: true},
			faults:    faults{{Kind: exchangesim.FaultOlder, Class: exchangesim.ClassMarketData, Age: 2 * s, For: 100 * s}},
			live:      each(s),
		},

		// The whole exchange.
		{
			faultCase: faultCase{name: "maintenance", lasts: 60 * s}, faults: faults{{Kind: exchangesim.FaultMaintenance, For: 60 * s}},
			stale: each(time.Millisecond), live: each(65 * s), connects: each(13), snapshots: by[int]{"binance": 3},
		},
		{
			faultCase: faultCase{name: "reset", lasts: 60 * s}, faults: faults{{Kind: exchangesim.FaultReset, For: 60 * s}},
			stale: each(time.Millisecond), live: each(65 * s), connects: each(13), snapshots: by[int]{"binance": 3},
		},
		{
			faultCase: faultCase{name: "hang", lasts: 100 * s}, faults: faults{{Kind: exchangesim.FaultHang, For: 100 * s}},
			stale: quiet, live: each(65 * s), connects: each(13), snapshots: by[int]{"binance": 3},
		},
		{
			faultCase: faultCase{name: "REST only", lasts: 100 * s, alone: true, restLives: true},
			faults:    faults{{Kind: exchangesim.FaultUnavailable, Class: exchangesim.ClassMarketData, For: 100 * s}},
			live:      each(s),
		},
		{
			faultCase: faultCase{name: "stream only", lasts: 60 * s, restLives: true},
			faults:    faults{{Kind: exchangesim.FaultReset, Class: class, For: 60 * s}},
			stale:     each(time.Millisecond), live: each(65 * s), connects: each(13), snapshots: by[int]{"binance": 3},
		},

		// Refusals. Nothing is asked before they end.
		{
			faultCase: faultCase{name: "ban", lasts: 120 * s},
			faults:    faults{{Kind: exchangesim.FaultBan, For: 120 * s}, {Kind: exchangesim.FaultReset, Class: class, For: time.Millisecond}},
			stale:     by[time.Duration]{"binance": time.Millisecond}, live: by[time.Duration]{"binance": 30 * s},
			connects: by[int]{"binance": 2}, snapshots: by[int]{"binance": 2}, refused: by[int]{"binance": 1},
		},
		{ // Binance means everything that comes from an address
			faultCase: faultCase{name: "handshakes limited", lasts: 40 * s}, faults: limited,
			stale: each(time.Millisecond), live: by[time.Duration]{"binance": 65 * s},
			connects: each(3), snapshots: by[int]{"binance": 3}, refused: each(1),
		},
		{
			faultCase: faultCase{name: "handshakes limited", lasts: 40 * s, restLives: true}, faults: limited,
			stale: each(time.Millisecond), live: by[time.Duration]{"okx": 65 * s, "coinbase": 65 * s},
			connects: each(8), refused: each(6),
		},
	}
}
