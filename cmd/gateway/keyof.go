package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"exchange-gateway/internal/market"
)

// keyOf is the key that a command sends: from the file that its flag names, else from the variable called name, else from the
// file that name_FILE names. It is the zero secret without any.
func keyOf(file string, env []string, name string) (market.Secret, error) {
	if file == "" {
		if text := lookup(env, name); text != "" {
			return market.NewSecret(text), nil
		}
		file = lookup(env, name+"_FILE")
	}
	if file == "" {
		return market.Secret{}, nil
	}
	in, err := os.Open(file)
	if err != nil {
		return market.Secret{}, fmt.Errorf("key file: %w", err)
	}
	defer in.Close() // nothing was written
	text, err := io.ReadAll(io.LimitReader(in, maxKeyFile))
	if err != nil {
		return market.Secret{}, fmt.Errorf("key file: %w", err)
	}
	return market.NewSecret(strings.TrimSpace(string(text))), nil
}
