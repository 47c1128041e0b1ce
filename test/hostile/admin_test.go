package hostile_test

import (
	"fmt"
	"strings"
	"time"

	"exchange-gateway/test/hostile/attack"
)

// orders are actions on the admin listener that nobody could follow.
func orders() []hostility {
	post := func(body string, lines ...string) string {
		return request("POST", "/admin/v1/isolate",
			append(lines, "Content-Type: application/json", fmt.Sprintf("Content-Length: %d", len(body)))...) + body
	}
	var all []hostility
	for _, body := range []string{
		"", "{", "null", "[]", `"isolate"`, "1e999", "{}{}", `{"exchange":1}`, `{"exchange":{"a":{}}}`,
		`{"exchange":"okx","exchange":"okx","reason":"a","actor":"a"}`,
		`{"exchange":"okx","reason":"","actor":"a"}`, `{"exchange":"okx","reason":"a\u0000b","actor":"a"}`,
		`{"exchange":"okx","reason":"` + strings.Repeat("a", 201) + `","actor":"a"}`,
		`{"exchange":"../okx","reason":"a","actor":"a"}`, `{"exchange":"okx","class":"all","reason":"a","actor":"a"}`,
		`{"exchange":"okx","for":"-1h","reason":"a","actor":"a"}`,
		`{"exchange":"okx","for":"9999999h","reason":"a","actor":"a"}`,
		`{"exchange":"okx","until":"0000-00-00","reason":"a","actor":"a"}`, `{"exchange":"okx","shell":"a"}`,
		"\xff\xfe{}", strings.Repeat("[", 15_000), strings.Repeat(`{"exchange":`, 1300),
		`{"exchange":"` + strings.Repeat(`\ud800`, 2000) + `"}`,
	} {
		all = append(all, refused("an order "+body, post(body), 400, "invalid_parameter"))
	}
	origin := "Origin: https://elsewhere.example"
	for _, path := range []string{"/ui/runbooks/..%2f..%2f..%2fetc%2fpasswd", "/ui/%2e%2e/%2e%2e/etc/passwd"} {
		all = append(all, refused("a file above the house, "+path, get(path), 404, "not_found"))
	}
	all = append(all, hostility{ // it is sent to where nothing is
		Script: once("a file above the house, plainly", get("/ui/../../../etc/passwd")), statuses: []int{307}, answers: 1, ends: either,
	})
	return append(all,
		refused("an order of 17 KB", post(strings.Repeat(" ", 17<<10)), 413, "body_too_large"),
		refused("an order of 100 KB",
			request("POST", "/admin/v1/isolate", "Content-Type: application/json", "Content-Length: 100000"), 413, "body_too_large"),
		refused("an order as a form",
			request("POST", "/admin/v1/isolate", "Content-Type: application/x-www-form-urlencoded",
				"Content-Length: 12")+"exchange=okx", 415, "unsupported_media_type"),
		refused("an order without a type", request("POST", "/admin/v1/isolate", "Content-Length: 2")+"{}", 415,
			"unsupported_media_type"),
		refused("an order of a web page", post(`{"exchange":"okx","reason":"a","actor":"a"}`, origin), 403, "forbidden"),
		refused("an order with parameters", strings.Replace(post("{}"), "isolate", "isolate?exchange=okx", 1), 400,
			"unknown_parameter"),
		refused("an order by GET", get("/admin/v1/isolate"), 405, "method_not_allowed"),
		refused("an order by a foreign name",
			strings.Replace(post(`{"exchange":"okx","reason":"a","actor":"a"}`), "Host: localhost", "Host: elsewhere.example", 1),
			403, "forbidden"),
	)
}

// slowOrders are more of them than operators' requests may be in flight, none of which comes to its end.
func slowOrders() []hostility {
	stuck := attack.Script{Conns: 100, Wait: 40 * time.Second}
	head := func(path string) []attack.Step {
		return []attack.Step{{Send: []byte(request("POST", path, "Content-Type: application/json", "Content-Length: 100") + "{")}}
	}
	action, login := stuck, stuck
	action.Name, action.Steps = "an order that does not come", head("/admin/v1/isolate")
	login.Name, login.Steps = "a login that does not come", head("/admin/v1/session")
	var all []hostility
	for _, s := range []attack.Script{action, login} {
		all = append(all, hostility{Script: s, statuses: []int{400}, codes: []string{"invalid_parameter"}, ends: closes})
	}
	return all
}
