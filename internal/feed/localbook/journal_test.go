package localbook_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"exchange-gateway/internal/feed/localbook"
	"exchange-gateway/internal/market"
)

const maxJournal = 256 << 10

// TestJournal_baseAndFramesMakeTheBook: whatever happened, the captured base and the changes of the captured frames make the
// present book, and the frames are the newest ones.
func TestJournal_baseAndFramesMakeTheBook(t *testing.T) {
	f := func(seed uint64, odd, limit int, window bool) {
		t.Helper()
		j := &journalled{
			source: source{Rand: rand.New(rand.NewPCG(seed, 11)), middle: 6_407_300, odd: odd},
			t:      t, book: localbook.New(), limit: limit, window: window,
		}
		for i := range 600 {
			switch n := j.IntN(200); {
			case n == 0 || i == 0:
				j.snapshotByREST()
			case n == 1:
				j.snapshotByStream()
			default:
				j.update()
			}
			if i%37 == 0 || i < 5 {
				j.check(fmt.Sprintf("seed %d step %d", seed, i))
			}
		}
		if j.most < 50 {
			t.Errorf("seed %d: never more than %d frames", seed, j.most)
		}
	}
	for seed := range uint64(2) {
		f(seed, 0, 0, false)
		f(seed, 5, 0, false)
		f(seed, 20, 30, false)
		f(seed, 20, 15, true)
	}
}

// journalled drives a book with its journal and remembers the book after every frame.
type journalled struct {
	source
	t       *testing.T
	book    *localbook.Book
	journal localbook.Journal
	undo    localbook.Undo
	limit   int
	window  bool

	sequence int64
	history  []moment // the first is the base of the journal's start, each other follows a frame
	most     int
}

type moment struct {
	bids, asks []market.Level
	mark       localbook.Mark
	loaded     bool
	frame      []byte
	at         time.Time
}

func (j *journalled) remember(raw []byte, at time.Time) {
	j.history = append(j.history, moment{
		bids: j.book.Bids(nil, localbook.MaxLevels), asks: j.book.Asks(nil, localbook.MaxLevels), mark: j.mark(),
		loaded: true, frame: raw, at: at,
	})
}

func (j *journalled) mark() localbook.Mark {
	m := localbook.Mark{Sequence: market.Sequence{Value: j.sequence, Known: j.sequence%3 != 0}}
	if j.sequence%2 == 0 {
		m.ExchangeTime = time.Unix(1_700_000_000, j.sequence).UTC()
	}
	return m
}

func (j *journalled) load() {
	if err := j.book.Load(j.snapshot(0, 30), j.snapshot(1, 30), j.limit, j.window); err != nil {
		j.t.Fatal(err)
	}
	j.sequence++
}

func (j *journalled) snapshotByREST() {
	j.load()
	j.journal.Restart(j.mark())
	j.history = nil
	j.remember(nil, time.Time{})
}

func (j *journalled) snapshotByStream() {
	j.load()
	raw, at := j.raw()
	j.journal.AddSnapshot(at, raw, j.mark())
	j.history = []moment{{}}
	j.remember(raw, at)
}

// raw is a frame: a number, and up to 6 KB more.
func (j *journalled) raw() ([]byte, time.Time) {
	raw := binary.LittleEndian.AppendUint64(nil, uint64(j.sequence))
	raw = append(raw, make([]byte, j.IntN(6<<10))...)
	return raw, time.Unix(1_700_000_000+j.sequence, 5).UTC()
}

// update applies up to three diffs of one frame. A diff that crosses the book is part of the frame and changes nothing.
func (j *journalled) update() {
	j.middle += int64(j.IntN(5)) - 2
	j.undo.Reset()
	for range j.IntN(4) {
		m := &model{bids: j.book.Bids(nil, localbook.MaxLevels), asks: j.book.Asks(nil, localbook.MaxLevels)}
		bids, asks := j.diff(0, j.IntN(12)), j.diff(1, j.IntN(12))
		bids, asks = clearWay(m, 0, bids, asks), clearWay(m, 1, asks, bids)
		_ = j.book.ApplyUndo(bids, asks, &j.undo)
	}
	j.sequence++
	raw, at := j.raw()
	if j.IntN(300) == 0 {
		raw = make([]byte, maxJournal)
		j.history = nil
	}
	j.journal.Add(at, raw, &j.undo, j.mark())
	j.remember(raw, at)
}

func (j *journalled) check(where string) {
	j.t.Helper()
	c := j.journal.Capture(j.book)
	if len(c.Frames) > 200 || len(c.Frames) >= len(j.history) {
		j.t.Fatalf("%s: %d frames of %d", where, len(c.Frames), len(j.history)-1)
	}
	j.most = max(j.most, len(c.Frames))
	kept := j.history[len(j.history)-1-len(c.Frames):]
	base, size := kept[0], 0
	if !same(c.Bids, base.bids) || !same(c.Asks, base.asks) || c.Before != base.mark || c.Loaded != base.loaded {
		j.t.Fatalf("%s: base %s | %s %v\nwant %s | %s %v", where, text(c.Bids), text(c.Asks), c.Before, text(base.bids), text(base.asks), base.mark)
	}
	for i, f := range c.Frames {
		if want := kept[i+1]; !bytes.Equal(f.Text, want.frame) || !f.At.Equal(want.at) {
			j.t.Fatalf("%s: frame %d is not the one that came", where, i)
		}
		size += len(f.Text)
	}
	if size > maxJournal {
		j.t.Fatalf("%s: %d bytes", where, size)
	}
	// Nothing is let go without need: 200 frames, or most of the room used.
	if most := len(j.history) - 1; len(c.Frames) < min(most, 200) && size < maxJournal*8/10-6<<10 {
		j.t.Fatalf("%s: only %d of %d frames, %d bytes", where, len(c.Frames), most, size)
	}
	if last := j.history[len(j.history)-1]; !same(j.book.Bids(nil, localbook.MaxLevels), last.bids) {
		j.t.Fatalf("%s: Capture changed the book", where)
	}
}

func TestJournal_bounds(t *testing.T) {
	book, at := load(t, "2x1", "3x1", 0, false), time.Unix(1_700_000_000, 0)
	var j localbook.Journal
	f := func(what string, frames int, first string) {
		t.Helper()
		c := j.Capture(book)
		if len(c.Frames) != frames || frames > 0 && string(bytes.TrimRight(c.Frames[0].Text, "\x00")) != first {
			t.Errorf("%s: %d frames, want %d from %q", what, len(c.Frames), frames, first)
		}
		if spelled(c.Bids) != "2x1" || !c.Loaded {
			t.Errorf("%s: base %s, loaded %t", what, spelled(c.Bids), c.Loaded)
		}
	}
	f("new", 0, "")
	for i := range 201 {
		j.Add(at, fmt.Append(nil, i), nil, localbook.Mark{})
	}
	f("201 small frames", 200, "1")
	large := make([]byte, 100<<10)
	copy(large, "large")
	j.Add(at, large, nil, localbook.Mark{})
	f("a large one", 200, "2")
	j.Add(at, large, nil, localbook.Mark{})
	f("two large ones", 200, "3")
	j.Add(at, large, nil, localbook.Mark{})
	f("three do not fit", 2, "large")
	j.Add(at, make([]byte, maxJournal), nil, localbook.Mark{})
	f("larger than all", 0, "")
	j.Add(at, nil, nil, localbook.Mark{})
	f("an empty frame", 1, "")
}

// TestJournal_snapshotTooLarge: of a stream's snapshot that does not fit, the book stays as the base.
func TestJournal_snapshotTooLarge(t *testing.T) {
	book := load(t, "2x1", "3x1", 0, false)
	var j localbook.Journal
	now := localbook.Mark{Sequence: market.SequenceOf(7)}
	j.AddSnapshot(time.Unix(1, 0), make([]byte, maxJournal), now)
	if c := j.Capture(book); len(c.Frames) != 0 || spelled(c.Bids) != "2x1" || !c.Loaded || c.Before != now {
		t.Errorf("%+v", c)
	}
}
