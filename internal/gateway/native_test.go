package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

// fakeNative is an exchange that is asked in its own form. It counts what reaches it.
type fakeNative struct {
	mu       sync.Mutex
	asked    []market.NativeQuery
	canceled int

	latency time.Duration
	age     time.Duration // of the answers when they are sent
	size    int           // of the answers in bytes, 2 at least
	err     error
}

func (f *fakeNative) NativeEndpoints() []market.NativeEndpoint { return nil }

func (f *fakeNative) NativePlan(q market.NativeQuery) (market.Call, error) {
	if q.Endpoint == "order" {
		return market.Call{}, &market.Error{Exchange: "alpha", Op: market.OpNative, Kind: market.KindNotSupported}
	}
	return market.Call{Exchange: "alpha", Op: market.OpNative, Class: market.ClassReference}, nil
}

func (f *fakeNative) Native(ctx context.Context, q market.NativeQuery) (*market.NativeAnswer, error) {
	f.mu.Lock()
	f.asked = append(f.asked, q)
	latency, age, size, err := f.latency, f.age, f.size, f.err
	f.mu.Unlock()
	sent := time.Now().Add(-age)
	select {
	case <-time.After(latency):
	case <-ctx.Done():
		f.set(func(f *fakeNative) { f.canceled++ })
		return nil, &market.Error{Exchange: "alpha", Op: market.OpNative, Kind: market.KindCanceled, Err: ctx.Err()}
	}
	if err != nil {
		return nil, err
	}
	return &market.NativeAnswer{Body: make([]byte, max(size, 2)), ConfirmedAt: sent}, nil
}

func (f *fakeNative) set(change func(*fakeNative)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

func (f *fakeNative) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.asked)
}

// native is a question to alpha.
func native(endpoint, query string) gateway.NativeQuestion {
	return gateway.NativeQuestion{Exchange: "alpha", NativeQuery: market.NativeQuery{Endpoint: endpoint, Query: query}}
}

func newNativeHouse(t *testing.T, change func(*gateway.BooksConfig)) (*house, *fakeNative) {
	t.Helper()
	n := &fakeNative{}
	return newHouse(t, func(c *gateway.BooksConfig) {
		c.Venues[0].Native = n
		if change != nil {
			change(c)
		}
	}, "alpha", "beta"), n
}

var errNative = &market.Error{Exchange: "alpha", Op: market.OpNative, Kind: market.KindUnavailable, RetryAfter: 3 * time.Second}

// tell asks one question that has to be answered.
func (h *house) tell(t *testing.T, q gateway.NativeQuestion) *gateway.NativeAnswer {
	t.Helper()
	a, err := h.Native(t.Context(), q)
	if err != nil {
		t.Fatalf("%s: %v", q.Endpoint, err)
	}
	return a
}

func TestNative_pricesAreSharedForASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, n := newNativeHouse(t, nil)
		n.set(func(n *fakeNative) { n.latency = 100 * time.Millisecond })
		all := native("ticker/24hr", "")
		var wait sync.WaitGroup
		for range 50 {
			wait.Go(func() { is(t, h.tell(t, all).Freshness, false, gateway.SourceREST, market.KindNone) })
		}
		wait.Wait()
		if n.count() != 1 {
			t.Errorf("%d calls for 50 questions at once, want 1", n.count())
		}
		time.Sleep(800 * time.Millisecond)
		a := h.tell(t, all)
		is(t, a.Freshness, false, gateway.SourceMemory, market.KindNone)
		if a.Freshness.Age != 900*time.Millisecond || time.Since(a.ConfirmedAt) != 900*time.Millisecond {
			t.Errorf("age %v, confirmed %v ago, want 900ms since it was sent", a.Freshness.Age, time.Since(a.ConfirmedAt))
		}
		time.Sleep(200 * time.Millisecond)
		is(t, h.tell(t, all).Freshness, false, gateway.SourceREST, market.KindNone)
		is(t, h.tell(t, native("ticker/24hr", "symbol=BTCUSDT")).Freshness, false, gateway.SourceREST, market.KindNone)
		if n.count() != 3 {
			t.Errorf("%d calls, want one for each second and question", n.count())
		}
	})
}

func TestNative_aStalePriceOnlyWithinWhatTheCallerAllows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, n := newNativeHouse(t, nil)
		q := native("ticker/price", "symbol=BTCUSDT")
		h.tell(t, q)
		n.set(func(n *fakeNative) { n.err = errNative })
		time.Sleep(10 * time.Second)
		if _, err := h.Native(t.Context(), q); !errors.Is(err, errNative) {
			t.Errorf("without an age: %v, want the exchange's error", err)
		}
		time.Sleep(time.Second)
		q.MaxAge = gateway.MaxAge(20 * time.Second)
		a := h.tell(t, q)
		is(t, a.Freshness, true, gateway.SourceMemory, market.KindUnavailable)
		if a.Freshness.Age != 11*time.Second {
			t.Errorf("age %v, want 11s", a.Freshness.Age)
		}
		h.health["alpha"].refuse(market.OpNative, market.KindIsolated)
		asked := n.count()
		is(t, h.tell(t, q).Freshness, true, gateway.SourceMemory, market.KindIsolated)
		time.Sleep(10 * time.Second)
		if _, err := h.Native(t.Context(), q); market.KindOf(err) != market.KindIsolated {
			t.Errorf("past the age: %v", err)
		}
		if n.count() != asked {
			t.Error("the exchange was asked although it is isolated")
		}
		q.MaxAge = gateway.MaxAge(1000 * time.Hour)
		time.Sleep(time.Hour)
		if _, err := h.Native(t.Context(), q); err == nil {
			t.Error("a price of more than stale_max_age was served")
		}
	})
}

func TestNative_aHangingExchangeIsWaitedForStaleWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, n := newNativeHouse(t, nil)
		q := native("ticker/bookTicker", "")
		q.MaxAge = gateway.MaxAge(time.Minute)
		h.tell(t, q)
		time.Sleep(5 * time.Second)
		n.set(func(n *fakeNative) { n.latency = 2 * time.Second })
		start := time.Now()
		is(t, h.tell(t, q).Freshness, true, gateway.SourceMemory, market.KindTimeout)
		if took := time.Since(start); took != 300*time.Millisecond {
			t.Errorf("took %v, want stale_wait", took)
		}
		time.Sleep(2 * time.Second) // the call goes on
		a := h.tell(t, q)
		if a.Freshness.Age != 2600*time.Millisecond || n.count() != 3 {
			t.Errorf("age %v after %d calls, want that of the second call, 300ms into the third", a.Freshness.Age, n.count())
		}
		// Who allows no age waits as long as it takes, and ends the call when the last leaves.
		time.Sleep(5 * time.Second)
		ctx, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		if _, err := h.Native(ctx, native("ticker/bookTicker", "")); market.KindOf(err) != market.KindTimeout {
			t.Errorf("err = %v", err)
		}
		synctest.Wait()
		if n.canceled != 1 {
			t.Errorf("%d calls were ended, want the one that nobody waits for", n.canceled)
		}
	})
}

func TestNative_aCacheOfTheExchangeIsNotFresherThanItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, n := newNativeHouse(t, nil)
		n.set(func(n *fakeNative) { n.age = 3 * time.Second })
		q := native("ticker/price", "")
		if a := h.tell(t, q); a.Freshness.Age != 3*time.Second {
			t.Errorf("age %v, want 3s", a.Freshness.Age)
		}
		q.MaxAge = gateway.MaxAge(time.Second)
		time.Sleep(time.Second)
		if _, err := h.Native(t.Context(), q); market.KindOf(err) != market.KindSuspect {
			t.Errorf("older than the bound: %v", err)
		}
		n.set(func(n *fakeNative) { n.age = -time.Minute }) // a clock that is wrong
		time.Sleep(time.Second)
		if _, err := h.Native(t.Context(), q); market.KindOf(err) != market.KindMalformed {
			t.Errorf("of an unknown age: %v", err)
		}
	})
}

func TestNative_listsOfNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, n := newNativeHouse(t, nil)
		q := native("exchangeInfo", "")
		h.tell(t, q)
		time.Sleep(59 * time.Minute)
		is(t, h.tell(t, q).Freshness, false, gateway.SourceMemory, market.KindNone)
		n.set(func(n *fakeNative) { n.err = errNative })
		time.Sleep(2 * time.Minute)
		is(t, h.tell(t, q).Freshness, true, gateway.SourceMemory, market.KindUnavailable)
		if n.count() != 2 {
			t.Errorf("%d calls, want 2", n.count())
		}
		time.Sleep(23 * time.Hour)
		if _, err := h.Native(t.Context(), q); !errors.Is(err, errNative) {
			t.Errorf("after a day: %v", err)
		}
	})
}

func TestNative_nothingElseIsKeptOrShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, n := newNativeHouse(t, nil)
		n.set(func(n *fakeNative) { n.latency = time.Second })
		q := native("klines", "interval=1m&symbol=BTCUSDT")
		q.MaxAge = gateway.MaxAge(time.Hour)
		var wait sync.WaitGroup
		for range 3 {
			wait.Go(func() { is(t, h.tell(t, q).Freshness, false, gateway.SourceREST, market.KindNone) })
		}
		wait.Wait()
		n.set(func(n *fakeNative) { n.err = errNative })
		if _, err := h.Native(t.Context(), q); !errors.Is(err, errNative) {
			t.Errorf("err = %v", err)
		}
		if n.count() != 4 {
			t.Errorf("%d calls for 4 questions", n.count())
		}
		ctx, leave := context.WithTimeout(t.Context(), time.Millisecond)
		defer leave()
		if _, err := h.Native(ctx, q); market.KindOf(err) != market.KindTimeout {
			t.Errorf("err = %v", err)
		}
		synctest.Wait()
		if n.canceled != 1 {
			t.Error("the call of one who left goes on")
		}
	})
}

func TestNative_refusals(t *testing.T) {
	h, n := newNativeHouse(t, nil)
	for _, q := range []gateway.NativeQuestion{{Exchange: "beta"}, native("order", "")} {
		if _, err := h.Native(t.Context(), q); market.KindOf(err) != market.KindNotSupported {
			t.Errorf("%s of %s: %v", q.Endpoint, q.Exchange, err)
		}
	}
	if _, err := h.Native(t.Context(), gateway.NativeQuestion{Exchange: "omega"}); code(err) != gateway.CodeExchangeUnknown {
		t.Errorf("err = %v", err)
	}
	if n.count() != 0 {
		t.Error("the exchange was asked")
	}
}

func TestNative_withheld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &fakeWithheld{}
		h, n := newNativeHouse(t, func(c *gateway.BooksConfig) { c.Withheld = w })
		h.listed(t)
		one, other, all := native("ticker/price", "symbol=BTCUSDT"), native("klines", "symbol=ETHUSDT"), native("ticker/24hr", "")
		one.Pairs, other.Pairs = []market.Pair{btc}, []market.Pair{eth}
		h.tell(t, one)
		w.begin("alpha", btc, time.Minute)
		asked := n.count()
		for what, q := range map[string]gateway.NativeQuestion{"of the pair": one, "of all pairs": all} {
			_, err := h.Native(t.Context(), q)
			withheld(t, what, err, time.Minute, time.Minute)
			if w, ok := errors.AsType[*gateway.WithheldError](err); !ok || w.Pair != btc {
				t.Errorf("%s: %v, want one that names %v", what, err, btc)
			}
		}
		if n.count() != asked {
			t.Error("the exchange was asked for what is withheld")
		}
		h.tell(t, other)
		h.tell(t, native("exchangeInfo", ""))
		time.Sleep(2 * time.Minute)
		n.set(func(n *fakeNative) { n.latency = time.Second })
		time.AfterFunc(500*time.Millisecond, func() { w.begin("alpha", market.Pair{}, time.Minute) })
		_, err := h.Native(t.Context(), one)
		withheld(t, "since the question", err, 59*time.Second, time.Minute)
		if w, ok := errors.AsType[*gateway.WithheldError](err); !ok || w.Pair != (market.Pair{}) {
			t.Errorf("%v, want one that names no pair: the exchange is withheld", err)
		}
		h.tell(t, native("exchangeInfo", "")) // nobody loses money on a name
	})
}

func TestNative_purge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, n := newNativeHouse(t, nil)
		price, names := native("ticker/price", ""), native("exchangeInfo", "")
		price.MaxAge = gateway.MaxAge(time.Minute)
		h.tell(t, price)
		h.tell(t, names)
		time.Sleep(2 * time.Second)
		n.set(func(n *fakeNative) { n.latency = time.Second })
		var wait sync.WaitGroup
		slow := native("ticker/24hr", "")
		slow.MaxAge = price.MaxAge
		wait.Go(func() { h.tell(t, slow) })
		time.Sleep(500 * time.Millisecond)
		if _, err := h.Purge(t.Context(), "alpha", btc); err != nil {
			t.Fatal(err)
		}
		wait.Wait()
		n.set(func(n *fakeNative) { n.err = errNative })
		for _, q := range []gateway.NativeQuestion{price, slow} {
			if a, err := h.Native(t.Context(), q); !errors.Is(err, errNative) {
				t.Errorf("%s: %+v, %v: something from before the purge", q.Endpoint, a, err)
			}
		}
		is(t, h.tell(t, names).Freshness, false, gateway.SourceMemory, market.KindNone)
		// What the exchange vouched for before it does not come back by a cache of the exchange.
		time.Sleep(time.Second)
		n.set(func(n *fakeNative) { n.err, n.latency, n.age = nil, 0, time.Minute })
		if a, err := h.Native(t.Context(), native("ticker/price", "")); err != nil || a.Freshness.Age != time.Minute {
			t.Errorf("%+v, %v", a, err)
		}
		n.set(func(n *fakeNative) { n.err = errNative })
		price.MaxAge = gateway.MaxAge(time.Hour)
		time.Sleep(time.Second)
		if a, err := h.Native(t.Context(), price); !errors.Is(err, errNative) {
			t.Errorf("%+v, %v: something from before the purge", a, err)
		}
	})
}

func TestNative_keepsSixtyFourQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, n := newNativeHouse(t, func(c *gateway.BooksConfig) { c.FreshFor = time.Hour })
		ask := func(i int) gateway.Source {
			return h.tell(t, native("ticker/price", fmt.Sprint("symbol=", i))).Freshness.Source
		}
		for i := range 64 {
			ask(i)
		}
		if ask(0) != gateway.SourceMemory {
			t.Error("one of 64 is not kept")
		}
		ask(64)
		if ask(0) != gateway.SourceMemory || ask(2) != gateway.SourceMemory {
			t.Error("not the one that was asked least lately went")
		}
		if ask(1) != gateway.SourceREST {
			t.Error("65 are kept")
		}
		if n.count() != 66 {
			t.Errorf("%d calls", n.count())
		}
	})
}

func TestNative_keepsSixteenMegabytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, n := newNativeHouse(t, func(c *gateway.BooksConfig) { c.FreshFor = time.Hour })
		ask := func(name string, size int) gateway.Source {
			n.set(func(n *fakeNative) { n.size = size })
			return h.tell(t, native("ticker/price", name)).Freshness.Source
		}
		const mega = 1 << 20
		for _, name := range []string{"a", "b", "c"} {
			ask(name, 5*mega)
		}
		ask("a", 0)
		ask("d", 5*mega) // 20 in all: b goes
		got := []gateway.Source{ask("a", 0), ask("c", 0), ask("d", 0), ask("b", 0)}
		if want := []gateway.Source{gateway.SourceMemory, gateway.SourceMemory, gateway.SourceMemory, gateway.SourceREST}; !slices.Equal(got, want) {
			t.Errorf("a, c, d, b from %v, want %v", got, want)
		}
		ask("huge", 17*mega)
		time.Sleep(time.Second)
		if ask("huge", 17*mega) != gateway.SourceREST {
			t.Error("an answer above the bound is kept")
		}
		if ask("a", 0) != gateway.SourceMemory {
			t.Error("it drove out the others")
		}
	})
}
