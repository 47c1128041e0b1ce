package binance_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"exchange-gateway/internal/compat"
	"exchange-gateway/internal/compat/binance"
	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

var (
	btc = market.Pair{Base: "BTC", Quote: "USDT"}
	eth = market.Pair{Base: "ETH", Quote: "USDT"}
)

// fake stands for the gateway: it answers what a test says and keeps what it was asked.
type fake struct {
	mu    sync.Mutex
	lists int // calls of Markets
	looks []market.Pair
	hung  bool // the exchange does not answer about lists; set before anything is asked

	list    []market.Listing
	listErr error
	added   []market.Listing // what the exchange lists and the gateway has not seen yet
	books   []gateway.BookQuery
	book    func(gateway.BookQuery) (*gateway.Book, error)
	live    *gateway.Book // that is held
	looked  []market.Pair // whose held books were looked for
	natives []gateway.NativeQuestion
	native  func(gateway.NativeQuestion) (*gateway.NativeAnswer, error)
	status  *gateway.Status
	health  *gateway.Status // nil: nothing is known
}

func (f *fake) OrderBook(_ context.Context, q gateway.BookQuery) (*gateway.Book, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.books = append(f.books, q)
	return f.book(q)
}

func (f *fake) Live(_ market.ExchangeID, pair market.Pair) (*gateway.Book, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.looked = append(f.looked, pair)
	return f.live, f.live != nil
}

func (f *fake) Native(ctx context.Context, q gateway.NativeQuestion) (*gateway.NativeAnswer, error) {
	if f.hung {
		<-ctx.Done()
		return nil, &market.Error{Exchange: binance.ID, Op: market.OpNative, Kind: market.KindOf(ctx.Err())}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.natives = append(f.natives, q)
	return f.native(q)
}

func (f *fake) Status(context.Context, market.ExchangeID) (*gateway.Status, error) {
	return f.status, nil
}

func (f *fake) Health(market.ExchangeID) *gateway.Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.health
}

func (f *fake) Markets(ctx context.Context, _ market.ExchangeID) (*gateway.Markets, error) {
	if f.hung {
		<-ctx.Done()
		return nil, &market.Error{Exchange: binance.ID, Op: market.OpListings, Kind: market.KindOf(ctx.Err())}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lists++
	if f.listErr != nil {
		return nil, f.listErr
	}
	return &gateway.Markets{Exchange: binance.ID, Listings: f.list}, nil
}

func (f *fake) Listing(ctx context.Context, _ market.ExchangeID, pair market.Pair) (market.Listing, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() != nil {
		return market.Listing{}, &market.Error{Exchange: binance.ID, Op: market.OpListings, Kind: market.KindCanceled}
	}
	f.looks = append(f.looks, pair)
	for _, l := range f.added {
		if l.Pair == pair {
			f.list = append(slices.Clone(f.list), l)
			return l, nil
		}
	}
	return market.Listing{}, &gateway.Error{Code: gateway.CodeSymbolUnknown, Exchange: binance.ID}
}

func listing(p market.Pair) market.Listing {
	return market.Listing{Exchange: binance.ID, Pair: p, Symbol: p.Base + p.Quote, Status: market.TradingActive}
}

// side makes levels of texts: price, size, price, size.
func side(texts ...string) []market.Level {
	var all []market.Level
	for i := 0; i+1 < len(texts); i += 2 {
		all = append(all, market.Level{Price: market.MustNumber(texts[i]), Size: market.MustNumber(texts[i+1])})
	}
	return all
}

// bookOf is a live book, confirmed 42 ms ago.
func bookOf(t *testing.T, bids, asks []market.Level) *gateway.Book {
	t.Helper()
	levels, err := market.NewLevels(bids, asks)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Now().Add(-42 * time.Millisecond)
	return &gateway.Book{
		OrderBook: &market.OrderBook{
			Exchange: binance.ID, Pair: btc, Symbol: "BTCUSDT", Levels: levels, Sequence: market.SequenceOf(66813971942),
			ConfirmedAt: at, Depth: 100,
		},
		Freshness: gateway.Freshness{Source: gateway.SourceStream, Age: 42 * time.Millisecond, ConfirmedAt: at},
	}
}

// stage is a facade over a fake that lists BTC/USDT and ETH/USDT and has a book of two levels.
func stage(t *testing.T) (*binance.Facade, *fake) {
	t.Helper()
	f := &fake{list: []market.Listing{listing(btc), listing(eth), {Exchange: binance.ID, Pair: market.Pair{Base: "币", Quote: "BTC"}, Symbol: "币BTC"}}}
	book := bookOf(t, side("64073.00000000", "0.58849577", "64072.90000000", "1.00000000"), side("64073.10000000", "1.07909367"))
	f.book = func(gateway.BookQuery) (*gateway.Book, error) { return book, nil }
	f.native = func(gateway.NativeQuestion) (*gateway.NativeAnswer, error) { return native(`{"passed":"on"}`), nil }
	facade, err := binance.New(binance.Config{Books: f, Lists: f})
	if err != nil {
		t.Fatal(err)
	}
	return facade, f
}

func native(body string) *gateway.NativeAnswer {
	return &gateway.NativeAnswer{
		NativeAnswer: &market.NativeAnswer{Body: []byte(body), ConfirmedAt: time.Now()},
		Freshness:    gateway.Freshness{Source: gateway.SourceREST, Age: 3 * time.Millisecond},
	}
}

// request is a GET of a path with its query.
func request(target string) compat.Request {
	path, query, _ := strings.Cut(target, "?")
	return compat.Request{Method: http.MethodGet, Path: path, Query: query}
}

// get asks for what must be answered.
func get(t *testing.T, f *binance.Facade, target string) *compat.Answer {
	t.Helper()
	a, err := f.Answer(t.Context(), request(target))
	if err != nil {
		t.Fatalf("%s: %v", target, err)
	}
	if !json.Valid(a.Body) {
		t.Fatalf("%s: %s is no JSON", target, a.Body)
	}
	return a
}

// refusal asks for what must be refused by the facade itself.
func refusal(t *testing.T, f *binance.Facade, r compat.Request) *compat.Refusal {
	t.Helper()
	a, err := f.Answer(t.Context(), r)
	e, ok := errors.AsType[*compat.Refusal](err)
	if !ok || a != nil {
		t.Fatalf("%s %s?%s: %v, %v, want a refusal", r.Method, r.Path, r.Query, a, err)
	}
	return e
}
