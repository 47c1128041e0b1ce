package localbook

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"exchange-gateway/internal/market"
)

// Undo holds how the levels that were changed had been, so that Book.Revert can take the changes back. It gathers what any
// number of ApplyUndo do until Reset. The zero value is ready. It needs about 16 bytes for each changed level.
type Undo struct{ records []byte }

// maxUndo is the most memory that Reset keeps.
const maxUndo = 64 << 10

// Reset forgets everything.
func (u *Undo) Reset() {
	if cap(u.records) > maxUndo {
		u.records = nil
	}
	u.records = u.records[:0]
}

// Kinds of records; askRecord is added on the ask side.
const (
	absent    byte = iota // price
	present               // price, size
	hadNoEdge             // -
	hadEdge               // price, count of levels
	askRecord byte = 1 << 7
)

func (s *side) record(kind byte) byte {
	if s.sign < 0 {
		return kind | askRecord
	}
	return kind
}

// wasAbsent records a level that is about to be inserted.
func (u *Undo) wasAbsent(s *side, price market.Number) {
	u.records = appendNumber(append(u.records, s.record(absent)), price)
}

// wasPresent records a level that is about to change or go.
func (u *Undo) wasPresent(s *side, price market.Number, e *entry) {
	b := appendNumber(append(u.records, s.record(present)), price)
	u.records = appendNumber(b, s.size(e))
}

// edgeWas records the edge of a side that is about to move.
func (u *Undo) edgeWas(s *side) {
	if !s.hasEdge {
		u.records = append(u.records, s.record(hadNoEdge))
		return
	}
	u.records = appendNumber(append(u.records, s.record(hadEdge)), s.edge.price)
	u.records = binary.AppendUvarint(u.records, uint64(s.known))
}

// reversal gathers, side by side, what takes changes back: for a price that changed more than once, the oldest comes last.
type reversal struct {
	levels [2][]market.Level // bids, asks
	edge   [2]*oldEdge
}

type oldEdge struct {
	has   bool
	price market.Number
	known int
}

// reverse reads records from the newest to the oldest.
func reverse(records []byte) (r reversal) {
	for len(records) > 0 {
		kind, i := records[0]&^askRecord, 0
		if records[0]&askRecord != 0 {
			i = 1
		}
		records = records[1:]
		var l market.Level
		switch kind {
		case absent:
			l.Price, records = takeNumber(records)
			r.levels[i] = append(r.levels[i], l)
		case present:
			l.Price, records = takeNumber(records)
			l.Size, records = takeNumber(records)
			r.levels[i] = append(r.levels[i], l)
		case hadNoEdge:
			r.olderEdge(i, oldEdge{})
		case hadEdge:
			e := oldEdge{has: true}
			e.price, records = takeNumber(records)
			known, n := binary.Uvarint(records)
			e.known, records = int(known), records[n:] // as edgeWas wrote it
			r.olderEdge(i, e)
		}
	}
	for i := range r.levels {
		slices.Reverse(r.levels[i])
	}
	return r
}

// olderEdge keeps the first edge of a side: records are read from the oldest on.
func (r *reversal) olderEdge(i int, e oldEdge) {
	if r.edge[i] == nil {
		r.edge[i] = &e
	}
}

// asText says in place of a count of decimals that a number follows as text.
const asText = 255

// appendNumber writes a number that is not negative: its decimals, then the count and the bytes of its coefficient, or asText,
// then those of its text, of which sane bounds the length.
func appendNumber(dst []byte, n market.Number) []byte {
	coef, exp, ok := parts(n)
	if !ok {
		text := n.String()
		return append(append(dst, asText, byte(len(text))), text...)
	}
	count := (bits.Len64(uint64(coef)) + 7) / 8
	dst = binary.LittleEndian.AppendUint64(append(dst, byte(-exp), byte(count)), uint64(coef))
	return dst[:len(dst)-8+count]
}

// takeNumber reads what appendNumber wrote, and returns the rest.
func takeNumber(b []byte) (market.Number, []byte) {
	end := 2 + int(b[1])
	if b[0] == asText {
		return market.MustNumber(string(b[2:end])), b[end:] // it was a number when it was written
	}
	var coef [8]byte
	copy(coef[:], b[2:end])
	return market.NewNumber(int64(binary.LittleEndian.Uint64(coef[:])), -int16(b[0])), b[end:]
}
