package client

import "time"

// Status is what an exchange announces about itself, and what the gateway knows about it.
type Status struct {
	Exchange string `json:"exchange"`
	Status   string `json:"status"` // announced: "ok", "maintenance", ...
	Info     struct {
		Message string `json:"message"`
		Reason  string `json:"reason"` // why it could not be asked, "" if it could
	} `json:"info"`
	Maintenance []Maintenance `json:"maintenance"`
	Circuits    []Circuit     `json:"circuits"`
	Gates       []Gate        `json:"gates"`
	Budgets     []Budget      `json:"budgets"`
	AskedAt     time.Time     `json:"asked_at"` // when the exchange was last asked anything
	BooksHeld   int           `json:"books_held"`
	Markets     int           `json:"markets"` // pairs in its list
}

// Maintenance is a time in which the exchange is closed.
type Maintenance struct {
	From      time.Time `json:"from"`
	Until     time.Time `json:"until"`
	Active    bool      `json:"active"`
	Announced bool      `json:"announced"` // by the exchange; else configured
	Note      string    `json:"note"`
}

// Circuit is one circuit of an exchange.
type Circuit struct {
	Class       string    `json:"class"`
	Family      string    `json:"family"`
	State       string    `json:"state"` // "closed", "open", "half_open"
	Isolated    bool      `json:"isolated"`
	ProbeDue    bool      `json:"probe_due"`
	Since       time.Time `json:"since"`
	NextProbeAt time.Time `json:"next_probe_at"`
	Trips       int       `json:"trips"`
	Cause       string    `json:"cause"`
	LastFailure string    `json:"last_failure"`
}

// Gate is a time before which the exchange, or a part of it, is not asked.
type Gate struct {
	Scope string    `json:"scope"`
	Name  string    `json:"name"`
	Kind  string    `json:"kind"`
	Until time.Time `json:"until"`
}

// Budget is how much of one of the exchange's limits is used.
type Budget struct {
	Limit    string `json:"limit"`
	Capacity int    `json:"capacity"`
	WindowMS int64  `json:"window_ms"`
	Share    int    `json:"share"` // of Capacity, that the gateway uses at most
	Used     int    `json:"used"`
	Waiting  int    `json:"waiting"`
}

// Overview is how the gateway stands as operators see it, in short. Over the network it needs a key with ops:read.
type Overview struct {
	Instance  string           `json:"instance"`
	Version   string           `json:"version"`
	Now       time.Time        `json:"now"`
	StartedAt time.Time        `json:"started_at"`
	Level     string           `json:"level"` // "ok", "notice", "degraded", "down": of the worst exchange
	Headline  string           `json:"headline"`
	Degraded  []string         `json:"degraded"`
	Exchanges []ExchangeHealth `json:"exchanges"`
}

// ExchangeHealth is one exchange of an Overview.
type ExchangeHealth struct {
	Exchange    string            `json:"id"`
	State       string            `json:"state"`
	Level       string            `json:"level"`
	Why         string            `json:"why"`     // a sentence, "" when all is well
	Clients     string            `json:"clients"` // a sentence: what clients get now
	Since       time.Time         `json:"since"`
	NextProbeAt time.Time         `json:"next_probe_at"`
	LastSuccess time.Time         `json:"last_success"`
	Circuits    []OverviewCircuit `json:"circuits"`
}

// OverviewCircuit is one circuit of an Overview.
type OverviewCircuit struct {
	Class     string    `json:"class"`
	Family    string    `json:"family"`
	State     string    `json:"state"`
	Isolated  bool      `json:"isolated"`
	ProbeDue  bool      `json:"probe_due"`
	Since     time.Time `json:"since"`
	OpenUntil time.Time `json:"open_until"`
	Cause     string    `json:"cause_text"` // in words, with the counts
}
