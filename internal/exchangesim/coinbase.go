package exchangesim

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// coinbase is both live APIs on one handler: Advanced Trade ("AT") below /api/v3/brokerage, with its streams at "/", Exchange ("EX") at
// the root. Their paths do not meet. Keys, limits and error shapes are apart, as they are at the venue.
type coinbase struct {
	v         *Venue
	unlimited bool
	limits    keyed[*bucket]
	cdn       cdn

	streamLimits keyed[*rolling]
}

func newCoinbase(v *Venue, unlimited bool) *coinbase {
	c := &coinbase{v: v, unlimited: unlimited}
	c.streamLimits.fresh = newATStreamLimiter
	c.limits.fresh = func(key string) *bucket {
		switch {
		case strings.HasPrefix(key, "ex public"), strings.HasPrefix(key, "at public"):
			return &bucket{rate: 10, burst: 15}
		case strings.HasPrefix(key, "ex "):
			return &bucket{rate: 15, burst: 30} // per profile
		}
		return &bucket{rate: 30, burst: 30} // AT, per user
	}
	return c
}

const brokerage = "/api/v3/brokerage"

func (cb *coinbase) endpoints() []*endpoint {
	at := func(path, class, symbol string, serve func(*call) answer) *endpoint {
		return &endpoint{path: brokerage + path, class: class, symbol: symbol, serve: serve}
	}
	private := func(path, symbol string, serve func(*call) answer) *endpoint {
		return &endpoint{path: brokerage + path, class: ClassAccount, private: true, symbol: symbol, serve: serve}
	}
	return []*endpoint{
		at("/market/product_book", ClassMarketData, "product_id", cb.cached(1, cb.atBook)),
		at("/market/products", ClassReference, "", cb.cached(1, cb.atProducts)),
		at("/market/products/{}/ticker", ClassReference, "{}", cb.cached(1, cb.atTicker)),
		at("/market/products/{}", ClassReference, "{}", cb.cached(1, cb.atProduct)),
		at("/time", ClassReference, "", cb.atTime),
		private("/product_book", "product_id", cb.atBook),
		private("/best_bid_ask", "", cb.atBestBidAsk),
		private("/products", "", cb.atProducts),
		private("/products/{}/ticker", "{}", cb.atTicker),
		private("/products/{}", "{}", cb.atProduct),
		private("/accounts", "", cb.atAccounts),
		private("/accounts/{}", "", cb.atAccount),
		private("/key_permissions", "", cb.atPermissions),
		private("/transaction_summary", "", cb.atSummary),
		{path: "/products", class: ClassReference, serve: cb.cached(5, cb.exProducts)},
		{path: "/products/{}", class: ClassReference, symbol: "{}", serve: cb.cached(5, cb.exProduct)},
		{path: "/products/{}/book", class: ClassMarketData, symbol: "{}", serve: cb.exBook},
		{path: "/products/{}/ticker", class: ClassReference, symbol: "{}", serve: cb.cached(1, cb.exTicker)},
		{path: "/products/{}/stats", class: ClassReference, symbol: "{}", serve: cb.cached(1, cb.exStats)},
		{path: "/time", class: ClassReference, serve: cb.exTime},
		{path: "/accounts", class: ClassAccount, private: true, serve: cb.exAccounts},
		cb.stream(),
	}
}

// advanced reports which of the two APIs a request is for.
func (c *call) advanced() bool { return strings.HasPrefix(c.r.URL.Path, "/api/") }

// admit checks the User-Agent at EX, credentials, then limits. A JWT on a public AT call is checked too: a bad one turns it into 401.
func (cb *coinbase) admit(c *call) (answer, bool) {
	scope := "ex public"
	if c.advanced() {
		scope = "at public"
	} else if c.r.UserAgent() == "" {
		return exError(http.StatusBadRequest, "User-Agent header is required."), false
	}
	if c.ep.private || c.advanced() && c.r.Header.Get("Authorization") != "" {
		a, ok := cb.authenticate(c)
		if !ok {
			return a, false
		}
		scope = scope[:3] + c.key.Name
	}
	ok := cb.limits.with(scope, func(b *bucket) bool {
		ok := b.admit(c.wall)
		c.used.limit, c.used.remaining = b.burst, b.remaining()
		return ok
	})
	if !ok && !cb.unlimited {
		return cb.rateLimited(c, Fault{}), false
	}
	return answer{}, true
}

func (cb *coinbase) authenticate(c *call) (answer, bool) {
	if c.advanced() {
		return cb.atAuthenticate(c)
	}
	return cb.exAuthenticate(c)
}

// atError is shape 2 of the venue's error bodies.
func atError(status int, code, details string) answer {
	return jsonAnswer(status, struct {
		Error   string `json:"error"`
		Details string `json:"error_details"`
		Message string `json:"message"`
	}{code, details, details})
}

func atUnauthorized() answer {
	return answer{status: http.StatusUnauthorized, header: http.Header{"Content-Type": {"text/plain; charset=utf-8"}}, body: []byte("Unauthorized")}
}

// exError is shape 1.
func exError(status int, msg string) answer {
	return jsonAnswer(status, object{"message": msg})
}

func (cb *coinbase) decorate(c *call, h http.Header) {
	if h.Get("Content-Type") == "application/json" {
		h.Set("Content-Type", "application/json; charset=utf-8")
	}
	h.Set("Server", "cloudflare")
	h.Set("Cf-Ray", "0000000000000000-EWR")
	if h.Get("Cf-Cache-Status") == "" {
		h.Set("Cf-Cache-Status", "DYNAMIC")
	}
	if c.ep.private {
		h.Set("Cache-Control", "no-store")
	}
	if c.fx.cached {
		h.Set("Cf-Cache-Status", "HIT")
	}
	if c.advanced() && c.used.limit > 0 { // EX sends none
		h.Set("X-Ratelimit-Limit", strconv.FormatInt(c.used.limit, 10))
		h.Set("X-Ratelimit-Remaining", strconv.FormatInt(c.used.remaining, 10))
		h.Set("X-Ratelimit-Reset", "1")
	}
}

func (cb *coinbase) notFound(c *call) answer {
	if c.advanced() {
		return atError(http.StatusNotFound, "NOT_FOUND", "route not found")
	}
	return exError(http.StatusNotFound, "NotFound")
}

func (cb *coinbase) wrongMethod(c *call) answer {
	if c.advanced() {
		return atError(http.StatusMethodNotAllowed, "unknown", "method not allowed")
	}
	return exError(http.StatusMethodNotAllowed, "Method not allowed")
}

// maintenance is a bare 503: officially "throttled or down for maintenance". There is no status endpoint.
func (cb *coinbase) maintenance(c *call) answer {
	if c.advanced() {
		return answer{status: http.StatusServiceUnavailable, header: http.Header{"Content-Type": {"text/plain; charset=utf-8"}}}
	}
	return exError(http.StatusServiceUnavailable, "Service Unavailable")
}

func (cb *coinbase) unavailable(c *call) answer { return cb.maintenance(c) }

func (cb *coinbase) rateLimited(c *call, _ Fault) answer {
	switch {
	case c.advanced():
		id := "rate_limit_exceeded"
		if c.ep.private {
			id = "resource_exhausted" // 2025-04-03
		}
		return jsonAnswer(http.StatusTooManyRequests, object{"errors": []object{{"id": id, "message": "Too many requests"}}})
	case c.ep.private:
		return exError(http.StatusTooManyRequests, "Private rate limit exceeded")
	}
	return exError(http.StatusTooManyRequests, "Public rate limit exceeded")
}

// banned is Cloudflare's: Coinbase documents no ban of its own.
func (cb *coinbase) banned(c *call, f Fault) answer {
	a := pages["cloudflare_1015"].answer(0)
	setRetryAfter(a.header, c.now, f)
	return a
}

// timeout: none is documented with a length.
func (cb *coinbase) timeout() (time.Duration, answer) { return 0, answer{} }

func (cb *coinbase) geoBlocked(c *call) answer {
	if c.advanced() {
		return atError(http.StatusUnavailableForLegalReasons, "PERMISSION_DENIED", "not available in your region")
	}
	return exError(http.StatusUnavailableForLegalReasons, "not available in your region")
}

func (cb *coinbase) deadKey(c *call) answer {
	if c.advanced() {
		return atUnauthorized()
	}
	return exError(http.StatusUnauthorized, "Invalid API Key")
}
