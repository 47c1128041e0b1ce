package market

import "sync"

// encodedLevels is the JSON text of both sides, with the end of each level, so that a book of any smaller depth is a
// prefix of the same bytes: `["64073.00","0.58849577"],["64072.90","1"],`...
type encodedLevels struct {
	once sync.Once
	bids encodedSide
	asks encodedSide
}

type encodedSide struct {
	text []byte
	ends []uint32 // ends[i] is where level i ends, its comma left out
}

// AppendBids appends the best n bids as a JSON array of [price, size] pairs of strings.
func (l *Levels) AppendBids(dst []byte, n int) []byte { return l.encoded().bids.append(dst, n) }

// AppendAsks appends the best n asks as a JSON array of [price, size] pairs of strings.
func (l *Levels) AppendAsks(dst []byte, n int) []byte { return l.encoded().asks.append(dst, n) }

// EncodedSize is the number of bytes that AppendBids and AppendAsks write for depth n, to size a buffer.
func (l *Levels) EncodedSize(n int) int {
	e := l.encoded()
	return e.bids.size(n) + e.asks.size(n)
}

func (l *Levels) encoded() *encodedLevels {
	l.text.once.Do(func() {
		l.text.bids = encodeSide(l.bids)
		l.text.asks = encodeSide(l.asks)
	})
	return &l.text
}

// levelBytes is a generous guess of one encoded level: two numbers of a dozen digits and seven bytes of punctuation.
const levelBytes = 40

// AppendJSON appends the level as an array of two strings: ["64073.00","0.58849577"].
func (l *Level) AppendJSON(dst []byte) []byte {
	dst = append(dst, '[', '"')
	dst = l.Price.AppendText(dst)
	dst = append(dst, '"', ',', '"')
	dst = l.Size.AppendText(dst)
	return append(dst, '"', ']')
}

func encodeSide(side []Level) encodedSide {
	text, ends := make([]byte, 0, len(side)*levelBytes), make([]uint32, len(side))
	for i := range side {
		if i > 0 {
			text = append(text, ',')
		}
		text = side[i].AppendJSON(text)
		ends[i] = uint32(len(text)) // a side of 4 GiB of text is beyond every body limit
	}
	return encodedSide{text: text, ends: ends}
}

func (s *encodedSide) append(dst []byte, n int) []byte {
	dst = append(dst, '[')
	dst = append(dst, s.text[:s.size(n)-2]...)
	return append(dst, ']')
}

func (s *encodedSide) size(n int) int {
	n = min(n, len(s.ends))
	if n <= 0 {
		return 2
	}
	return int(s.ends[n-1]) + 2
}
