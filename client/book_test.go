package client_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"exchange-gateway/client"
)

// Messages as the gateway writes them, at depth 5 unless said.

const head = `"channel":"orderbook","exchange":"okx","symbol":"BTC/USDT","exchange_symbol":"BTC-USDT","depth":5`

const clocks = `"exchange_seq":7,"exchange_time":"2026-11-29T02:00:00.1Z","confirmed_at":"2026-11-29T02:00:00Z","changed_at":"2026-11-29T02:00:00Z","sent_at":"2026-11-29T02:00:01.5Z"`

func snapshot(epoch string, seq int, bids, asks string) string {
	return fmt.Sprintf(`{"type":"snapshot",%s,"epoch":%q,"seq":%d,"prev_seq":null,"status":"live","complete":true,%s,"conflated":0,"bids":[%s],"asks":[%s]}`,
		head, epoch, seq, clocks, bids, asks)
}

func update(epoch string, seq int, bids, asks string) string {
	return fmt.Sprintf(`{"type":"update",%s,"epoch":%q,"seq":%d,"prev_seq":%d,"status":"live","complete":true,%s,"conflated":0,"bids":[%s],"asks":[%s]}`,
		head, epoch, seq, seq-1, clocks, bids, asks)
}

func status(state, reason string) string {
	return fmt.Sprintf(`{"type":"status",%s,"epoch":null,"status":%q,"reason":%q,"since":"2026-11-29T02:00:00Z","confirmed_at":null,"sent_at":"2026-11-29T02:00:02Z"}`,
		head, state, reason)
}

const (
	someBids = `["100.5","1"],["100","2.0"]`
	someAsks = `["101","1"],["102.50","3"]`
)

func offline(t *testing.T, texts ...string) *client.Watch {
	t.Helper()
	w, err := client.Offline(client.Subscription{Exchange: "okx", Symbols: []string{"BTC-USDT"}, Depth: 5})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range texts {
		if err := w.Take([]byte(text)); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	return w
}

func book(t *testing.T, w *client.Watch) *client.StreamBook {
	t.Helper()
	b, ok := w.Book("BTC/USDT")
	if !ok {
		t.Fatal("no book is held")
	}
	return b
}

// sides is a book as text.
func sides(b *client.StreamBook) string { return fmt.Sprint(b.Bids, b.Asks) }

// drain takes all events, as words.
func drain(t *testing.T, w *client.Watch) (words []string) {
	t.Helper()
	for {
		e, err := w.Pop()
		if err != nil {
			t.Fatal(err)
		}
		switch e := e.(type) {
		case nil:
			return words
		case *client.StreamBook:
			words = append(words, fmt.Sprintf("book %d missed %d", e.Seq, e.Missed))
		case *client.StreamStatus:
			words = append(words, strings.TrimSpace(e.Freshness.Status+" "+e.Freshness.Reason))
		case *client.StreamError:
			words = append(words, fmt.Sprintf("error %s in %v", string(e.Err.Code), e.RetryIn))
		case *client.Connection:
			words = append(words, fmt.Sprintf("connected %v", e.Connected))
		default:
			t.Fatalf("%T", e)
		}
	}
}

func expect(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
}

func TestBook_followsItsMessages(t *testing.T) {
	w := offline(t, status("live", ""))
	if _, ok := w.Book("BTC/USDT"); ok {
		t.Error("a book is held before the snapshot")
	}
	expect(t, drain(t, w))
	if err := w.Take([]byte(snapshot("e1", 4, someBids, someAsks))); err != nil {
		t.Fatal(err)
	}
	expect(t, drain(t, w), "live", "book 4 missed 0")
	held := book(t, w)
	f := held.Freshness
	if f.Stale || f.Age != 1500*time.Millisecond || f.Source != "stream" || f.AgeNow(f.ReceivedAt.Add(time.Second)) != 2500*time.Millisecond || *held.Nonce != 7 ||
		held.ExchangeTime.IsZero() || !held.Complete || held.ExchangeSymbol != "BTC-USDT" {
		t.Errorf("%+v", held)
	}
	// One level gone, one spelled anew, one of another size, one new; and another side that empties.
	if err := w.Take([]byte(update("e1", 5, `["100","0"],["100.0","2.0"],["100.5","4"],["99","1"]`, `["101","0"],["102.50","0"]`))); err != nil {
		t.Fatal(err)
	}
	now := book(t, w)
	if got := sides(now); got != "[{100.5 4} {100.0 2.0} {99 1}] []" {
		t.Errorf("held %s", got)
	}
	if got := sides(held); got != "[{100.5 1} {100 2.0}] [{101 1} {102.50 3}]" {
		t.Errorf("an earlier version changed to %s", got)
	}
	if _, ok := now.Mid(); ok {
		t.Error("a mid without asks")
	}
	now.Bids[0].Size = "999"
	if got := sides(book(t, w)); got != "[{100.5 4} {100.0 2.0} {99 1}] []" {
		t.Errorf("the consumer changed what is held: %s", got)
	}
}

// Whatever does not follow makes the book stale before anything else, and leaves the last version whole.
func TestBook_refusesWhatCannotBe(t *testing.T) {
	gap, bad := client.ErrGap, client.ErrBadMessage
	for name, x := range map[string]struct {
		text string
		want error
	}{
		"a message missing":                  {update("e1", 6, `["99","1"]`, ``), gap},
		"a message again":                    {update("e1", 4, `["99","1"]`, ``), gap},
		"another epoch":                      {update("e2", 5, `["99","1"]`, ``), gap},
		"without a predecessor":              {strings.Replace(update("e1", 5, `["99","1"]`, ``), `"prev_seq":4`, `"prev_seq":null`, 1), gap},
		"another predecessor":                {strings.Replace(update("e1", 5, `["99","1"]`, ``), `"prev_seq":4`, `"prev_seq":3`, 1), gap},
		"gone and not there":                 {update("e1", 5, `["99","0"]`, ``), bad},
		"half right":                         {update("e1", 5, `["99","1"],["98","0"]`, ``), bad},
		"crossed":                            {update("e1", 5, `["101","1"]`, ``), bad},
		"too many":                           {update("e1", 5, `["99","1"],["98","1"],["97","1"],["96","1"]`, ``), bad},
		"endless":                            {update("e1", 5, strings.TrimSuffix(strings.Repeat(`["9","1"],["9","0"],`, 1)+manyLevels(1000), ","), ``), bad},
		"a number that is none":              {update("e1", 5, `["1e9","1"]`, ``), bad},
		"a JSON number":                      {update("e1", 5, `[99,1]`, ``), bad},
		"a negative price":                   {update("e1", 5, `["-99","1"]`, ``), bad},
		"no JSON":                            {`{"type":"update"`, bad},
		"no type":                            {`{}`, bad},
		"a list":                             {`[]`, bad},
		"a snapshot with predecessor":        {strings.Replace(snapshot("e1", 5, someBids, someAsks), `"prev_seq":null`, `"prev_seq":4`, 1), bad},
		"a snapshot without a number":        {snapshot("e1", 0, someBids, someAsks), bad},
		"a snapshot without an epoch":        {snapshot("", 5, someBids, someAsks), bad},
		"a snapshot out of order":            {snapshot("e1", 5, `["99","1"],["100","1"]`, someAsks), bad},
		"a snapshot with a price twice":      {snapshot("e1", 5, `["99","1"],["99.0","1"]`, someAsks), bad},
		"a snapshot with nothing at a price": {snapshot("e1", 5, `["99","0.0"]`, someAsks), bad},
		"a snapshot that is too deep":        {snapshot("e1", 5, `["9","1"],["8","1"],["7","1"],["6","1"],["5","1"],["4","1"]`, ``), bad},
		"a deep one by its own word":         {strings.Replace(snapshot("e1", 5, manyLevels(1000), ``), `"depth":5`, `"depth":100000`, 1), bad},
	} {
		t.Run(name, func(t *testing.T) {
			w := offline(t, snapshot("e1", 4, someBids, someAsks))
			drain(t, w)
			if err := w.Take([]byte(x.text)); !errors.Is(err, x.want) {
				t.Fatalf("%v, want %v", err, x.want)
			}
			reason := client.ReasonBadMessage
			if errors.Is(x.want, gap) {
				reason = client.ReasonGap
			}
			b := book(t, w)
			if !b.Freshness.Stale || b.Freshness.Reason != reason || b.Seq != 4 || sides(b) != "[{100.5 1} {100 2.0}] [{101 1} {102.50 3}]" {
				t.Errorf("held %+v", b)
			}
			expect(t, drain(t, w), "stale "+reason)
			// Nothing but a snapshot makes it live again.
			if err := w.Take([]byte(update("e1", 5, `["99","1"]`, ``))); !errors.Is(err, gap) {
				t.Errorf("an update after it: %v", err)
			}
			if err := w.Take([]byte(status("live", ""))); err != nil || !book(t, w).Freshness.Stale {
				t.Errorf("a status made it live: %v", err)
			}
			if err := w.Take([]byte(snapshot("e9", 50, someBids, someAsks))); err != nil || book(t, w).Freshness.Stale || book(t, w).Seq != 50 {
				t.Errorf("after a snapshot: %+v, %v", book(t, w), err)
			}
		})
	}
}

func manyLevels(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `["%d.5","1"],`, 90-i%90)
	}
	fmt.Fprintf(&b, `["0.%d","1"]`, n)
	for i := range n {
		fmt.Fprintf(&b, `,["0.00%d","1"]`, i+1)
	}
	return b.String()
}

func TestBook_statuses(t *testing.T) {
	w := offline(t, snapshot("e1", 4, someBids, someAsks))
	drain(t, w)
	take := func(text string) {
		t.Helper()
		if err := w.Take([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	// The exchange does not vouch for it and then does: the versions go on.
	take(status("stale", "timeout"))
	expect(t, drain(t, w), "stale timeout")
	take(strings.Replace(update("e1", 5, `["99","1"]`, ``), `"status":"live"`, `"status":"stale"`, 1))
	expect(t, drain(t, w), "book 5 missed 0")
	if f := book(t, w).Freshness; !f.Stale || f.Reason != "timeout" {
		t.Errorf("%+v", f)
	}
	take(status("live", ""))
	expect(t, drain(t, w), "live")
	// The same said twice is no news; a word that nobody knows is not live.
	take(status("live", ""))
	expect(t, drain(t, w))
	take(status("dreaming", ""))
	expect(t, drain(t, w), "dreaming")
	if !book(t, w).Freshness.Stale {
		t.Error("an unknown status is live")
	}
	// What an operator withholds is gone at once, also what the consumer has not seen.
	take(update("e1", 6, `["98","1"]`, ``))
	take(status("withheld", "withheld"))
	expect(t, drain(t, w), "withheld withheld")
	if b, ok := w.Book("BTC/USDT"); ok {
		t.Errorf("withheld, and held %+v", b)
	}
	take(status("live", ""))
	take(snapshot("e1", 9, someBids, someAsks))
	expect(t, drain(t, w), "live", "book 9 missed 1")
	take(status("unsubscribed", "unavailable"))
	expect(t, drain(t, w), "unsubscribed unavailable")
}

// The clock of a book that is lost runs on.
func TestBook_agesWhenLost(t *testing.T) {
	w := offline(t, snapshot("e1", 4, someBids, someAsks))
	before := book(t, w).Freshness
	w.Lose(io.ErrUnexpectedEOF)
	expect(t, drain(t, w), "connected false", "stale "+client.ReasonDisconnected)
	b := book(t, w)
	if b.Freshness.Age != before.Age || !b.Freshness.ReceivedAt.Equal(before.ReceivedAt) || b.Since.IsZero() {
		t.Errorf("%+v, before %+v", b.Freshness, before)
	}
	w.Lose(io.ErrUnexpectedEOF)
	if later := book(t, w); !later.Since.Equal(b.Since) {
		t.Errorf("lost since %v, and then since %v", b.Since, later.Since)
	}
	expect(t, drain(t, w), "connected false")
}

// A consumer that sleeps costs one version of each pair, and is told how many it did not see.
func TestBook_conflated(t *testing.T) {
	w := offline(t, snapshot("e1", 1, someBids, someAsks))
	for seq := 2; seq <= 1000; seq++ {
		if err := w.Take([]byte(update("e1", seq, fmt.Sprintf(`["100.5","%d"]`, seq), ``))); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Take([]byte(strings.Replace(snapshot("e1", 1010, someBids, someAsks), `"conflated":0`, `"conflated":9`, 1))); err != nil {
		t.Fatal(err)
	}
	if n := w.Queued(); n != 1 {
		t.Errorf("%d wait for the consumer", n)
	}
	expect(t, drain(t, w), "live", "book 1010 missed 1009")
}

func TestErrorFrames(t *testing.T) {
	w := offline(t)
	if err := w.Take([]byte(`{"type":"error","code":"markets_unavailable","detail":"x","channel":"orderbook","exchange":"okx","symbol":"BTC/USDT","depth":5,"retry_after_ms":4000}`)); err != nil {
		t.Error(err)
	}
	expect(t, drain(t, w), "error markets_unavailable in 4s")
	if err := w.Take([]byte(`{"type":"error","code":"symbol_unknown","detail":"x","channel":"orderbook","exchange":"okx","symbol":"BTC/USDT","depth":5}`)); err != nil {
		t.Error(err)
	}
	expect(t, drain(t, w), "error symbol_unknown in 0s")
	err := w.Take([]byte(`{"type":"error","code":"invalid_parameter","detail":"x","field":"exchange","allowed":["okx"]}`))
	if e := (*client.Error)(nil); !errors.As(err, &e) || e.Parameter != "exchange" || !errors.Is(err, client.ErrInvalidParameter) {
		t.Errorf("%v", err)
	}
	// What is about others, or of a kind that nobody knows, is passed over.
	for _, text := range []string{
		`{"type":"auth","client":"demo"}`, `{"type":"news","text":"x"}`, `{"type":"heartbeat","sent_at":"2026-11-29T02:00:02Z"}`,
		strings.Replace(snapshot("e1", 1, someBids, someAsks), "BTC/USDT", "ETH/USDT", 1), strings.Replace(snapshot("e1", 1, someBids, someAsks), `"okx"`, `"binance"`, 1),
		`{"type":"error","code":"symbol_unknown","detail":"x","exchange":"okx","symbol":"ETH/USDT"}`,
	} {
		if err := w.Take([]byte(text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	expect(t, drain(t, w))
}

func TestTicker_streamed(t *testing.T) {
	w, err := client.Offline(client.Subscription{Exchange: "okx", Symbols: []string{"BTC/USDT"}, Channel: client.ChannelTicker})
	if err != nil {
		t.Fatal(err)
	}
	text := `{"type":"snapshot","channel":"ticker","exchange":"okx","symbol":"BTC/USDT","exchange_symbol":"BTC-USDT","epoch":"e","seq":1,"prev_seq":null,"status":"live",` +
		clocks + `,"conflated":0,"bid":"100.50","bidVolume":"1","ask":null,"askVolume":null,"mid":null,"spread":null}`
	if err := w.Take([]byte(text)); err != nil {
		t.Fatal(err)
	}
	x, ok := w.Ticker("BTC-USDT")
	if !ok || x.Bid != "100.50" || x.Ask.Known() || x.Freshness.Stale || x.Seq != 1 {
		t.Errorf("%+v %v", x, ok)
	}
	if _, ok := w.Book("BTC/USDT"); ok {
		t.Error("a ticker is a book")
	}
	if _, ok := w.Ticker("nothing"); ok {
		t.Error("a ticker of nothing")
	}
}

func TestSubscription_refused(t *testing.T) {
	many := make([]string, 201)
	for i := range many {
		many[i] = fmt.Sprintf("A%d/B", i)
	}
	for _, s := range []client.Subscription{{}, {Exchange: "okx"}, {Symbols: []string{"BTC/USDT"}}, {Exchange: "okx", Symbols: []string{"BTCUSDT"}}, {Exchange: "okx", Symbols: many}} {
		if _, err := client.Offline(s); err == nil {
			t.Errorf("%+v was taken", s)
		}
	}
}

// Whatever comes, what is shown is in order, within bounds, not crossed, and live only if its messages followed one another.
func FuzzMessages(f *testing.F) {
	f.Add([]byte(snapshot("e1", 4, someBids, someAsks) + "\n" + update("e1", 5, `["99","1"]`, `["101","0"]`)))
	f.Add([]byte(status("live", "") + "\n" + snapshot("e1", 1, ``, ``) + "\n" + status("withheld", "withheld") + "\n" + update("e1", 2, ``, ``)))
	f.Add([]byte(`{"type":"error","code":"x","symbol":"BTC/USDT","retry_after_ms":9223372036854775807}`))
	f.Add([]byte(`{"type":"snapshot","exchange":"okx","channel":"orderbook","symbol":"BTC/USDT","depth":-1,"epoch":"e","seq":18446744073709551615}`))
	f.Fuzz(func(t *testing.T, texts []byte) {
		w, err := client.Offline(client.Subscription{Exchange: "okx", Symbols: []string{"BTC/USDT"}, Depth: 5})
		if err != nil {
			t.Fatal(err)
		}
		for text := range strings.SplitSeq(string(texts), "\n") {
			err := w.Take([]byte(text))
			b, ok := w.Book("BTC/USDT")
			if !ok {
				continue
			}
			if refused := (*client.Error)(nil); err != nil && !errors.As(err, &refused) && !b.Freshness.Stale {
				t.Errorf("live after %v", err)
			}
			ordered(t, b)
		}
		if n := len(drain(t, w)); n > 4 {
			t.Errorf("%d events of one pair at once", n)
		}
	})
}

func ordered(t *testing.T, b *client.StreamBook) {
	t.Helper()
	if len(b.Bids) > 400 || len(b.Asks) > 400 {
		t.Errorf("%d and %d levels", len(b.Bids), len(b.Asks))
	}
	for i := 1; i < len(b.Bids); i++ {
		if b.Bids[i-1].Price.Cmp(b.Bids[i].Price) <= 0 {
			t.Errorf("bids %v", b.Bids)
		}
	}
	for i := 1; i < len(b.Asks); i++ {
		if b.Asks[i-1].Price.Cmp(b.Asks[i].Price) >= 0 {
			t.Errorf("asks %v", b.Asks)
		}
	}
	if len(b.Bids) > 0 && len(b.Asks) > 0 && b.Bids[0].Price.Cmp(b.Asks[0].Price) >= 0 {
		t.Errorf("crossed: %v %v", b.Bids, b.Asks)
	}
}
