// Package compat holds what facades have in common: parts of the gateway's API that speak an exchange's own dialect, so that
// a bot written for the exchange changes its base URL and nothing else. A facade asks package gateway like everybody else,
// under the same rules; it has no way to the exchange of its own, and it answers nothing that needs the exchange's
// credentials.
package compat

import (
	"context"
	"time"

	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

// Dialect is one facade. The API routes to it what is under its prefix, after the caller's key and quota, and puts its
// errors into a problem, which it then words as the exchange would.
type Dialect interface {
	// Exchange is whose dialect it speaks; it is mounted at /compat/<exchange>.
	Exchange() market.ExchangeID
	// Answer answers one request. Its errors are those of package gateway, *market.Error, or *Refusal.
	Answer(ctx context.Context, r Request) (*Answer, error)
	// Refuse words a problem as the exchange does: the status and the whole body.
	Refuse(p Problem) (status int, body []byte)
}

// Request is a request to a facade.
type Request struct {
	Method string
	Path   string // below the prefix, "/api/v3/depth", as it was decoded
	Query  string // as it came
	// MaxAge is the age of a book that the caller's key allows. Unset: nothing but live answers, since a bot that speaks the
	// exchange's dialect does not look for a label.
	MaxAge gateway.Age
}

// Answer is an answer in the dialect.
type Answer struct {
	Body []byte // JSON; the API writes it and keeps nothing of it
	// Freshness is told in headers, as for every answer. Nil where nothing can be old.
	Freshness *gateway.Freshness
	FreshFor  time.Duration // up to this age such an answer is live, for Cache-Status; zero where none is kept
}

// Refusal is a request that the facade itself does not answer.
type Refusal struct {
	Status int    // of HTTP
	Code   string // the exchange's own code, "-1121"
	Detail string // a sentence in the dialect's words
}

// Error implements error.
func (r *Refusal) Error() string { return r.Code + ": " + r.Detail }

// Problem is what a facade words.
type Problem struct {
	Status     int           // that the native API would answer with
	Code       string        // of the native API, "circuit_open"; "" for a Refusal
	Kind       market.Kind   // KindNone where no exchange was concerned
	VenueCode  string        // the exchange's own code, where it refused the question itself
	Detail     string        // a sentence
	RetryAfter time.Duration // 0 if trying again is of no use
	Refusal    *Refusal      // nil unless the facade refused
	Place      bool          // it is about where the request comes from and not about a key, so that Detail tells nobody which part of one was wrong
}
