package market

import (
	"context"
	"errors"
	"time"
)

// Client is on whose behalf an exchange is asked: somebody with one or more keys of the gateway, and one quota for all of
// them. What the gateway does of itself (lists, clocks, streams) is on nobody's behalf. Safe for concurrent use; nothing of
// it waits.
//
// Its quota is on what it causes: whoever begins a call pays for it, and those who share it pay nothing. The price is known
// only at the end (retries, pages), so a client is asked beforehand whether it may begin one, and pays afterwards; it may owe
// the rest of one call.
type Client interface {
	// Name is the client's name, a metric label and a log field: from the keys file, never from a request.
	Name() string
	// Afford tells whether the client may cause a call to an exchange now, or in how long it may. It takes nothing.
	Afford() (wait time.Duration, ok bool)
	// Spend counts units of an exchange's limits that were spent on its behalf; negative ones were reserved and not used.
	Spend(units int)
}

// Keyless is the name of all callers together who have no key. No client of the keys file may be called so.
const Keyless = "keyless"

// ErrKeptForOthers is wrapped by a KindOverloaded that concerns one client alone: what is left of the exchange's limit is kept
// for others, so it is no answer to them.
var ErrKeptForOthers = errors.New("not sent: the rest of the exchange's limit is kept for other clients")

type clientKey struct{}

// AsksClient tells that a context's Value is asked for its client. A context that is made for each request anyway can answer
// that itself, with a Client, and needs none of [WithClient] around it.
func AsksClient(key any) bool {
	_, ok := key.(clientKey)
	return ok
}

// WithClient puts the calls under ctx on a client's account. A nil client leaves ctx as it is.
func WithClient(ctx context.Context, c Client) context.Context {
	if c == nil {
		return ctx
	}
	return context.WithValue(ctx, clientKey{}, c)
}

// ClientOf is on whose behalf the calls under ctx are made, nil for the gateway itself.
func ClientOf(ctx context.Context) Client {
	c, _ := ctx.Value(clientKey{}).(Client)
	return c
}

// ClientName is the name of ctx's client, "" for the gateway itself.
func ClientName(ctx context.Context) string {
	if c := ClientOf(ctx); c != nil {
		return c.Name()
	}
	return ""
}
