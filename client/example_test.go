package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"exchange-gateway/client"
)

// A book in an outage: it is shown, and says that it is old. A balance is an error that says when to ask again.
func Example() {
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/exchanges/okx/balance" {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, `{"code":"circuit_open","status":503,"exchange":"okx","retryable":true,"retry_after_ms":4000}`)
			return
		}
		fmt.Fprint(w, `{"exchange":"okx","symbol":"BTC/USDT","freshness":{"status":"stale","age_ms":8300,"reason":"circuit_open"},
			"bids":[["64073.0","0.5"]],"asks":[["64073.1","1.0"]]}`)
	}))
	defer gateway.Close()

	c, err := client.New(gateway.URL, client.Options{Key: "gw_demo_fake"})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()

	book, err := c.OrderBook(ctx, "okx", "BTC/USDT", client.Depth(1), client.MaxAge(time.Minute))
	if err != nil {
		fmt.Println(err)
		return
	}
	mid, _ := book.Mid()
	fmt.Println(book.Symbol, mid, "stale:", book.Freshness.Stale, book.Freshness.Reason, book.Freshness.Age)

	_, err = c.Balance(ctx, "okx", client.Account("main"))
	var e *client.Error
	if errors.Is(err, client.ErrCircuitOpen) && errors.As(err, &e) {
		fmt.Println("no balance; again in", e.RetryAfter)
	}
	// Output:
	// BTC/USDT 64073.05 stale: true circuit_open 8.3s
	// no balance; again in 4s
}
