package openapi_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"exchange-gateway/docs/openapi"
)

// TestJSON_isTheWholeDocument also holds every reference in it to something that is there.
func TestJSON_isTheWholeDocument(t *testing.T) {
	text, err := openapi.JSON()
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&doc); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"openapi", "info", "servers", "paths", "components"} {
		if doc[name] == nil {
			t.Errorf("the document has no %s", name)
		}
	}
	if n := references(t, doc, doc); n < 500 {
		t.Errorf("%d references: the document has lost a part", n)
	}
}

// references counts those below at, and follows each.
func references(t *testing.T, doc map[string]any, at any) (n int) {
	t.Helper()
	switch at := at.(type) {
	case map[string]any:
		if ref, ok := at["$ref"].(string); ok {
			n++
			var target any = doc
			for _, step := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
				m, _ := target.(map[string]any)
				target = m[step]
			}
			if target == nil {
				t.Errorf("%s is not there", ref)
			}
		}
		for _, v := range at {
			n += references(t, doc, v)
		}
	case []any:
		for _, v := range at {
			n += references(t, doc, v)
		}
	}
	return n
}
