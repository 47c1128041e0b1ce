package api_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"exchange-gateway/internal/feed"
	"exchange-gateway/internal/feed/hub"
	"exchange-gateway/internal/market"
)

// TestContract_streams holds what a hub really sends against the contract: of a book and a ticker, whole, changed, stale,
// lost, and one-sided.
func TestContract_streams(t *testing.T) {
	h := hub.New(hub.Config{Heartbeat: 10 * time.Millisecond})
	shown := &shownBook{fresh: feed.Freshness{State: feed.StateLive, Since: t0}, held: true, size: "0.5"}
	h.Attach(shown)
	client := h.NewClient()
	defer client.Close()
	listing := market.Listing{Exchange: "okx", Pair: btc, Symbol: "BTC-USDT", Status: market.TradingActive}
	topic := func(ch hub.Channel, depth int) hub.Topic {
		return hub.Topic{Key: feed.Key{Exchange: "okx", Pair: btc}, Channel: ch, Depth: depth}
	}
	for _, to := range []hub.Topic{topic(hub.ChannelOrderBook, 5), topic(hub.ChannelTicker, 0)} {
		if err := client.Subscribe(listing, to, ""); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[string]bool{}
	next := func() {
		t.Helper()
		frames, err := client.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range frames {
			if err := written.message("StreamMessage", f.JSON()); err != nil {
				t.Errorf("%s: %v", f.JSON(), err)
			}
			var m struct{ Type, Channel, Status string }
			if err := json.Unmarshal(f.JSON(), &m); err != nil {
				t.Fatal(err)
			}
			seen[m.Type+" "+m.Channel+" "+m.Status] = true
		}
	}
	next()
	shown.size = "0.75"
	h.Changed(shown, []market.Level{level("64073.00", "0.75")}, nil)
	h.BestChanged(shown)
	next()
	shown.fresh = feed.Freshness{State: feed.StateStale, Reason: market.KindTimeout, Since: t0}
	h.FreshnessChanged(shown)
	next()
	shown.held, shown.fresh = false, feed.Freshness{State: feed.StateSyncing, Reason: market.KindUnavailable, Since: t0}
	h.FreshnessChanged(shown)
	next()
	next() // nothing happens for a while
	for _, want := range []string{
		"snapshot orderbook live", "snapshot ticker live", "update orderbook live", "status orderbook stale", "status ticker stale",
		"status orderbook syncing", "heartbeat  ",
	} {
		if !seen[want] {
			t.Errorf("no %q among %v", want, seen)
		}
	}
}

// shownBook is the source of one book, and the view of it.
type shownBook struct {
	fresh feed.Freshness
	held  bool
	size  string
}

func (b *shownBook) WatchFor(string, market.Listing, market.StreamChannel) (func(), error) {
	return func() {}, nil
}
func (b *shownBook) Inspect(_ feed.Key, see func(feed.View)) bool  { see(b); return true }
func (b *shownBook) Key() feed.Key                                 { return feed.Key{Exchange: "okx", Pair: btc} }
func (b *shownBook) Symbol() string                                { return "BTC-USDT" }
func (b *shownBook) Freshness() feed.Freshness                     { return b.fresh }
func (b *shownBook) Held() bool                                    { return b.held }
func (b *shownBook) Complete(int) bool                             { return true }
func (b *shownBook) Sequence() market.Sequence                     { return market.Sequence{} }
func (b *shownBook) ExchangeTime() time.Time                       { return time.Time{} }
func (b *shownBook) ConfirmedAt() time.Time                        { return t0 }
func (b *shownBook) ChangedAt() time.Time                          { return t0 }
func (b *shownBook) Asks(dst []market.Level, _ int) []market.Level { return dst }
func (b *shownBook) Best() feed.Best {
	return feed.Best{Bid: level("64073.00", b.size), HasBid: true}
}

func (b *shownBook) Bids(dst []market.Level, _ int) []market.Level {
	return append(dst, level("64073.00", b.size))
}

func (b *shownBook) Epoch() string {
	if !b.held {
		return ""
	}
	return "run-1"
}

// TestContract_requests holds what clients send against the contract: what is written is understood.
func TestContract_requests(t *testing.T) {
	r := newStreamRig(t, nil)
	c, _, _ := r.dial(t)
	for _, text := range []string{subscribe, `{"op":"ping"}`, `{"op":"ping","id":"7"}`} {
		if err := written.message("StreamRequest", []byte(text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if m := exchangeMessages(t, c, text); m.Type == "error" {
			t.Errorf("%s: %+v", text, m)
		}
	}
	for _, text := range []string{`{"op":"subscribe"}`, `{"op":"ping","planted":1}`, `{"op":"planted"}`} {
		if err := written.message("StreamRequest", []byte(text)); err == nil {
			t.Errorf("%s is written to be right", text)
		}
		if m := exchangeMessages(t, c, text); m.Type != "error" {
			t.Errorf("%s: %+v", text, m)
		}
	}
}

// TestDocs_areWhole: the page, its files and the document are there without a key, and nothing beside them.
func TestDocs_areWhole(t *testing.T) {
	r := newRig(t)
	for target, kind := range map[string]string{
		"/openapi.json": "application/json", "/docs": "text/html; charset=utf-8", "/docs/start.js": "text/javascript; charset=utf-8",
		"/docs/swagger-ui.css": "text/css; charset=utf-8", "/docs/swagger-ui-bundle.js": "text/javascript; charset=utf-8",
	} {
		w := r.get(target)
		if w.Code != http.StatusOK || w.Header().Get("Content-Type") != kind || w.Body.Len() == 0 {
			t.Errorf("%s: %d, %q, %d bytes", target, w.Code, w.Header().Get("Content-Type"), w.Body.Len())
		}
	}
	var doc struct {
		OpenAPI string
		Paths   map[string]any
	}
	if err := json.Unmarshal(r.get("/openapi.json").Body.Bytes(), &doc); err != nil || doc.OpenAPI == "" || len(doc.Paths) < 20 {
		t.Errorf("%v: %s, %d paths", err, doc.OpenAPI, len(doc.Paths))
	}
	for _, target := range []string{"/docs/", "/docs/page.html", "/docs/THIRD_PARTY.md", "/docs/x/start.js", "/docs/..%2Fswaggerui.go"} {
		if p := readProblem(t, r.get(target)); p.Code != "not_found" {
			t.Errorf("%s: %s", target, p.Code)
		}
	}
}
