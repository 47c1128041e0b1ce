package stream

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"exchange-gateway/internal/market"
)

// standing is how the streams of an exchange stand, as the gateway tells it.
type standing struct {
	Connections []struct {
		Books int `json:"books"`
	} `json:"connections"`
	Books struct {
		Live    int `json:"live"`
		Syncing int `json:"syncing"`
		Stale   int `json:"stale"`
	} `json:"books"`
	WarmUp struct {
		Wanted int    `json:"wanted"`
		Synced int    `json:"synced"`
		Queued int    `json:"queued"`
		ETA    *int64 `json:"eta_ms"`
	} `json:"warm_up"`
}

// standing asks the gateway for an exchange's streams.
func (s *stage) standing(id market.ExchangeID) standing {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, fmt.Sprintf("http://localhost/v1/exchanges/%s/status", id), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	res, err := s.client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	var all struct {
		Streams *standing `json:"streams"`
	}
	body, err := io.ReadAll(res.Body)
	if err == nil {
		err = json.Unmarshal(body, &all)
	}
	if err != nil || all.Streams == nil {
		s.t.Fatalf("no streams in the status of %s: %d, %v: %.500s", id, res.StatusCode, err, body)
	}
	return *all.Streams
}

// settle waits until a client's topics are live, and tells how long it took.
func settle(t testing.TB, cl *client, most time.Duration) time.Duration {
	t.Helper()
	began := time.Now()
	for !cl.live() {
		if time.Since(began) > most {
			t.Errorf("not live within %v: %v", most, cl.states())
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return time.Since(began)
}

// compared is how many messages of a client were compared with the truth.
func compared(cl *client) (sum int) {
	for _, n := range cl.comparisons() {
		sum += n
	}
	return sum
}
