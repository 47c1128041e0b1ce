package night

import (
	"bytes"
	"net/http"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/exchangesim"
	"exchange-gateway/internal/market"
)

const (
	nightLong  = 30 * time.Minute
	nightPace  = 100 * time.Millisecond // 10 books and 10 balances a second, 18,000 in the night; a ticker a second
	mostProbes = 40                     // what an exchange that is down may be asked in the night, per class
)

// classes are those that have callers. Tickers ask for both books and reference data.
var classes = []market.Class{market.ClassMarketData, market.ClassReference, market.ClassAccount}

// outage is one night at one exchange.
type outage struct {
	*stage
	id      market.ExchangeID
	pairs   []string
	symbols map[string]string // the exchange's own, by pair
	others  map[market.ExchangeID]string

	callers                                  sync.WaitGroup
	flying                                   atomic.Int64 // callers that wait
	books, stale, tickers, refused, liveElse atomic.Int64
}

func TestNight_ofTheOutage(t *testing.T) {
	for _, id := range ids {
		t.Run(string(id), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { night(t, id) })
		})
	}
}

func night(t *testing.T, id market.ExchangeID) {
	n := &outage{stage: newStage(t, setting{}), id: id, symbols: map[string]string{}, others: map[market.ExchangeID]string{}}
	n.pairs = n.stage.pairs(id, 10)
	for _, other := range ids {
		if other != id {
			n.others[other] = n.stage.pairs(other, 1)[0]
		}
	}
	n.evening()
	goroutines, heap := runtime.NumGoroutine(), heapInUse()

	n.inject(id, exchangesim.Fault{Kind: exchangesim.FaultMaintenance, For: nightLong / 3})
	most := n.stretch(nightLong / 3)
	n.inject(id, exchangesim.Fault{Kind: exchangesim.FaultHang, For: nightLong / 3})
	most = max(most, n.stretch(nightLong/3))
	n.inject(id, exchangesim.Fault{Kind: exchangesim.FaultReset, For: nightLong / 3})
	most = max(most, n.stretch(nightLong/3))
	n.callers.Wait()
	n.atTheExchange()
	n.morning()

	time.Sleep(time.Minute) // what ends with a timeout has ended
	after, heapAfter := runtime.NumGoroutine(), heapInUse()
	warned, messages := n.log.warnings()
	t.Logf("%s: %d book requests (%d stale), %d tickers, %d balance requests refused; other exchanges answered live %d times",
		id, n.books.Load(), n.stale.Load(), n.tickers.Load(), n.refused.Load(), n.liveElse.Load())
	t.Logf("%s: goroutines %d before, at most %d in the night (callers apart), %d after; heap %d KiB before, %d KiB after; %d log lines above info",
		id, goroutines, most, after, heap>>10, heapAfter>>10, warned)
	if after > goroutines+10 || most > goroutines+10 {
		t.Errorf("goroutines: %d before, %d in the night, %d after: want them within 10", goroutines, most, after)
	}
	if heapAfter > heap+heap/10 {
		t.Errorf("heap: %d bytes before, %d after: want it within 10 %%", heap, heapAfter)
	}
	if warned >= 500 {
		t.Errorf("%d log lines above info: %v", warned, messages)
	}
}

// evening asks for everything once, so that every book, figure and list is held, and then some more, so that what is made
// once exists.
func (n *outage) evening() {
	n.t.Helper()
	for range 3 {
		for _, pair := range n.pairs {
			b, _ := decode[book](n.t, n.book(n.id, pair))
			n.symbols[pair] = b.ExchangeSymbol
			decode[book](n.t, n.ticker(n.id, pair))
			time.Sleep(300 * time.Millisecond)
		}
		for other, pair := range n.others {
			decode[book](n.t, n.book(other, pair))
		}
		decode[map[string]any](n.t, n.balance(n.id))
	}
	time.Sleep(2 * time.Second)
}

// stretch asks 10 times a second for a book and for balances, and tells the most goroutines that there were beside
// those of callers, once the circuits have had a minute.
func (n *outage) stretch(d time.Duration) (most int) {
	start := time.Now()
	for i := 0; time.Since(start) < d; i++ {
		pair := n.pairs[i%len(n.pairs)]
		n.caller(func() { n.oneBook(pair, i%10 == 0) })
		n.caller(func() { n.oneBalance(i%10 == 0) })
		if i%10 == 0 {
			n.caller(func() { n.oneTicker(n.pairs[i/10%len(n.pairs)]) })
		}
		if i%100 == 0 {
			n.elsewhere()
		}
		time.Sleep(nightPace)
		if i%600 == 599 {
			synctest.Wait()
			most = max(most, runtime.NumGoroutine()-int(n.flying.Load()))
		}
	}
	return most
}

// caller asks on a goroutine of its own, as every request of a server has one.
func (n *outage) caller(f func()) {
	n.flying.Add(1)
	n.callers.Go(func() {
		defer n.flying.Add(-1)
		f()
	})
}

// oneBook checks every answer to the byte, and reads all of one in ten.
func (n *outage) oneBook(pair string, whole bool) {
	a := n.book(n.id, pair)
	n.books.Add(1)
	age := time.Since(n.taps[n.id].confirmed(n.symbols[pair]))
	if stale := n.checkStale(a, age); stale {
		n.stale.Add(1)
	}
	if !whole {
		return
	}
	if b, ok := decode[book](n.t, a); ok {
		n.checkAge(n.id, a, &b, time.Now())
		n.checkTruth(n.id, &b)
	}
}

// checkStale checks a good answer's age and label without reading the rest.
func (n *outage) checkStale(a answer, age time.Duration) (stale bool) {
	stale = age > n.conf.FreshFor
	label := `"stale":` + strconv.FormatBool(stale) + `,"freshness":{`
	told := `,"age_ms":` + strconv.FormatInt(ceil(age, time.Millisecond), 10) + `,"confirmed_at":"`
	if a.status != http.StatusOK || !bytes.Contains(a.body, []byte(label)) || !bytes.Contains(a.body, []byte(told)) ||
		a.header.Get("Age") != strconv.FormatInt(ceil(age, time.Second), 10) {
		n.t.Errorf("status %d, Age %s, %.300s: want 200 and %s%s", a.status, a.header.Get("Age"), a.body, label, told)
	}
	return stale
}

// oneTicker is a book and figures: neither may fail it.
func (n *outage) oneTicker(pair string) {
	a := n.ticker(n.id, pair)
	n.tickers.Add(1)
	n.checkStale(a, time.Since(n.taps[n.id].confirmed(n.symbols[pair])))
}

// oneBalance checks every answer's status and header, and reads all of one in ten.
func (n *outage) oneBalance(whole bool) {
	a := n.balance(n.id)
	n.refused.Add(1)
	if a.status < http.StatusInternalServerError || a.retryAfter() < 1 {
		n.t.Errorf("balances: %d, Retry-After %q: want an error that may be retried", a.status, a.header.Get("Retry-After"))
	}
	if !whole {
		return
	}
	if p := problemOf(n.t, a); !p.Retryable || p.Exchange != string(n.id) {
		n.t.Errorf("balances: %s", a.body)
	}
}

// elsewhere asks the other exchanges, which are well.
func (n *outage) elsewhere() {
	for other, pair := range n.others {
		if b, ok := decode[book](n.t, n.book(other, pair)); ok {
			if b.Stale {
				n.t.Errorf("%s is stale in an outage of %s: %+v", other, n.id, b.Freshness)
			}
			n.liveElse.Add(1)
		}
	}
}

// atTheExchange checks what the exchange saw of the night.
func (n *outage) atTheExchange() {
	n.t.Helper()
	for _, class := range classes {
		before, opened, ok := n.opened(n.id, class)
		if !ok {
			n.t.Errorf("%s: the circuit of %s never opened", n.id, class)
			continue
		}
		total, plain := 0, map[string]int{}
		for _, c := range n.taps[n.id].from(before) {
			if c.class == class {
				// One that leaves in the very instant of the opening was let through before it.
				if total++; !c.probe && c.at.After(opened) {
					plain[c.path]++
				}
			}
		}
		n.t.Logf("%s %s: opened, and then %d requests in the night", n.id, class, total)
		if total > mostProbes {
			n.t.Errorf("%s %s: %d requests after the circuit opened, want at most %d", n.id, class, total, mostProbes)
		}
		// A connection is dialled for a request alone, and all of these are probes.
		if len(plain) > 0 {
			n.t.Errorf("%s %s: requests that were no probes after the circuit opened: %v", n.id, class, plain)
		}
	}
}

// morning is the exchange's return: everything is live within one open time.
func (n *outage) morning() {
	n.t.Helper()
	back := time.Now()
	limit := time.Duration(0)
	for _, c := range n.app.Guard().Circuits() {
		if c.ID.Exchange == n.id && c.State != market.CircuitClosed {
			limit = max(limit, time.Minute) // the longest open time
		}
	}
	waiting := map[string]func() bool{
		"book":    func() bool { b, ok := decode[book](n.t, n.book(n.id, n.pairs[0])); return ok && !b.Stale },
		"balance": func() bool { return n.balance(n.id).status == http.StatusOK },
	}
	took := map[string]time.Duration{}
	for len(waiting) > 0 && time.Since(back) <= limit {
		for name, live := range waiting {
			if live() {
				took[name] = time.Since(back)
				delete(waiting, name)
			}
		}
		time.Sleep(nightPace)
	}
	n.t.Logf("%s: live again after %v", n.id, took)
	for name := range waiting {
		n.t.Errorf("%s: no live %s %v after the exchange was back", n.id, name, time.Since(back))
	}
	for _, pair := range n.pairs {
		time.Sleep(2 * time.Second / 10) // within what every exchange may be asked
		if b, ok := decode[book](n.t, n.book(n.id, pair)); ok && b.Stale {
			n.t.Errorf("%s %s: stale after the exchange was back: %+v", n.id, pair, b.Freshness)
		}
	}
}

// heapInUse is what is reachable: pools are emptied by the second collection.
func heapInUse() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
