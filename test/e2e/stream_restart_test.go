package e2e_test

import (
	"net/http"
	"testing"
	"time"

	"exchange-gateway/internal/cache/redistest"
	"exchange-gateway/internal/exchangesim"
)

// A kill in mid-outage of a gateway that streamed: Redis has the streamed books, with their age, and when the exchanges are
// back they are streamed again.
func TestStreams_killInMidOutage_redisKeepsBooksWithTheirAge(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	sim := simulate(t)
	life := before(t, sim, "--redis="+redis.Addr()).streaming(sim).warm(sim)
	for _, id := range ids() {
		life = life.with("exchanges."+id+".stream.open_max=5s", "exchanges."+id+".market_data.open_max=5s") // the outage is short
	}
	g := life.serve(t)
	for _, id := range ids() {
		eventually(t, 15*time.Second, id+": a book of the stream", func() bool { return g.live(id, pairOf(id)).Freshness.Source == "stream" })
	}
	for _, id := range ids() {
		inRedis(t, redis, id, pairOf(id))
	}
	for _, id := range ids() {
		sim.breaks(id, exchangesim.Fault{Kind: exchangesim.FaultMaintenance})
	}
	confirmed := map[string]time.Time{}
	for _, id := range ids() {
		var a answer
		eventually(t, 5*time.Second, id+": stale", func() bool { a = g.book(id, pairOf(id)); return a.Stale })
		if a.status != http.StatusOK || len(a.Bids) == 0 {
			t.Fatalf("%s: %v, want a stale book", id, a)
		}
		confirmed[id] = a.Freshness.ConfirmedAt
	}

	kept := map[string]time.Time{}
	for range 2 {
		g.kill()
		g = life.serve(t)
		w := g.watch(t, nil, topic{"orderbook", "okx", pairOf("okx"), 20}) // somebody who comes in the outage
		for _, id := range ids() {
			asked := time.Now()
			a := g.book(id, pairOf(id))
			answered := time.Now()
			at := a.Freshness.ConfirmedAt
			switch older := confirmed[id].Sub(at); {
			case a.status != http.StatusOK || !a.Stale || len(a.Bids) == 0 || a.Freshness.Source != "redis" && a.Freshness.Source != "memory":
				t.Fatalf("%s: %v, want a stale book of Redis", id, a)
			case older < 0 || older > 2*time.Second:
				t.Errorf("%s: confirmed at %v after the restart, %v before", id, at, confirmed[id])
			case a.age() < asked.Sub(at) || a.age() > answered.Sub(at)+time.Second:
				t.Errorf("%s: %v old; the truth is %v to %v", id, a.age(), asked.Sub(at), answered.Sub(at))
			case !kept[id].IsZero() && !kept[id].Equal(at):
				t.Errorf("%s: confirmed at %v after the second restart, %v after the first", id, at, kept[id])
			default:
				t.Logf("%s: as it was %v before the last answer, %v old", id, older, a.age())
			}
			kept[id] = at
		}
		if !w.all(func(_ topic, h *shown) bool { return h.status != "live" }) {
			t.Error("a subscription is live in the outage")
		}
	}

	for _, id := range ids() {
		sim.heals(id)
	}
	var topics []topic
	for _, id := range ids() {
		topics = append(topics, topic{"orderbook", id, pairOf(id), 100})
	}
	w := g.watch(t, sim, topics...)
	w.live(30 * time.Second)
	w.compared(5, 10*time.Second)
	for _, id := range ids() {
		if a := g.live(id, pairOf(id)); a.Freshness.Source != "stream" {
			t.Errorf("%s: %v, want a book of the stream", id, a)
		}
	}
}
