package night

import (
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/exchangesim"
	"exchange-gateway/internal/market"
)

// holdCase is a refusal that does not say for how long, and how long it is believed to last.
type holdCase struct {
	name   string
	id     market.ExchangeID
	fault  exchangesim.Fault
	closed func(exchangesim.Request) bool
	holds  []time.Duration // between one refused request and the next
	minute bool            // instead: until the exchange's next full minute and up to 2 s more
	kind   string          // what callers are told of books, "" if books are not touched
	sim    exchangesim.Config
}

// growing are holds that double.
func growing(first, most time.Duration, n int) []time.Duration {
	all := make([]time.Duration, n)
	for i := range all {
		all[i] = first
		first = min(2*first, most)
	}
	return all
}

// Holds of the design: a limit whose end nobody tells, and a block of a CDN or firewall.
var (
	limitHolds = growing(2*time.Second, 30*time.Second, 6)
	blockHolds = growing(time.Minute, time.Hour, 4)
	wafHolds   = growing(5*time.Minute, time.Hour, 3)
	banHolds   = growing(2*time.Minute, 72*time.Hour, 3)
)

func holdCases() []holdCase {
	const books429, account429 = exchangesim.ClassMarketData, exchangesim.ClassAccount
	limit := func(class string) exchangesim.Fault {
		return exchangesim.Fault{Kind: exchangesim.FaultRateLimit, Class: class}
	}
	of := func(credential string) exchangesim.Fault {
		return exchangesim.Fault{Kind: exchangesim.FaultRateLimit, Credential: credential}
	}
	page := func(name string) exchangesim.Fault { return exchangesim.Fault{Kind: exchangesim.FaultHTML, Page: name} }
	text429 := exchangesim.Fault{
		Kind: exchangesim.FaultStatus, Class: books429, Status: 429, Body: "Too Many Requests", ContentType: "text/plain",
	}
	plain1015 := exchangesim.Fault{Kind: exchangesim.FaultStatus, Status: 429, Body: "error code: 1015", ContentType: "text/plain; charset=UTF-8"}
	return []holdCase{
		{name: "binance 429 books", id: "binance", fault: limit(books429), closed: everything, minute: true, kind: "rate_limited"},
		{name: "binance 429 as text", id: "binance", fault: text429, closed: everything, minute: true, kind: "rate_limited"},
		{name: "binance 429 account", id: "binance", fault: limit(account429), closed: everything, minute: true},
		{
			name: "binance 418 with an end in its message", id: "binance", fault: exchangesim.Fault{Kind: exchangesim.FaultBan},
			closed: everything, holds: []time.Duration{2 * time.Minute, 2 * time.Minute}, kind: "banned",
		},
		{
			name: "binance 418 without a word", id: "binance", fault: exchangesim.Fault{Kind: exchangesim.FaultStatus, Status: 418, Body: `{"code":-1003,"msg":"IP banned"}`},
			closed: everything, holds: banHolds, kind: "banned",
		},
		{name: "binance firewall", id: "binance", fault: page("cloudfront_403"), closed: everything, holds: wafHolds, kind: "banned"},
		{name: "okx 429 books", id: "okx", fault: limit(books429), closed: books, holds: limitHolds, kind: "rate_limited"},
		{name: "okx 429 as text", id: "okx", fault: text429, closed: books, holds: limitHolds, kind: "rate_limited"},
		{name: "okx 429 account", id: "okx", fault: of(credentials["okx"]), closed: mainAccount, holds: limitHolds},
		{
			name: "okx 200 with code 50011", id: "okx", fault: limit(books429), closed: books, holds: limitHolds, kind: "rate_limited",
			sim: exchangesim.Config{OKXLimitAs200: true},
		},
		{name: "okx blocked", id: "okx", fault: page("cloudflare_403"), closed: everything, holds: blockHolds, kind: "banned"},
		{name: "okx 1015", id: "okx", fault: page("cloudflare_1015"), closed: everything, holds: blockHolds, kind: "banned"},
		{name: "okx 1015 as text", id: "okx", fault: plain1015, closed: everything, holds: blockHolds, kind: "banned"},
		{name: "coinbase 429 books", id: "coinbase", fault: limit(books429), closed: keyless, holds: limitHolds, kind: "rate_limited"},
		{name: "coinbase 429 as text", id: "coinbase", fault: text429, closed: keyless, holds: limitHolds, kind: "rate_limited"},
		{name: "coinbase 429 account", id: "coinbase", fault: of(credentials["coinbase"]), closed: mainAccount, holds: limitHolds},
		{name: "coinbase blocked", id: "coinbase", fault: page("cloudflare_403"), closed: everything, holds: blockHolds, kind: "banned"},
		{name: "coinbase 1015", id: "coinbase", fault: page("cloudflare_1015"), closed: everything, holds: blockHolds, kind: "banned"},
		{name: "coinbase 1015 as text", id: "coinbase", fault: plain1015, closed: everything, holds: blockHolds, kind: "banned"},
	}
}

// TestBareRefusals: a refusal without an end is believed as long as the exchange's own habits say.
func TestBareRefusals(t *testing.T) {
	for _, c := range holdCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { c.run(t) })
		})
	}
}

func (c holdCase) run(t *testing.T) {
	s := newStage(t, setting{conf: withSeconds(t), sim: c.sim})
	pair := s.pairs(c.id, 1)[0]
	s.warm(c.id, []string{pair})
	s.inject(c.id, c.fault)
	s.venue(c.id).ResetStats()

	long := time.Minute * 3
	if !c.minute {
		long = time.Second
		for _, hold := range c.holds {
			long += hold + hold/8 // a retry that waits for the gate comes up to a tenth later
		}
	}
	start := time.Now()
	for n := 0; time.Since(start) < long; n++ {
		if b, ok := decode[book](t, s.book(c.id, pair)); ok && c.kind != "" && time.Since(start) > time.Second {
			if !b.Stale || b.Freshness.reason() != c.kind && b.Freshness.reason() != "timeout" {
				t.Errorf("book: %+v, want stale for %s", b.Freshness, c.kind)
			}
		}
		s.ticker(c.id, pair)
		if others := n%8 == 0; others || c.kind == "" { // one that is not limited is read less often: it costs a signature
			if a := s.balance(c.id); a.status != 200 && a.retryAfter() < 1 {
				t.Errorf("balance: %d without Retry-After: %s", a.status, a.body)
			}
			if others {
				s.secondBalance(c.id)
			}
		}
		time.Sleep(c.poll())
	}
	var sent []exchangesim.Request
	for _, r := range s.venue(c.id).Stats().Log {
		if c.closed(r) {
			sent = append(sent, r)
		}
	}
	c.check(t, sent)
	s.onlyItself(c.id)
}

// check looks at every wait after a refusal: nothing may come before the gate's end, and something soon after it.
func (c holdCase) check(t *testing.T, sent []exchangesim.Request) {
	t.Helper()
	var gaps []time.Duration
	for i, r := range sent {
		if r.Fault == "" || i+1 == len(sent) {
			continue
		}
		least, most := c.bounds(len(gaps), r.Time)
		gap := sent[i+1].Time.Sub(r.Time)
		gaps = append(gaps, gap.Round(10*time.Millisecond))
		if gap < least || gap > most {
			t.Errorf("after refusal %d: %v, want %v to %v", len(gaps), gap, least, most)
		}
	}
	t.Logf("%s: waits of %v", c.name, gaps)
	if want := max(len(c.holds)-1, 2); len(gaps) < want {
		t.Errorf("%d waits: want %d", len(gaps), want)
	}
}

// bounds are the least and the longest wait after the refusal number i.
func (c holdCase) bounds(i int, at time.Time) (least, most time.Duration) {
	late := c.poll() + 600*time.Millisecond // the next caller, and how long one waits for a retry
	if c.minute {
		least = at.Truncate(time.Minute).Add(time.Minute).Sub(at)
		return least, least + 2*time.Second + late
	}
	hold := c.holds[min(i, len(c.holds)-1)]
	return hold, hold + hold/10 + late
}

// poll is how often callers come: often enough to fall into every hold many times.
func (c holdCase) poll() time.Duration {
	if c.minute || c.holds[0] >= time.Minute {
		return 2 * time.Second
	}
	return 250 * time.Millisecond
}

// onlyItself: what happens at one exchange touches no other.
func (s *stage) onlyItself(id market.ExchangeID) {
	s.t.Helper()
	for _, other := range ids {
		if other == id {
			continue
		}
		if b, ok := decode[book](s.t, s.book(other, s.pairs(other, 1)[0])); ok && b.Stale {
			s.t.Errorf("%s: %+v", other, b.Freshness)
		}
		decode[map[string]any](s.t, s.balance(other))
	}
}
