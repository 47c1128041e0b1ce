package feed_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/feed"
	"exchange-gateway/internal/market"
)

// journal keeps what is logged, for debugging excepted.
type journal struct {
	mu    sync.Mutex
	lines []line
}

type line struct {
	at    time.Time
	level slog.Level
	text  string
	attrs map[string]slog.Value
}

func (j *journal) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelInfo }

func (j *journal) Handle(_ context.Context, r slog.Record) error {
	l := line{at: time.Now(), level: r.Level, text: r.Message, attrs: map[string]slog.Value{}}
	r.Attrs(func(a slog.Attr) bool { l.attrs[a.Key] = a.Value; return true })
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, l)
	return nil
}

func (j *journal) WithAttrs([]slog.Attr) slog.Handler { return j }
func (j *journal) WithGroup(string) slog.Handler      { return j }

// with are the lines whose message begins so.
func (j *journal) with(text string) (out []line) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, l := range j.lines {
		if strings.HasPrefix(l.text, text) {
			out = append(out, l)
		}
	}
	return out
}

func (j *journal) config(c *feed.Config) { c.Log = slog.New(j) }

func TestFeed_booksThatTurnTogetherAreALineWithTheirNumber(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, j := likeOKX(), &journal{}
		w.rules.Books = 100
		r := start(t, w, j.config)
		bases, symbols := names(300)
		r.watch(t, bases...)
		sleep(20 * time.Second)
		for i := range symbols { // so that their times end one after another, within 15 s
			w.change(symbols[i])
			sleep(50 * time.Millisecond)
		}
		w.set(func() {
			for _, s := range symbols {
				w.mute[s] = true
			}
		})
		for range 100 { // other frames go on
			w.frame()
			sleep(time.Second)
		}
		if st := r.Status(fakeID); st.Stale != 300 {
			t.Fatalf("%d stale", st.Stale)
		}
		w.set(func() { clear(w.mute) })
		for range 12 {
			sleep(10 * time.Second)
			w.change(symbols...)
		}
		synctest.Wait()
		if st := r.Status(fakeID); st.Live != 300 {
			t.Fatalf("%d live", st.Live)
		}
		for text, level := range map[string]slog.Level{"streamed books are stale": slog.LevelWarn, "streamed books are live": slog.LevelInfo} {
			lines, books := j.with(text), int64(0)
			for i, l := range lines {
				books += l.attrs["books"].Int64()
				if l.level != level || l.attrs["exchange"].String() != string(fakeID) || l.attrs["kind"].String() != "timeout" {
					t.Errorf("%+v", l)
				}
				if i > 0 && l.at.Sub(lines[i-1].at) < 10*time.Second {
					t.Errorf("%q again after %v", text, l.at.Sub(lines[i-1].at))
				}
			}
			if len(lines) > 13 || books != 300 {
				t.Errorf("%q: %d lines, %d books in all, want 300", text, len(lines), books)
			}
		}
	})
}

func TestFeed_aHandoverThatLosesNothingIsNoWarning(t *testing.T) {
	f := func(name string, rules market.StreamRules, bring func(w *world)) {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w, j := newWorld(rules), &journal{}
				r := start(t, w, j.config)
				r.watch(t, "BTC", "ETH")
				sleep(5 * time.Second)
				bring(w)
				synctest.Wait()
				r.wantState(t, "BTC", feed.StateLive, market.KindNone)
				ended := j.with("stream ended")
				if len(ended) != 1 || ended[0].level != slog.LevelInfo || ended[0].attrs["lost"].Int64() != 0 || ended[0].attrs["books"].Int64() != 2 {
					t.Errorf("%+v, want one line of information", ended)
				}
				if n := len(j.with("stream opened")); n != 2 || w.tally().dials != 2 {
					t.Errorf("%d lines of opening, %d dials", n, w.tally().dials)
				}
			})
		})
	}
	f("announced", market.StreamRules{}, func(w *world) {
		w.tell(market.StreamEvent{Kind: market.StreamRetiring})
		sleep(5 * time.Second)
	})
	f("rotation", market.StreamRules{VouchFor: time.Hour, RotateAfter: time.Minute, RotateBefore: 2 * time.Minute}, func(*world) { sleep(115 * time.Second) })
	f("announced, and cut once nothing depends on it", market.StreamRules{}, func(w *world) {
		w.tell(market.StreamEvent{Kind: market.StreamRetiring})
		synctest.Wait()
		sleep(5 * time.Second)
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(w.conns) > 1 {
			w.conns[0].end(failure(market.KindUnavailable))
		}
	})
}

func TestFeed_anEndThatCostsLiveBooksIsAWarning(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, j := newWorld(market.StreamRules{}), &journal{}
		r := start(t, w, j.config)
		r.watch(t, "BTC", "ETH")
		sleep(5 * time.Second)
		w.set(func() { w.mute["ETHUSDT"] = true })
		w.tell(market.StreamEvent{Kind: market.StreamRetiring})
		sleep(3 * time.Second)
		w.mu.Lock()
		w.conns[0].end(failure(market.KindUnavailable)) // announced, but a book depends on it
		w.mu.Unlock()
		sleep(time.Second)
		w.tell(market.StreamEvent{Kind: market.StreamLost, Remedy: market.RemedyReconnect, Err: failure(market.KindMalformed)})
		sleep(time.Second)
		ended := j.with("stream ended")
		if len(ended) != 2 {
			t.Fatalf("%+v", ended)
		}
		for _, l := range ended {
			if l.level != slog.LevelWarn || l.attrs["lost"].Int64() != 1 {
				t.Errorf("%+v", l)
			}
		}
	})
}
