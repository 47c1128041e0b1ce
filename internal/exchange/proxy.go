package exchange

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

// proxyError is what a proxy between us and the exchange answered instead of passing a connection on.
type proxyError struct{ status int }

// Error says what the proxy said, and nothing of its address: that may hold a password.
func (e *proxyError) Error() string {
	return fmt.Sprintf("the proxy answered %d %s", e.status, http.StatusText(e.status))
}

// proxyAnswered is called with a proxy's answer to CONNECT.
func proxyAnswered(_ context.Context, _ *url.URL, _ *http.Request, res *http.Response) error {
	if res.StatusCode == http.StatusOK {
		return nil
	}
	return &proxyError{status: res.StatusCode}
}

// refusedByProxy tells whether a proxy would not pass a connection on: it wants a credential, or does not allow the host. One
// that could not reach the exchange says so with a 5xx, and that is about the exchange.
func refusedByProxy(err error) bool {
	e, ok := errors.AsType[*proxyError](err)
	return ok && e.status >= http.StatusBadRequest && e.status < http.StatusInternalServerError
}
