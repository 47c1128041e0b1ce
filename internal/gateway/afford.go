package gateway

import (
	"context"
	"errors"
	"time"

	"exchange-gateway/internal/market"
)

var errQuota = errors.New("this client has used up its quota of calls to exchanges")

// afford is why a call may not be begun on behalf of ctx's client, nil if it may. It concerns that client alone: it may
// share a call that is under way, and be given a copy, and whoever asks the same next may begin the call.
func afford(ctx context.Context, exchange market.ExchangeID) error {
	client := market.ClientOf(ctx)
	if client == nil {
		return nil
	}
	wait, ok := client.Afford()
	if ok {
		return nil
	}
	return &market.Error{
		Exchange: exchange, Kind: market.KindClientLimited, RetryAfter: max(wait, time.Second), Err: errQuota,
	}
}

// limited tells that a question failed for the caller's own quota, which is then the answer, whatever else is known: an
// exchange that was not asked is neither slow nor silent.
func limited(err error) bool { return market.KindOf(err) == market.KindClientLimited }

// allLimited is the caller's quota, if that is why none of several exchanges answered, nil otherwise.
func allLimited(said []VenueBook) error {
	for i := range said {
		if !limited(said[i].Err) {
			return nil
		}
	}
	if len(said) == 0 {
		return nil
	}
	return said[0].Err
}
