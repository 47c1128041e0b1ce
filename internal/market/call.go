package market

import "time"

// ScopeKind is a kind of thing that an exchange limits. It is a metric label.
type ScopeKind string

// The closed set of scopes.
const (
	ScopeExchange ScopeKind = "exchange" // everything: the exchange refuses our place on earth
	ScopeIP       ScopeKind = "ip"       // everything from our address: Binance limits and every CDN block
	ScopeEndpoint ScopeKind = "endpoint" // one public endpoint: OKX
	ScopePublic   ScopeKind = "public"   // all keyless requests of one API family: Coinbase
	ScopeAccount  ScopeKind = "account"  // one credential
	ScopeSymbol   ScopeKind = "symbol"   // one pair whose book cannot be true or decoded
)

// ScopeKinds lists every kind of scope.
func ScopeKinds() []ScopeKind {
	return []ScopeKind{ScopeExchange, ScopeIP, ScopeEndpoint, ScopePublic, ScopeAccount, ScopeSymbol}
}

// Scope is one gate of one exchange. Name is the endpoint, family, account or symbol; "" where there is only one.
type Scope struct {
	Kind ScopeKind
	Name string
}

// LimitID names one rate limit of an exchange, "request_weight" or "books". It is a metric label.
type LimitID string

// Limit is one rate limit as the exchange states it. The gateway uses a share of it.
type Limit struct {
	ID       LimitID
	Capacity int           // units in one window
	Window   time.Duration // over which Capacity holds
	Burst    int           // units that may be spent at once; 1 paces evenly; 0 means the whole share
	Reported bool          // the exchange reports use in its answers, so a start is careful until the first one
	Aligned  bool          // the window starts at whole multiples of Window on the exchange's clock
}

// Charge is what a request costs of one limit.
type Charge struct {
	Limit  LimitID
	Weight int
}

// Call says what a call, or one HTTP request of it, touches: its circuit, the gates that can refuse it, and its cost.
// An adapter states it beforehand, so that everything is reserved before the circuit's permit is taken.
type Call struct {
	Exchange ExchangeID
	Op       Op
	Class    Class
	Family   string   // the API family, where an exchange has several with circuits of their own; else ""
	Scopes   []Scope  // every gate that applies
	Charges  []Charge // every limit that it draws on
}

// Circuit is the circuit that the call counts for.
func (c Call) Circuit() CircuitID {
	return CircuitID{Exchange: c.Exchange, Class: c.Class, Family: c.Family}
}

// Refusal asks for a gate to be closed: "not before T, because K". The exchange's own time wins; without one the gate
// stays closed for First, doubling up to Max each time that it closes again.
type Refusal struct {
	Scope     Scope
	NotBefore time.Time     // when the exchange said that it may be asked again, zero if it did not
	Clamp     time.Duration // how far ahead NotBefore is believed
	First     time.Duration // without NotBefore: the first time
	Max       time.Duration // without NotBefore: the most that First grows to
	After     int           // the gate closes at this many such answers in a row; 0 and 1 close it at once
}

// Usage is an exchange's own count of one limit in its current window.
type Usage struct {
	Limit LimitID
	Used  int
}

// Observation is what one HTTP request told about limits and gates.
type Observation struct {
	Err        *Error        // nil after a good answer
	Usage      []Usage       // from the answer's headers
	Elapsed    time.Duration // from sending to the end of the body
	ExchangeAt time.Time     // the exchange's clock when it answered, zero if unknown
}
