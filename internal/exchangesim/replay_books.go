package exchangesim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// askedDepth is how many levels a call asks of a recorded book; ok is false for endpoints without levels.
func askedDepth(c *call) (int, bool) {
	number := func(name string, def, most int) (int, bool) {
		n, err := strconv.Atoi(c.query.Get(name))
		if err != nil || n < 1 {
			n = def
		}
		return min(n, most), true
	}
	switch c.ep.path {
	case "/api/v3/depth":
		return number("limit", 100, 5000)
	case "/api/v5/market/books":
		return number("sz", 1, 400)
	case "/api/v5/market/books-full":
		return number("sz", 1, 5000)
	case brokerage + "/market/product_book", brokerage + "/product_book":
		return number("limit", atDefaultTop, atMostLevels)
	case "/products/{}/book":
		if lvl := c.query.Get("level"); lvl == "" || lvl == "1" {
			return 1, true
		}
		return 1 << 30, true
	}
	return 0, false
}

// cut is a stretch of bytes to leave out.
type cut struct{ from, to int }

// trimLevels leaves out the elements past n of the arrays named bids and asks, wherever they stand, and touches no other byte.
func trimLevels(data []byte, n int) []byte {
	var cuts []cut
	for _, name := range []string{"bids", "asks"} {
		if c, ok := findCut(data, name, n); ok {
			cuts = append(cuts, c)
		}
	}
	slices.SortFunc(cuts, func(a, b cut) int { return b.from - a.from })
	out := slices.Clone(data)
	for _, c := range cuts {
		out = slices.Delete(out, c.from, c.to)
	}
	return out
}

// findCut finds the first array of that name and the bytes of its elements past n.
func findCut(data []byte, name string, n int) (cut, bool) {
	dec := json.NewDecoder(bytes.NewReader(data))
	for {
		tok, err := dec.Token()
		if err != nil {
			return cut{}, false
		}
		if tok != name {
			continue
		}
		if tok, err = dec.Token(); err != nil || tok != json.Delim('[') {
			continue // the name was a value
		}
		var element json.RawMessage
		c := cut{}
		for i := 0; dec.More(); i++ {
			if i == n {
				c.from = int(dec.InputOffset())
			}
			if err := dec.Decode(&element); err != nil {
				return cut{}, false
			}
			c.to = int(dec.InputOffset())
		}
		return c, c.from > 0 && c.to > c.from
	}
}

// recordedBook is what is needed of a recorded book to list its instrument: levels as arrays or objects.
type recordedBook struct {
	bids, asks [][2]string
}

func readRecordedBook(data []byte) recordedBook {
	var b recordedBook
	for _, side := range []struct {
		name string
		into *[][2]string
	}{{"bids", &b.bids}, {"asks", &b.asks}} {
		raw := levelsOf(data, side.name)
		for _, r := range raw {
			var list []json.RawMessage
			var obj struct{ Price, Size string }
			if json.Unmarshal(r, &list) == nil && len(list) >= 2 {
				*side.into = append(*side.into, [2]string{strings.Trim(string(list[0]), `"`), strings.Trim(string(list[1]), `"`)})
			} else if json.Unmarshal(r, &obj) == nil {
				*side.into = append(*side.into, [2]string{obj.Price, obj.Size})
			}
		}
	}
	return b
}

// levelsOf gives the elements of the first array of that name.
func levelsOf(data []byte, name string) []json.RawMessage {
	dec := json.NewDecoder(bytes.NewReader(data))
	for {
		tok, err := dec.Token()
		if err != nil {
			return nil
		}
		if tok != name {
			continue
		}
		var out []json.RawMessage
		if dec.Decode(&out) == nil {
			return out
		}
	}
}

// listRecorded lists the instrument of a payload. Tick and lot are the finest decimals that the recording shows; the ticker and the
// figures of the day come from a simulated market around the recorded best price.
func (v *Venue) listRecorded(p Payload, data []byte, seed uint64) error {
	if p.Base == "" || p.Quote == "" || p.Symbol == "" {
		return fmt.Errorf("%s: symbol, base and quote go together", p.File)
	}
	b := readRecordedBook(data)
	in := Instrument{Symbol: p.Symbol, Base: p.Base, Quote: p.Quote, Tick: "0.01", Lot: "0.00000001", Price: "100", Size: "1", Every: time.Second}
	if len(b.bids)+len(b.asks) > 0 {
		all := append(slices.Clone(b.bids), b.asks...)
		in.Tick, in.Lot = finest(all, 0), finest(all, 1)
		in.Price, in.Size = eightUnits(all[0][0], in.Tick), eightUnits(largest(all), in.Lot)
	}
	if err := v.list(in, seed); err != nil {
		return fmt.Errorf("%s: %w", p.File, err)
	}
	v.pairs[p.Symbol].recorded = true
	return nil
}

// eightUnits is the number, or eight units if it is less: a simulated market needs room to move.
func eightUnits(number, unit string) string {
	n, err1 := parseAmount(number)
	u, err2 := parseAmount(unit)
	if least := u.mul(amountOf(8)); err1 != nil || err2 != nil || n.sub(least).n.Sign() < 0 {
		return least.plain()
	}
	return number
}

// finest is one unit of the last decimal that any level uses.
func finest(levels [][2]string, field int) string {
	decimals := 0
	for _, l := range levels {
		if a, err := parseAmount(l[field]); err == nil {
			_, frac, _ := strings.Cut(a.plain(), ".")
			decimals = max(decimals, len(frac))
		}
	}
	if decimals == 0 {
		return "1"
	}
	return "0." + strings.Repeat("0", decimals-1) + "1"
}

// largest is the largest size among the levels.
func largest(levels [][2]string) string {
	most := amountOf(0)
	for _, l := range levels {
		if a, err := parseAmount(l[1]); err == nil && a.sub(most).n.Sign() > 0 {
			most = a
		}
	}
	return most.plain()
}
