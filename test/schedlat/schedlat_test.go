package schedlat_test

import (
	"testing"
	"time"

	"exchange-gateway/test/schedlat"
)

// A wait is not latency: what the program waits for is counted in full, whatever the machine does meanwhile.
func TestWatch_countsWaits(t *testing.T) {
	m := schedlat.Start(t)
	var least time.Duration
	for range 5 { // on a busy machine a part of a wait may be latency as well
		w := m.Watch()
		time.Sleep(50 * time.Millisecond)
		least = max(least, w.Took())
	}
	if least < 25*time.Millisecond {
		t.Errorf("of waits of 50 ms at most %v were counted", least)
	}
}
