package main

import (
	"fmt"
	"strings"
	"time"

	"exchange-gateway/cmd/gateway/app"
	"exchange-gateway/cmd/gateway/config"
	"exchange-gateway/internal/api/keys"
)

type keyCmd struct {
	New    keyNewCmd    `cmd:"" help:"Make a client key, keep its hash, and print it once."`
	List   keyListCmd   `cmd:"" help:"The keys, whose they are, when they end and when they were last used."`
	Revoke keyRevokeCmd `cmd:"" help:"Remove a key. Streams that it opened close within 10 s."`
}

type keyNewCmd struct {
	settings `embed:""`

	Client  string   `placeholder:"NAME" help:"The client that it belongs to, with one quota for its keys, at most two of them valid; default a client of its own."`
	Expires string   `placeholder:"WHEN" help:"When it ends: in 90d or 12h, or on a date, 2027-01-31 (UTC); default never."`
	Note    string   `placeholder:"TEXT" help:"Whom it is for; kept beside the hash."`
	Scope   []string `required:"" placeholder:"SCOPE" help:"market:read, account:read (all accounts) or account:read:okx/main (one), ops:read, ops:write. Repeatable."`
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
	now := time.Now()
	key, text, err := keys.New(scopes, k.Note, now)
	if err != nil {
		return err
	}
	if k.Client != "" {
		if err := keys.ValidClient(k.Client); err != nil {
			return fmt.Errorf("--client: %w", err)
		}
		key.Client = k.Client
	}
	if key.Expires, err = expiry(k.Expires, now); err != nil {
		return fmt.Errorf("--expires: %w", err)
	}
	if err := keys.Append(conf.KeysFile, key); err != nil {
		return fmt.Errorf("keep the key's hash: %w", err)
	}
	fmt.Fprintf(sys.err, "Kept the hash in %s. This is the only time that the key is shown; send it as 'Authorization: Bearer ...'.\n", conf.KeysFile)
	tellTerms(sys, conf.KeysFile, &key, now)
	_, err = fmt.Fprintln(sys.out, text.Reveal())
	return err
}

// tellTerms says when a key ends, and which other one its client can give up once the new one is in use.
func tellTerms(sys system, path string, key *keys.Key, now time.Time) {
	if !key.Expires.IsZero() {
		fmt.Fprintf(sys.err, "It ends at %s: make its successor before, with the same --client, and both work until then.\n", key.Expires.Format(time.RFC3339))
	}
	f, err := keys.Load(path, now)
	if err != nil {
		return // it was written a moment ago; the next program that reads it will say
	}
	for i := range f.Keys {
		if o := &f.Keys[i]; o.Client == key.Client && o.ID != key.ID && !o.Expired(now) {
			fmt.Fprintf(sys.err, "Client %s has the key %s too. When nobody uses that any more: %s key revoke %s\n", o.Client, o.ID, sys.name(), o.ID)
		}
	}
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

type keyRevokeCmd struct {
	settings `embed:""`

	ID string `arg:"" help:"The key's id, as gateway key list shows it. A whole key is taken too, for one that was found somewhere."`
}

// Run removes the key from the keys file. A running gateway sees the file change.
func (k keyRevokeCmd) Run(sys system) error {
	conf, err := k.load(sys)
	if err != nil {
		return err
	}
	gone, err := keys.Revoke(conf.KeysFile, keys.IDOf(strings.TrimSpace(k.ID)))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(sys.out, "Revoked %s of client %s. Running gateways refuse it within 2 s and close the streams that it opened within 10 s.\n",
		gone.ID, gone.Client)
	return err
}
