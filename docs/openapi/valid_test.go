package openapi_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/pb33f/jsonschema/v6"

	"exchange-gateway/docs/openapi"
)

// TestDocument_isOpenAPI holds the document against the OpenAPI Initiative's own schema of 3.1 documents (2022-10-07, in
// testdata as it was published), and each of its schemas against JSON Schema 2020-12. One with a mistake is refused.
func TestDocument_isOpenAPI(t *testing.T) {
	text, err := openapi.JSON()
	if err != nil {
		t.Fatal(err)
	}
	published, err := os.ReadFile("testdata/oas31-schema.json")
	if err != nil {
		t.Fatal(err)
	}
	schema := parse(t, published)
	c := jsonschema.NewCompiler()
	if err := c.AddResource("oas31", schema); err != nil {
		t.Fatal(err)
	}
	rules, err := c.Compile("oas31")
	if err != nil {
		t.Fatal(err)
	}
	doc := parse(t, text)
	if err := rules.Validate(doc); err != nil {
		t.Error(err)
	}
	wrong := parse(t, bytes.Replace(text, []byte(`"in": "path"`), []byte(`"in": "planted"`), 1))
	if err := rules.Validate(wrong); err == nil {
		t.Error("a mistake is not found")
	}
	c.DefaultDraft(jsonschema.Draft2020)
	if err := c.AddResource("document", doc); err != nil {
		t.Fatal(err)
	}
	schemas := doc.(map[string]any)["components"].(map[string]any)["schemas"].(map[string]any)
	for name := range schemas {
		if _, err := c.Compile("document#/components/schemas/" + name); err != nil {
			t.Error(err)
		}
	}
}

// TestDocument_operations: a generator of clients names its functions by them, and the page sorts them by their tag.
func TestDocument_operations(t *testing.T) {
	text, err := openapi.JSON()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for path, item := range parse(t, text).(map[string]any)["paths"].(map[string]any) {
		for method, v := range item.(map[string]any) {
			op, ok := v.(map[string]any)
			if !ok {
				continue
			}
			id, _ := op["operationId"].(string)
			tags, _ := op["tags"].([]any)
			summary, _ := op["summary"].(string)
			if id == "" || seen[id] || len(tags) != 1 || strings.TrimSpace(summary) == "" {
				t.Errorf("%s %s: %q is not named once, summed up, and under one tag", method, path, id)
			}
			seen[id] = true
		}
	}
	if len(seen) < 30 {
		t.Errorf("%d operations", len(seen))
	}
}

func parse(t *testing.T, text []byte) any {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}
