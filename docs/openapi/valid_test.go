package openapi_test

import (
	"testing"

	"github.com/pb33f/libopenapi"
	"github.com/pb33f/libopenapi-validator/schema_validation"

	"exchange-gateway/docs/openapi"
)

// TestDocument_isOpenAPI holds the document against the schema of OpenAPI 3.1 itself, and builds the model that generators
// of clients build.
func TestDocument_isOpenAPI(t *testing.T) {
	text, err := openapi.JSON()
	if err != nil {
		t.Fatal(err)
	}
	doc, err := libopenapi.NewDocument(text)
	if err != nil {
		t.Fatal(err)
	}
	model, err := doc.BuildV3Model()
	if err != nil {
		t.Fatal(err)
	}
	operations := map[string]bool{}
	for path, item := range model.Model.Paths.PathItems.FromOldest() {
		for method, op := range item.GetOperations().FromOldest() {
			if op.OperationId == "" || operations[op.OperationId] || op.Summary == "" || len(op.Tags) != 1 {
				t.Errorf("%s %s: operation %q is not named once, summed up, and under one tag", method, path, op.OperationId)
			}
			operations[op.OperationId] = true
		}
	}
	if len(operations) < 30 {
		t.Errorf("%d operations", len(operations))
	}
	ok, errs := schema_validation.ValidateOpenAPIDocument(doc)
	for _, e := range errs {
		t.Errorf("%s: %s", e.Message, e.Reason)
		for _, s := range e.SchemaValidationErrors {
			t.Errorf("at %s: %s", s.FieldPath, s.Reason)
		}
	}
	if !ok && len(errs) == 0 {
		t.Error("it is not valid, and nobody says why")
	}
}
