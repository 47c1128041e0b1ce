package fleet_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/fleet"
	"exchange-gateway/internal/market"
)

// A second gateway on the state directory once went on asking during the ban of the first.
func TestGates_oneStateDirectoryIsOneBan(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		mine := fleet.NewGates(fleet.NewGateFile(dir, quiet()), nil, quiet())
		other := fleet.NewGates(fleet.NewGateFile(dir, quiet()), nil, quiet())
		load(t, mine)
		load(t, other)
		var mu sync.Mutex
		var news []market.GateRecord
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- mine.Run(ctx, func(list ...market.GateRecord) {
				mu.Lock()
				defer mu.Unlock()
				news = append(news, list...)
			})
		}()
		heard := func() []market.GateRecord {
			time.Sleep(time.Second + time.Millisecond)
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			got := news
			news = nil
			return got
		}
		save(t, mine, ban(time.Hour))
		if got := heard(); len(got) != 0 {
			t.Errorf("heard %v of itself", got)
		}
		later := ban(2 * time.Hour)
		save(t, other, later)
		want(t, heard(), later)
		if got := heard(); len(got) != 0 {
			t.Errorf("heard %v twice", got)
		}
		// Ours, written before we looked, joins theirs in the file: it once hid theirs from us.
		theirs, ours := ban(3*time.Hour), ban(time.Minute, func(r *market.GateRecord) { r.Exchange = "okx" })
		save(t, other, theirs)
		save(t, mine, ours)
		want(t, heard(), theirs, ours)
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run = %v", err)
		}
	})
}
