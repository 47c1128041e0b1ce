package exchangetest

import (
	"fmt"
	"io/fs"
	"net/http"

	"exchange-gateway/internal/market"
)

// Subject is one adapter under test.
type Subject struct {
	// New makes the venue over the transport and door given, with the adapter's own hosts. It is called for every check.
	New func(transport http.RoundTripper, door market.Door) (market.Venue, error)
	// Good answers every request that the adapter sends, properly: see Files.
	Good Script
	// Pair is a pair that the good listings contain and that the good books and statistics are of.
	Pair market.Pair
	// MaxDepth is the most levels that the adapter asks the exchange for in one book.
	MaxDepth int
	// Credentials are well-formed, visibly fake keys: one for every account API and kind of key.
	Credentials []market.Credential
	// BadCredentials cannot work, and Account must say so. The empty credential is always tried.
	BadCredentials []market.Credential
	// CrossedBook is an order book as the exchange sends it, but for its best bid that is above its best ask.
	CrossedBook string
	// BadBooks are order books without a needed field or of another pair, by what is wrong with them.
	BadBooks map[string]string
	// BadBalances are answers about balances that must be errors, by what is wrong with them: the list is missing, an
	// amount is missing, empty or no number. They are tried on every credential, so each must be wrong for all.
	BadBalances map[string]string
	// UnknownError is an error in the exchange's own format, of every API that is asked, whose code is in none of its documents.
	UnknownError string
	// Natives are questions in the exchange's own form, for an adapter that has the port: one at least, and each with an
	// object for its good answer.
	Natives []market.NativeQuery
	// Errors are answers from the exchange's error table. They must cover the kinds of neededKinds.
	Errors []ErrorCase
}

// ErrorCase is one error answer of the exchange and what it means.
type ErrorCase struct {
	Name       string
	Op         market.Op // the question that is answered so
	Credential int       // for OpBalances: index into Subject.Credentials
	Reply      Reply
	Kind       market.Kind
	Code       string           // the exchange's own code, "" if it has none
	OurFault   bool             // with KindInvalid
	Scope      market.ScopeKind // of the gate that it closes, "" if none
}

// neededKinds is what the error cases of every adapter must cover: every exchange knows these.
var neededKinds = []market.Kind{
	market.KindUnknownSymbol, market.KindAuth, market.KindRestricted, market.KindRateLimited, market.KindBanned,
	market.KindUnavailable,
}

// Files is a script of good answers: files by the path of the request. Any other path is answered 404, which no adapter
// takes for a good answer.
func Files(dir fs.FS, byPath map[string]string) Script {
	return func(r *http.Request, _ market.Call) Reply {
		name, ok := byPath[r.URL.RequestURI()]
		if !ok {
			name, ok = byPath[r.URL.Path]
		}
		if !ok {
			return Reply{Status: http.StatusNotFound, Body: "no fixture for " + r.URL.Path}
		}
		b, err := fs.ReadFile(dir, name)
		if err != nil {
			return Reply{Err: fmt.Errorf("fixture: %w", err)}
		}
		return Reply{Body: string(b)}
	}
}
