package exchangetest

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"exchange-gateway/internal/market"
)

// shortest is the length from which a piece of a request counts as one that would give it away.
const shortest = 12

// public are the headers that a request without a key may have.
var public = map[string]bool{"User-Agent": true, "Accept": true, "Content-Type": true, "Cache-Control": true}

// discreet checks that an error shows nothing of a credential, of a signature, or of the query of a signed request.
func (b *bench) discreet(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		return
	}
	text := fmt.Sprintf("%v\n%+v\n%#v", err, err, err)
	for _, secret := range b.secrets() {
		if strings.Contains(text, secret) {
			t.Errorf("the error shows %.6q... of a signed request or its key: %v", secret, err)
		}
	}
}

func (b *bench) secrets() []string {
	var all []string
	keep := func(s string) {
		if s = strings.TrimSpace(s); len(s) >= shortest {
			all = append(all, s)
		}
	}
	for _, c := range b.subject.Credentials {
		for _, s := range []market.Secret{c.Key, c.Secret, c.Passphrase} {
			for line := range strings.Lines(s.Reveal()) {
				keep(line)
			}
		}
	}
	for _, step := range b.Trail() {
		if step.What != Sent || !signed(step.Request) {
			continue
		}
		keep(step.Request.URL.RawQuery)
		for _, v := range step.Request.URL.Query() {
			keep(strings.Join(v, ""))
			keep(url.QueryEscape(strings.Join(v, "")))
		}
		for k, v := range step.Request.Header {
			if !public[k] {
				keep(strings.Join(v, ""))
			}
		}
	}
	return all
}

// signed tells whether a request carries more than a public one does.
func signed(r *http.Request) bool {
	for k := range r.Header {
		if !public[k] {
			return true
		}
	}
	return strings.Contains(r.URL.RawQuery, "sign")
}
