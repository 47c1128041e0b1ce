package night

import (
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/exchangesim"
	"exchange-gateway/internal/market"
)

// limitCase is a 429 for one class of requests, and what it limits.
type limitCase struct {
	name   string
	id     market.ExchangeID
	fault  exchangesim.Fault
	skew   time.Duration                    // of the exchange's clock
	closed func(exchangesim.Request) bool   // requests that the limit is about
	open   []func(exchangesim.Request) bool // requests to the exchange that it is not about, all of which have to go on
}

// What an exchange's limit can be about.
func everything(exchangesim.Request) bool { return true }

func books(r exchangesim.Request) bool { return r.Class == exchangesim.ClassMarketData }

func figures(r exchangesim.Request) bool {
	return r.Class == exchangesim.ClassReference && r.Symbol != "" // statistics of one pair
}

func keyless(r exchangesim.Request) bool { return r.Credential == "" }

func mainAccount(r exchangesim.Request) bool {
	return r.Credential != "" && r.Credential == credentials[market.ExchangeID(venueOf(r))]
}

func secondAccount(r exchangesim.Request) bool {
	return r.Credential != "" && r.Credential == seconds[market.ExchangeID(venueOf(r))]
}

// venueOf tells the exchange by the name of a credential, which starts with it.
func venueOf(r exchangesim.Request) string {
	for _, id := range ids {
		if n := len(id); len(r.Credential) >= n && r.Credential[:n] == string(id) {
			return string(id)
		}
	}
	return ""
}

// anyOf is a list of what goes on.
func anyOf(open ...func(exchangesim.Request) bool) []func(exchangesim.Request) bool { return open }

const retryAfter = 20 * time.Second

func limitCases() []limitCase {
	limit := func(class, credential string) exchangesim.Fault {
		return exchangesim.Fault{
			Kind: exchangesim.FaultRateLimit, RetryAfter: retryAfter, Class: class, Credential: credential, For: retryAfter,
		}
	}
	date := limit(exchangesim.ClassMarketData, "")
	date.RetryAfterDate = true
	all := []limitCase{
		{name: "binance books", id: "binance", fault: limit(exchangesim.ClassMarketData, ""), closed: everything},
		{name: "binance figures", id: "binance", fault: limit(exchangesim.ClassReference, ""), closed: everything},
		{name: "binance account", id: "binance", fault: limit(exchangesim.ClassAccount, ""), closed: everything},
		{name: "binance until a date, its clock two minutes behind", id: "binance", fault: date, skew: -2 * time.Minute, closed: everything},
		{name: "okx books", id: "okx", fault: limit(exchangesim.ClassMarketData, ""), closed: books, open: anyOf(figures, mainAccount, secondAccount)},
		{name: "okx figures", id: "okx", fault: limit(exchangesim.ClassReference, ""), closed: figures, open: anyOf(books, mainAccount, secondAccount)},
		{name: "okx account", id: "okx", fault: limit("", credentials["okx"]), closed: mainAccount, open: anyOf(books, figures, secondAccount)},
		{name: "coinbase books", id: "coinbase", fault: limit(exchangesim.ClassMarketData, ""), closed: keyless, open: anyOf(mainAccount, secondAccount)},
		{name: "coinbase account", id: "coinbase", fault: limit("", credentials["coinbase"]), closed: mainAccount, open: anyOf(books, figures, secondAccount)},
	}
	return all
}

// TestRetryAfter: fifty callers, and not one request on what is limited from the moment the 429 was read until its end.
func TestRetryAfter(t *testing.T) {
	for _, c := range limitCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { c.run(t) })
		})
	}
}

func (c limitCase) run(t *testing.T) {
	s := newStage(t, setting{conf: withSeconds(t)})
	if c.skew != 0 {
		s.inject(c.id, exchangesim.Fault{Kind: exchangesim.FaultSkew, Skew: c.skew})
	}
	pairs := s.pairs(c.id, 4)
	s.warm(c.id, pairs)
	s.inject(c.id, exchangesim.Fault{Kind: exchangesim.FaultLatency, Latency: 50 * time.Millisecond})
	s.inject(c.id, c.fault)
	s.venue(c.id).ResetStats()
	sent := s.taps[c.id].total()

	var callers sync.WaitGroup
	start := time.Now()
	for i := range 50 {
		callers.Go(func() {
			for n := i; time.Since(start) < retryAfter; n++ {
				s.get(bookTarget(c.id, pairs[n%len(pairs)], "&max_age_ms=0"))
				s.ticker(c.id, pairs[n%len(pairs)])
				if n%5 == 0 { // signatures are what costs most here
					s.balance(c.id)
					s.secondBalance(c.id)
				}
				time.Sleep(time.Second)
			}
		})
	}
	callers.Go(func() { s.othersLive(c.id, start, retryAfter) })
	callers.Wait()
	time.Sleep(3 * time.Second)

	var read time.Time
	for _, x := range s.taps[c.id].from(sent) {
		if x.status == http.StatusTooManyRequests {
			read = x.ended
			break
		}
	}
	if read.IsZero() {
		t.Fatal("the exchange refused nothing")
	}
	within := func(r exchangesim.Request) bool { return r.Time.After(read) && r.Time.Before(read.Add(retryAfter)) }
	log := s.venue(c.id).Stats().Log
	through, elsewhere := 0, make([]int, len(c.open))
	for _, r := range log {
		if !within(r) {
			continue
		}
		if c.closed(r) {
			through++
			t.Errorf("%v after the 429 was read: %s %s %s", r.Time.Sub(read), r.Path, r.Symbol, r.Credential)
		}
		for i, open := range c.open {
			if open(r) && r.Status == http.StatusOK {
				elsewhere[i]++
			}
		}
	}
	t.Logf("%s: %d requests passed the closed gate; %v on what is not limited", c.name, through, elsewhere)
	for i, n := range elsewhere {
		if n < 5 {
			t.Errorf("%d requests on thing %d that is not limited: it was held up too", n, i)
		}
	}
	if b, ok := decode[book](t, s.book(c.id, pairs[0])); ok && b.Stale {
		t.Errorf("after the end: %+v", b.Freshness)
	}
	decode[map[string]any](t, s.balance(c.id))
}

// warm asks once for all that the test asks for later.
func (s *stage) warm(id market.ExchangeID, pairs []string) {
	s.t.Helper()
	for _, pair := range pairs {
		decode[book](s.t, s.book(id, pair))
		decode[book](s.t, s.ticker(id, pair))
		time.Sleep(400 * time.Millisecond)
	}
	decode[map[string]any](s.t, s.balance(id))
	decode[map[string]any](s.t, s.secondBalance(id))
	time.Sleep(10 * time.Second) // figures of 10 s ago are asked for again
}

func (s *stage) secondBalance(id market.ExchangeID) answer {
	return s.get("/v1/exchanges/"+string(id)+"/balance?account=second", "Authorization", "Bearer "+s.key)
}

// othersLive reads the other exchanges for a while: they are none of this one's business.
func (s *stage) othersLive(id market.ExchangeID, start time.Time, d time.Duration) {
	for time.Since(start) < d {
		for _, other := range ids {
			if other == id {
				continue
			}
			if b, ok := decode[book](s.t, s.book(other, s.pairs(other, 1)[0])); ok && b.Stale {
				s.t.Errorf("%s: %+v", other, b.Freshness)
			}
			decode[map[string]any](s.t, s.balance(other))
		}
		time.Sleep(time.Second)
	}
}
