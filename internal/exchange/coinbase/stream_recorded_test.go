package coinbase_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"exchange-gateway/internal/market"
)

// cleanEnds are the books after the last frame of the derived recording, as its description tells them.
var cleanEnds = map[string]string{
	"CRV-EUR": "389/297 3.2956x96.95 3.301x97.66 sums 121341.07 126866.87",
	"NU-GBP":  "118/450 0.4388x242.89 0.4393x8208.213533 sums 1883142.291043 2321605.395302",
}

func rowsOf(text string) []string { return strings.Split(strings.TrimSpace(text), "\n") }

// replay decodes frames one after the other into local books; it returns them and what was told besides.
func replay(t *testing.T, s *connection, frames []string) (books, string) {
	t.Helper()
	held := make(books)
	var told []market.StreamEvent
	for _, line := range frames {
		for _, e := range s.conn.Decode([]byte(line), time.Now()) {
			held.apply(t, []market.StreamEvent{e})
			if e.Kind != market.StreamUpdate && e.Kind != market.StreamSnapshot {
				told = append(told, e)
			}
		}
	}
	return held, events(told)
}

// recordedClean: 255 frames of one connection; then with each frame lost in turn, each doubled, and each neighbour swapped.
func recordedClean(t *testing.T, text string) {
	frames := rowsOf(text)
	if len(frames) != 255 {
		t.Fatalf("%d frames", len(frames))
	}
	play := func(frames []string) (books, string) {
		s := newStream(t, "CRV-EUR", "NU-GBP")
		return replay(t, s, frames)
	}
	ends := func(t *testing.T, b books) {
		t.Helper()
		for symbol, want := range cleanEnds {
			if b[symbol] == nil || b[symbol].digest() != want {
				t.Errorf("%s ends as %+v, want %s", symbol, b[symbol], want)
			}
		}
	}
	const accepted = "accepted CRV-EUR\naccepted NU-GBP"
	b, told := play(frames)
	ends(t, b)
	if told != accepted {
		t.Errorf("told %s", told)
	}
	t.Run("repeat", func(t *testing.T) {
		var doubled []string
		for i, f := range frames {
			doubled = append(doubled, f, f)
			if i >= 10 {
				doubled = append(doubled, frames[i-10])
			}
		}
		b, told := play(doubled)
		ends(t, b)
		if told != accepted {
			t.Errorf("told %s", told)
		}
	})
	for name, change := range map[string]func(i int) []string{
		"gap":  func(i int) []string { return append(append([]string{}, frames[:i]...), frames[i+1:]...) },
		"swap": func(i int) []string { return append(append([]string{}, frames[:i]...), frames[i+1], frames[i]) },
	} {
		t.Run(name, func(t *testing.T) {
			for i := 1; i < len(frames)-1; i += 9 {
				s := newStream(t, "CRV-EUR", "NU-GBP")
				altered := change(i)
				if _, told := replay(t, s, altered[:i]); strings.Contains(told, "lost") {
					t.Fatalf("frame %d: told %s before it", i, told)
				}
				if b, told := replay(t, s, altered[i:i+1]); told != "lost reconnect suspect" || len(b) != 0 {
					t.Fatalf("frame %d: told %s", i, told)
				}
				if b, told := replay(t, s, altered[i+1:]); told != "" || len(b) != 0 {
					t.Fatalf("frame %d: told %s after it", i, told)
				}
			}
		})
	}
}

// recordedSession: the snapshot before the ack, unsorted; acks that list the whole set; a heartbeat that counts.
func recordedSession(t *testing.T, text string) {
	s := newStream(t, "BTC-PERP-INTX", "ETH-PERP-INTX")
	b, told := replay(t, s, rowsOf(text))
	if told != "accepted BTC-PERP-INTX\naccepted ETH-PERP-INTX" {
		t.Errorf("told %s", told)
	}
	if got := b["BTC-PERP-INTX"].digest(); got != "2/2 79943.9x3.0105 79944x0.048 sums 3.5105 1.248" {
		t.Errorf("book %s", got)
	}
	s.next = 5
	s.want(s.frame("heartbeats", ""), "lost reconnect suspect")
}

// recorded2024 are frames of several sessions. None says anything about a book of ours; the last two, which are one
// heartbeat under two numbers, are the next frame and a gap.
func recorded2024(t *testing.T, text string) {
	all := rowsOf(text)
	if len(all) != 6 {
		t.Fatalf("%d frames", len(all))
	}
	for _, line := range all {
		s := newStream(t, "ETH-USDT")
		s.want(s.raw(line))
	}
	s := newStream(t, "ETH-USDT")
	s.want(s.raw(all[4]))
	s.want(s.raw(all[5]), "lost reconnect suspect")
}

// recordedDocs are frames in the style of the documentation, each with a sequence of its own.
func recordedDocs(t *testing.T, text string) {
	all := rowsOf(text)
	if len(all) != 7 {
		t.Fatalf("%d frames", len(all))
	}
	s := newStream(t, "BTC-USD")
	b, told := replay(t, s, all[1:3])
	if got := b["BTC-USD"].digest(); told != "" || got != "3/2 68900.00x2.00000000 68901.50x1.20000000 sums 5.05 2" {
		t.Errorf("book %s, told %s", got, told)
	}
	for i, want := range []string{"accepted BTC-USD", "", "", "", "", "", ""} {
		s := newStream(t, "BTC-USD")
		if i == 1 || i == 2 {
			continue
		}
		s.want(s.raw(all[i]), want)
	}
}

// recordedStreamErrors: the class of the recording, of the errors that Advanced Trade sends on streams.
func recordedStreamErrors(t *testing.T, text string) {
	want := map[string]string{
		"auth_or_config_or_bad_channel": "refused BTC-USD auth",
		"rate_limited:subscription_cap": "refused BTC-USD rate_limited",
	}
	asked := 0
	for _, line := range rowsOf(text) {
		var row struct{ API, Transport, Body, Class string }
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		if row.API != "advanced" || row.Transport != "ws" {
			continue
		}
		asked++
		s := newStream(t, "BTC-USD")
		got := s.raw(row.Body)
		if got == "" {
			got = s.tick(3 * time.Second)
		}
		if got != want[row.Class] {
			t.Errorf("%s: got %s, want %s", row.Body, got, want[row.Class])
		}
	}
	if asked != 2 {
		t.Errorf("%d errors of streams, want 2", asked)
	}
}
