package binance_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"exchange-gateway/internal/exchange/binance"
	"exchange-gateway/internal/market"
)

const ab = "AB" // the symbol of most tests here

// TestStream_workedExample is the worked example of the procedure: an event that the snapshot has already, and one that starts
// right after it.
func TestStream_workedExample(t *testing.T) {
	l := newLine(t, "NKNUSDT")
	l.hears("wanted NKNUSDT", change("NKNUSDT", 499869750, 499869752, "0.3513x6195", ""))
	l.loads("snapshot NKNUSDT 499869752 0.3521x672|0.3525x3959", "NKNUSDT", 499869752, "0.3521x672", "0.3525x3959")
	l.hears("update NKNUSDT 499869754 0.3517x4265|0.3529x10968", change("NKNUSDT", 499869753, 499869754, "0.3517x4265", "0.3529x10968"))
}

// TestStream_firstEvent: what the first event after a snapshot may look like.
func TestStream_firstEvent(t *testing.T) {
	for name, c := range map[string]struct {
		first, last int64
		want        string
	}{
		"starts right after it":    {101, 105, "update AB 105 4x1|"},
		"is one change":            {101, 101, "update AB 101 4x1|"},
		"straddles it":             {95, 105, "update AB 105 4x1|"},
		"ends with it":             {95, 100, ""},
		"lies before it":           {90, 95, ""},
		"overlaps it by its start": {100, 101, "update AB 101 4x1|"},
		"leaves a hole":            {102, 105, "lost AB by snapshot unavailable; wanted AB"},
	} {
		t.Run(name, func(t *testing.T) {
			late := newLine(t, ab) // the event comes after the snapshot
			late.hears("wanted AB", change(ab, 90, 93, "", ""))
			late.loads("snapshot AB 100 3x1|9x1", ab, 100, "3x1", "9x1")
			late.hears(c.want, change(ab, c.first, c.last, "4x1", ""))

			early := newLine(t, ab) // the event waits for the snapshot
			early.hears("wanted AB", change(ab, c.first, c.last, "4x1", ""))
			want := "snapshot AB 100 3x1|9x1"
			switch {
			case c.first > 101:
				want = "wanted AB"
			case c.want != "":
				want += "; " + c.want
			}
			early.loads(want, ab, 100, "3x1", "9x1")
		})
	}
}

// TestStream_snapshotTooOld: events stay while a snapshot that is new enough is asked for, as often as it takes. A client that
// threw them away each time never synced.
func TestStream_snapshotTooOld(t *testing.T) {
	l := newLine(t, ab)
	l.hears("wanted AB", change(ab, 50, 52, "1x1", ""), change(ab, 53, 55, "2x2", ""))
	l.loads("wanted AB", ab, 40, "", "")
	l.hears("", change(ab, 56, 56, "", "9x9"))
	l.loads("wanted AB", ab, 48, "", "")
	l.loads("snapshot AB 49 5x5|; update AB 52 1x1|; update AB 55 2x2|; update AB 56 |9x9", ab, 49, "5x5", "")
	l.hears("update AB 57 |", change(ab, 57, 57, "", ""))
}

// TestStream_keepsCopies: what waits for a snapshot does not lie in the memory of later messages.
func TestStream_keepsCopies(t *testing.T) {
	l := newLine(t, ab)
	text := []byte(change(ab, 1, 1, "1.5x2", "3x4"))
	l.Decode(text, l.now)
	clear(text)
	l.hears("", change(ab, 2, 2, "7x7 8x8", "9x9"))
	l.loads("snapshot AB 0 |; update AB 1 1.5x2|3x4; update AB 2 7x7 8x8|9x9", ab, 0, "", "")
}

func TestStream_gap(t *testing.T) {
	l := newLine(t, ab, "CD")
	for _, s := range []string{ab, "CD"} {
		l.hears("wanted "+s, change(s, 1, 1, "", ""))
		l.loads("snapshot "+s+" 1 |", s, 1, "", "")
	}
	l.hears("lost AB by snapshot unavailable; wanted AB", change(ab, 3, 4, "1x1", ""))
	l.hears("", change(ab, 2, 2, "9x9", "")) // the missing one, late
	l.hears("", change(ab, 5, 6, "2x2", ""))
	l.hears("update CD 2 |", change("CD", 2, 2, "", "")) // the other book goes on
	l.loads("wanted AB", ab, 1, "", "")
	l.loads("snapshot AB 2 |; update AB 4 1x1|; update AB 6 2x2|", ab, 2, "", "")

	events := l.Decode([]byte(change(ab, 10, 11, "", "")), l.now)
	e := asError(t, events[0].Err)
	if e.Exchange != binance.ID || e.Op != market.OpStream || e.Err.Error() != "changes 7 to 9 did not come" {
		t.Errorf("error %v", e)
	}
}

// TestStream_holeWhileWaiting: what was kept before a hole is useless and goes; what comes after it waits on.
func TestStream_holeWhileWaiting(t *testing.T) {
	l := newLine(t, ab)
	l.hears("wanted AB", change(ab, 1, 2, "1x1", ""), change(ab, 5, 6, "5x5", ""), change(ab, 7, 7, "7x7", ""))
	l.loads("wanted AB", ab, 2, "", "")
	l.loads("snapshot AB 4 |; update AB 6 5x5|; update AB 7 7x7|", ab, 4, "", "")
}

// TestStream_repeatsAndOverlaps: an event that came before says nothing; one that overlaps what came before is applied whole.
func TestStream_repeatsAndOverlaps(t *testing.T) {
	l := newLine(t, ab)
	first, second := change(ab, 1, 3, "1x1", ""), change(ab, 4, 6, "2x2", "")
	l.hears("wanted AB", first, first, second, first, second)
	l.loads("snapshot AB 0 |; update AB 3 1x1|; update AB 6 2x2|", ab, 0, "", "")
	l.hears("", first, second)
	l.hears("update AB 9 3x3|", change(ab, 5, 9, "3x3", ""))
	l.hears("update AB 10 |", change(ab, 10, 10, "", ""))
}

// TestStream_quietPair: a pair without events is asked for two seconds after its subscription was acknowledged, once.
func TestStream_quietPair(t *testing.T) {
	l := newLine(t, ab, "CD")
	l.ticks("", 9*time.Second) // nothing is known yet
	l.hears("accepted AB; accepted CD", `{"result":null,"id":1}`)
	l.ticks("", 1999*time.Millisecond)
	l.hears("wanted CD", change("CD", 5, 5, "", ""))
	l.ticks("wanted AB", time.Millisecond)
	l.ticks("", time.Hour)
	l.loads("snapshot AB 7 1x1|2x2", ab, 7, "1x1", "2x2")
	l.ticks("", time.Hour)
	l.hears("update AB 9 1x3|", change(ab, 8, 9, "1x3", ""))
	l.hears("lost AB by snapshot unavailable; wanted AB", change(ab, 11, 11, "", ""))
}

// TestStream_refresh: a snapshot of a book that is synced replaces it without a moment in which there is none. One that is
// older than the book needs the events since, and they are kept from then on until the next snapshot.
func TestStream_refresh(t *testing.T) {
	synced := func(t *testing.T) *line {
		l := newLine(t, ab)
		l.hears("wanted AB", change(ab, 1, 1, "", ""))
		l.loads("snapshot AB 10 1x1|", ab, 10, "1x1", "")
		l.hears("update AB 20 2x2|", change(ab, 11, 20, "2x2", ""))
		return l
	}
	t.Run("of the same version", func(t *testing.T) {
		l := synced(t)
		l.loads("snapshot AB 20 2x2 1x1|", ab, 20, "1x1 2x2", "")
		l.hears("update AB 21 |", change(ab, 21, 21, "", ""))
	})
	t.Run("that is ahead", func(t *testing.T) {
		l := synced(t)
		l.loads("snapshot AB 25 5x5|", ab, 25, "5x5", "")
		l.hears("update AB 27 7x7|", change(ab, 21, 24, "4x4", ""), change(ab, 25, 27, "7x7", ""))
	})
	t.Run("that is behind", func(t *testing.T) {
		l := synced(t)
		l.loads("wanted AB", ab, 15, "", "")
		l.hears("update AB 22 3x3|; update AB 23 4x4|", change(ab, 21, 22, "3x3", ""), change(ab, 23, 23, "4x4", ""))
		l.loads("wanted AB", ab, 19, "", "") // older than the first event kept
		l.hears("update AB 24 |", change(ab, 24, 24, "", ""))
		l.loads("snapshot AB 22 6x6|; update AB 23 4x4|; update AB 24 |", ab, 22, "6x6", "")
		l.hears("update AB 25 |", change(ab, 25, 25, "", ""))
		if n, _ := binance.Kept(l.StreamConn); n != 0 {
			t.Errorf("%d levels are kept after the refresh", n)
		}
	})
	t.Run("behind a book that then stands still", func(t *testing.T) {
		l := synced(t)
		l.loads("wanted AB", ab, 15, "", "")
		l.loads("wanted AB", ab, 15, "", "")
		l.loads("snapshot AB 20 2x2|", ab, 20, "2x2", "")
	})
	t.Run("with a gap meanwhile", func(t *testing.T) {
		l := synced(t)
		l.loads("wanted AB", ab, 15, "", "")
		l.hears("update AB 22 3x3|; lost AB by snapshot unavailable; wanted AB", change(ab, 21, 22, "3x3", ""), change(ab, 24, 24, "4x4", ""))
		l.loads("wanted AB", ab, 22, "", "")
		l.loads("snapshot AB 23 |; update AB 24 4x4|", ab, 23, "", "")
	})
	t.Run("that never comes", func(t *testing.T) {
		l := synced(t)
		l.loads("wanted AB", ab, 15, "", "")
		for id := int64(21); id < binance.MaxBuffered+100; id++ {
			l.hears(fmt.Sprintf("update AB %d 1x1|", id), change(ab, id, id, "1x1", ""))
			if id%100 != 0 {
				continue
			}
			if n, counted := binance.Kept(l.StreamConn); n > binance.MaxBuffered || n != counted {
				t.Fatalf("%d levels are kept, counted %d", n, counted)
			}
		}
		if n, _ := binance.Kept(l.StreamConn); n != 0 {
			t.Errorf("%d levels are kept for a refresh that was given up", n)
		}
	})
}

// TestStream_bounds: a snapshot that does not come cannot fill the memory: past a bound a book is kept anew.
func TestStream_bounds(t *testing.T) {
	t.Run("events", func(t *testing.T) {
		l := newLine(t, ab)
		l.hears("wanted AB", change(ab, 1, 1, "1x1", ""))
		for id := int64(2); id <= binance.MaxBuffered+2; id++ {
			l.hears("", change(ab, id, id, "1x1", ""))
		}
		n, _ := binance.Kept(l.StreamConn)
		same(t, "levels kept", n, 2)
		l.loads("wanted AB", ab, 1, "", "")
		l.loads("snapshot AB 5000 |; update AB 5001 1x1|; update AB 5002 1x1|", ab, 5000, "", "")
	})
	t.Run("levels", func(t *testing.T) {
		var symbols []string
		for i := range 40 {
			symbols = append(symbols, fmt.Sprintf("S%d", i))
		}
		l := newLine(t, symbols...)
		var many string
		for i := range 1000 {
			many += fmt.Sprintf("%dx1 ", i+1)
		}
		text := change("SYMBOL", 77, 77, many, "")
		of := func(symbol string, id int64) []byte {
			return []byte(strings.NewReplacer("symbol@", strings.ToLower(symbol)+"@", "SYMBOL", symbol, ":77,", fmt.Sprintf(":%d,", id)).Replace(text))
		}
		for id := int64(1); id <= 15; id++ { // 600,000 levels
			for _, s := range symbols {
				l.Decode(of(s, id), l.now)
			}
			n, counted := binance.Kept(l.StreamConn)
			if n != counted || n > binance.MaxKeptInAll || id == 15 && n == 0 {
				t.Fatalf("%d levels are kept, counted %d", n, counted)
			}
		}
		if err := l.Unsubscribe(t.Context(), subsOf(market.StreamBook, symbols...)); err != nil {
			t.Fatal(err)
		}
		if _, counted := binance.Kept(l.StreamConn); counted != 0 {
			t.Errorf("%d levels are counted without books", counted)
		}
		one := newLine(t, ab)
		for id := int64(1); id <= 40; id++ {
			one.Decode(of(ab, id), one.now)
			if n, _ := binance.Kept(one.StreamConn); n > binance.MaxBufferedLevels || n == 0 {
				t.Fatalf("%d levels are kept of one book", n)
			}
		}
	})
}

// TestStream_distrust: a book that was found wrong is not passed on any more; its events wait for the snapshot.
func TestStream_distrust(t *testing.T) {
	l := newLine(t, ab)
	l.hears("wanted AB", change(ab, 1, 1, "", ""))
	l.loads("snapshot AB 1 |", ab, 1, "", "")
	same(t, "told", told(l.Distrust(ab, errors.New("best bid is above best ask"))), "lost AB by snapshot suspect; wanted AB")
	l.hears("", change(ab, 2, 2, "2x2", ""))
	l.loads("snapshot AB 1 |; update AB 2 2x2|", ab, 1, "", "")
	frozen := &market.Error{Exchange: binance.ID, Op: market.OpStream, Kind: market.KindTimeout}
	same(t, "told", told(l.Distrust(ab, frozen)), "lost AB by snapshot timeout; wanted AB")
	same(t, "of another", told(l.Distrust("CD", frozen)), "")
	same(t, "of another", told(l.Load(restBook(t, "CD", 1, "", ""))), "")
}

// TestStream_snapshot: what a snapshot tells about its own bounds and age.
func TestStream_snapshot(t *testing.T) {
	l := newLine(t, ab)
	l.hears("wanted AB", change(ab, 5, 5, "", ""))
	e := l.Load(restBook(t, ab, 4, "1x1", "2x2"))
	if e[0].Limit != 1000 || e[0].Window || !e[0].ConfirmedAt.Equal(askedAt) || !e[0].ExchangeTime.IsZero() {
		t.Errorf("snapshot %+v", e[0])
	}
	if !e[1].ConfirmedAt.IsZero() || !e[1].ExchangeTime.Equal(time.UnixMilli(1622363903670)) {
		t.Errorf("update %+v", e[1])
	}
	b := restBook(t, ab, 9, "", "")
	b.Sequence = market.Sequence{}
	same(t, "a snapshot without an id", told(l.Load(b)), "wanted AB")
}
