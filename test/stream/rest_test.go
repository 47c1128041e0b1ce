package stream

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"exchange-gateway/internal/market"
)

// answer is what the tests read of a book by REST.
type answer struct {
	status         int
	Code           string `json:"code"` // of a problem
	ExchangeSymbol string `json:"exchange_symbol"`
	Stale          bool   `json:"stale"`
	Complete       bool   `json:"complete"`
	Freshness      struct {
		Status string `json:"status"`
		Source string `json:"source"`
		AgeMS  int64  `json:"age_ms"`
		Reason string `json:"reason"`
	} `json:"freshness"`
	Timestamp *int64      `json:"timestamp"`
	Nonce     *int64      `json:"nonce"`
	Bids      [][2]string `json:"bids"`
	Asks      [][2]string `json:"asks"`
}

// read asks for a book by REST, as a caller does.
func (s *stage) read(id market.ExchangeID, pair string, depth int) (a answer, err error) {
	target := fmt.Sprintf("http://localhost/v1/exchanges/%s/orderbook?depth=%d&symbol=%s", id, depth, url.QueryEscape(pair))
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, target, nil)
	if err != nil {
		return a, err
	}
	res, err := s.client.Do(r)
	if err != nil {
		return a, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return a, err
	}
	a.status = res.StatusCode
	return a, json.Unmarshal(body, &a)
}

// check compares a book by REST with the simulator's truth.
func (a *answer) check(x *truths, depth int) error {
	if a.status != http.StatusOK {
		return nil // a problem, which has no levels
	}
	var at *time.Time
	if a.Timestamp != nil {
		t := time.UnixMilli(*a.Timestamp)
		at = &t
	}
	want, err := x.book(a.ExchangeSymbol, a.Nonce, at, depth)
	if err != nil {
		return err
	}
	side := func(levels [][2]string) map[string]string {
		m := map[string]string{}
		for _, l := range levels {
			m[plain(l[0])] = plain(l[1])
		}
		return m
	}
	if err := sameSide("bids", side(a.Bids), want.Bids, depth, a.Complete); err != nil {
		return err
	}
	return sameSide("asks", side(a.Asks), want.Asks, depth, a.Complete)
}
