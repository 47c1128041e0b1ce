package market

import "time"

// GateRecord is what has to be known of one gate after a restart: its end, and how far its hold has grown. It is a
// value; the newest UpdatedAt of one exchange and scope holds, except that a later Until is never given up for an
// earlier one.
type GateRecord struct {
	Exchange  ExchangeID
	Scope     Scope
	Kind      Kind      // why it closed
	Until     time.Time // when a request may pass again, wall clock; the past once it has opened
	Step      int       // how often in a row it has closed, at least 1; the next hold is First * 2^Step, up to Max
	UpdatedAt time.Time // when it last closed, wall clock
}
