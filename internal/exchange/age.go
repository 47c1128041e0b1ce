package exchange

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"exchange-gateway/internal/market"
)

// maxAge bounds an Age header: a CDN that claims more than a day is not believed to be that precise.
const maxAge = 24 * time.Hour

// Age is how long the answer says that it lay in a cache, at most a day; zero if it says nothing that can be read.
func (r *Response) Age() time.Duration {
	age, _ := readAge(r.Header.Get("Age"))
	return age
}

// readAge reads whole seconds; false for what is no age.
func readAge(text string) (time.Duration, bool) {
	age, err := strconv.ParseInt(strings.TrimSpace(text), 10, 32)
	if err != nil && !errors.Is(err, strconv.ErrRange) || age < 0 {
		return 0, false
	}
	return min(time.Duration(age)*time.Second, maxAge), true
}

var errUnknownAge = errors.New("the answer came from a cache and does not say readably how old it is")

// old is nil for an answer that was given to this very request, as far as it tells. An Age of 0 is under a second, which is
// no more than a request takes. One that cannot be read, or one of several, counts as well: nobody but a cache writes any
// (RFC 9111, 5.1).
func (r *Response) old() error {
	for _, text := range r.Header.Values("Age") {
		switch age, ok := readAge(text); {
		case !ok:
			return errUnknownAge
		case age > 0:
			return fmt.Errorf("the answer came from a cache and is at least %v old", age)
		}
	}
	return nil
}

// live refuses a good answer about an account that came from a cache. A book is shown with its age, but a balance is live
// or an error. Only what an adapter has taken for good comes here: a limit or ban stays one, wherever it lay.
func live(c market.Call, r *Response) *market.Error {
	if c.Class != market.ClassAccount {
		return nil
	}
	if err := r.old(); err != nil {
		return &market.Error{Kind: market.KindSuspect, Err: err}
	}
	return nil
}
