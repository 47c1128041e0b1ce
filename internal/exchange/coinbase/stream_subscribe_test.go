package coinbase_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/exchange/coinbase"
	"exchange-gateway/internal/market"
)

// TestStream_messages: one message with all products, then heartbeats, once a connection; each passes the door.
func TestStream_messages(t *testing.T) {
	s := newStream(t)
	s.subscribe("BTC-USD", "ETH-USD", "BTC-USD")
	s.subscribe("ETH-USD", "SOL-USD")
	s.subscribe("SOL-USD")
	s.unsubscribe("ETH-USD", "ETH-USD", "XRP-USD")
	s.unsubscribe()
	want := []string{
		`{"type":"subscribe","channel":"level2","product_ids":["BTC-USD","ETH-USD"]}`,
		`{"type":"subscribe","channel":"heartbeats"}`,
		`{"type":"subscribe","channel":"level2","product_ids":["SOL-USD"]}`,
		`{"type":"unsubscribe","channel":"level2","product_ids":["ETH-USD","XRP-USD"]}`,
	}
	if !slices.Equal(s.socket.sent, want) {
		t.Errorf("sent %q", s.socket.sent)
	}
	if len(s.door.admitted) != len(want) {
		t.Errorf("%d messages passed the door", len(s.door.admitted))
	}
	for _, c := range s.door.admitted {
		if got := describe(c); got != "coinbase/stream exchange ip public:stream stream_messages=1" {
			t.Errorf("passed the door as %s", got)
		}
	}
}

// TestStream_alias: the book of a USDC pair comes under the name of the USD pair, which is the one to ask for.
func TestStream_alias(t *testing.T) {
	s := newStream(t)
	both := []market.StreamSub{{Listing: btcUSDC()}, {Listing: btcUSD()}}
	if err := s.conn.Subscribe(t.Context(), both); err != nil {
		t.Fatal(err)
	}
	if got := s.socket.sent[0]; got != `{"type":"subscribe","channel":"level2","product_ids":["BTC-USD"]}` {
		t.Errorf("sent %s", got)
	}
	s.want(s.ack("BTC-USD"), "accepted BTC-USD")
	s.want(s.frame("l2_data", event("snapshot", "BTC-USD", "bid 1 1")), "snapshot BTC-USD 1x1 |")
}

// TestStream_notSent: what could not be sent is not waited for, and can be asked for again.
func TestStream_notSent(t *testing.T) {
	broken := errors.New("broken pipe")
	closed := &market.Error{Exchange: "coinbase", Op: market.OpStream, Kind: market.KindBanned}
	for name, fail := range map[string]func(*connection, error){
		"socket": func(s *connection, err error) { s.socket.refuse = err },
		"door": func(s *connection, err error) {
			s.door.refuse = func(market.Call) error { return err }
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStream(t)
			want := map[string]error{"socket": broken, "door": closed}[name]
			fail(s, want)
			if err := s.conn.Subscribe(t.Context(), subs("A-USD")); !errors.Is(err, want) {
				t.Errorf("subscribe: %v", err)
			}
			if err := s.conn.Unsubscribe(t.Context(), subs("B-USD")); !errors.Is(err, want) {
				t.Errorf("unsubscribe: %v", err)
			}
			s.want(s.tick(time.Hour))
			s.socket.refuse, s.door.refuse = nil, nil
			if s.socket.sent != nil {
				t.Fatalf("sent %q", s.socket.sent)
			}
			s.subscribe("A-USD")
			if len(s.socket.sent) != 2 {
				t.Errorf("sent %q", s.socket.sent)
			}
			s.want(s.ack("A-USD"), "accepted A-USD")
			s.want(s.tick(time.Hour), "lost A-USD resubscribe timeout")
		})
	}
}

// TestStream_bounds: 30 books, and books only; to grow at the bound others leave first.
func TestStream_bounds(t *testing.T) {
	s := newStream(t)
	var symbols []string
	for i := range 30 {
		symbols = append(symbols, fmt.Sprintf("C%d-USD", i))
	}
	s.subscribe(symbols...)
	s.socket.take()
	if e := asError(t, s.conn.Subscribe(t.Context(), subs("C3-USD", "ONE-USD"))); e.Kind != market.KindInternal {
		t.Errorf("the 31st: %v", e)
	}
	best := subs("TWO-USD")
	best[0].Channel = market.StreamBest
	if e := asError(t, s.conn.Subscribe(t.Context(), best)); e.Kind != market.KindNotSupported {
		t.Errorf("best: %v", e)
	}
	if err := s.conn.Unsubscribe(t.Context(), best); err != nil {
		t.Error(err)
	}
	if got := s.socket.take(); got != "" {
		t.Errorf("sent %s", got)
	}
	s.unsubscribe("C3-USD")
	s.subscribe("ONE-USD")
}

// TestStream_acks: an ack is the whole set and names no message. A book that it lacks is refused when every message of ours
// has its ack, and not before.
func TestStream_acks(t *testing.T) {
	s := newStream(t, "A-USD", "NO-USD")
	s.want(s.frame("subscriptions", `{"subscriptions":{"level2":["A-USD"]}}`), "accepted A-USD")
	s.want(s.ack("A-USD"), "refused NO-USD unknown_symbol")
	s.want(s.frame("l2_data", event("snapshot", "NO-USD", "bid 1 1")))
	// Two messages on their way: the ack of the first does not speak of the second.
	s.subscribe("B-USD")
	s.subscribe("C-USD")
	s.want(s.ack("A-USD", "B-USD"), "accepted B-USD")
	s.want(s.ack("A-USD", "B-USD", "C-USD", "X-USD"), "accepted C-USD")
	// The data came before the ack.
	s.subscribe("D-USD")
	s.want(s.frame("l2_data", event("snapshot", "D-USD", "bid 1 1")), "snapshot D-USD 1x1 |")
	s.want(s.ack("A-USD", "B-USD", "C-USD", "D-USD"), "accepted D-USD")
	// One that leaves is not missed, and after the last one the set is empty.
	s.unsubscribe("A-USD", "B-USD", "C-USD")
	s.want(s.ack("D-USD"))
	s.unsubscribe("D-USD")
	s.want(s.frame("subscriptions", `{"subscriptions":{}}`))
	s.want(s.tick(time.Hour))
}

// TestStream_acksAgain: an ack that was on its way before a book was started anew says nothing against it.
func TestStream_acksAgain(t *testing.T) {
	s := newStream(t, "A-USD")
	s.unsubscribe("A-USD")
	s.subscribe("A-USD")
	s.want(s.frame("subscriptions", `{"subscriptions":{"level2":["A-USD"]}}`), "accepted A-USD")
	s.want(s.ack("A-USD"))
	s.want(s.frame("subscriptions", `{"subscriptions":{"heartbeats":["heartbeats"]}}`))
	s.want(s.ack("A-USD"))
	s.want(s.tick(5 * time.Second))
}

// TestStream_acksNotCounted: where acks do not match messages one to one, time decides.
func TestStream_acksNotCounted(t *testing.T) {
	t.Run("too few", func(t *testing.T) {
		s := newStream(t, "A-USD", "NO-USD")
		s.want(s.frame("subscriptions", `{"subscriptions":{"level2":["A-USD"]}}`), "accepted A-USD")
		s.want(s.tick(2 * time.Second))
		s.want(s.tick(3*time.Second), "refused NO-USD unknown_symbol")
	})
	t.Run("none", func(t *testing.T) {
		s := newStream(t, "A-USD")
		s.want(s.tick(5 * time.Second))
		s.want(s.tick(10*time.Second), "lost A-USD resubscribe timeout")
	})
	t.Run("too many", func(t *testing.T) {
		s := newStream(t, "A-USD")
		s.want(s.ack("A-USD"), "accepted A-USD")
		s.ack("A-USD")
		s.want(s.ack("A-USD"))
		s.subscribe("B-USD")
		s.want(s.ack("A-USD"))
		s.want(s.ack("A-USD", "B-USD"), "accepted B-USD")
		s.subscribe("NO-USD")
		s.want(s.ack("A-USD", "B-USD"))
		s.want(s.tick(3*time.Second), "refused NO-USD unknown_symbol")
	})
}

// TestStream_stalled: while nothing comes at all, nothing is held against a book, and the acks that were on their way are
// counted as if they had come in time. To give up counting took the ack of an unsubscription for the answer to the
// subscription after it, and left the pair alone for ten minutes.
func TestStream_stalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStream(t, "A-USD", "B-USD")
		s.unsubscribe("A-USD")
		s.subscribe("A-USD")
		for range 10 {
			time.Sleep(time.Second)
			s.want(s.stalled(0))
		}
		s.unsubscribe("B-USD")
		s.subscribe("B-USD")
		time.Sleep(time.Second)
		s.want(s.stalled(0))
		// All that was on its way comes at once, and the connection flows again.
		s.want(s.heartbeat(time.Now()))
		s.want(s.stalled(0))
		s.want(s.ack("A-USD", "B-USD"), "accepted A-USD", "accepted B-USD")
		s.want(s.ack("A-USD", "B-USD"))
		s.want(s.ack("B-USD"))
		s.want(s.stalled(0))
		s.want(s.ack("B-USD", "A-USD"))
		s.want(s.ack("A-USD"))
		s.want(s.stalled(0))
		s.want(s.ack("A-USD", "B-USD"))
		s.want(s.stalled(0))
		s.want(s.frame("l2_data", event("snapshot", "A-USD", "bid 1 1")), "snapshot A-USD 1x1 |")
		s.want(s.tick(9 * time.Second))
		s.want(s.tick(10*time.Second), "lost B-USD resubscribe timeout")
	})
}

// TestStream_dropped: a book that came and is no longer listed is not streamed any more.
func TestStream_dropped(t *testing.T) {
	s := newStream(t, "A-USD", "B-USD")
	s.frame("l2_data", event("snapshot", "A-USD", "bid 1 1")+","+event("snapshot", "B-USD", "bid 1 1"))
	s.ack("A-USD", "B-USD")
	s.want(s.ack("B-USD"), "lost A-USD resubscribe unavailable")
	s.want(s.tick(time.Hour))
}

// TestStream_unreadableAck: an ack in another form says nothing.
func TestStream_unreadableAck(t *testing.T) {
	s := newStream(t, "A-USD")
	for _, list := range []string{``, `{}`, `{"channels":[{"name":"level2","product_ids":["A-USD"]}]}`} {
		s.want(s.frame("subscriptions", list))
	}
	s.want(s.frame("subscriptions", `{"subscriptions":{"level2":null,"other":7}}`))
	s.want(s.frame("subscriptions", `{"subscriptions":{"level2":["A-USD",null,7]}}`), "accepted A-USD")
}

// TestStream_errors: errors name no message, so they are about the books of which nothing came. None of them is an outage.
func TestStream_errors(t *testing.T) {
	said := func(text string) string { return fmt.Sprintf(`{"type":"error","message":%q}`, text) }
	open := func(t *testing.T) *connection {
		s := newStream(t, "A-USD")
		s.frame("l2_data", event("snapshot", "A-USD", "bid 1 1"))
		s.ack("A-USD")
		s.ack("A-USD")
		s.subscribe("B-USD", "C-USD")
		return s
	}
	t.Run("too many, and some were taken", func(t *testing.T) {
		s := open(t)
		s.want(s.raw(said("too many L2 streams requested in a single session")))
		s.want(s.ack("A-USD", "C-USD"), "refused B-USD rate_limited", "accepted C-USD")
	})
	t.Run("too many, and no ack", func(t *testing.T) {
		s := open(t)
		s.want(s.raw(said("too many L2 streams requested in a single session")))
		s.want(s.frame("l2_data", event("snapshot", "B-USD", "bid 1 1")), "snapshot B-USD 1x1 |")
		s.want(s.tick(2 * time.Second))
		s.want(s.tick(3*time.Second), "refused C-USD rate_limited")
	})
	t.Run("rate limit", func(t *testing.T) {
		s := open(t)
		got := s.conn.Decode([]byte(said("rate limit exceeded")), time.Now())
		s.want(events(got), "lost B-USD resubscribe rate_limited", "lost C-USD resubscribe rate_limited")
		e := asError(t, got[0].Err)
		if r := e.Refusal; e.RetryAfter != 2*time.Second || r == nil || r.Scope != (market.Scope{Kind: market.ScopePublic, Name: "stream"}) {
			t.Errorf("retry after %v, closes %+v", e.RetryAfter, r)
		}
		s.want(s.raw(said("rate limit exceeded")))
		s.want(s.tick(time.Hour))
	})
	t.Run("authentication", func(t *testing.T) {
		s := open(t)
		s.want(s.raw(said("authentication failure")), "refused B-USD auth", "refused C-USD auth")
	})
	t.Run("unknown", func(t *testing.T) {
		for _, text := range []string{"failure to subscribe", "", "something new"} {
			s := open(t)
			s.want(s.raw(said(text)))
			s.want(s.tick(3*time.Second), "refused B-USD invalid", "refused C-USD invalid")
		}
	})
	t.Run("about nothing of ours", func(t *testing.T) {
		var log bytes.Buffer
		v, _ := newVenueAt(t, exchange.Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
		s := &connection{t: t, socket: &fakeSocket{}, venue: v}
		s.conn = coinbase.StreamOver(v, s.socket)
		s.subscribe("A-USD")
		s.frame("l2_data", event("snapshot", "A-USD", "bid 1 1"))
		for range 100 {
			s.want(s.raw(said("failure to subscribe")))
		}
		if n := strings.Count(log.String(), "failure to subscribe"); n != 1 {
			t.Errorf("logged %d times: %s", n, log.String())
		}
	})
	for _, text := range []string{"too many L2 streams", "rate limit exceeded", "authentication failure", "failure to subscribe"} {
		s := open(t)
		for _, e := range append(s.conn.Decode([]byte(said(text)), time.Now()), s.conn.Tick(time.Now().Add(time.Minute))...) {
			if market.KindOf(e.Err).Effect() == market.EffectFailure {
				t.Errorf("%s: %v counts as an outage", text, e.Err)
			}
		}
	}
}

// TestStream_longRun: a connection whose books come and go for hours remembers no more than a few.
func TestStream_longRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStream(t)
		for i := range 2000 {
			symbol := fmt.Sprintf("C%d-USD", i)
			s.subscribe(symbol)
			s.want(s.frame("l2_data", event("snapshot", symbol, "bid 1 1")), "snapshot "+symbol+" 1x1 |")
			s.unsubscribe(symbol)
			if n := coinbase.Remembered(s.conn); n > 120 {
				t.Fatalf("%d subscriptions are remembered", n)
			}
		}
		s.tick(time.Minute)
		if n := coinbase.Remembered(s.conn); n != 0 {
			t.Errorf("%d subscriptions are remembered", n)
		}
	})
}
