package e2e_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"exchange-gateway/internal/exchangesim"
)

// captured reads the capture of the busy pair of an exchange as an operator does, and checks its bounds.
func (g *gateway) captured(t *testing.T, exchange string) (text []byte, c exchangesim.Capture) {
	t.Helper()
	a := g.get(t.Context(), g.admin+"/admin/v1/captures/"+exchange+"?symbol="+pairOf(exchange))
	if err := json.Unmarshal(a.body, &c); err != nil || a.status != http.StatusOK {
		t.Fatalf("capture of %s: %v: %v", exchange, err, a)
	}
	size := 0
	for _, f := range c.Frames {
		size += len(f.Text)
	}
	if n := len(c.Frames); n == 0 || n > 200 || size > 256<<10 {
		t.Errorf("%s: %d frames of %d bytes", exchange, n, size)
	}
	return a.body, c
}

// position is where a book stands: at a sequence, or at a moment where the exchange has none for a book.
type position struct {
	seq    *int64
	moment string
}

// after is the position of a book after a frame, in the words of its exchange.
func after(t *testing.T, exchange, frame string) (at position) {
	t.Helper()
	var err error
	switch exchange {
	case "binance":
		var m struct{ Data map[string]json.RawMessage } // keys that differ by case alone
		if err = json.Unmarshal([]byte(frame), &m); err == nil {
			err = json.Unmarshal(m.Data["u"], &at.seq)
		}
	case "okx":
		var m struct{ Data [1]struct{ SeqID int64 } }
		err, at.seq = json.Unmarshal([]byte(frame), &m), &m.Data[0].SeqID
	case "coinbase":
		var m struct{ Timestamp string }
		err, at.moment = json.Unmarshal([]byte(frame), &m), m.Timestamp
	}
	if err != nil || at.seq == nil && at.moment == "" {
		t.Fatalf("%s: %v: %.300s", exchange, err, frame)
	}
	return at
}

// reached tells whether a message has brought a book there.
func (at position) reached(t *testing.T, m message) bool {
	t.Helper()
	if at.seq != nil {
		return m.ExchangeSeq != nil && *m.ExchangeSeq == *at.seq
	}
	want, werr := time.Parse(time.RFC3339Nano, at.moment)
	got, gerr := time.Parse(time.RFC3339Nano, m.ExchangeTime)
	if werr != nil || gerr != nil {
		t.Fatalf("%v, %v", werr, gerr)
	}
	return got.Equal(want)
}

// A capture holds a book and the messages after it. A simulated exchange that plays it begins with that book, and a gateway
// that streams from there comes to the book that the one had that gave the capture.
func TestStreams_capture_isPlayedToTheSameBook(t *testing.T) {
	t.Parallel()
	sim := simulate(t)
	g := before(t, sim).streaming(sim).warm(sim).serve(t)
	for _, id := range ids() {
		eventually(t, 15*time.Second, id+": a book of the stream", func() bool { return g.live(id, pairOf(id)).Freshness.Source == "stream" })
		a := g.get(t.Context(), g.public+"/admin/v1/captures/"+id+"?symbol="+pairOf(id))
		if a.status != http.StatusNotFound || strings.Contains(string(a.body), "frames") {
			t.Errorf("on the public listener: %v, want 404", a)
		}
	}
	time.Sleep(3 * time.Second)
	for _, id := range ids() {
		text, c := g.captured(t, id)
		// OKX begins with a snapshot of its stream, before which there was no book. Those of the others came by REST, or
		// are larger than what is kept.
		if held := len(c.Base.Bids) > 0 && len(c.Base.Asks) > 0; held != (id != "okx") {
			t.Errorf("%s: %d bids and %d asks before the first frame", id, len(c.Base.Bids), len(c.Base.Asks))
		}
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			replayed(t, sim, text, c)
		})
	}
	t.Run("okx, when the snapshot is gone", func(t *testing.T) {
		t.Parallel()
		var c exchangesim.Capture
		eventually(t, time.Minute, "200 messages, at ten a second", func() bool {
			time.Sleep(500 * time.Millisecond)
			_, c = g.captured(t, "okx")
			return len(c.Base.Bids) > 0
		})
		c.Frames = slices.Clone(c.Frames[:30]) // they are played as fast as they came, and these will do
		text, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		replayed(t, sim, text, c)
	})
}

// replayed plays a capture to a gateway of its own, and compares the book that it ends with with that of the exchange that
// was captured.
func replayed(t *testing.T, origin *venues, text []byte, c exchangesim.Capture) {
	path := filepath.Join(t.TempDir(), "capture.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"--replay=" + path}
	for _, other := range ids() {
		if other != c.Exchange {
			args = append(args, "--"+other+"=")
		}
	}
	sim := simulate(t, args...)
	of := topic{"orderbook", c.Exchange, c.Pair, 400}
	g := before(t, sim).streaming(sim).serve(t)
	w := g.watch(t, nil, of)
	end := after(t, c.Exchange, c.Frames[len(c.Frames)-1].Text)
	var held shown
	took := eventually(t, 40*time.Second, "all frames are played", func() bool {
		return w.all(func(_ topic, h *shown) bool { held = *h; return h.seq > 0 && end.reached(t, h.last) })
	})
	t.Logf("%d frames in a file of %d bytes, with %d bids before them: played after %v, in %d messages", len(c.Frames), len(text), len(c.Base.Bids), took.Round(time.Millisecond), held.compared)
	want := newTruths(origin, 400)
	m := message{Exchange: c.Exchange, ExchangeSymbol: c.Symbol, ExchangeSeq: end.seq, ExchangeTime: end.moment, Depth: 400, Complete: true}
	if held.compared < len(c.Frames)/2 {
		t.Errorf("%d messages of %d frames", held.compared, len(c.Frames))
	}
	if err := want.compare(&m, held.bids, held.asks); err != nil {
		t.Errorf("at the end: %v", err)
	}
	a := g.live(c.Exchange, c.Pair)
	bids, asks := map[string]string{}, map[string]string{}
	change(bids, a.Bids)
	change(asks, a.Asks)
	m.Depth = 100
	if err := want.compare(&m, bids, asks); err != nil || a.Freshness.Source != "stream" {
		t.Errorf("by REST from %s: %v", a.Freshness.Source, err)
	}
	if len(c.Base.Bids) == 0 {
		return
	}
	// And it began with the book of the file.
	m.ExchangeSeq, m.ExchangeTime = c.Base.Sequence, ""
	if c.Base.ExchangeTime != nil {
		m.ExchangeTime = c.Base.ExchangeTime.Format(time.RFC3339Nano)
	}
	bids, asks = map[string]string{}, map[string]string{}
	change(bids, c.Base.Bids[:min(100, len(c.Base.Bids))])
	change(asks, c.Base.Asks[:min(100, len(c.Base.Asks))])
	if err := want.compare(&m, bids, asks); err != nil {
		t.Errorf("before the first frame: %v", err)
	}
}
