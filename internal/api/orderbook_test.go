package api_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

// checkRetryAfter holds the header and the body of a problem against each other.
func checkRetryAfter(t testing.TB, w *httptest.ResponseRecorder, p *problem) {
	t.Helper()
	header := w.Header().Get("Retry-After")
	if !p.Retryable {
		if header != "" || p.RetryAfterMS != nil {
			t.Errorf("%s: not retryable, but Retry-After %q and retry_after_ms %v", p.Code, header, p.RetryAfterMS)
		}
		return
	}
	n, err := strconv.ParseInt(header, 10, 64)
	if err != nil || n < 1 || p.RetryAfterMS == nil || *p.RetryAfterMS != n*1000 {
		t.Errorf("%s: Retry-After %q, retry_after_ms %v: want the same of at least a second", p.Code, header, p.RetryAfterMS)
	}
}

func TestOrderBook_asDocumented(t *testing.T) {
	r := newRig(t)
	w := r.get("/v1/exchanges/binance/orderbook?symbol=BTC/USDT")
	want := `{"exchange":"binance","symbol":"BTC/USDT","exchange_symbol":"BTCUSDT","stale":false,` +
		`"freshness":{"status":"live","source":"rest","age_ms":42,"confirmed_at":"2026-11-29T02:00:00.123Z",` +
		`"changed_at":"2026-11-29T01:59:59.123Z","reason":null,"circuit":"closed","exchange_lag_ms":null},` +
		`"depth":100,"complete":true,"timestamp":null,"datetime":null,"nonce":66813971942,` +
		`"bids":[["64073.00","0.58849577"],["64072.90","1"]],"asks":[["64073.10","1.07909367"],["64073.20","0.5"]]}`
	if w.Code != http.StatusOK || w.Body.String() != want {
		t.Errorf("status %d, body\n%s\nwant\n%s", w.Code, w.Body, want)
	}
	for name, want := range map[string]string{
		"Content-Type": "application/json", "Cache-Control": "no-store", "Age": "1", "Etag": "", "Content-Encoding": "",
		"Cache-Status": "exchange-gateway; fwd=miss; fwd-status=200; stored", "Content-Length": strconv.Itoa(len(want)),
	} {
		if got := w.Header().Get(name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
}

func TestOrderBook_passesTheQuestionOn(t *testing.T) {
	f := func(query string, want gateway.BookQuery) {
		t.Helper()
		r := newRig(t)
		want.Exchange, want.Pair = "okx", btc
		w := r.get("/v1/exchanges/okx/orderbook?" + query)
		if w.Code != http.StatusOK || r.books.count() != 1 || r.books.asked[0] != want {
			t.Errorf("%s: status %d, asked %+v, want %+v", query, w.Code, r.books.asked, want)
		}
	}
	f("symbol=BTC-USDT", gateway.BookQuery{Depth: 100})
	f("symbol=BTC%2FUSDT&depth=1", gateway.BookQuery{Depth: 1})
	f("depth=1000&symbol=BTC/USDT&max_age_ms=0", gateway.BookQuery{Depth: 1000, MaxAge: gateway.MaxAge(0)})
	f("symbol=BTC/USDT&max_age_ms=1500&require=live", gateway.BookQuery{Depth: 100, MaxAge: gateway.MaxAge(1500 * time.Millisecond), RequireLive: true})
}

func TestOrderBook_anEmptySideIsLegal(t *testing.T) {
	r := newRig(t)
	l, err := market.NewLevels(nil, []market.Level{level("64073.10", "1")})
	if err != nil {
		t.Fatal(err)
	}
	r.books.book = func(_ context.Context, q gateway.BookQuery) (*gateway.Book, error) {
		b := liveBook(q, 2)
		b.Levels = l
		return b, nil
	}
	if w := r.get(bookURL); !strings.Contains(w.Body.String(), `"bids":[],"asks":[["64073.10","1"]]`) {
		t.Errorf("body: %s", w.Body)
	}
	r.books.ticker = func(q gateway.BookQuery) *gateway.Ticker {
		b := liveBook(q, 2)
		b.Levels = l
		return &gateway.Ticker{Book: *b}
	}
	w := r.get("/v1/exchanges/okx/ticker?symbol=BTC/USDT")
	want := `"bid":null,"bidVolume":null,"ask":"64073.10","askVolume":"1","mid":null,"spread":null,"last":null`
	if !strings.Contains(w.Body.String(), want) {
		t.Errorf("body %s lacks %s", w.Body, want)
	}
}

func TestOrderBook_saysThatItIsStale(t *testing.T) {
	r := newRig(t)
	r.books.book = func(_ context.Context, q gateway.BookQuery) (*gateway.Book, error) {
		b := staleBook(q)
		b.Listing.Status, b.Listing.StatusAt = market.TradingPaused, t0.Add(-time.Minute)
		b.ExchangeTime = t0.Add(-250 * time.Millisecond)
		b.Sequence = market.Sequence{}
		b.Freshness.Lag, b.Freshness.HasLag = 250*time.Millisecond, true
		return b, nil
	}
	w := r.get("/v1/exchanges/binance/orderbook?symbol=BTC/USDT&depth=1")
	want := `{"exchange":"binance","symbol":"BTC/USDT","exchange_symbol":"BTCUSDT","market_status":"paused","market_status_at":"2026-11-29T01:59:00.123Z","stale":true,` +
		`"freshness":{"status":"stale","source":"memory","age_ms":8300,"confirmed_at":"2026-11-29T02:00:00.123Z",` +
		`"changed_at":"2026-11-29T01:59:59.123Z","reason":"circuit_open","circuit":"open","exchange_lag_ms":250},` +
		`"depth":1,"complete":true,"timestamp":1795917599873,"datetime":"2026-11-29T01:59:59.873Z","nonce":null,` +
		`"bids":[["64073.00","0.58849577"]],"asks":[["64073.10","1.07909367"]]}`
	if w.Body.String() != want {
		t.Errorf("body\n%s\nwant\n%s", w.Body, want)
	}
	if got := w.Header().Get("Age"); got != "9" {
		t.Errorf("Age = %q, want 9: rounded up", got)
	}
	if got, want := w.Header().Get("Cache-Status"), "exchange-gateway; hit; ttl=-8; detail=circuit_open"; got != want {
		t.Errorf("Cache-Status = %q, want %q", got, want)
	}
}

// TestStale_alwaysHasAReason: tickers from held books once said `"reason":null`, because nobody had been asked.
func TestStale_alwaysHasAReason(t *testing.T) {
	r := newRig(t)
	r.books.ticker = func(q gateway.BookQuery) *gateway.Ticker {
		k := liveTicker(q)
		k.Freshness.Stale, k.Freshness.Source, k.Freshness.Reason = true, gateway.SourceMemory, market.KindNone
		k.Statistics, k.StatsUnanswered = nil, market.KindNone
		return k
	}
	w := r.get("/v1/exchanges/okx/ticker?symbol=BTC/USDT")
	if n := strings.Count(w.Body.String(), `"reason":"not_asked"`); n != 2 {
		t.Errorf("%d reasons not_asked, want that of the book and that of the figures: %s", n, w.Body)
	}
	if got := w.Header().Get("Cache-Status"); !strings.HasSuffix(got, "; detail=not_asked") {
		t.Errorf("Cache-Status = %q", got)
	}
}
