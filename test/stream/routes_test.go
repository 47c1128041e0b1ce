package stream

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/exchangesim"
	"exchange-gateway/internal/market"
)

// routes are all ways to ask for a book of a pair, or for what is made of it, by REST.
func routes(id market.ExchangeID, pair string) map[string]string {
	at, symbol := "/v1/exchanges/"+string(id), url.QueryEscape(pair)
	all := map[string]string{
		"order book":               at + "/orderbook?depth=20&symbol=" + symbol,
		"order book, require=live": at + "/orderbook?require=live&symbol=" + symbol,
		"order book, ccxt":         at + "/orderbook?format=ccxt&symbol=" + symbol,
		"ticker":                   at + "/ticker?symbol=" + symbol,
		"ticker, require=live":     at + "/ticker?require=live&symbol=" + symbol,
		"tickers":                  at + "/tickers?symbols=" + symbol,
		"order books":              "/v1/orderbooks?symbol=" + symbol,
		"price":                    "/v1/price?exchanges=" + string(id) + "&symbol=" + symbol,
		"price of 10 s":            "/v1/price?max_age_ms=10000&exchanges=" + string(id) + "&symbol=" + symbol,
	}
	if id == "binance" {
		all["facade, depth"] = "/compat/binance/api/v3/depth?limit=20&symbol=" + symbolOf(id, pair)
		all["facade, best prices"] = "/compat/binance/api/v3/ticker/bookTicker?symbol=" + symbolOf(id, pair)
	}
	return all
}

// liveIn tells what in an answer by REST is called live: a book that is not stale, and a best bid or ask. What has no label,
// the facade's books and what answers require=live, is live by being there.
func liveIn(route string, status int, body []byte) (what string) {
	if status != http.StatusOK {
		return ""
	}
	var a struct {
		Stale   *bool           `json:"stale"`
		BestBid json.RawMessage `json:"best_bid"`
		Tickers []struct {
			Ticker struct {
				Stale *bool `json:"stale"`
			} `json:"ticker"`
		} `json:"tickers"`
	}
	_ = json.Unmarshal(body, &a) // what is no object of this form has none of it
	stale := func(s *bool) bool { return s != nil && *s }
	switch route {
	case "order books":
		if len(a.BestBid) > 0 && string(a.BestBid) != "null" {
			return "a best bid"
		}
		return ""
	case "tickers":
		for _, t := range a.Tickers {
			if t.Ticker.Stale != nil && !*t.Ticker.Stale {
				return "a ticker"
			}
		}
		return ""
	case "order book, ccxt":
		var c struct {
			Info struct {
				Stale *bool `json:"stale"`
			} `json:"info"`
		}
		_ = json.Unmarshal(body, &c)
		if stale(a.Stale) || stale(c.Info.Stale) {
			return ""
		}
	default:
		if stale(a.Stale) {
			return ""
		}
	}
	return "the answer"
}

// ask asks one route.
func (s *stage) ask(path string) (status int, body []byte) {
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, "http://localhost"+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	res, err := s.client.Do(r)
	if err != nil {
		s.t.Error(err)
		return 0, nil
	}
	defer res.Body.Close()
	body, err = io.ReadAll(res.Body)
	if err != nil {
		s.t.Error(err)
	}
	return res.StatusCode, body
}

// everyRouteLive asks every route while all is well, so that what is found not live later once was.
func (s *stage) everyRouteLive(id market.ExchangeID, pair string) {
	s.t.Helper()
	for route, path := range routes(id, pair) {
		if status, body := s.ask(path); liveIn(route, status, body) == "" {
			s.t.Errorf("%s before: status %d, %.300s", route, status, body)
		}
	}
}

// noRouteLive asks every route at once.
func (s *stage) noRouteLive(id market.ExchangeID, pair string) {
	s.t.Helper()
	asked := routes(id, pair)
	said := make(chan string, len(asked))
	for route, path := range asked {
		go func() {
			status, body := s.ask(path)
			if what := liveIn(route, status, body); what != "" {
				said <- fmt.Sprintf("%s: %s is live: %.400s", route, what, body)
				return
			}
			said <- ""
		}()
	}
	for range asked {
		if bad := <-said; bad != "" {
			s.t.Error(bad)
		}
	}
}

// TestRoutes_gap: 20 ms after a gap is found, no route calls the book live that the stream had kept until then, though it was
// confirmed a moment ago and the exchange does not answer by REST.
func TestRoutes_gap(t *testing.T) {
	for _, id := range ids {
		t.Run(string(id), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, setting{only: []market.ExchangeID{id}, sim: exchangesim.Config{Instruments: map[string][]exchangesim.Instrument{
					string(id): {instrument(id, met, 30, 100*time.Millisecond)},
				}}})
				cl := s.connect()
				whole := topic{"orderbook", id, met, 50}
				cl.subscribe(whole)
				settle(t, cl, 30*time.Second)
				time.Sleep(2 * time.Second)
				s.everyRouteLive(id, met)
				time.Sleep(2 * time.Second)
				s.inject(id, exchangesim.Fault{Kind: exchangesim.FaultHang, Class: exchangesim.ClassMarketData, For: 10 * time.Second})
				s.inject(id, exchangesim.Fault{Kind: exchangesim.FaultHang, Path: "/api/v3/ticker", For: 10 * time.Second})
				s.inject(id, exchangesim.Fault{Kind: exchangesim.FaultRefuse, For: 10 * time.Second}) // it is not had again
				s.inject(id, exchangesim.Fault{Kind: exchangesim.FaultGap, Symbol: symbolOf(id, met), Count: 1})
				for range 1000 {
					if cl.status(whole) == "stale" {
						break
					}
					time.Sleep(time.Millisecond)
				}
				if cl.status(whole) != "stale" {
					t.Fatalf("the gap was not found: %v", cl.states())
				}
				time.Sleep(20 * time.Millisecond)
				s.noRouteLive(id, met)
				cl.close()
				s.stop()
			})
		})
	}
}

// TestRoutes_hang: an exchange that hangs, with its streams open, is live nowhere after 10 s, nor for the rest of the time, and
// once it is back everywhere.
func TestRoutes_hang(t *testing.T) {
	const lasts = 70 * time.Second
	for _, id := range ids {
		t.Run(string(id), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, setting{only: []market.ExchangeID{id}, sim: exchangesim.Config{Instruments: map[string][]exchangesim.Instrument{
					string(id): {instrument(id, met, 30, 500*time.Millisecond), instrument(id, still, 30, 24*time.Hour)},
				}}})
				cl := s.connect()
				cl.subscribe(topic{"orderbook", id, met, 50}, topic{"orderbook", id, still, 50})
				settle(t, cl, 30*time.Second)
				time.Sleep(10 * time.Second)
				s.everyRouteLive(id, met)
				began := time.Now()
				s.inject(id, exchangesim.Fault{Kind: exchangesim.FaultHang, For: lasts})
				time.Sleep(9900 * time.Millisecond)
				for time.Since(began) < lasts-5*time.Second {
					s.noRouteLive(id, met)
					s.noRouteLive(id, still)
					time.Sleep(time.Second)
				}
				time.Sleep(lasts - time.Since(began))
				settle(t, cl, 65*time.Second)
				time.Sleep(15 * time.Second) // books by REST have a circuit of their own
				s.everyRouteLive(id, met)
				cl.close()
				s.stop()
			})
		})
	}
}
