package binance_test

import (
	"bytes"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pb33f/jsonschema/v6"

	"exchange-gateway/docs/openapi"
	"exchange-gateway/internal/compat"
	"exchange-gateway/internal/compat/binance"
	"exchange-gateway/internal/market"
)

// prefix is where the facade is mounted, in the contract's paths.
const prefix = "/compat/binance"

// object is one of JSON's.
type object = map[string]any

// contract is docs/openapi, as far as it is about this facade.
type contract struct {
	doc      object
	compiler *jsonschema.Compiler
}

var written = sync.OnceValues(func() (*contract, error) {
	text, err := openapi.JSON()
	if err != nil {
		return nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	c := &contract{doc: doc.(object), compiler: jsonschema.NewCompiler()}
	c.compiler.DefaultDraft(jsonschema.Draft2020)
	c.compiler.AssertFormat()
	return c, c.compiler.AddResource("document", doc)
})

func readContract(t *testing.T) *contract {
	t.Helper()
	c, err := written()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// operation is a method of a path, nil if it is not written.
func (c *contract) operation(path, method string) object {
	item, _ := c.doc["paths"].(object)[prefix+path].(object)
	op, _ := item[method].(object)
	return op
}

// schemaOf is where the schema of a response is.
func schemaOf(response string) string {
	return "document#" + response + "/content/application~1json/schema"
}

// answerOf is the place of a path's 200.
func answerOf(path string) string {
	return "/paths/" + strings.ReplaceAll(prefix+path, "/", "~1") + "/get/responses/200"
}

// hold holds a body against the schema of a response.
func (c *contract) hold(t *testing.T, response string, body []byte) {
	t.Helper()
	if err := c.check(t, response, body); err != nil {
		t.Errorf("not as written at %s: %v\n%.300s", response, err, body)
	}
}

func (c *contract) check(t *testing.T, response string, body []byte) error {
	t.Helper()
	schema, err := c.compiler.Compile(schemaOf(response))
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return err
	}
	return schema.Validate(v)
}

// TestContract_parameters holds the written paths and parameters against the facade's own table, both ways.
func TestContract_parameters(t *testing.T) {
	c := readContract(t)
	f, _ := stage(t)
	table := binance.Params()
	for path := range c.doc["paths"].(object) {
		if path, ours := strings.CutPrefix(path, prefix+"/"); ours && path != "{path}" {
			if _, ok := table["/"+path]; !ok {
				t.Errorf("/%s is written, and it is not answered", path)
			}
		}
	}
	for path, want := range table {
		op := c.operation(path, "get")
		if op == nil {
			t.Errorf("%s is not written", path)
			continue
		}
		var got []string
		list, _ := op["parameters"].([]any)
		for _, v := range list {
			p := v.(object)
			name := p["name"].(string)
			got = append(got, name)
			if p["in"] != "query" || p["description"] == nil {
				t.Errorf("%s: %v", path, p)
			}
			words, _ := p["schema"].(object)["enum"].([]any)
			for _, word := range words {
				checkWord(t, f, path, name, word.(string), "")
			}
			if len(words) > 0 {
				checkWord(t, f, path, name, "PLANTED", "-11")
			}
			if p["required"] == true {
				if r := refusal(t, f, request(path+"?"+others(list, name))); r.Code != "-1102" || !strings.Contains(r.Detail, "'"+name+"'") {
					t.Errorf("%s without %s, which is written as required: %v", path, name, r)
				}
			}
		}
		if !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))) {
			t.Errorf("%s takes %v, written are %v", path, want, got)
		}
	}
}

// others is a query with what is required but that.
func others(list []any, not string) string {
	var all []string
	for _, v := range list {
		p := v.(object)
		if name := p["name"].(string); p["required"] == true && name != not {
			all = append(all, name+"="+p["example"].(string))
		}
	}
	return strings.Join(all, "&")
}

// checkWord asks with a word of a closed set. With "" it must not be the word that is refused, else with a code like that.
func checkWord(t *testing.T, f *binance.Facade, path, name, word, code string) {
	t.Helper()
	query := "symbol=BTCUSDT&" + name + "=" + word
	if path == "/api/v3/exchangeInfo" { // where symbolStatus is for lists
		query = name + "=" + word
	}
	_, err := f.Answer(t.Context(), request(path+"?"+query))
	r, _ := errors.AsType[*compat.Refusal](err)
	switch {
	case code == "" && r != nil && r.Code != "-1220":
		t.Errorf("%s with %s=%s: %v", path, name, word, r)
	case code != "" && (r == nil || !strings.HasPrefix(r.Code, code)):
		t.Errorf("%s with %s=%s: %v", path, name, word, err)
	}
}

// TestContract_answers holds the answers of everything that is answered, made by the simulated exchange, against their schemas.
func TestContract_answers(t *testing.T) {
	w := readContract(t)
	onChain(t, func(t *testing.T, c chain) {
		asked := map[string]bool{}
		for _, target := range []string{
			"/api/v3/ping", "/api/v3/time", "/sapi/v1/system/status", "/api/v3/depth?symbol=BTCUSDT&limit=5", "/api/v3/depth?symbol=BTCUSDT&symbolStatus=TRADING",
			"/api/v3/exchangeInfo", "/api/v3/exchangeInfo?symbol=BTCUSDT", "/api/v3/ticker/bookTicker", "/api/v3/ticker/bookTicker?symbol=BTCUSDT",
			"/api/v3/ticker/price?symbol=BTCUSDT", "/api/v3/ticker/price?symbols=%5B%22BTCUSDT%22%5D", "/api/v3/ticker/24hr?symbol=BTCUSDT", "/api/v3/ticker/24hr?type=MINI",
			"/api/v3/klines?symbol=BTCUSDT&interval=1m", "/api/v3/uiKlines?symbol=BTCUSDT&interval=1h&limit=2", "/api/v3/trades?symbol=BTCUSDT",
			"/api/v3/aggTrades?symbol=BTCUSDT", "/api/v3/avgPrice?symbol=BTCUSDT",
		} {
			path := request(target).Path
			asked[path] = true
			w.hold(t, answerOf(path), get(t, c.Facade, target).Body)
		}
		for path := range binance.Params() {
			if !asked[path] {
				t.Errorf("%s was not asked", path)
			}
		}
	})
	if w.check(t, answerOf("/api/v3/depth"), []byte(`{"lastUpdateId":1,"bids":[[1,2]],"asks":[]}`)) == nil {
		t.Error("a book with numbers in place of texts is not found")
	}
	if w.check(t, answerOf("/sapi/v1/system/status"), []byte(`{"status":2,"msg":"normal"}`)) == nil {
		t.Error("another status is not found")
	}
}

// TestContract_refusals holds what is refused against its schemas: what is elsewhere by method and status, the rest as written for all.
func TestContract_refusals(t *testing.T) {
	c := readContract(t)
	f, _ := stage(t)
	for _, r := range []compat.Request{
		{Method: http.MethodGet, Path: "/api/v3/account"},
		{Method: http.MethodGet, Path: "/api/v3/ticker"},
		{Method: http.MethodGet, Path: "/fapi/v1/depth"},
		{Method: http.MethodPost, Path: "/api/v3/order"},
		{Method: http.MethodPost, Path: "/api/v3/depth"},
		{Method: http.MethodPost, Path: "/nothing"},
		{Method: http.MethodPut, Path: "/api/v3/userDataStream"},
		{Method: http.MethodDelete, Path: "/api/v3/openOrders"},
	} {
		status, body := f.Refuse(compat.Problem{Refusal: refusal(t, f, r)})
		op := c.operation("/{path}", strings.ToLower(r.Method))
		answers, _ := op["responses"].(object)
		name := map[int]string{http.StatusNotFound: "404", http.StatusNotImplemented: "501"}[status]
		ref, _ := answers[name].(object)
		place, ok := ref["$ref"].(string)
		if !ok {
			t.Errorf("%s %s: status %d is not written", r.Method, r.Path, status)
			continue
		}
		c.hold(t, strings.TrimPrefix(place, "#"), body)
	}
	for _, k := range market.Kinds() {
		for _, status := range []int{400, 401, 403, 404, 405, 414, 429, 500, 501, 502, 503, 504} {
			_, body := f.Refuse(compat.Problem{Status: status, Kind: k, VenueCode: "-1003", Detail: "A sentence."})
			c.hold(t, "/components/responses/BinanceRefusal", body)
		}
	}
	c.hold(t, "/components/responses/BinanceRefusal", []byte(`{"code":-1121,"msg":"Invalid symbol."}`))
	if c.check(t, "/components/responses/BinanceRefusal", []byte(`{"code":"-1121","msg":"Invalid symbol."}`)) == nil {
		t.Error("a code that is a text is not found")
	}
}
