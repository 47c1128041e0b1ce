package config

import (
	"io"

	"github.com/goccy/go-yaml"
)

// Print writes the settings as YAML, secrets hidden. What is not set and has no default is left out.
func Print(w io.Writer, c Config) error {
	text, err := yaml.MarshalWithOptions(c, yaml.Indent(2), yaml.IndentSequence(true))
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}
