package coinbase_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"exchange-gateway/internal/market"
)

// FuzzStream: whatever comes, a connection tells only of books that were asked for, changes none before its snapshot, says
// nothing after it has given up, and takes nothing that is not JSON.
func FuzzStream(f *testing.F) {
	for _, seed := range []string{
		envelope("l2_data", 0, event("snapshot", "A-USD", "bid 1.10 2", "offer 1.20 0")),
		envelope("l2_data", 1, event("update", "A-USD", "bid 1 0.00000000")+","+event("update", "B-USD", "offer 2 1")),
		envelope("subscriptions", 1, `{"subscriptions":{"level2":["A-USD"],"heartbeats":["heartbeats"]}}`),
		envelope("subscriptions", 1, `{"subscriptions":{}}`),
		envelope("heartbeats", 1, `{"current_time":"2026-04-07 14:30:10.000000000+00:00","heartbeat_counter":"42"}`),
		`{"events":[{"updates":[{"new_quantity":1e-8,"price_level":3,"side":"bid"}],"product_id":"A-USD","type":"snapshot"}],"sequence_num":"0","channel":"l2_data"}`,
		`{"type":"error","message":"too many L2 streams requested in a single session"}`,
		`{"type":"error","message":"rate limit exceeded"}`,
		`{"channel":"l2_data","sequence_num":0,"events":[{"product_id":"A-USD","type":"update","updates":[{"price_level":{"x":1},{`,
		`[]`,
	} {
		f.Add([]byte(seed), []byte(seed))
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		s := newStream(t, "A-USD", "B-USD")
		held := make(map[string]bool)
		over := false
		check := func(raw []byte, all []market.StreamEvent) {
			if over && len(all) > 0 {
				t.Fatalf("told after the end: %s", events(all))
			}
			for _, e := range all {
				if e.Symbol != "A-USD" && e.Symbol != "B-USD" && (e.Symbol != "" || e.Kind != market.StreamLost) {
					t.Fatalf("told of a book that was not asked for: %s", events(all))
				}
				// The others change no book.
				//exhaustive:ignore
				switch e.Kind {
				case market.StreamSnapshot, market.StreamUpdate:
					if e.Kind == market.StreamUpdate && !held[e.Symbol] {
						t.Fatalf("%s changed before its snapshot", e.Symbol)
					}
					held[e.Symbol] = true
					if !json.Valid(raw) {
						t.Fatalf("taken, and no JSON: %q", raw)
					}
					for _, l := range append(e.Bids, e.Asks...) {
						if !bytes.Contains(raw, []byte("price_level")) && !bytes.Contains(raw, []byte(`\u`)) {
							t.Fatalf("level %v from nowhere: %q", l, raw)
						}
					}
				case market.StreamLost:
					over = over || e.Remedy == market.RemedyReconnect
					held[e.Symbol] = false
				case market.StreamRefused, market.StreamAccepted:
				default:
					t.Fatalf("told of what the exchange never says: %s", events(all))
				}
			}
		}
		for _, raw := range [][]byte{first, second, first} {
			check(raw, s.conn.Decode(raw, time.Now()))
		}
		check(nil, s.conn.Tick(time.Now().Add(time.Minute)))
	})
}
