// Package openapi holds the written contract of the gateway's HTTP API: openapi.yaml, an OpenAPI 3.1 document that people
// edit. It serves nothing and checks nothing; the tests of the API hold every response against it.
package openapi

import (
	_ "embed"
	"fmt"

	"github.com/goccy/go-yaml"
)

//go:embed openapi.yaml
var source []byte

// JSON is the document as JSON, its fields in the order of the source. It takes some tens of milliseconds: whoever serves it
// converts once. An error means that the embedded file is broken, which a test keeps from happening.
func JSON() ([]byte, error) {
	text, err := yaml.YAMLToJSON(source)
	if err != nil {
		return nil, fmt.Errorf("openapi: %w", err)
	}
	return text, nil
}
