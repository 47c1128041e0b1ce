package main

import (
	"fmt"
	"time"

	"exchange-gateway/cmd/gateway/app"
	"exchange-gateway/cmd/gateway/config"
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
	if err := k.checkTargets(sys, conf, scopes); err != nil {
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

// checkTargets refuses scopes of an exchange that there is none of: such a key could never work. An account that is not
// configured may be tomorrow, or for the gateway with another configuration that reads this keys file, so it is a warning.
func (k keyNewCmd) checkTargets(sys system, conf config.Config, scopes keys.Scopes) error {
	for _, t := range scopes.Targets() {
		e, ok := conf.Exchanges[t.Exchange]
		if !ok {
			return fmt.Errorf("--scope: exchange %q is unknown; the exchanges are %v", t.Exchange, app.ExchangeIDs())
		}
		if _, ok := e.Accounts[t.Account]; !ok && t.Account != "" {
			fmt.Fprintf(sys.err, "Warning: no account %q of %s is configured here, so this key reads nothing there until one is.\n", t.Account, t.Exchange)
		}
	}
	return nil
}
