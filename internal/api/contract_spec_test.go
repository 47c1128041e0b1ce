package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"exchange-gateway/internal/api"
	"exchange-gateway/internal/feed/hub"
	"exchange-gateway/internal/market"
	"exchange-gateway/internal/ops"
)

// TestContract_codes holds the written codes, statuses and classes against the catalogue, both ways.
func TestContract_codes(t *testing.T) {
	enum := func(place string) (all []string) {
		m, _ := written.at(place)
		for _, v := range m["enum"].([]any) {
			all = append(all, v.(string))
		}
		return all
	}
	var codes []string
	classes := map[string]bool{}
	for _, e := range api.Catalogue() {
		codes, classes[e.CCXTClass] = append(codes, string(e.Code)), true
		m, _ := written.at("/components/examples/" + string(e.Code))
		example, ok := m["value"].(object)
		if !ok {
			t.Errorf("%s has no example", e.Code)
			continue
		}
		got := fmt.Sprint(example["code"], example["status"], example["title"], example["ccxt_class"], example["origin"], example["retryable"])
		if want := fmt.Sprint(e.Code, e.Status, e.Title, e.CCXTClass, e.Origin, e.Retryable); got != want {
			t.Errorf("the example of %s: %s, want %s", e.Code, got, want)
		}
	}
	if diff := cmp.Diff(codes, enum("/components/schemas/ErrorCode")); diff != "" {
		t.Errorf("codes (-catalogue +written):\n%s", diff)
	}
	fields, _ := written.at("/components/schemas/ProblemFields")
	class := fields["properties"].(object)["ccxt_class"].(object)["enum"].([]any)
	if len(class) != len(classes) {
		t.Errorf("%d classes are written, the catalogue has %d", len(class), len(classes))
	}
	for _, e := range api.Catalogue() { // each is an answer somewhere, under its own status
		if !slices.ContainsFunc(problemResponses(), func(r problemResponse) bool {
			return r.status == e.Status && slices.Contains(r.codes, string(e.Code))
		}) {
			t.Errorf("no response has %s with status %d", e.Code, e.Status)
		}
	}
}

// problemResponse is a written response that is a problem: its status and codes.
type problemResponse struct {
	status int
	codes  []string
}

func problemResponses() (all []problemResponse) {
	responses, _ := written.at("/components/responses")
	for name := range responses {
		m, _ := written.at("/components/responses/" + name)
		content, ok := m["content"].(object)["application/problem+json"].(object)
		if !ok {
			continue
		}
		narrow := content["schema"].(object)["allOf"].([]any)[1].(object)["properties"].(object)
		status, _ := strconv.Atoi(fmt.Sprint(narrow["status"].(object)["const"]))
		r := problemResponse{status: status}
		for _, c := range narrow["code"].(object)["enum"].([]any) {
			r.codes = append(r.codes, c.(string))
		}
		all = append(all, r)
	}
	return all
}

// TestContract_routes holds the written paths and methods against the routers, both ways.
func TestContract_routes(t *testing.T) {
	r := newDeskRig(t, func(c *api.Config) {
		c.Hub = hub.New(hub.Config{})
		c.Hub.Attach(&fakeFeed{})
		c.Dashboard = http.NotFoundHandler()
	})
	public, admin := r.server.Routes()
	has := map[string]bool{}
	note := func(listener string, routes []string) {
		for _, route := range routes {
			method, path, _ := strings.Cut(route, " ")
			switch {
			case method == http.MethodHead, path == "/ui": // HEAD is said once for all; /ui leads to /ui/
			case path == "/ui/*":
				for _, page := range []string{"", "{file}", "runbooks/", "runbooks/{name}"} { // the dashboard's own table; a test of its package has it
					has[listener+" "+method+" /ui/"+page] = true
				}
			default:
				has[listener+" "+method+" "+path] = true
			}
		}
	}
	note("public", public)
	note("admin", admin)
	for _, p := range written.paths {
		if strings.HasPrefix(p.text, "/compat/") {
			continue // one route for all of a dialect
		}
		for method := range p.item {
			if method != "get" && method != "post" {
				continue
			}
			for listener, there := range map[string]bool{"public": p.public, "admin": p.admin} {
				route := listener + " " + strings.ToUpper(method) + " " + p.text
				if there && !has[route] {
					t.Errorf("%s is written, and there is no such route", route)
				}
				if there {
					delete(has, route)
				}
			}
		}
	}
	for route := range has {
		t.Errorf("%s is not written", route)
	}
}

// TestContract_parameters holds the written query parameters against those that each route takes, and the fields of actions.
func TestContract_parameters(t *testing.T) {
	for path, want := range newRig(t).server.Params() {
		op, place := written.at(pointer("paths", path, "get"))
		var got []string
		list, _ := op["parameters"].([]any)
		for i := range list {
			ref, _ := list[i].(object)
			if target, ok := ref["$ref"].(string); ok {
				ref, _ = written.at(strings.TrimPrefix(target, "#"))
			}
			if ref["in"] == "query" {
				got = append(got, ref["name"].(string))
			}
			if ref["description"] == nil {
				t.Errorf("%s: parameter %v has no description", place, ref["name"])
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s takes %v, written are %v", path, want, got)
		}
	}
	for path, want := range api.ActionFields() {
		body, _ := written.at(pointer("paths", path, "post", "requestBody", "content", "application/json", "schema"))
		got := slices.Sorted(maps.Keys(body["properties"].(object)))
		if want = slices.Sorted(slices.Values(want)); !slices.Equal(got, want) {
			t.Errorf("%s takes %v, written are %v", path, want, got)
		}
	}
}

// TestContract_examples holds every example of a body against the schema beside it.
func TestContract_examples(t *testing.T) {
	checked := 0
	each := func(place string) {
		content, at := written.at(place)
		kinds, _ := content["content"].(object)
		for kind, v := range kinds {
			examples, _ := v.(object)["examples"].(object)
			for name := range examples {
				m, _ := written.at(at + pointer("content", kind, "examples", name))
				if !strings.HasSuffix(kind, "json") {
					continue
				}
				text, err := json.Marshal(m["value"])
				if err == nil {
					err = written.value(at+pointer("content", kind, "schema"), text)
				}
				if checked++; err != nil {
					t.Errorf("%s: example %s: %v", at, name, err)
				}
			}
		}
	}
	responses, _ := written.at("/components/responses")
	for name := range responses {
		each(pointer("components", "responses", name))
	}
	for _, p := range written.paths {
		for method, v := range p.item {
			op, ok := v.(object)
			if !ok {
				continue
			}
			answers, _ := op["responses"].(object)
			for status := range answers {
				each(pointer("paths", p.text, method, "responses", status))
			}
		}
	}
	if checked < 50 {
		t.Errorf("%d examples", checked)
	}
}

// TestContract_bites plants what is not written, and every one of them is found.
func TestContract_bites(t *testing.T) {
	w := newRig(bare{t}).get(bookURL)
	good := response{listener: "public", method: http.MethodGet, path: strings.Split(bookURL, "?")[0], status: w.Code, header: w.Header(), body: w.Body.Bytes()}
	refused := newRig(bare{t}).get(bookURL + "&typo=1")
	problem := good
	problem.status, problem.header, problem.body = refused.Code, refused.Header(), refused.Body.Bytes()
	f := func(what string, from response, change func(*response), want string) {
		t.Helper()
		from.header = from.header.Clone()
		change(&from)
		if err := written.check(&from); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", what, err, want)
		}
	}
	swap := func(old, text string) func(*response) {
		return func(r *response) {
			if !bytes.Contains(r.body, []byte(old)) {
				t.Errorf("%s has no %s", r.body, old)
			}
			r.body = bytes.Replace(r.body, []byte(old), []byte(text), 1)
		}
	}
	set := func(name, value string) func(*response) { return func(r *response) { r.header.Set(name, value) } }
	nothing := func(*response) {}
	f("the answer itself", good, nothing, "")
	f("the problem itself", problem, nothing, "")
	f("a field", good, swap(`"depth"`, `"planted":1,"depth"`), "planted")
	f("a field of a part", good, swap(`"status":"live"`, `"planted":1,"status":"live"`), "planted")
	f("a field of a problem", problem, swap(`"code"`, `"planted":1,"code"`), "planted")
	f("a field that is missing", good, swap(`"complete":true,`, ``), "complete")
	f("a number that is none", good, swap(`"64073.00"`, `64073.00`), "bids")
	f("a number with an exponent", good, swap(`"64073.00"`, `"6.4e4"`), "bids")
	f("a word", good, swap(`"source":"rest"`, `"source":"guess"`), "source")
	f("a time", good, swap(`"confirmed_at":"2026`, `"confirmed_at":"20.26`), "date-time")
	f("a code", problem, swap(`"code":"unknown_parameter"`, `"code":"planted"`), "code")
	f("a code of another status", problem, swap(`"code":"unknown_parameter"`, `"code":"circuit_open"`), "code")
	f("a status", good, func(r *response) { r.status = 299 }, "status 299")
	f("a route", good, func(r *response) { r.path = "/v1/planted" }, "no such route")
	f("a method", good, func(r *response) { r.method = http.MethodPost }, "no such route")
	f("a route of the other listener", good, func(r *response) { r.listener = "admin" }, "no such route")
	f("a type", good, set("Content-Type", "text/html"), "text/html")
	f("a header", good, set("X-Planted", "1"), "X-Planted")
	f("what it depends on", good, set("Vary", "Accept-Encoding"), "Vary")
	f("a coding", good, set("Content-Encoding", "br"), "Content-Encoding")
	f("the form of a header", good, set("Age", "-1"), "Age")
	f("a header that is missing", good, func(r *response) { r.header.Del("Cache-Status") }, "Cache-Status")
	events := good
	events.path, events.header = "/v1/stream/orderbook", good.header.Clone()
	events.header.Set("Content-Type", "text/event-stream")
	events.header.Set("X-Accel-Buffering", "no")
	events.header.Del("Age")
	events.header.Del("Cache-Status")
	frame := func(text string) func(*response) {
		return func(r *response) { r.body = []byte("retry: 1000\n\n" + text + "\n\nevent: cut o") }
	}
	f("an event itself", events, frame("event: heartbeat\ndata: "+`{"type":"heartbeat","sent_at":"2026-11-29T02:00:00Z"}`), "")
	f("a field of an event", events, frame("event: heartbeat\ndata: "+`{"type":"heartbeat","sent_at":"2026-11-29T02:00:00Z","planted":1}`), "planted")
	f("another event", events, frame("event: planted\ndata: "+`{"type":"planted"}`), "type")
	f("a line of an event", events, frame("planted: 1"), "planted")
	f("no JSON", good, func(r *response) { r.body = []byte("{") }, "no JSON")
}

// TestContract_rigBites shows that what is found fails the test that asked.
func TestContract_rigBites(t *testing.T) {
	failed := &failing{TB: t}
	h := written.hold(failed, "public", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"planted":1}`))
	}))
	serve(h, httptest.NewRequest(http.MethodGet, "/v1/exchanges", nil))
	failed.end()
	if len(failed.errors) != 1 || !strings.Contains(failed.errors[0], "/v1/exchanges") {
		t.Errorf("got %q", failed.errors)
	}
}

// failing is a test that keeps what it fails with.
type failing struct {
	testing.TB
	cleanup []func()
	errors  []string
}

func (f *failing) Cleanup(g func())  { f.cleanup = append(f.cleanup, g) }
func (f *failing) Error(args ...any) { f.errors = append(f.errors, fmt.Sprint(args...)) }
func (f *failing) end() {
	for _, g := range f.cleanup {
		g()
	}
}

// TestContract_overview holds the overview, and what the events of circuits carry, against the contract: with every field
// that there is, and with none.
func TestContract_overview(t *testing.T) {
	check := func(schema string, v any) {
		t.Helper()
		text, err := json.Marshal(v)
		if err == nil {
			err = written.message(schema, text)
		}
		if err != nil {
			t.Errorf("%s: %v\n%s", schema, err, text)
		}
	}
	check("Overview", fullOverview())
	bare := ops.Overview{
		Level: ops.LevelOK, Degraded: []string{}, Books: []ops.Book{}, Clients: []ops.ClientUse{},
		Exchanges: []ops.Exchange{{
			State: ops.StateClosed, Level: ops.LevelOK, Answering: ops.Answering{Status: ops.AnsweringLive}, Circuits: []ops.Circuit{}, Overrides: []ops.Override{}, Gates: []ops.Gate{}, Budgets: []ops.Budget{},
			Maintenance: []ops.Maintenance{}, Failures: []ops.Failure{},
			Samples: ops.SampleColumns{Attempts: []int{}, Failures: []int{}, Refused: []int{}, Retries: []int{}, P50MS: []*int64{}, P99MS: []*int64{}},
		}},
	}
	check("Overview", bare)
	check("Outcome", filled[ops.Outcome](map[string]any{"Verb": market.VerbIsolate, "Class": market.ClassStream}))
	for _, e := range sampleEvents() {
		check("Event", e)
	}
}

// fullOverview has every field set.
func fullOverview() ops.Overview {
	words := map[string]any{
		"Overview.Level": ops.LevelDown, "Exchange.Level": ops.LevelNotice, "Exchange.State": ops.StateOpen, "Status": ops.AnsweringSome, "Class": market.ClassAccount,
		"State": market.CircuitOpen, "Cause": market.CauseRate, "LastFailure": market.KindTimeout.String(), "Override.Kind": market.OverrideIsolate,
		"Scope": market.ScopeIP, "Kind": market.KindBanned.String(), "Op": market.OpOrderBook, "Book.Status": "live", "Bid": "1.50", "Ask": "1.60", "Spread": "0.10",
	}
	return filled[ops.Overview](words)
}

// filled makes a value whose every field is set: by a word for its name, with or without that of its struct, else by its type.
func filled[T any](words map[string]any) (v T) {
	fill(reflect.ValueOf(&v).Elem(), "", words)
	return v
}

func fill(v reflect.Value, name string, words map[string]any) {
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(t0))
		return
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), name, words)
		return
	}
	// What is filled has no other kinds; the test fails on one.
	//exhaustive:ignore
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Type().Field(i).Name
			qualified := v.Type().Name() + "." + field
			if _, ok := words[qualified]; !ok {
				qualified = field
			}
			fill(v.Field(i), qualified, words)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), name, words)
	case reflect.String:
		v.SetString("x")
		if w, ok := words[name]; ok {
			v.SetString(reflect.ValueOf(w).String())
		}
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Float64:
		v.SetFloat(0.5) // a share, no money
	default:
		panic("no way to fill " + v.Type().String())
	}
}

// sampleEvents are one of each type.
func sampleEvents() []market.Event {
	event := func(typ market.EventType) market.Event {
		return market.Event{Boot: "boot", Seq: 7, At: t0, Type: typ, Until: t0.Add(time.Minute), Exchange: "okx"}
	}
	circuit, gate, action, override, maintenance := event(market.EventCircuit), event(market.EventGate), event(market.EventAction), event(market.EventOverride), event(market.EventMaintenance)
	circuit.Circuit = market.CircuitID{Exchange: "coinbase", Class: market.ClassAccount, Family: "advanced"}
	circuit.From, circuit.To, circuit.Cause, circuit.Kind = market.CircuitClosed, market.CircuitOpen, market.CauseConsecutive, market.KindTimeout
	gate.Kind, gate.Gate = market.KindBanned, market.GateStatus{Exchange: "okx", Scope: market.Scope{Kind: market.ScopeEndpoint, Name: "books"}}
	action.Action = market.Action{Verb: market.VerbIsolate, Actor: "night", Reason: "why", Class: market.ClassStream, Pair: btc, Failed: "it was not"}
	override.Override = market.Override{Kind: market.OverrideWithhold, Exchange: "okx", Pair: btc, Actor: "night", Reason: "why", Since: t0, Until: t0.Add(time.Hour)}
	maintenance.Maintenance = market.Maintenance{Exchange: "okx", From: t0, Until: t0.Add(time.Hour), Note: "upgrade", Announced: true}
	return []market.Event{circuit, gate, action, override, maintenance, event(market.EventAction)}
}
