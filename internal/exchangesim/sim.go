package exchangesim

import (
	"fmt"
	"slices"
	"sync"
)

// Config is what a Sim is made of. The zero value is three venues with their default instruments and [ExampleCredentials].
type Config struct {
	Seed        uint64
	Credentials []Credential // nil means ExampleCredentials
	Replay      *Manifest    // recorded payloads, see ReadManifest
	Unlimited   bool         // no rate limits, for benchmarks; usage headers stay

	// Instruments replaces the default ones of a venue, by venue id.
	Instruments map[string][]Instrument

	// OKXRegion is the region of the OKX host for requests whose Host names none: "global" (default), "eea" or "us".
	OKXRegion string
	// OKXLimitAs200 answers an exceeded limit with HTTP 200 and code 50011 instead of 429; both are documented.
	OKXLimitAs200 bool
}

// Sim is a set of simulated venues. Close it when done.
type Sim struct {
	venues []*Venue
	seed   uint64
	ca     sync.Once
	tls    *authority
	tlsErr error

	mu     sync.Mutex
	relays map[string]*Relay
	plays  map[*play]struct{}
	closed bool
	done   chan struct{}
	busy   sync.WaitGroup // schedules
}

// New builds the venues. It reads the files of a manifest and starts nothing. A Sim for a synctest bubble has to be made inside it:
// channels from outside would keep the bubble's clock from moving while a request hangs.
func New(cfg Config) (*Sim, error) {
	s := &Sim{seed: cfg.Seed, relays: map[string]*Relay{}, plays: map[*play]struct{}{}, done: make(chan struct{})}
	creds := cfg.Credentials
	if creds == nil {
		creds = ExampleCredentials()
	}
	for _, kind := range []struct {
		id      string
		pairs   []Instrument
		quote   string
		dialect func(*Venue) dialect
	}{
		{"binance", binanceInstruments(), "USDT", func(v *Venue) dialect { return newBinance(v, cfg.Unlimited) }},
		{"okx", okxInstruments(), "USDT", func(v *Venue) dialect { return newOKX(v, cfg) }},
		{"coinbase", coinbaseInstruments(), "USD", func(v *Venue) dialect { return newCoinbase(v, cfg.Unlimited) }},
	} {
		instruments := kind.pairs
		if own, ok := cfg.Instruments[kind.id]; ok {
			instruments = own
		}
		v := &Venue{id: kind.id, pairs: map[string]*pair{}, keys: map[string]*knownKey{}, accounts: map[string][]holding{}, done: s.done}
		v.count.stats = newStats()
		for _, in := range instruments {
			if err := v.list(in, cfg.Seed); err != nil {
				return nil, fmt.Errorf("%s: %w", v.id, err)
			}
		}
		for _, c := range creds {
			if c.Venue != v.id {
				continue
			}
			if err := v.know(c, kind.quote); err != nil {
				return nil, fmt.Errorf("%s: %w", v.id, err)
			}
		}
		v.dialect = kind.dialect(v)
		v.routes = v.dialect.endpoints()
		s.venues = append(s.venues, v)
	}
	for _, c := range creds {
		if s.Venue(c.Venue) == nil {
			return nil, fmt.Errorf("credential %s: no venue %q", c.Name, c.Venue)
		}
	}
	if cfg.Replay != nil {
		if err := s.load(cfg.Replay); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// list adds an instrument to the end of the listing, or puts it in the place of one with the same symbol.
func (v *Venue) list(in Instrument, seed uint64) error {
	p, err := newPair(in, seed)
	if err != nil {
		return err
	}
	if _, ok := v.pairs[in.Symbol]; !ok {
		v.symbols = append(v.symbols, in.Symbol)
	}
	v.pairs[in.Symbol] = p
	return nil
}

// know adds a credential and the account behind it.
func (v *Venue) know(c Credential, quote string) error {
	k, err := newKnownKey(c)
	if err != nil {
		return err
	}
	if _, taken := v.keys[c.Key]; taken {
		return fmt.Errorf("credential %s: its key is already known", c.Name)
	}
	if c.Venue == "coinbase" && c.API != "advanced" && c.API != "exchange" {
		return fmt.Errorf("credential %s: api must be advanced or exchange", c.Name)
	}
	v.keys[c.Key] = k
	balances, funding := c.Balances, c.Funding
	if balances == nil {
		balances = defaultBalances(quote)
	}
	if funding == nil && c.Venue == "okx" {
		funding = defaultFunding()
	}
	v.accounts[c.Name+"/trading"] = nil
	return v.SetBalances(c.Name, balances, funding)
}

// Venue gives a venue by id: binance, okx or coinbase; nil for any other.
func (s *Sim) Venue(id string) *Venue {
	if i := slices.IndexFunc(s.venues, func(v *Venue) bool { return v.id == id }); i >= 0 {
		return s.venues[i]
	}
	return nil
}

// Venues gives all venues, always in the same order.
func (s *Sim) Venues() []*Venue { return slices.Clone(s.venues) }

// Close ends hanging answers, schedules and relays, and waits for the latter two. It may be called more than once. Servers that were
// started end with their own context or Close.
func (s *Sim) Close() {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.done)
	}
	relays := s.relays
	s.relays = map[string]*Relay{}
	s.mu.Unlock()
	for _, r := range relays {
		r.Close()
	}
	s.busy.Wait()
	for _, v := range s.venues {
		v.streams.close()
	}
}
