package gateway

import (
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// Withheld tells what an operator took out of the answers, because it is wrong in a way that no circuit sees. It is asked by
// every read, so it takes no lock.
type Withheld interface {
	// Withheld tells whether answers about a pair are withheld, by themselves or with the whole exchange, and until when. The
	// zero pair asks about the exchange as a whole.
	Withheld(exchange market.ExchangeID, pair market.Pair) (until time.Time, ok bool)
}

// WithheldError is why an answer was withheld, inside of a *market.Error: whoever asks about many pairs learns for which.
type WithheldError struct {
	Pair market.Pair // zero: the whole exchange is withheld
}

// Error implements error.
func (e *WithheldError) Error() string {
	if e.Pair == (market.Pair{}) {
		return "an operator withheld the exchange"
	}
	return "an operator withheld " + e.Pair.String()
}

// withhold is the refusal of a question about a pair (zero: about the exchange) while an operator withholds it, nil otherwise.
// It is put before any copy is looked at, and once more when the answer is there: one that was under way when the
// withholding began is as wrong as the next one.
//
// Nothing else changes. Streams, refreshes and circuits go on, so that the answers are there the moment it ends. Lists of
// pairs and the status of an exchange are answered all the while: nobody loses money on a name, and whoever asks how an
// exchange is should hear it.
func withhold(w Withheld, op market.Op, exchange market.ExchangeID, pair market.Pair) error {
	if w == nil {
		return nil
	}
	until, ok := w.Withheld(exchange, pair)
	if !ok {
		return nil
	}
	if _, all := w.Withheld(exchange, market.Pair{}); all {
		pair = market.Pair{}
	}
	return &market.Error{
		Exchange: exchange, Op: op, Kind: market.KindWithheld, RetryAfter: max(clock.Until(until), time.Second), Err: &WithheldError{pair},
	}
}

func (b *Books) withhold(exchange market.ExchangeID, pair market.Pair) error {
	return withhold(b.cfg.Withheld, market.OpOrderBook, exchange, pair)
}
