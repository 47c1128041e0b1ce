package stream

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/exchangesim"
)

// TestDay: a day with a disconnect each hour leaves nothing behind: as many goroutines and as much on the heap at its end as
// at its beginning. It is alone: both are counted for the whole process.
func TestDay(t *testing.T) {
	const early = 3 // by then journals, pools and maps have their sizes
	hours := 24
	if raced {
		hours = 8
	}
	pairs := []string{"AAA/USDT", "BBB/USDT", "CCC/USDT"}
	synctest.Test(t, func(t *testing.T) {
		instruments := map[string][]exchangesim.Instrument{}
		for _, id := range ids {
			for i, pair := range pairs {
				instruments[string(id)] = append(instruments[string(id)], instrument(id, pair, 20, time.Duration(20+5*i)*time.Second))
			}
		}
		s := newStage(t, setting{sim: exchangesim.Config{Instruments: instruments}})
		cl := s.connect()
		for _, id := range ids {
			for _, pair := range pairs {
				cl.subscribe(topic{"orderbook", id, pair, 50})
			}
			cl.subscribe(topic{"ticker", id, pairs[0], 0})
		}
		settle(t, cl, 30*time.Second)
		began := time.Now()
		goroutines, heap := make([]int, hours), make([]uint64, hours)
		for hour := range hours {
			time.Sleep(time.Until(began.Add(time.Duration(hour) * time.Hour)))
			cut := time.Now()
			for _, id := range ids {
				s.inject(id, exchangesim.Fault{Kind: exchangesim.FaultReset, Class: exchangesim.ClassStream, For: 2 * time.Second})
			}
			time.Sleep(3 * time.Second)
			settle(t, cl, time.Minute)
			if n := len(cl.told("", cut)); n < 2*len(ids)*(len(pairs)+1) { // stale, and live again
				t.Errorf("hour %d: %d changes of status: was everything cut?", hour, n)
			}
			time.Sleep(10 * time.Minute) // idle connections are gone, what is queued is done
			s.forget(cl)
			synctest.Wait()
			heap[hour] = heapInUse()
			goroutines[hour] = runtime.NumGoroutine()
			for range 20 { // the runtime's own come and go after a collection
				runtime.Gosched()
				goroutines[hour] = min(goroutines[hour], runtime.NumGoroutine())
			}
			for _, id := range ids {
				if n := s.taps[id].since(cut); n.refused > 0 || n.connects > 8 {
					t.Errorf("hour %d: %s was asked %+v", hour, id, n)
				}
			}
		}
		for hour := early; hour < hours; hour++ {
			if goroutines[hour] != goroutines[early] {
				t.Errorf("hour %d: %d goroutines, %d in hour %d", hour, goroutines[hour], goroutines[early], early)
			}
			if heap[hour] > heap[early]+heap[early]/10 {
				t.Errorf("hour %d: %d KiB on the heap, %d in hour %d", hour, heap[hour]>>10, heap[early]>>10, early)
			}
		}
		t.Logf("%d comparisons; goroutines %v; heap in KiB %v", compared(cl), goroutines, kib(heap))
		cl.close()
		s.stop()
	})
}

// forget lets go of what the test itself keeps: the exchanges' logs, the client's changes, what passed the taps before the
// last hour, connections for requests that wait for a next one.
func (s *stage) forget(clients ...*client) {
	for id := range s.taps {
		s.venue(id).ResetStats()
		s.taps[id].forget(time.Now().Add(-time.Hour))
		s.taps[id].way.CloseIdleConnections()
	}
	for _, cl := range clients {
		cl.mu.Lock()
		for _, h := range cl.topics {
			h.changes = nil
		}
		cl.mu.Unlock()
	}
}

func (p *tap) forget(before time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var kept []passing
	for _, one := range p.all {
		if !one.at.Before(before) {
			kept = append(kept, one)
		}
	}
	p.all = kept
}

// heapInUse is what is left after everything was collected that can be. Pools take two collections.
func heapInUse() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func kib(bytes []uint64) []uint64 {
	out := make([]uint64, len(bytes))
	for i, n := range bytes {
		out[i] = n >> 10
	}
	return out
}
