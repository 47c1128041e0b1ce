package main

import (
	"fmt"
	"time"

	"exchange-gateway/internal/api/keys"
)

type keyCmd struct {
	New keyNewCmd `cmd:"" help:"Make a client key, keep its hash, and print it once."`
}

type keyNewCmd struct {
	settings `embed:""`

	Note  string   `placeholder:"TEXT" help:"Whom it is for; kept beside the hash."`
	Scope []string `required:"" placeholder:"SCOPE" help:"market:read, account:read (all accounts) or account:read:okx/main (one), ops:read, ops:write. Repeatable."`
}

// Run appends the key's hash to the keys file and prints the key. A running gateway sees the file change.
func (k keyNewCmd) Run(sys system) error {
	conf, err := k.load(sys)
	if err != nil {
		return err
	}
	scopes, err := keys.ParseScopes(k.Scope...)
	if err != nil {
		return err
	}
	key, text, err := keys.New(scopes, k.Note, time.Now())
	if err != nil {
		return err
	}
	if err := keys.Append(conf.KeysFile, key); err != nil {
		return fmt.Errorf("keep the key's hash: %w", err)
	}
	fmt.Fprintf(sys.err, "Kept the hash in %s. This is the only time that the key is shown; send it as 'Authorization: Bearer ...'.\n", conf.KeysFile)
	_, err = fmt.Fprintln(sys.out, text.Reveal())
	return err
}
