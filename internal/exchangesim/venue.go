package exchangesim

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// Venue is one simulated exchange. It is an http.Handler. All its methods may be called at the same time.
type Venue struct {
	id      string
	pairs   map[string]*pair
	symbols []string // in listing order
	keys    map[string]*knownKey
	dialect dialect
	routes  []*endpoint
	faults  faultSet
	count   counters
	streams streamSet
	replay  *player
	done    chan struct{} // closed by Sim.Close: hanging requests end

	mu       sync.Mutex
	accounts map[string][]holding // by credential name and wallet
	status   []okxStatus          // announced maintenance, OKX only
}

// dialect is how a venue speaks: its endpoints, limits and error bodies.
type dialect interface {
	endpoints() []*endpoint
	// admit checks limits and credentials. ok is false if its answer is the last word.
	admit(c *call) (a answer, ok bool)
	// decorate adds the headers that every answer of the venue itself carries.
	decorate(c *call, h http.Header)
	notFound(c *call) answer
	wrongMethod(c *call) answer
	failures
}

// failures are the answers of a venue in trouble.
type failures interface {
	maintenance(c *call) answer
	unavailable(c *call) answer
	rateLimited(c *call, f Fault) answer
	banned(c *call, f Fault) answer
	geoBlocked(c *call) answer
	deadKey(c *call) answer
	// timeout is how long the venue's front waits for an answer, 0 for ever, and what it says then.
	timeout() (time.Duration, answer)
}

// endpoint is one route of a venue. A path part in braces matches anything.
type endpoint struct {
	path    string
	class   string
	private bool
	symbol  string   // query parameter or path part that holds the symbol
	params  []string // Binance: the parameters that it knows
	weight  func(url.Values) int
	group   string // which limiter it draws on
	status  bool   // answers through maintenance and tells of it
	serve   func(c *call) answer

	// open makes this the endpoint of a stream: it starts the dialect's side once the handshake has succeeded. connect, if any, is
	// the limit on handshakes; ok is false if its answer is the last word.
	open    func(s *stream, c *call) speaker
	connect func(c *call) (a answer, ok bool)
}

// call is one request on its way through a venue.
type call struct {
	r     *http.Request
	v     *Venue
	ep    *endpoint
	query url.Values
	part  string // what the braces of the path matched
	wall  time.Time
	now   time.Time // the venue's own clock
	key   *knownKey
	fx    effects
	seen  int64 // the newest fault that it could meet

	symbol     string
	credential string // name of the key that the request shows, unchecked
	used       usage
}

// usage is what a dialect's limiter found, for the headers of the answer.
type usage struct {
	weight    int
	sapi      bool
	limit     int64
	remaining int64
}

// effects are the faults that change an answer.
type effects struct {
	skew, age                                                    time.Duration
	cached, crossed, negative, zero, oneSided, emptyBook, halted bool
	inMaintenance                                                bool
	maintenanceEnds                                              time.Time // zero where it ends when it is told to
}

// answer is a whole response before it meets the wire.
type answer struct {
	status int
	header http.Header
	body   []byte
	open   func(*stream) speaker // of a handshake that succeeded
}

// ID is binance, okx or coinbase.
func (v *Venue) ID() string { return v.id }

// Symbols lists the venue's own names of its instruments, delisted ones included.
func (v *Venue) Symbols() []string { return slices.Clone(v.symbols) }

// Inject adds a fault and gives its number. It is refused if it could do nothing, or if 1,000 are active.
func (v *Venue) Inject(f Fault) (int64, error) {
	now := time.Now()
	err := v.validFor(f)
	id := int64(0)
	if err == nil {
		id, err = v.faults.add(f, now)
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w", v.id, err)
	}
	if f.Kind == FaultResetSequence || f.Kind == FaultLostReset {
		v.resetSequences(f.Symbol, f.Kind == FaultLostReset, now)
		v.faults.remove(id) // it has done what it does
		v.count.faulted(f.Kind)
	}
	return id, nil
}

// Remove ends a fault early and reports whether it was active.
func (v *Venue) Remove(id int64) bool { return v.faults.remove(id) }

// ClearFaults ends all faults.
func (v *Venue) ClearFaults() { v.faults.clear() }

// Faults lists the active faults, oldest first.
func (v *Venue) Faults() []ActiveFault { return v.faults.list(time.Now()) }

// Stats gives a copy of the counters.
func (v *Venue) Stats() Stats { return v.count.snapshot() }

// ResetStats sets the counters to zero and empties the log.
func (v *Venue) ResetStats() { v.count.reset() }

// Requests counts the requests of a class, or all if class is "".
func (v *Venue) Requests(class string) int {
	s := v.Stats()
	if class == "" {
		return s.Requests
	}
	return s.ByClass[class]
}

// SetBalances replaces what the account behind a credential holds; funding is OKX's funding account and ignored elsewhere.
func (v *Venue) SetBalances(credential string, balances, funding []Balance) error {
	trading, err := newHoldings(balances)
	if err != nil {
		return fmt.Errorf("%s: %w", v.id, err)
	}
	other, err := newHoldings(funding)
	if err != nil {
		return fmt.Errorf("%s: %w", v.id, err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, ok := v.accounts[credential+"/trading"]; !ok {
		return fmt.Errorf("%s: no credential %q", v.id, credential)
	}
	v.accounts[credential+"/trading"], v.accounts[credential+"/funding"] = trading, other
	return nil
}

func (v *Venue) holdings(credential, wallet string) []holding {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.accounts[credential+"/"+wallet]
}

// listed gives the pairs in listing order.
func (v *Venue) listed() []*pair {
	out := make([]*pair, len(v.symbols))
	for i, s := range v.symbols {
		out[i] = v.pairs[s]
	}
	return out
}

// notThere is the endpoint of paths that a venue does not have.
var notThere = endpoint{path: "other", class: classOther}

// newCall routes a request.
func (v *Venue) newCall(r *http.Request, now time.Time) *call {
	c := &call{r: r, v: v, ep: &notThere, wall: now, now: now, query: r.URL.Query()}
	for _, ep := range v.routes {
		if part, ok := matchPath(ep.path, r.URL.Path); ok {
			c.ep, c.part = ep, part
			break
		}
	}
	switch c.ep.symbol {
	case "":
	case "{}":
		c.symbol = c.part
	default:
		c.symbol = c.query.Get(c.ep.symbol)
	}
	c.credential = v.credentialName(r)
	return c
}

// matchPath compares a path with a pattern that may hold one part in braces.
func matchPath(pattern, path string) (part string, ok bool) {
	before, rest, found := strings.Cut(pattern, "{")
	if !found {
		return "", pattern == path
	}
	_, after, _ := strings.Cut(rest, "}")
	if len(path) <= len(before)+len(after) || !strings.HasPrefix(path, before) || !strings.HasSuffix(path, after) {
		return "", false
	}
	part = path[len(before) : len(path)-len(after)]
	return part, !strings.Contains(part, "/")
}

// clock is the venue's time as the answer tells it: that of Age ago where a cache says that it is so old.
func (c *call) clock() time.Time {
	if c.fx.cached {
		return c.now.Add(-c.fx.age)
	}
	return c.now
}

// requestURI is path and query exactly as they came.
func (c *call) requestURI() string {
	if strings.HasPrefix(c.r.RequestURI, "/") {
		return c.r.RequestURI
	}
	return c.r.URL.RequestURI() // a caller that gave a client's request to ServeHTTP
}

// credentialName tells whose key a request shows, without checking it: "" for none, "unknown" for one that the venue does not have.
func (v *Venue) credentialName(r *http.Request) string {
	id := ""
	for _, name := range []string{"X-Mbx-Apikey", "Ok-Access-Key", "Cb-Access-Key"} {
		id = orText(id, r.Header.Get(name))
	}
	if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		head, _, _ := strings.Cut(token, ".")
		var h jwtHeader
		if len(head) > 4096 || !decodePart(head, &h) {
			return "unknown"
		}
		id = orText(h.Kid, "?")
	}
	if id == "" {
		return ""
	}
	if k, ok := v.keys[id]; ok {
		return k.Name
	}
	return "unknown"
}
