package exchangesim

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// binance is Binance spot: /api/v3 and the system status of /sapi.
type binance struct {
	v         *Venue
	unlimited bool

	mu     sync.Mutex
	weight minuteCount // REQUEST_WEIGHT per minute and IP: every client of the simulator is one IP
	raw    minuteCount // RAW_REQUESTS per 5 minutes
	sapi   minuteCount
	ban    ipBan
	dials  rolling // handshakes of streams per 5 minutes
}

// Limits of exchangeInfo.rateLimits in 2026; the sapi counter is separate (ccxt#8752).
const (
	binanceWeightLimit = 6000
	binanceRawLimit    = 300_000
	binanceSapiLimit   = 12_000
	binanceDialLimit   = 300 // per 5 min (web-socket-streams.md); the pace within them is free
)

func newBinance(v *Venue, unlimited bool) *binance {
	return &binance{
		v: v, unlimited: unlimited,
		weight: minuteCount{window: time.Minute}, raw: minuteCount{window: 5 * time.Minute}, sapi: minuteCount{window: time.Minute},
		dials: rolling{limit: binanceDialLimit, burst: binanceDialLimit, per: 5 * time.Minute},
	}
}

func (b *binance) endpoints() []*endpoint {
	one := func(url.Values) int { return 1 }
	quotes := func(q url.Values) int {
		if q.Has("symbol") {
			return 2
		}
		return 4
	}
	return []*endpoint{
		{path: "/api/v3/ping", class: ClassReference, weight: one, serve: func(*call) answer { return jsonAnswer(http.StatusOK, struct{}{}) }},
		{path: "/api/v3/time", class: ClassReference, weight: one, serve: b.time},
		{
			path: "/api/v3/exchangeInfo", class: ClassReference, symbol: "symbol", weight: func(url.Values) int { return 20 },
			params: []string{"symbol", "symbols", "permissions", "symbolStatus", "showPermissionSets"}, serve: b.exchangeInfo,
		},
		{path: "/api/v3/depth", class: ClassMarketData, symbol: "symbol", params: []string{"symbol", "limit", "symbolStatus"}, weight: depthWeight, serve: b.depth},
		{path: "/api/v3/ticker/bookTicker", class: ClassMarketData, symbol: "symbol", params: []string{"symbol", "symbols", "symbolStatus"}, weight: quotes, serve: b.bookTicker},
		{path: "/api/v3/ticker/price", class: ClassMarketData, symbol: "symbol", params: []string{"symbol", "symbols", "symbolStatus"}, weight: quotes, serve: b.price},
		{path: "/api/v3/ticker/24hr", class: ClassReference, symbol: "symbol", params: []string{"symbol", "symbols", "type", "symbolStatus"}, weight: dayWeight, serve: b.day},
		{path: "/api/v3/avgPrice", class: ClassReference, symbol: "symbol", params: []string{"symbol"}, weight: averageWeight, serve: b.average},
		{path: "/api/v3/klines", class: ClassReference, symbol: "symbol", params: klineParams, weight: klineWeight, serve: b.klines},
		{path: "/api/v3/uiKlines", class: ClassReference, symbol: "symbol", params: klineParams, weight: klineWeight, serve: b.klines},
		{path: "/api/v3/trades", class: ClassReference, symbol: "symbol", params: []string{"symbol", "limit"}, weight: tradesWeight, serve: b.trades},
		{
			path: "/api/v3/aggTrades", class: ClassReference, symbol: "symbol", weight: aggTradesWeight,
			params: []string{"symbol", "fromId", "startTime", "endTime", "limit"}, serve: b.aggTrades,
		},
		{
			path: "/api/v3/account", class: ClassAccount, private: true, weight: func(url.Values) int { return 20 },
			params: []string{"omitZeroBalances", "recvWindow", "timestamp", "signature"}, serve: b.account,
		},
		{path: "/ws", class: ClassStream, open: b.openStream, connect: b.connect},
		{path: "/ws/{}", class: ClassStream, open: b.openStream, connect: b.connect},
		{path: "/stream", class: ClassStream, open: b.openStream, connect: b.connect},
		{path: "/sapi/v1/system/status", class: ClassReference, status: true, group: "sapi", weight: one, serve: b.systemStatus},
	}
}

// depthWeight follows the tiers of 2023-08; a limit that cannot be read costs the default's weight.
func depthWeight(q url.Values) int {
	limit, err := strconv.Atoi(q.Get("limit"))
	switch {
	case err != nil || limit <= 100:
		return 5
	case limit <= 500:
		return 25
	case limit <= 1000:
		return 50
	}
	return 250
}

func dayWeight(q url.Values) int {
	n := strings.Count(q.Get("symbols"), ",") + 1
	switch {
	case q.Has("symbol") || q.Has("symbols") && n <= 20:
		return 2
	case q.Has("symbols") && n <= 100:
		return 40
	}
	return 80
}

// admit counts weight, looks for a ban, then for parameters that the endpoint does not have, then for the signature.
func (b *binance) admit(c *call) (answer, bool) {
	if a, ok := b.charge(c); !ok {
		return a, false
	}
	if a, ok := b.checkParams(c); !ok {
		return a, false
	}
	if c.ep.private {
		return b.authenticate(c)
	}
	return answer{}, true
}

// charge adds the call's weight to the counters and refuses it past a limit.
func (b *binance) charge(c *call) (answer, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if until := b.ban.during(c.now); !until.IsZero() && !b.unlimited {
		return b.banAnswer(c.now, until), false
	}
	counter, limit := &b.weight, binanceWeightLimit
	if c.used.sapi = c.ep.group == "sapi"; c.used.sapi {
		counter, limit = &b.sapi, binanceSapiLimit
	}
	used, left := counter.add(c.now, c.ep.weight(c.query))
	raw, rawLeft := b.raw.add(c.now, 1)
	c.used.weight = used
	switch {
	case b.unlimited:
		return answer{}, true
	case used > limit:
		return b.limitAnswer(c, left, "Too much request weight used; current limit is "+strconv.Itoa(limit)+" request weight per 1 MINUTE. "+
			"Please use WebSocket Streams for live updates to avoid polling the API.")
	case raw > binanceRawLimit:
		return b.limitAnswer(c, rawLeft, "Too many requests; current limit is "+strconv.Itoa(binanceRawLimit)+" raw requests per 5 MINUTE. "+
			"Please use WebSocket Streams for live updates to avoid polling the API.")
	}
	return answer{}, true
}

// limitAnswer is the 429, or the 418 if the client has gone on for too long. The caller holds the lock.
func (b *binance) limitAnswer(c *call, left time.Duration, msg string) (answer, bool) {
	if until := b.ban.refused(c.now); !until.IsZero() {
		return b.banAnswer(c.now, until), false
	}
	a := binanceError(http.StatusTooManyRequests, -1003, msg)
	setRetryAfter(a.header, c.now, Fault{RetryAfter: left})
	return a, false
}

func (b *binance) banAnswer(now, until time.Time) answer {
	a := binanceError(http.StatusTeapot, -1003, fmt.Sprintf(
		"Way too much request weight used; IP banned until %d. Please use WebSocket Streams for live updates to avoid bans.", until.UnixMilli()))
	setRetryAfter(a.header, now, Fault{RetryAfter: until.Sub(now)})
	return a
}

// ipBan is the ladder from 429 to 418: a client that sends 10 more requests within a minute after it was refused is banned, for 2 min
// at first; going on during the ban, or offending again within a day, doubles the next one up to 3 days.
type ipBan struct {
	until   time.Time
	length  time.Duration
	strikes int
	last    time.Time // last refusal
}

const (
	banStrikes = 10
	banFirst   = 2 * time.Minute
	banLongest = 72 * time.Hour
)

// during gives the end of the ban in force, zero if there is none. A request during a ban is a strike.
func (p *ipBan) during(now time.Time) time.Time {
	if !now.Before(p.until) {
		return time.Time{}
	}
	p.refused(now)
	return p.until
}

// refused counts a refusal and gives the end of the ban if it led to one.
func (p *ipBan) refused(now time.Time) time.Time {
	if now.Sub(p.last) > time.Minute {
		p.strikes = 0
	}
	if now.Sub(p.last) > 24*time.Hour {
		p.length = 0
	}
	p.last = now
	if p.strikes++; p.strikes <= banStrikes {
		return time.Time{}
	}
	p.strikes = 0
	p.length = min(max(2*p.length, banFirst), banLongest)
	p.until = now.Add(p.length)
	return p.until
}

func binanceError(status, code int, msg string) answer {
	a := jsonAnswer(status, struct {
		Code int    `json:"code"`
		Msg  string `json:"msg"`
	}{code, msg})
	a.header.Set("Content-Type", "application/json;charset=UTF-8")
	return a
}

func (b *binance) decorate(c *call, h http.Header) {
	if strings.HasPrefix(h.Get("Content-Type"), "text/html") {
		return // a CDN page never reached the venue
	}
	if ct := h.Get("Content-Type"); ct == "application/json" {
		h.Set("Content-Type", "application/json;charset=UTF-8")
	}
	h.Set("Server", "nginx")
	h.Set("Cache-Control", "no-cache, no-store, must-revalidate")
	h.Set("X-Cache", "Miss from cloudfront")
	if c.fx.cached {
		h.Set("X-Cache", "Hit from cloudfront")
	}
	if c.ep == &notThere {
		return
	}
	if c.used.weight == 0 { // a fault answered: the counter still shows in the headers
		b.mu.Lock()
		c.used.weight, _ = b.weight.add(c.now, 0)
		b.mu.Unlock()
	}
	used := strconv.Itoa(c.used.weight)
	if c.used.sapi {
		h.Set("X-Sapi-Used-Ip-Weight-1m", used)
		return
	}
	h.Set("X-Mbx-Used-Weight", used)
	h.Set("X-Mbx-Used-Weight-1m", used)
}

// notFound is HTML only for a client that asked for it (changelog of 2023-12-04).
func (b *binance) notFound(c *call) answer {
	if strings.Contains(c.r.Header.Get("Accept"), "text/html") {
		return answer{status: http.StatusNotFound, header: http.Header{"Content-Type": {"text/html"}}, body: []byte("<html><body><h2>404 Not found</h2></body></html>")}
	}
	return answer{status: http.StatusNotFound, header: http.Header{}}
}

func (b *binance) wrongMethod(*call) answer {
	return answer{status: http.StatusMethodNotAllowed, header: http.Header{"Allow": {"GET"}}}
}

func (b *binance) maintenance(*call) answer {
	return binanceError(http.StatusServiceUnavailable, -1016, "This service is no longer available.")
}

func (b *binance) unavailable(*call) answer {
	return binanceError(http.StatusServiceUnavailable, -1008, "Server is currently overloaded with other requests. Please try again in a few minutes.")
}

func (b *binance) rateLimited(*call, Fault) answer {
	return binanceError(http.StatusTooManyRequests, -1003,
		"Too much request weight used; current limit is 6000 request weight per 1 MINUTE. Please use WebSocket Streams for live updates to avoid polling the API.")
}

// banned has the same end in every answer if the fault has one. Retry-After is sent only if the fault asks for it.
func (b *binance) banned(c *call, f Fault) answer {
	until := f.until
	if until.IsZero() {
		until = c.wall.Add(orInt(f.RetryAfter, banFirst))
	}
	a := b.banAnswer(c.now, until.Add(c.fx.skew))
	if f.RetryAfter == 0 {
		a.header.Del("Retry-After")
	}
	return a
}

// timeout is what the venue's own front says when the backend takes longer than 10 s.
func (b *binance) timeout() (time.Duration, answer) {
	return 10 * time.Second, binanceError(http.StatusGatewayTimeout, -1007,
		"Timeout waiting for response from backend server. Send status unknown; execution status unknown.")
}

func (b *binance) geoBlocked(*call) answer {
	return binanceError(http.StatusUnavailableForLegalReasons, 0, "Service unavailable from a restricted location according to 'b. Eligibility' in "+
		"https://www.binance.com/en/terms. Please contact customer service if you believe you received this message in error.")
}

func (b *binance) deadKey(*call) answer {
	return binanceError(http.StatusUnauthorized, -2015, "Invalid API-key, IP, or permissions for action.")
}
