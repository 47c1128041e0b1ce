package binance_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/exchange/exchangetest"
	"exchange-gateway/internal/market"
)

const (
	htmlBlocked = "<!DOCTYPE HTML><HTML><HEAD><TITLE>ERROR: The request could not be satisfied</TITLE></HEAD><BODY>Request blocked.</BODY></HTML>"
	htmlPage    = "<html><head><title>Error</title></head><body>Error</body></html>"
)

// meaning is what an answer must come to.
type meaning struct {
	kind  market.Kind
	ours  bool
	scope market.ScopeKind // of the gate that it closes
}

var (
	ours        = meaning{kind: market.KindInvalid, ours: true}
	unavailable = meaning{kind: market.KindUnavailable}
	limited     = meaning{kind: market.KindRateLimited, scope: market.ScopeIP}
	banned      = meaning{kind: market.KindBanned, scope: market.ScopeIP}
	// A code that no table has is held against the symbol, or the account, and nobody else.
	unknownCode  = meaning{kind: market.KindMalformed, scope: market.ScopeSymbol}
	unknownOfKey = meaning{kind: market.KindMalformed, scope: market.ScopeAccount}
	noSymbol     = meaning{kind: market.KindUnknownSymbol}
	noKey        = meaning{kind: market.KindAuth}
	deadKey      = meaning{kind: market.KindAuth, scope: market.ScopeAccount}
	elsewhere    = meaning{kind: market.KindRestricted, scope: market.ScopeExchange}
	elsewhere2   = meaning{kind: market.KindRestricted, scope: market.ScopeEndpoint}
)

// TestErrors is the error table: each code under the status that it comes with, under one that it does not, and each
// status with a body that says nothing. A row has one meaning for a book and one for a balance; the second is left out
// where they are the same.
func TestErrors(t *testing.T) {
	type row struct {
		status   int
		code     string // "" for a page, "-" for nothing
		book     meaning
		balances meaning
	}
	rows := []row{
		{400, "-1121", noSymbol, noSymbol},
		{404, "-1121", noSymbol, noSymbol},
		{200, "-1121", noSymbol, noSymbol},
		{400, "-1102", ours, deadKey},
		{400, "-9999", unknownCode, unknownOfKey},
		{404, "-9999", unknownCode, unknownOfKey},
		{500, "-9999", unavailable, unavailable},
		{200, "-9999", unknownCode, unknownOfKey},
		{404, "404", unavailable, unavailable}, // a router's: codes of Binance are negative
		{400, "9999", unavailable, unavailable},
		{400, "-1021", meaning{kind: market.KindClockSkew}, meaning{kind: market.KindClockSkew}},
		{401, "-1002", noKey, deadKey},
		{400, "-1022", noKey, deadKey},
		{401, "-2014", noKey, deadKey},
		{401, "-2015", noKey, deadKey},
		{400, "-2015", noKey, deadKey},
		{401, "-9999", noKey, deadKey},
		{401, "", noKey, deadKey},
		{401, "-", noKey, deadKey},
		{429, "-1003", limited, limited},
		{429, "", limited, limited},
		{429, "-", limited, limited},
		{200, "-1003", limited, limited},
		{400, "-1003", limited, limited},
		{503, "-1003", limited, limited},
		{400, "-1015", limited, limited},
		{400, "-1034", limited, limited},
		{418, "-1003", banned, banned},
		{418, "-", banned, banned},
		{418, "", banned, banned},
		{403, "", banned, banned},
		{403, "-", banned, banned},
		{403, "-2015", banned, banned}, // the firewall answers 403, a refused key 401
		{451, "0", elsewhere, elsewhere2},
		{451, "", elsewhere, elsewhere2},
		{451, "-", elsewhere, elsewhere2},
		{403, "0", banned, banned},
		{400, "0", elsewhere, elsewhere2},
		{200, "0", elsewhere, elsewhere2}, // 0 is no success
		{500, "0", unavailable, unavailable},
		{500, "-1000", unavailable, unavailable},
		{200, "-1000", unavailable, unavailable},
		{400, "-1001", unavailable, unavailable},
		{500, "-1006", unavailable, unavailable},
		{504, "-1007", unavailable, unavailable},
		{503, "-1008", unavailable, unavailable},
		{503, "-1016", meaning{kind: market.KindMaintenance}, meaning{kind: market.KindMaintenance}},
		{400, "-1016", meaning{kind: market.KindMaintenance}, meaning{kind: market.KindMaintenance}},
		{500, "", unavailable, unavailable},
		{502, "-", unavailable, unavailable},
		{503, "", unavailable, unavailable}, // the CDN as a whole is over its limit: not our limit
		{504, "", unavailable, unavailable},
		{404, "", unavailable, unavailable},
		{404, "-", unavailable, unavailable},
		{405, "-", unavailable, unavailable},
		{410, "", unavailable, unavailable},
		{400, "", unavailable, unavailable},
		{302, "", unavailable, unavailable},
	}
	for _, code := range strings.Fields(
		"-1100 -1101 -1103 -1104 -1105 -1106 -1108 -1111 -1112 -1120 -1122 -1127 -1128 -1130 -1135 -1139 -1151 -1194 -1220") {
		rows = append(rows, row{400, code, ours, ours})
	}
	for _, r := range rows {
		reply := exchangetest.Reply{Status: r.status}
		switch r.code {
		case "":
			reply.Body, reply.Header = htmlPage, http.Header{"Content-Type": {"text/html"}}
		case "-":
		default:
			reply.Body = fmt.Sprintf(`{"code":%s,"msg":"Words."}`, r.code)
		}
		t.Run(fmt.Sprintf("%d %s", r.status, r.code), func(t *testing.T) {
			v, _ := venueOn(t, always(reply))
			_, err := v.OrderBook(t.Context(), btcusdt, 100)
			r.book.check(t, asError(t, err), reply)
			_, err = answerBalances(t, always(reply))
			r.balances.check(t, asError(t, err), reply)
		})
	}
}

func (m meaning) check(t *testing.T, e *market.Error, reply exchangetest.Reply) {
	t.Helper()
	if e.Kind != m.kind || e.OurFault != m.ours || e.Status != reply.Status {
		t.Errorf("got %v (our fault %t), want %v (%t)", e, e.OurFault, m.kind, m.ours)
	}
	if scope := scopeOf(e); scope != m.scope {
		t.Errorf("%v closes %q, want %q", e, scope, m.scope)
	}
	if strings.Contains(e.Error(), "Words") {
		t.Errorf("the error quotes the exchange: %v", e)
	}
}

func scopeOf(e *market.Error) market.ScopeKind {
	if e.Refusal == nil {
		return ""
	}
	return e.Refusal.Scope.Kind
}

func TestRefusals_lastAsLongAsTheyShould(t *testing.T) {
	start := time.Date(2026, 11, 29, 2, 0, 12, 345_000_000, time.UTC)
	theirs := start.Add(-7 * time.Second) // the exchange's clock is 7 s behind ours
	header := func(kv ...string) http.Header {
		h := make(http.Header)
		for i := 0; i < len(kv); i += 2 {
			h.Set(kv[i], kv[i+1])
		}
		return h
	}
	date := theirs.Format(http.TimeFormat)
	banText := func(until time.Time) string {
		return fmt.Sprintf(`{"code":-1003,"msg":"Way too many requests; IP(192.0.2.7) banned until %d. Please use the websocket."}`, until.UnixMilli())
	}
	type want struct {
		from, to   time.Duration // from now; both zero: no time is given
		first, max time.Duration
		clamp      time.Duration
	}
	const day = 24 * time.Hour
	growing := want{first: 2 * time.Minute, max: 3 * day, clamp: 3 * day}
	ban := func(at time.Duration) want {
		return want{from: at, to: at, first: 2 * time.Minute, max: 3 * day, clamp: 3 * day}
	}
	for name, c := range map[string]struct {
		reply exchangetest.Reply
		want  want
	}{
		"429 with seconds": {
			exchangetest.Reply{Status: 429, Header: header("Retry-After", "20")},
			want{from: 20 * time.Second, to: 20 * time.Second, clamp: 5 * time.Minute},
		},
		"429 with a date": {
			exchangetest.Reply{Status: 429, Header: header("Date", date, "Retry-After", theirs.Add(33*time.Second).Format(http.TimeFormat))},
			want{from: 33 * time.Second, to: 33 * time.Second, clamp: 5 * time.Minute},
		},
		// Their clock says 02:00:05, so the next full minute is 55 s away, whatever ours says.
		"429 by their clock": {
			exchangetest.Reply{Status: 429, Header: header("Date", date)},
			want{from: 55 * time.Second, to: 57 * time.Second, clamp: 5 * time.Minute},
		},
		"429 by ours": {
			exchangetest.Reply{Status: 429},
			want{from: 47655 * time.Millisecond, to: 49655 * time.Millisecond, clamp: 5 * time.Minute},
		},
		"429 with no wait at all": {
			exchangetest.Reply{Status: 429, Header: header("Retry-After", "0")},
			want{from: 47655 * time.Millisecond, to: 49655 * time.Millisecond, clamp: 5 * time.Minute},
		},
		"429 with rubbish": {
			exchangetest.Reply{Status: 429, Header: header("Retry-After", "soon")},
			want{from: 47655 * time.Millisecond, to: 49655 * time.Millisecond, clamp: 5 * time.Minute},
		},
		"418 bare":        {exchangetest.Reply{Status: 418}, growing},
		"418 and seconds": {exchangetest.Reply{Status: 418, Header: header("Retry-After", "600")}, ban(10 * time.Minute)},
		"418 and a message": {
			exchangetest.Reply{Status: 418, Body: banText(start.Add(179 * time.Second))}, ban(179 * time.Second),
		},
		"418 and a message by their clock": {
			exchangetest.Reply{Status: 418, Header: header("Date", date), Body: banText(theirs.Truncate(time.Second).Add(720 * time.Second))},
			ban(720 * time.Second),
		},
		"418: the later of both holds": {
			exchangetest.Reply{Status: 418, Header: header("Retry-After", "5"), Body: banText(start.Add(60 * time.Second))},
			ban(60 * time.Second),
		},
		"418: the later of both holds, the other way": {
			exchangetest.Reply{Status: 418, Header: header("Retry-After", "90"), Body: banText(start.Add(60 * time.Second))},
			ban(90 * time.Second),
		},
		"418: a ban that is over": {exchangetest.Reply{Status: 418, Body: banText(start.Add(-time.Hour))}, growing},
		"418: a ban without a number": {
			exchangetest.Reply{Status: 418, Body: `{"code":-1003,"msg":"IP banned until further notice"}`}, growing,
		},
		"418: a ban in microseconds": {
			exchangetest.Reply{Status: 418, Body: fmt.Sprintf(`{"code":-1003,"msg":"banned until %d"}`, start.Add(time.Hour).UnixMicro())},
			ban(time.Hour),
		},
		"403": {
			exchangetest.Reply{Status: 403, Body: htmlBlocked},
			want{first: 5 * time.Minute, max: time.Hour, clamp: 3 * day},
		},
		"403 with seconds": {
			exchangetest.Reply{Status: 403, Body: htmlBlocked, Header: header("Retry-After", "1200")},
			want{from: 20 * time.Minute, to: 20 * time.Minute, first: 5 * time.Minute, max: time.Hour, clamp: 3 * day},
		},
		"451": {exchangetest.Reply{Status: 451}, want{first: 30 * time.Second, max: 10 * time.Minute}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(time.Until(start))
				v, _ := venueOn(t, always(c.reply))
				_, err := v.OrderBook(t.Context(), btcusdt, 100)
				r := asError(t, err).Refusal
				if r == nil {
					t.Fatalf("%v closes no gate", err)
				}
				if c.want.to == 0 {
					same(t, "not before", r.NotBefore, time.Time{})
				} else if in := r.NotBefore.Sub(start); in < c.want.from || in > c.want.to {
					t.Errorf("not before %v from now, want %v to %v", in, c.want.from, c.want.to)
				}
				same(t, "first", r.First, c.want.first)
				same(t, "max", r.Max, c.want.max)
				same(t, "clamp", r.Clamp, c.want.clamp)
				if strings.Contains(err.Error(), "192.0.2.7") {
					t.Errorf("the error shows our address: %v", err)
				}
			})
		})
	}
}

// TestRefusals_ofAKey: one refused key may be a passing block, so the gate of the account closes at the third in a row.
func TestRefusals_ofAKey(t *testing.T) {
	_, err := answerBalances(t, always(refusal(401, -2015)))
	r := asError(t, err).Refusal
	want := market.Refusal{
		Scope: market.Scope{Kind: market.ScopeAccount, Name: "main"}, After: 3, First: 30 * time.Second, Max: 10 * time.Minute,
	}
	if r == nil || *r != want {
		t.Errorf("got %+v, want %+v", r, want)
	}
}

// TestErrors_ofEveryCall: a ban says the same whichever call is told of it.
func TestErrors_ofEveryCall(t *testing.T) {
	for status, kind := range map[int]market.Kind{
		429: market.KindRateLimited, 418: market.KindBanned, 403: market.KindBanned, 500: market.KindUnavailable,
	} {
		v, rig := venueOn(t, always(exchangetest.Reply{Status: status}))
		_, statisticsErr := v.Statistics(t.Context(), btcusdt)
		_, listingsErr := exchangetest.Rows(t.Context(), v)
		_, statusErr := v.Status(t.Context())
		_, timeErr := account(t, v, credential(exampleSecret)).Balances(t.Context(), market.WalletTrading)
		for op, err := range map[market.Op]error{
			market.OpStatistics: statisticsErr, market.OpListings: listingsErr, market.OpStatus: statusErr, market.OpTime: timeErr,
		} {
			e := asError(t, err)
			if e.Kind != kind || e.Op != op || (status < 500) != (scopeOf(e) == market.ScopeIP) {
				t.Errorf("%d for %s: %v, closes %q", status, op, e, scopeOf(e))
			}
		}
		same(t, "requests", rig.Count(exchangetest.Sent), 4)
	}
}

// TestErrors_breakOff: a ban is told by status and header. That its text breaks off must not hide it.
func TestErrors_breakOff(t *testing.T) {
	reply := exchangetest.Reply{
		Status: 418, Header: http.Header{"Retry-After": {"120"}, "X-Mbx-Used-Weight-1m": {"7001"}}, Content: exchangetest.BrokenOff(`{"code":-10`),
	}
	v, rig := venueOn(t, always(reply))
	_, err := v.OrderBook(t.Context(), btcusdt, 100)
	e := asError(t, err)
	if e.Kind != market.KindBanned || e.Refusal == nil || e.Refusal.NotBefore.IsZero() {
		t.Errorf("got %v, refusal %+v", err, e.Refusal)
	}
	trail := rig.Trail()
	if o := trail[len(trail)-1].Observation; len(o.Usage) != 1 || o.Usage[0].Used != 7001 {
		t.Errorf("observed use %+v", o.Usage)
	}
}

// TestErrors_say: a person who reads the log learns a page from an answer that is cut.
func TestErrors_say(t *testing.T) {
	for text, reply := range map[string]exchangetest.Reply{
		"a page instead of an answer":         {Status: 502, Body: htmlPage},
		"no answer that can be read":          {Status: 502},
		"it is overloaded":                    refusal(503, -1008),
		"a code that its documentation":       refusal(400, -9999),
		"(HTTP 400) code -1121":               refusal(400, -1121),
		"read order book: JSON at byte":       {Body: `{"lastUpdateId":1,"bids":[["1","2"`},
		"read order book: a field is missing": {Body: `{}`},
		"(HTTP 404 from https://":             {Status: 404, Body: htmlPage},
		"is `hosts` right?":                   {Status: 404, Body: htmlPage},
	} {
		v, _ := venueOn(t, always(reply))
		if _, err := v.OrderBook(t.Context(), btcusdt, 100); !strings.Contains(err.Error(), text) {
			t.Errorf("got %v, want %q in it", err, text)
		}
	}
}

func FuzzErrors(f *testing.F) {
	for _, s := range []string{
		`{"code":-1121,"msg":"Invalid symbol."}`, `{"code":"-1003","msg":"banned until 1660090423228"}`, `{"code":0,"msg":{}}`,
		`{"code":-1003,"msg":"banned until 99999999999999999999"}`, htmlPage, "", "{", `{"code":null}`, `[]`,
	} {
		for _, status := range []int{400, 418, 500} {
			f.Add(status, s)
		}
	}
	f.Fuzz(func(t *testing.T, status int, text string) {
		if status < 201 || status > 599 {
			return
		}
		v, _ := venueOn(t, always(exchangetest.Reply{Status: status, Body: text}))
		book, err := v.OrderBook(t.Context(), btcusdt, 5)
		e := asError(t, err)
		if book != nil || e.Kind == market.KindNone || e.Kind.Local() || e.Kind == market.KindCanceled || e.Kind == market.KindTimeout {
			t.Fatalf("%d %q: %v, %v", status, text, book, err)
		}
		if r := e.Refusal; r != nil && r.First <= 0 && r.NotBefore.IsZero() {
			t.Fatalf("%d %q: a gate without an end: %+v", status, text, r)
		}
	})
}
