package binance

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/market"
)

// accountAPI is a set of hosts that serve accounts, with the clock that their signed requests carry. It has a gate of its
// own beside that of the exchange: when these hosts refuse our place on earth, the host that has market data only may
// still serve it, and no book is hidden for a refusal that was not about books.
type accountAPI struct {
	hosts *exchange.Hosts
	clock *exchange.Clock
	scope market.Scope
	// restricted is the gate that a refusal of our place on earth closes: the exchange's if there is no other host to ask,
	// else that of these hosts.
	restricted market.Scope
}

func (v *Venue) newAccountAPI(name string, hosts, public []string) *accountAPI {
	a := &accountAPI{hosts: exchange.NewHosts(hosts), scope: market.Scope{Kind: market.ScopeEndpoint, Name: name}}
	a.restricted = scopeExchange
	if slices.ContainsFunc(public, func(h string) bool { return !slices.Contains(hosts, h) }) {
		a.restricted = a.scope
	}
	a.clock = exchange.NewClock(func(ctx context.Context) (time.Time, error) { return v.time(ctx, a) })
	return a
}

// time asks for the exchange's time at the hosts that signed requests go to.
func (v *Venue) time(ctx context.Context, a *accountAPI) (at time.Time, err error) {
	request := exchange.Request{
		Call: v.call(market.OpTime, limitWeight, weightTime, a.scope), Hosts: a.hosts, Path: "/api/v3/time", MaxBody: maxSmallBody,
	}
	err = v.get(ctx, request, gates{restricted: a.restricted}, func(res *exchange.Response) (err error) {
		if at, err = decodeTime(res.Body); err == nil {
			at = at.Add(res.Age()) // a cached time has aged
		}
		return err
	})
	return at, err
}

func decodeTime(body []byte) (time.Time, error) {
	var w struct {
		ServerTime int64 `json:"serverTime"`
	}
	if err := json.Unmarshal(body, &w); err != nil {
		return time.Time{}, fmt.Errorf("read time: %w", err)
	}
	if w.ServerTime <= 0 {
		return time.Time{}, fmt.Errorf("read time: %w", errMissing)
	}
	return stamp(w.ServerTime), nil
}
