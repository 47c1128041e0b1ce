package localbook_test

import (
	"errors"
	"testing"
	"time"

	"exchange-gateway/internal/feed/localbook"
	"exchange-gateway/internal/market"
)

// fuzzPrices are what a fuzzed diff picks from: neighbours, spellings, and numbers that do not fit.
var fuzzPrices = [16]string{
	"100", "100.0", "100.00000000", "100.00000000000000000001", "100.5", "101", "101.50", "99.99", "99.999999999999999999999",
	"0.00000001", "1e-30", "999999999999999999", "99999999999999999999", "1e30", "-1", "102",
}

var fuzzSizes = [8]string{"0", "0.00", "1", "1.50", "0e30", "123456789012345678901234", "7", "-1"}

// FuzzBook reads bytes as diffs and holds book and journal against the model. A byte below 240 begins a level of the diff: the
// lowest bit is the side, the rest and the next byte choose price and size. 240 to 247 applies the diff, 248 and 249 revert
// it after that, 250 to 252 load it as a snapshot, 253 to 255 capture.
func FuzzBook(f *testing.F) {
	f.Add([]byte("\x00\x12\x0b\x22\xfa\x02\x13\xf0\x06\x02\xf8\xfd"), uint8(0))
	f.Add([]byte("\x00\x12\x0b\x22\x12\x02\x0e\x02\xfb\x07\x33\xf1\xff\x12\x00\xf0\xff"), uint8(2))
	f.Add([]byte("\x16\x02\x17\x05\x18\x02\xfc\x19\x02\x18\x00\xf0\xf9\xfd"), uint8(5))
	f.Fuzz(func(t *testing.T, ops []byte, bound uint8) {
		limit, window := int(bound%8), bound >= 128
		b, m := localbook.New(), &model{}
		var u localbook.Undo
		var j localbook.Journal
		var diff [2][]market.Level
		at := time.Unix(1_700_000_000, 0)
		base := *m
		for len(ops) > 1 {
			op := ops[0]
			ops = ops[1:]
			if op < 240 {
				diff[op&1] = append(diff[op&1], market.Level{
					Price: market.MustNumber(fuzzPrices[op>>1&15]), Size: market.MustNumber(fuzzSizes[ops[0]&7]),
				})
				ops = ops[1:]
				continue
			}
			switch {
			case op < 250:
				u.Reset()
				before := *m
				bad := negative(diff[0]) || negative(diff[1])
				if !bad {
					m.apply(diff[0], diff[1])
					bad = m.crossed()
				}
				err := b.ApplyUndo(diff[0], diff[1], &u)
				if errors.Is(err, market.ErrSuspect) != bad {
					t.Fatalf("%v, bad %t", err, bad)
				}
				if bad {
					*m = before
				}
				if window && m.overflows() {
					return // the model has no such bound; TestBook_window has
				}
				if op >= 248 {
					b.Revert(&u)
					u.Reset()
					*m = before
				}
				j.Add(at, []byte{op}, &u, localbook.Mark{})
			case op < 253:
				bad := negative(diff[0]) || negative(diff[1]) || twice(diff[0]) || twice(diff[1])
				if !bad {
					m.load(diff[0], diff[1], limit, window)
					bad = m.crossed()
				}
				if err := b.Load(diff[0], diff[1], limit, window); errors.Is(err, market.ErrSuspect) != bad {
					t.Fatalf("load: %v, bad %t", err, bad)
				}
				if bad {
					m.load(nil, nil, 0, false)
				}
				if window && m.overflows() {
					return
				}
				j.Restart(localbook.Mark{})
				base = *m
			default:
				if c := j.Capture(b); len(c.Frames) < 200 && b.Loaded() && (!same(c.Bids, base.bids) || !same(c.Asks, base.asks)) {
					t.Fatalf("base %s | %s, want %s | %s", text(c.Bids), text(c.Asks), text(base.bids), text(base.asks))
				}
			}
			diff = [2][]market.Level{}
			mustShow(t, b, m, "")
		}
	})
}

func (m *model) overflows() bool { return m.limit > 0 && max(len(m.bids), len(m.asks)) > 2*m.limit }

func negative(side []market.Level) bool {
	for _, l := range side {
		if l.Price.Sign() <= 0 || l.Size.Sign() < 0 {
			return true
		}
	}
	return false
}

func twice(side []market.Level) bool {
	for i, l := range side {
		for _, m := range side[:i] {
			if !l.Size.IsZero() && !m.Size.IsZero() && l.Price.Equal(m.Price) {
				return true
			}
		}
	}
	return false
}
