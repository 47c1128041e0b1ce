package exchangesim

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// okx is OKX v5: public spot data, trading and funding balances.
type okx struct {
	v      *Venue
	cfg    Config
	limits keyed[*rolling]
}

// okxLimits are the documented requests per period: public ones per IP, private ones per user, each endpoint on its own.
var okxLimits = map[string]struct {
	n   int
	per time.Duration
}{
	"/api/v5/market/books":       {40, 2 * time.Second},
	"/api/v5/market/books-full":  {10, 2 * time.Second},
	"/api/v5/market/ticker":      {20, 2 * time.Second},
	"/api/v5/market/tickers":     {20, 2 * time.Second},
	"/api/v5/public/instruments": {20, 2 * time.Second},
	"/api/v5/public/time":        {10, 2 * time.Second},
	"/api/v5/system/status":      {1, 5 * time.Second},
	"/api/v5/account/balance":    {10, 2 * time.Second},
	"/api/v5/asset/balances":     {6, time.Second},
}

// okxConnectKey is the key of the limiter of streams' handshakes.
const okxConnectKey = "connect"

func newOKX(v *Venue, cfg Config) *okx {
	o := &okx{v: v, cfg: cfg}
	o.limits.fresh = func(key string) *rolling {
		if key == okxConnectKey {
			return &rolling{limit: okxConnects, burst: okxConnects, per: time.Second}
		}
		path, _, _ := strings.Cut(key, " ")
		l := okxLimits[path]
		return &rolling{limit: l.n, per: l.per, burst: min(l.n, max(2, l.n/8))}
	}
	return o
}

func (o *okx) endpoints() []*endpoint {
	return append([]*endpoint{
		{path: "/api/v5/market/books", class: ClassMarketData, symbol: "instId", serve: o.books},
		{path: "/api/v5/market/books-full", class: ClassMarketData, symbol: "instId", serve: o.booksFull},
		{path: "/api/v5/market/ticker", class: ClassReference, symbol: "instId", serve: o.ticker},
		{path: "/api/v5/market/tickers", class: ClassReference, serve: o.tickers},
		{path: "/api/v5/public/instruments", class: ClassReference, symbol: "instId", serve: o.instruments},
		{path: "/api/v5/public/time", class: ClassReference, serve: o.time},
		{path: "/api/v5/system/status", class: ClassReference, status: true, serve: o.systemStatus},
		{path: "/api/v5/account/balance", class: ClassAccount, private: true, serve: o.balance},
		{path: "/api/v5/asset/balances", class: ClassAccount, private: true, serve: o.funding},
	}, o.streams()...)
}

// admit checks the key of private calls, then the endpoint's limit. Keys on public calls are ignored.
func (o *okx) admit(c *call) (answer, bool) {
	key := c.ep.path
	if c.ep.private {
		if a, ok := o.authenticate(c); !ok {
			return a, false
		}
		key += " " + c.key.Name
	}
	if o.cfg.Unlimited {
		return answer{}, true
	}
	if !o.limits.with(key, func(l *rolling) bool { return l.admit(c.wall) }) {
		return o.rateLimited(c, Fault{}), false
	}
	return answer{}, true
}

type okxEnvelope struct {
	Code string `json:"code"`
	Msg  string `json:"msg"`
	Data any    `json:"data"`
}

func okxData(data any) answer { return jsonAnswer(http.StatusOK, okxEnvelope{"0", "", data}) }

func okxError(status int, code, msg string) answer {
	return jsonAnswer(status, okxEnvelope{code, msg, []any{}})
}

// okxBare is the shape of errors from the gateway in front: without data, and with msg first.
func okxBare(status int, code, msg string) answer {
	return jsonAnswer(status, struct {
		Msg  string `json:"msg"`
		Code string `json:"code"`
	}{msg, code})
}

// decorate adds what Cloudflare adds. OKX documents no usage headers and no Retry-After.
func (o *okx) decorate(c *call, h http.Header) {
	if h.Get("Server") == "" {
		h.Set("Server", "cloudflare")
	}
	h.Set("Cf-Ray", "0000000000000000-AMS")
	h.Set("Cf-Cache-Status", "DYNAMIC")
	if c.fx.cached {
		h.Set("Cf-Cache-Status", "HIT")
	}
}

func (o *okx) notFound(*call) answer {
	return jsonAnswer(http.StatusNotFound, object{"code": "404", "data": object{}, "detailMsg": "", "error_code": "404", "error_message": "Not Found", "msg": "Not Found"})
}

func (o *okx) wrongMethod(*call) answer {
	return okxError(http.StatusMethodNotAllowed, "50115", "Invalid request method.")
}

func (o *okx) maintenance(*call) answer {
	return okxError(http.StatusServiceUnavailable, "50001", "Service temporarily unavailable. Please try again later.")
}

// unavailable is a 5xx with an OKX body. The 429 of an overload (50013) is a status fault.
func (o *okx) unavailable(*call) answer {
	return okxError(http.StatusServiceUnavailable, "50026", "System error. Please try again later.")
}

func (o *okx) rateLimited(*call, Fault) answer {
	if o.cfg.OKXLimitAs200 {
		return okxBare(http.StatusOK, "50011", "Too Many Requests")
	}
	return okxBare(http.StatusTooManyRequests, "50011", "Too Many Requests")
}

// banned is Cloudflare's: OKX documents no ban of its own.
func (o *okx) banned(c *call, f Fault) answer {
	a := pages["cloudflare_1015"].answer(0)
	setRetryAfter(a.header, c.now, f)
	return a
}

// timeout: none is documented with a length.
func (o *okx) timeout() (time.Duration, answer) { return 0, answer{} }

func (o *okx) geoBlocked(*call) answer {
	return okxError(http.StatusOK, "50121", "You can't access our services through the IP address.")
}

func (o *okx) deadKey(*call) answer {
	return okxBare(http.StatusUnauthorized, "50111", "Invalid OK-ACCESS-KEY")
}

// msText is a time as OKX writes it: ms in a string.
func msText(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }

func (o *okx) time(c *call) answer { return okxData([]object{{"ts": msText(c.clock())}}) }
