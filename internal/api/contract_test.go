package api_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"io"
	"maps"
	"mime"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/pb33f/jsonschema/v6"

	"exchange-gateway/docs/openapi"
)

// written is the contract that every response of this package's tests is held against. It is made before the tests, outside
// of every bubble.
var written *contract

func TestMain(m *testing.M) {
	var err error
	if written, err = newContract(); err != nil {
		fmt.Fprintln(os.Stderr, "contract:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// contract is docs/openapi/openapi.yaml, with its schemas compiled.
type contract struct {
	doc      object
	paths    []contractPath
	compiler *jsonschema.Compiler
	seed     maphash.Seed

	mu      sync.Mutex
	schemas map[string]*jsonschema.Schema // by their place in the document
	good    map[uint64]bool               // responses that were found good, by their hash: many tests ask the same a thousand times
}

type object = map[string]any

// contractPath is a path of the document, taken apart.
type contractPath struct {
	text   string
	steps  []string
	public bool
	admin  bool
	item   object
}

const contractURL = "openapi.json"

func newContract() (*contract, error) {
	text, err := openapi.JSON()
	if err != nil {
		return nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	c := &contract{
		doc: doc.(object), compiler: jsonschema.NewCompiler(), seed: maphash.MakeSeed(),
		schemas: map[string]*jsonschema.Schema{}, good: map[uint64]bool{},
	}
	c.compiler.DefaultDraft(jsonschema.Draft2020) // OpenAPI 3.1: its schemas are those of JSON Schema 2020-12
	c.compiler.AssertFormat()
	if err := c.compiler.AddResource(contractURL, doc); err != nil {
		return nil, err
	}
	paths := c.doc["paths"].(object)
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		p := contractPath{text: path, steps: strings.Split(path, "/"), item: paths[path].(object), public: true}
		if servers, ok := p.item["servers"].([]any); ok {
			all, _ := json.Marshal(servers)
			p.public, p.admin = strings.Contains(string(all), `"url":"/"`), strings.Contains(string(all), ":8081")
		}
		c.paths = append(c.paths, p)
	}
	return c, nil
}

// schema compiles what stands at a place of the document, once.
func (c *contract) schema(place string) (*jsonschema.Schema, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s, ok := c.schemas[place]; ok {
		return s, nil
	}
	s, err := c.compiler.Compile(contractURL + "#" + place)
	if err != nil {
		return nil, err
	}
	c.schemas[place] = s
	return s, nil
}

// find gives the path of the document that a request means. A literal step goes before a parameter.
func (c *contract) find(listener, path string) (found *contractPath) {
	steps := strings.Split(path, "/")
	best := -1
	for i := range c.paths {
		p := &c.paths[i]
		if listener == "public" && !p.public || listener == "admin" && !p.admin {
			continue
		}
		if n := p.matches(steps); n > best {
			found, best = p, n
		}
	}
	return found
}

// matches counts the literal steps, -1 if the path is another. The dashboard's files lie deeper than one step.
func (p *contractPath) matches(steps []string) (literal int) {
	if p.text == "/ui/{file}" && len(steps) > 1 && steps[1] == "ui" {
		return 0
	}
	if len(steps) != len(p.steps) {
		return -1
	}
	for i, want := range p.steps {
		switch {
		case want == steps[i]:
			literal++
		case !strings.HasPrefix(want, "{"):
			return -1
		}
	}
	return literal
}

// response is one that was sent.
type response struct {
	listener     string
	method, path string
	status       int
	header       http.Header
	body         []byte
}

// errands are the refusals that every path has, also one that does not exist: nothing is known yet about what was asked.
var errands = map[int]string{
	http.StatusNotFound: "NotFound", http.StatusMethodNotAllowed: "MethodNotAllowed", http.StatusRequestEntityTooLarge: "BodyTooLarge",
	http.StatusRequestURITooLong: "URITooLong", http.StatusRequestHeaderFieldsTooLarge: "HeadersTooLarge",
}

// check tells everything about a response that is not written.
func (c *contract) check(r *response) error {
	h := maphash.Hash{}
	h.SetSeed(c.seed)
	id := r.header.Get("X-Request-Id")
	fmt.Fprintln(&h, r.listener, r.method, r.path, r.status)
	for _, name := range slices.Sorted(maps.Keys(r.header)) {
		if name != "X-Request-Id" && name != "Date" {
			fmt.Fprintln(&h, name, r.header[name])
		}
	}
	_, _ = h.Write(bytes.ReplaceAll(r.body, []byte(`"`+id+`"`), nil))
	sum := h.Sum64()
	c.mu.Lock()
	known := c.good[sum]
	c.mu.Unlock()
	if known {
		return nil
	}
	if err := c.examine(r); err != nil {
		return fmt.Errorf("%s %s on the %s listener, status %d, is not as written in docs/openapi: %w", r.method, r.path, r.listener, r.status, err)
	}
	c.mu.Lock()
	c.good[sum] = true
	c.mu.Unlock()
	return nil
}

func (c *contract) examine(r *response) error {
	var errs []string
	try := func(place string) bool {
		err := c.response(place, r)
		if err != nil {
			errs = append(errs, err.Error())
		}
		return err == nil
	}
	if strings.HasPrefix(r.path, "/compat/") && r.listener == "public" {
		return c.headers("/components/responses/BinanceRefusal", r, true) // what a dialect says is its own package's subject
	}
	p := c.find(r.listener, r.path)
	if r.method == http.MethodOptions && r.status == http.StatusOK && p != nil && len(r.body) == 0 {
		return nil // the question of a browser beforehand: Fetch's matter, and whom it is answered to is another test's
	}
	if p != nil {
		method := strings.ToLower(r.method)
		if method == "head" {
			method = "get"
		}
		if op, ok := p.item[method].(object); ok {
			if _, ok := op["responses"].(object)[strconv.Itoa(r.status)]; ok && try(pointer("paths", p.text, method, "responses", strconv.Itoa(r.status))) {
				return nil
			}
		}
	}
	if name, ok := errands[r.status]; ok && try(pointer("components", "responses", name)) {
		return nil
	}
	if len(errs) == 0 {
		return fmt.Errorf("there is no such route, method or status")
	}
	return fmt.Errorf("%s", strings.Join(errs, "; or "))
}

// pointer is RFC 6901.
func pointer(steps ...string) (p string) {
	for _, s := range steps {
		p += "/" + strings.ReplaceAll(strings.ReplaceAll(s, "~", "~0"), "/", "~1")
	}
	return p
}

// at follows a pointer, and references on its way. It gives the place where it ended up.
func (c *contract) at(place string) (object, string) {
	var v any = c.doc
	for s := range strings.SplitSeq(strings.TrimPrefix(place, "/"), "/") {
		m, _ := v.(object)
		v = m[strings.ReplaceAll(strings.ReplaceAll(s, "~1", "/"), "~0", "~")]
	}
	m, _ := v.(object)
	if ref, ok := m["$ref"].(string); ok {
		return c.at(strings.TrimPrefix(ref, "#"))
	}
	return m, place
}

// response checks one against the response object at a place.
func (c *contract) response(place string, r *response) error {
	if err := c.headers(place, r, false); err != nil {
		return err
	}
	want, place := c.at(place)
	content, _ := want["content"].(object)
	kind := r.header.Get("Content-Type")
	if content == nil {
		if kind != "" || len(r.body) > 0 {
			return fmt.Errorf("it has a body of type %q", kind)
		}
		return nil
	}
	if kind == "" {
		kind = http.DetectContentType(r.body) // as net/http does
	}
	if _, ok := content[kind]; !ok {
		short, _, err := mime.ParseMediaType(kind)
		if _, ok := content[short]; err != nil || !ok {
			return fmt.Errorf("the type %q", kind)
		}
		kind = short
	}
	if kind == "text/event-stream" && r.path == "/v1/stream/orderbook" { // those of circuits are made up by the tests
		return c.events(r.body)
	}
	if len(r.body) == 0 || !strings.HasSuffix(kind, "json") {
		return nil // of a HEAD; or a page
	}
	body := r.body
	if r.header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			return err
		}
		if body, err = io.ReadAll(z); err != nil {
			return err
		}
	}
	return c.value(place+pointer("content", kind, "schema"), body)
}

// value checks JSON against the schema at a place.
func (c *contract) value(place string, text []byte) error {
	s, err := c.schema(place)
	if err != nil {
		return err
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("no JSON: %w", err)
	}
	return s.Validate(v)
}

// events checks the server-sent events of a book, but the last one if it broke off.
func (c *contract) events(body []byte) error {
	whole := body[:bytes.LastIndex(body, []byte("\n\n"))+1]
	for frame := range strings.SplitSeq(string(whole), "\n\n") {
		var kind, data string
		for line := range strings.Lines(frame) {
			name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
			switch name {
			case "event":
				kind = value
			case "data":
				data = value
			case "id", "retry":
			default:
				return fmt.Errorf("the line %q of an event", line)
			}
		}
		if kind == "" && data == "" {
			continue // retry
		}
		schema := "StreamMessage"
		if kind == "close" {
			schema = "StreamClose"
		}
		var m struct{ Type string }
		if err := json.Unmarshal([]byte(data), &m); err != nil || m.Type != kind {
			return fmt.Errorf("the event %q has the data %q", kind, data)
		}
		if err := c.message(schema, []byte(data)); err != nil {
			return err
		}
	}
	return nil
}

// message checks what a stream sends.
func (c *contract) message(schema string, text []byte) error {
	return c.value(pointer("components", "schemas", schema), text)
}

// ofHTTP are headers of HTTP and Fetch themselves; OpenAPI leaves Content-Type to the content.
func ofHTTP(name string) bool {
	switch name {
	case "Content-Type", "Content-Length", "Date", "Connection", "Transfer-Encoding":
		return true
	}
	return strings.HasPrefix(name, "Access-Control-")
}

// told are the values of a header. Those of Vary are one, without what Fetch asks for on every answer where pages of other
// origins may read.
func (r *response) told(name string) []string {
	values := r.header.Values(name)
	if name != "Vary" {
		return values
	}
	values = slices.DeleteFunc(slices.Clone(values), func(v string) bool { return v == "Origin" || strings.HasPrefix(v, "Access-Control-") })
	if len(values) == 0 {
		return nil
	}
	return []string{strings.Join(values, ", ")}
}

// headers checks that every header is written, has the form that is written, and that none is missing. Of an open response
// only what is there is checked, and Age and Cache-Status may be.
func (c *contract) headers(place string, r *response, open bool) error {
	want, place := c.at(place)
	declared, _ := want["headers"].(object)
	for name := range r.header {
		values := r.told(name)
		if len(values) == 0 || ofHTTP(name) || open && (name == "Age" || name == "Cache-Status") {
			continue
		}
		i := slices.IndexFunc(slices.Collect(maps.Keys(declared)), func(s string) bool { return http.CanonicalHeaderKey(s) == name })
		if i < 0 {
			return fmt.Errorf("the header %s: %q", name, values)
		}
	}
	for name := range declared {
		h, at := c.at(place + pointer("headers", name))
		values := r.told(name)
		if len(values) == 0 {
			if h["required"] == true && !open {
				return fmt.Errorf("the header %s is missing", name)
			}
			continue
		}
		text, _ := json.Marshal(values[0])
		if schema, ok := h["schema"].(object); ok && schema["type"] == "integer" {
			text = []byte(values[0])
		}
		if err := c.value(at+"/schema", text); err != nil {
			return fmt.Errorf("the header %s: %q: %w", name, values[0], err)
		}
	}
	return nil
}
