package main

import (
	"fmt"

	"exchange-gateway/cmd/gateway/config"
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
	text, err := config.Text(file)
	if err != nil {
		return market.Secret{}, fmt.Errorf("key file: %w", err)
	}
	return market.NewSecret(text), nil
}
