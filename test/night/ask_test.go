package night

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"testing"
	"time"

	"exchange-gateway/internal/exchangesim"
	"exchange-gateway/internal/market"
)

// book is what the tests read of an order book's answer, or of a ticker's.
type book struct {
	Exchange       string      `json:"exchange"`
	Symbol         string      `json:"symbol"`
	ExchangeSymbol string      `json:"exchange_symbol"`
	Stale          bool        `json:"stale"`
	Freshness      freshness   `json:"freshness"`
	Timestamp      *int64      `json:"timestamp"`
	Nonce          *int64      `json:"nonce"`
	Bids           [][2]string `json:"bids"`
	Asks           [][2]string `json:"asks"`
}

type freshness struct {
	Status      string    `json:"status"`
	Source      string    `json:"source"`
	AgeMS       int64     `json:"age_ms"`
	ConfirmedAt time.Time `json:"confirmed_at"`
	Reason      *string   `json:"reason"`
	Circuit     string    `json:"circuit"`
}

func (f freshness) reason() string {
	if f.Reason == nil {
		return ""
	}
	return *f.Reason
}

// problem is a problem document.
type problem struct {
	Type       string `json:"type"`
	Title      string `json:"title"`
	Status     int    `json:"status"`
	Detail     string `json:"detail"`
	Code       string `json:"code"`
	CCXTClass  string `json:"ccxt_class"`
	Origin     string `json:"origin"`
	Exchange   string `json:"exchange"`
	Retryable  bool   `json:"retryable"`
	RetryAfter *int64 `json:"retry_after_ms"`
	Circuit    string `json:"circuit"`
	RequestID  string `json:"request_id"`
	Parameter  string `json:"parameter"`
}

// answer is one answer of the gateway.
type answer struct {
	status int // 0: none, because the caller was gone
	header http.Header
	body   []byte
}

// get asks the public handler, as a client on loopback does.
func (s *stage) get(target string, header ...string) answer {
	return s.getWith(context.Background(), target, header...)
}

func (s *stage) getWith(ctx context.Context, target string, header ...string) answer {
	return ask(ctx, s.app.Public(), http.MethodGet, target, header...)
}

func ask(ctx context.Context, h http.Handler, method, target string, header ...string) answer {
	r := httptest.NewRequestWithContext(ctx, method, target, nil)
	r.Host = "localhost"
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	if aborted(h, w, r) {
		return answer{}
	}
	return answer{w.Code, w.Header(), w.Body.Bytes()}
}

// aborted serves a request and tells whether the handler gave it up, as it does when its caller is gone. A server's own
// goroutine ends that panic.
func aborted(h http.Handler, w http.ResponseWriter, r *http.Request) (gone bool) {
	defer func() {
		switch p := recover(); p {
		case nil:
		case http.ErrAbortHandler:
			gone = true
		default:
			panic(p)
		}
	}()
	h.ServeHTTP(w, r)
	return false
}

func bookTarget(id market.ExchangeID, pair, more string) string {
	return "/v1/exchanges/" + string(id) + "/orderbook?depth=5&symbol=" + url.QueryEscape(pair) + more
}

func (s *stage) book(id market.ExchangeID, pair string) answer {
	return s.get(bookTarget(id, pair, ""))
}

func (s *stage) balance(id market.ExchangeID) answer { return s.balanceWith(context.Background(), id) }

func (s *stage) balanceWith(ctx context.Context, id market.ExchangeID) answer {
	return s.getWith(ctx, "/v1/exchanges/"+string(id)+"/balance?account="+account, "Authorization", "Bearer "+s.key)
}

func (s *stage) ticker(id market.ExchangeID, pair string) answer {
	return s.get("/v1/exchanges/" + string(id) + "/ticker?symbol=" + url.QueryEscape(pair))
}

// decode reads an answer that has to be good.
func decode[T any](t testing.TB, a answer) (v T, ok bool) {
	t.Helper()
	if a.status != http.StatusOK {
		t.Errorf("status %d: %s", a.status, a.body)
		return v, false
	}
	if err := json.Unmarshal(a.body, &v); err != nil {
		t.Errorf("%v: %.300s", err, a.body)
		return v, false
	}
	return v, true
}

// problemOf reads an answer that has to be a problem.
func problemOf(t testing.TB, a answer) problem {
	t.Helper()
	var p problem
	if a.status < http.StatusBadRequest || a.header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("status %d, %s: want a problem: %.300s", a.status, a.header.Get("Content-Type"), a.body)
		return p
	}
	if err := json.Unmarshal(a.body, &p); err != nil {
		t.Errorf("%v: %.300s", err, a.body)
	}
	return p
}

// retryAfter is the header in seconds, 0 without one.
func (a answer) retryAfter() int {
	n, _ := strconv.Atoi(a.header.Get("Retry-After")) // none is none
	return n
}

// pairs are the first n pairs of an exchange that trade and have two sides, in canonical form.
func (s *stage) pairs(id market.ExchangeID, n int) []string {
	s.t.Helper()
	all := instruments[id]
	if len(all) < n {
		s.t.Fatalf("%s: %d pairs, want %d", id, len(all), n)
	}
	return all[:n]
}

// instruments are pairs that every simulated exchange trades by default.
var instruments = map[market.ExchangeID][]string{
	"binance": {
		"BTC/USDT", "ETH/USDT", "SOL/USDT", "ETH/BTC", "BTC/USDC", "BNB/USDT", "XRP/USDT", "1INCH/USDT", "USDC/USDT", "SHIB/USDT",
	},
	"okx": {
		"BTC/USDT", "ETH/USDT", "SOL/USDT", "ETH/BTC", "BTC/USDC", "BTC/USD", "XRP/USDT", "1INCH/USDT", "USDC/USDT", "USDT/SGD",
	},
	"coinbase": {
		"BTC/USD", "ETH/USD", "SOL/USD", "BTC/USDT", "ETH/USDT", "SOL/USDT", "ETH/BTC", "1INCH/USD", "USDT/USDC", "PEPE/USD",
	},
}

// checkAge compares a stale book with what the exchange really said last, and when.
func (s *stage) checkAge(id market.ExchangeID, a answer, b *book, now time.Time) {
	s.t.Helper()
	confirmed := s.taps[id].confirmed(b.ExchangeSymbol)
	age := now.Sub(confirmed)
	if want := ceil(age, time.Millisecond); b.Freshness.AgeMS != want {
		s.t.Errorf("%s %s: age_ms %d, but the exchange vouched for it %d ms ago", id, b.Symbol, b.Freshness.AgeMS, want)
	}
	if got := b.Freshness.ConfirmedAt; !got.Equal(confirmed.Truncate(time.Millisecond)) {
		s.t.Errorf("%s %s: confirmed_at %v, want %v", id, b.Symbol, got, confirmed)
	}
	if got, want := a.header.Get("Age"), strconv.FormatInt(ceil(age, time.Second), 10); got != want {
		s.t.Errorf("%s %s: Age %s, want %s", id, b.Symbol, got, want)
	}
	if b.Stale != (age > s.conf.FreshFor) || b.Stale != (b.Freshness.Status == "stale") || b.Stale != (b.Freshness.Reason != nil) {
		s.t.Errorf("%s %s: stale %v, %+v at the age of %v", id, b.Symbol, b.Stale, b.Freshness, age)
	}
}

// checkTruth compares the levels of a book with those that the exchange had when it made it.
func (s *stage) checkTruth(id market.ExchangeID, b *book) {
	s.t.Helper()
	want, err := truth(s.venue(id), b)
	if err != nil {
		s.t.Error(err)
		return
	}
	if len(b.Bids) == 0 || len(b.Asks) == 0 || !sameLevel(b.Bids[0], want.Bids[0]) || !sameLevel(b.Asks[0], want.Asks[0]) {
		s.t.Errorf("%s %s: %v %v, the exchange had %v %v", id, b.Symbol, b.Bids, b.Asks, want.Bids, want.Asks)
	}
}

func sameLevel(got [2]string, want exchangesim.Level) bool {
	return sameNumber(got[0], want.Price) && sameNumber(got[1], want.Size)
}

func ceil(d, unit time.Duration) int64 { return int64((d + unit - 1) / unit) }
