package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/exchange/binance"
	"exchange-gateway/internal/market"
	"exchange-gateway/internal/resilience"
)

// How many calls of each of two are timed in a round, one after the other in turns. All misses together stay below the
// 840 books a minute that the gateway allows itself at Binance.
const (
	callsPerRound  = 400
	missesPerRound = 60
)

// measureUpstreamCall times the call of a book to a loopback exchange, with the layer around it and with a timeout alone.
func measureUpstreamCall(ctx context.Context, r *run) error {
	u, err := startUpstream(ctx)
	if err != nil {
		return err
	}
	defer u.stop()
	guard := resilience.New(resilience.Config{})
	plain, err := binance.New(exchange.Config{ID: "binance", Hosts: []string{u.url}, Door: openDoor{}, Transport: exchange.NewTransport(nil, nil)})
	if err != nil {
		return err
	}
	venue, err := binance.New(exchange.Config{ID: "binance", Hosts: []string{u.url}, Door: guard.Door("binance"), Transport: exchange.NewTransport(nil, nil)})
	if err != nil {
		return err
	}
	guarded := guard.MarketData(unlimited{venue})
	listing := market.Listing{Exchange: "binance", Pair: market.Pair{Base: "BTC", Quote: "USDT"}, Symbol: "BTCUSDT"}
	layered := func(int) error {
		_, err := guarded.OrderBook(ctx, listing, 100)
		return err
	}
	timed := func(int) error { // nobody calls an exchange without a timeout: it is what the layer's own replaces
		ctx, cancel := context.WithTimeout(ctx, 1500*time.Millisecond)
		defer cancel()
		_, err := plain.OrderBook(ctx, listing, 100)
		return err
	}
	var p paired
	for range r.rounds {
		if err := p.race(layered, timed, r.part(callsPerRound)); err != nil {
			return err
		}
	}
	added := make([]float64, r.rounds)
	for i := range added {
		added[i] = p.ours[i] - p.peer[i]
	}
	r.shown("p50 of a book from a loopback exchange / with a timeout alone", p, micros)
	r.most("  what the layer adds to the p50", median(added), micros, float64(5*time.Microsecond))
	return guard.Close(ctx)
}

// unlimited is a venue whose limits no measurement reaches; every call is counted all the same.
type unlimited struct{ market.Venue }

// Limits implements market.Venue.
func (u unlimited) Limits() []market.Limit {
	all := u.Venue.Limits()
	for i := range all {
		all[i].Capacity = 1 << 40
	}
	return all
}

// openDoor lets everything pass.
type openDoor struct{}

func (openDoor) Admit(context.Context, market.Call) error                 { return nil }
func (openDoor) Observe(context.Context, market.Call, market.Observation) {}

// race times n calls of each, in turns, and adds the medians. Who goes first changes, as the second finds caches warm.
func (p *paired) race(ours, peer func(i int) error, n int) error {
	var took [2][]float64
	calls := [2]func(int) error{ours, peer}
	for i := range n {
		for _, who := range [2]int{i % 2, 1 - i%2} {
			began := time.Now()
			if err := calls[who](i); err != nil {
				return err
			}
			took[who] = append(took[who], float64(time.Since(began)))
		}
	}
	p.add(median(took[0]), median(took[1]))
	return nil
}

// measureMisses times books that nobody holds, one at a time, and counts calls for one that many want.
func (s *stage) measureMisses(ctx context.Context, r *run) error {
	var p paired
	for n := range r.rounds {
		ours := func(i int) error {
			// Only its bytes: what the client makes of them is not measured on either side.
			status, _, err := s.warm.ask(ctx, http.DefaultClient, coin(n*missesPerRound+i), 100)
			if err == nil && status != http.StatusOK {
				err = fmt.Errorf("miss: status %d", status)
			}
			return err
		}
		peer := func(i int) error {
			return s.proxied(ctx, coin(n*missesPerRound+i))
		}
		if err := p.race(ours, peer, r.part(missesPerRound)); err != nil {
			return err
		}
	}
	r.ratio("cold miss of a later pair, p50 / httputil.ReverseProxy", p, micros, 1.4)
	if err := s.measureFirst(ctx, r); err != nil {
		return err
	}

	worst := 0
	for i := range 10 {
		base := coin(r.rounds*missesPerRound + i)
		if err := s.together(ctx, base); err != nil {
			return err
		}
		worst = max(worst, s.exchange.booksAsked(base+"USDT"))
	}
	r.exactly("64 simultaneous misses: upstream calls", float64(worst), 1)
	return nil
}

// measureFirst times the first question of all that gateways get, and the next one, about another pair.
func (s *stage) measureFirst(ctx context.Context, r *run) error {
	program, err := build(ctx, r.dir)
	if err != nil {
		return err
	}
	var first, second []float64
	for range r.rounds {
		took, err := s.fresh(ctx, r, program)
		if err != nil {
			return err
		}
		first, second = append(first, float64(took[0])), append(second, float64(took[1]))
	}
	r.seen("  of the first pair of a process: the list of pairs and the connection, too", median(first), micros)
	r.seen("  of its second pair", median(second), micros)
	return nil
}

// fresh runs a gateway for two questions.
func (s *stage) fresh(ctx context.Context, r *run, program string) (took [2]time.Duration, err error) {
	state, err := os.MkdirTemp(r.dir, "state-")
	if err != nil {
		return took, err
	}
	g, err := startGateway(ctx, program, state, s.exchange.url)
	if err != nil {
		return took, err
	}
	defer g.stop()
	for i := range took {
		began := time.Now()
		status, _, err := g.ask(ctx, http.DefaultClient, coin(i), 100)
		took[i] = time.Since(began)
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("miss of a gateway just started: status %d", status)
		}
		if err != nil {
			return took, err
		}
	}
	return took, nil
}

// proxied asks the exchange through the reverse proxy.
func (s *stage) proxied(ctx context.Context, base string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.proxy.addr+"/api/v3/depth?symbol="+base+"USDT&limit=100", nil)
	if err != nil {
		return err
	}
	status, _, err := fetch(http.DefaultClient, r)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("reverse proxy: status %d", status)
	}
	return err
}

// callers is how many want one book at once.
const callers = 64

// together lets all callers ask for one book before the exchange answers.
func (s *stage) together(ctx context.Context, base string) error {
	release := sync.OnceFunc(s.exchange.hold())
	defer release()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: callers}}
	defer client.CloseIdleConnections()
	errs := make(chan error, callers)
	start := make(chan struct{})
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			<-start
			a, _, err := s.warm.book(ctx, client, base, 100)
			if err == nil && a.Status != http.StatusOK {
				err = fmt.Errorf("book of %s: status %d, %s", base, a.Status, a.Code)
			}
			errs <- err
		})
	}
	close(start)
	err := s.warm.reaches(ctx, "gateway_http_requests_in_flight", callers)
	release()
	all.Wait()
	if err != nil {
		return err
	}
	close(errs)
	for err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
