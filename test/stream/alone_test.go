package stream

import (
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/exchangesim"
	"exchange-gateway/internal/market"
)

// TestFaults_stayWhereTheyAre: what happens to the streams of one exchange is nobody else's trouble, though one client is
// subscribed to all of them over one connection.
func TestFaults_stayWhereTheyAre(t *testing.T) {
	for _, sick := range ids {
		t.Run(string(sick), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { staysWhereItIs(t, sick) })
		})
	}
}

func staysWhereItIs(t *testing.T, sick market.ExchangeID) {
	listed := map[string][]exchangesim.Instrument{}
	for _, id := range ids {
		listed[string(id)] = []exchangesim.Instrument{instrument(id, met, 40, step)}
	}
	s := newStage(t, setting{sim: exchangesim.Config{Instruments: listed}})
	cl := s.connect()
	books := map[market.ExchangeID]topic{}
	for _, id := range ids {
		books[id] = topic{"orderbook", id, met, 20}
		cl.subscribe(books[id])
	}
	c := faultCase{id: sick}
	c.settle(t, cl, time.Now().Add(30*time.Second))
	began := time.Now()
	for _, kind := range []exchangesim.FaultKind{exchangesim.FaultMaintenance, exchangesim.FaultStorm, exchangesim.FaultHang} {
		s.inject(sick, exchangesim.Fault{Kind: kind, For: 30 * time.Second})
		time.Sleep(30 * time.Second)
	}
	for _, id := range ids {
		told, asked := cl.history(books[id], began), s.taps[id].since(began)
		if id == sick {
			if len(told) == 0 || told[0].status != "stale" || told[0].at != began {
				t.Errorf("%s, which is sick: %v", id, since(told, began))
			}
			continue
		}
		if len(told) > 0 || asked.connects > 0 || asked.snapshots > 0 {
			t.Errorf("%s, which is well: %v, asked %+v", id, since(told, began), asked)
		}
	}
	c.settle(t, cl, time.Now().Add(65*time.Second))
	cl.close()
	s.stop()
}
