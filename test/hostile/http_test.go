package hostile_test

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"exchange-gateway/test/hostile/attack"
)

const okxBook = "/v1/exchanges/okx/orderbook"

// oversized are requests that are larger than any good one.
func oversized() []hostility {
	many := make([]string, 500)
	for i := range many {
		many[i] = fmt.Sprintf("X-Flood-%d: %s", i, strings.Repeat("a", 40))
	}
	long := func(path string, n int, lines ...string) attack.Script {
		return attack.Script{Steps: []attack.Step{
			{Send: []byte(get(path, lines...))}, {Send: bytes.Repeat([]byte("a"), 16<<10), Repeat: n >> 14},
		}}
	}
	body := hostility{
		Script: long(okxBook, 8<<20, fmt.Sprintf("Content-Length: %d", 8<<20)), statuses: []int{413}, answers: 1,
		codes: []string{"body_too_large"}, ends: closes,
	}
	body.Name, body.Conns = "a body of 8 MiB", 5
	chunks := hostility{
		Script: attack.Script{Name: "chunks of 8 MiB", Conns: 5, Steps: []attack.Step{
			{Send: []byte(get(okxBook, "Transfer-Encoding: chunked"))},
			{Send: []byte("4000\r\n" + strings.Repeat("a", 0x4000) + "\r\n"), Repeat: 512},
		}},
		statuses: []int{413}, answers: 1, codes: []string{"body_too_large"}, ends: closes,
	}
	endless := attack.Script{Name: "a header without end", Conns: 5, Steps: []attack.Step{
		{Send: []byte("GET / HTTP/1.1\r\nHost: localhost\r\nX-A: ")}, {Send: bytes.Repeat([]byte("a"), 16<<10), Repeat: 256},
	}}
	return []hostility{
		refused("a target of 9 KB", get(okxBook+"?symbol="+strings.Repeat("A", 9000)), 414, "uri_too_long"),
		cut("a target of 200 KB", get(okxBook+"?symbol="+strings.Repeat("A", 200<<10)), 431),
		refused("headers of 20 KB", get(okxBook, "X-A: "+strings.Repeat("a", 20<<10)), 431, "header_too_large"),
		refused("500 headers", get(okxBook, many...), 431, "header_too_large"),
		cut("30,000 headers", get(okxBook, strings.Split(strings.Repeat("X-A: a\n", 30_000), "\n")[:30_000]...), 431),
		{Script: endless, statuses: []int{431}, answers: 1, ends: closes},
		refused("a method of 9 KB", request(strings.Repeat("A", 9000), okxBook), 405, "method_not_allowed"),
		body, chunks,
		cut("a length past every number", request("POST", okxBook, "Content-Length: 99999999999999999999"), 400),
	}
}

// malformed are bytes that are no HTTP, or could be taken for two different requests.
func malformed() []hostility {
	// One request, then another behind what a careless reader would take for its body.
	smuggled := "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"
	return []hostility{
		cut("no version", "GET\r\n\r\n", 400),
		cut("a version of the future", "GET /livez HTTP/9.9\r\nHost: localhost\r\n\r\n", 505),
		cut("empty lines", strings.Repeat("\r\n", 5000), 400),
		cut("zeros", strings.Repeat("\x00", 5000)+"\r\n\r\n", 400),
		cut("no host", "GET /livez HTTP/1.1\r\n\r\n", 400),
		cut("two hosts", get("/livez", "Host: elsewhere"), 400),
		cut("a host with a space", "GET /livez HTTP/1.1\r\nHost: a b\r\n\r\n", 400),
		cut("a header name with a space", get("/livez", "X A: a"), 400),
		cut("a bare carriage return in a header", get("/livez", "X-A: a\rb"), 400),
		cut("a zero byte in a header", get("/livez", "X-A: a\x00b"), 400),
		cut("a header without a colon", get("/livez", "X-A"), 400),
		cut("a space before the colon", get("/livez", "Transfer-Encoding : chunked")+smuggled, 400),
		cut("two lengths", get("/livez", "Content-Length: 0", "Content-Length: 44")+smuggled, 400),
		cut("a signed length", get("/livez", "Content-Length: +0")+smuggled, 400),
		cut("a negative length", get("/livez", "Content-Length: -1")+smuggled, 400),
		cut("two lengths in one", get("/livez", "Content-Length: 0, 44")+smuggled, 400),
		cut("chunked and something else", get("/livez", "Transfer-Encoding: chunked, identity")+"0\r\n\r\n"+smuggled, 501),
		cut("an unknown coding", get("/livez", "Transfer-Encoding: xchunked")+"0\r\n\r\n"+smuggled, 501),
		cut("chunked twice", get("/livez", "Transfer-Encoding: chunked", "Transfer-Encoding: chunked")+"0\r\n\r\n"+smuggled, 400,
			501),
		// RFC 9112 section 6.1: the chunks count, and the connection ends, so that what follows is nobody's request.
		cut("a length and chunks", get("/livez", "Content-Length: 44", "Transfer-Encoding: chunked")+"0\r\n\r\n"+smuggled, 200),
		cut("chunks and a length", get("/livez", "Transfer-Encoding: chunked", "Content-Length: 5")+"0\r\n\r\n"+smuggled, 200),
		cut("a chunk past every number", get("/livez", "Transfer-Encoding: chunked")+"ffffffffffffffffff\r\n", 200, 400),
		cut("chunks of an old version",
			"GET /livez HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"+smuggled, 200),
		cut("an expectation", get("/livez", "Expect: 200-ok"), 417),
		{
			Script: once("the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), statuses: []int{404}, answers: 1,
			codes: []string{"not_found"}, ends: closes,
		},
	}
}

// lost are paths that lead nowhere, however they are written.
func lost() []hostility {
	var all []hostility
	for _, path := range []string{
		"/", "/metrics", "/ui/plain", "/admin/v1/me", "/v1/exchanges/../../metrics", "/v1/%2e%2e/metrics", "/v1/..%2fmetrics",
		"/v1/%252e%252e/metrics", "//v1/exchanges", "/v1//exchanges", "/v1/exchanges/", "/./metrics", "/v1/%00",
		"/v1/exchanges%00",
		"/v1/%c0%ae%c0%ae/metrics", "/v1/\xc0\xae\xc0\xae/metrics", "/v1/exchanges/okx%2forderbook?symbol=BTC/USDT",
		`/..\..\etc\passwd`,
		"/v1/exchanges;/../../metrics", "/V1/EXCHANGES", "http://localhost/metrics", "http://elsewhere.example/admin/v1/me",
		"/v1/exchanges.json",
		"/compat", "/compat/../metrics", "/compat/kraken/api/v3/time",
	} {
		all = append(all, refused("path "+path, get(path), 404, "not_found"))
	}
	return append(all, []hostility{
		cut("path with a bad escape", get("/v1/%zz"), 400),
		cut("path with a space", get("/v1/ exchanges"), 400),
		cut("path without a slash", get("v1/exchanges"), 400),
		refused("an exchange of dots", get("/v1/exchanges/%2e%2e/orderbook?symbol=BTC/USDT"), 404, "exchange_unknown"),
		refused("an exchange that is no text", get("/v1/exchanges/%ff%fe/orderbook?symbol=BTC/USDT"), 404, "exchange_unknown"),
		refused("an exchange without end", get("/v1/exchanges/"+strings.Repeat("a", 4000)+"/orderbook?symbol=BTC/USDT"), 404,
			"exchange_unknown"),
		refused("CONNECT", request("CONNECT", "localhost:8081"), 404, "not_found"),
		// net/http answers it alone, with nothing.
		{Script: once("everything of the server", request("OPTIONS", "*")), statuses: []int{200}, answers: 1, ends: either},
		refused("DELETE", request("DELETE", "/v1/exchanges"), 405, "method_not_allowed"),
		refused("TRACE", request("TRACE", "/v1/exchanges"), 405, "method_not_allowed"),
		refused("a method in small letters", request("get", "/v1/exchanges"), 405, "method_not_allowed"),
		refused("POST where is read", request("POST", "/v1/exchanges", "Content-Length: 0"), 405, "method_not_allowed"),
		refused("an action on the public listener", request("POST", "/admin/v1/isolate", "Content-Length: 0"), 404, "not_found"),
		refused("circuits by a foreign name", "GET http://elsewhere.example/v1/circuits HTTP/1.1\r\nHost: localhost\r\n\r\n", 403,
			"forbidden"),
	}...)
}

// absurd are parameters that mean nothing.
func absurd() []hostility {
	var all []hostility
	for _, query := range []string{
		"", "symbol=", "symbol=BTC", "symbol=BTC/USDT/X", "symbol=../../etc/passwd", "symbol=%00/%00", "symbol=%ff/%ff",
		"symbol=BTC%0d%0aX-A:%20a/USDT",
		"symbol=" + strings.Repeat("A", 4000) + "/USDT", "symbol=BTC/USDT&depth=0", "symbol=BTC/USDT&depth=-1",
		"symbol=BTC/USDT&depth=1e3", "symbol=BTC/USDT&depth=0x10", "symbol=BTC/USDT&depth=99999999999999999999",
		"symbol=BTC/USDT&depth=NaN",
		"symbol=BTC/USDT&depth=%2B5", "symbol=BTC/USDT&depth=5&depth=6", "symbol=BTC/USDT&depth=", "symbol=BTC/USDT&depth=%D9%A1",
		"symbol=BTC/USDT&max_age_ms=-1", "symbol=BTC/USDT&max_age_ms=1.5", "symbol=BTC/USDT&max_age_ms=99999999999999999999",
		"symbol=BTC/USDT&require=stale", "symbol=BTC/USDT&symbol=ETH/USDT", "symbol=BTC/USDT;depth=5", "symbol=%zz", "%zz=1",
	} {
		all = append(all, refused("query "+query, get(okxBook+"?"+query), 400, "invalid_parameter"))
	}
	names := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "p%d=1&", i)
		}
		return b.String()
	}
	for _, query := range []string{
		"symbol=BTC/USDT&max_age=5", "Symbol=BTC/USDT", "symbol[]=BTC/USDT", "symbol=BTC/USDT&=1",
		"symbol=BTC/USDT&%00=1", names(1000),
	} {
		all = append(all, refused("query "+query, get(okxBook+"?"+query), 400, "unknown_parameter"))
	}
	return append(all,
		refused("a symbol that is a script", get(okxBook+"?symbol=<script>/USDT"), 404, "symbol_unknown"),
		refused("51 symbols", get("/v1/exchanges/okx/tickers?symbols=BTC/USDT"+strings.Repeat(",A/B", 50)), 400,
			"invalid_parameter"),
		refused("symbols of commas", get("/v1/exchanges/okx/tickers?symbols="+strings.Repeat(",", 5000)), 400,
			"invalid_parameter"),
		refused("exchanges of commas", get("/v1/price?symbol=BTC/USDT&exchanges="+strings.Repeat(",", 5000)), 400,
			"invalid_parameter"),
		refused("an account of dots", get("/v1/exchanges/okx/balance?account=../main"), 401, "unauthenticated"),
		refused("a key in the query", get("/v1/exchanges/okx/balance?api_key=gw_aaaaaaaa_aaaaaaaaaaaaaaaaaaaaaaaaaa"), 401,
			"unauthenticated"),
	)
}

// pipelined are many requests in one write, which HTTP/1.1 allows: each is answered, in order.
func pipelined() []hostility {
	const n = 200
	return []hostility{
		{
			Script: attack.Script{
				Name: "200 requests at once", Conns: 10,
				Steps: []attack.Step{{Send: []byte(get(okxBook + "?symbol=BTC/USDT&depth=1")), Repeat: n}}, Wait: 5 * time.Second,
			},
			statuses: []int{200}, answers: n, ends: []string{attack.EndOpen},
		},
		{
			Script: attack.Script{
				Name: "200 bad requests at once", Conns: 10,
				Steps: []attack.Step{{Send: []byte(get(okxBook)), Repeat: n}}, Wait: 5 * time.Second,
			},
			statuses: []int{400}, answers: n, codes: []string{"invalid_parameter"}, ends: []string{attack.EndOpen},
		},
	}
}

// slow are clients that take their time, many of each, to hold what others need. They take up to 40 s.
func slow() []hostility {
	const conns = 50
	trickle := func(name, head string, every time.Duration) attack.Script {
		return attack.Script{Name: name, Conns: conns, Steps: []attack.Step{
			{Send: []byte(head)}, {Send: bytes.Repeat([]byte("a"), 1000), Every: every},
		}, Wait: 5 * time.Second}
	}
	stuck := func(name string, n int, head string) attack.Script {
		return attack.Script{Name: name, Conns: n, Steps: []attack.Step{{Send: []byte(head)}}, Wait: 40 * time.Second}
	}
	book := okxBook + "?symbol=BTC/USDT&depth="
	// 40 MB of answers for each, more than the buffers of both ends hold; 30 s later the gateway has given up on them.
	unread := attack.Script{
		Name: "2,000 requests and no answer read", Conns: 10, Silent: true, Wait: 10 * time.Second,
		Steps: []attack.Step{{Send: []byte(strings.Repeat(get(book+"400"), 20)), Repeat: 100}, {Pause: 33 * time.Second}},
	}
	tls := append([]byte("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"), make([]byte, 400)...)
	return []hostility{
		{Script: stuck("nothing", conns, ""), ends: closes},
		{Script: stuck("a header begun", conns, "GET /livez HTT"), statuses: []int{400}, ends: closes},
		{Script: stuck("TLS where there is none", conns, string(tls)), statuses: []int{400}, ends: closes},
		{
			Script:   trickle("a header by the byte", "GET /livez HTTP/1.1\r\nHost: localhost\r\nX-A: ", 200*time.Millisecond),
			statuses: []int{400}, ends: closes,
		},
		{
			Script:   trickle("a body by the byte", get(book+"100", "Content-Length: 60000"), 500*time.Millisecond),
			statuses: []int{200}, ends: closes,
		},
		{
			Script:   trickle("chunks by the byte", get(book+"100", "Transfer-Encoding: chunked")+"fff0\r\n", 500*time.Millisecond),
			statuses: []int{200}, ends: closes,
		},
		// More of them than requests may be in flight.
		{
			Script: stuck("a body that does not come", 1200, get(book+"100", "Content-Length: 60000")), statuses: []int{200},
			ends: closes,
		},
		{Script: unread, statuses: []int{200}, ends: closes},
	}
}
