package gateway

import (
	"context"
	"log/slog"
	"sync"
	"testing"
)

// Who may ask as often as he likes is never told to wait. A newcomer that waited for the slot's lock while another began
// once looked at the clock before that, and was.
func TestSlot_enterWithoutAPauseAlwaysGetsAFlight(t *testing.T) {
	c := newCrew("testex", 1<<20, slog.New(slog.DiscardHandler))
	defer c.close()
	var s slot[int]
	var all sync.WaitGroup
	for range 500 {
		all.Go(func() {
			for range 200 {
				f, _, pause, err := s.enter(t.Context(), c, 0, 0, func(context.Context) (int, error) { return 1, nil })
				if err != nil || f == nil || pause != 0 {
					t.Errorf("flight %v, pause %v, err %v", f, pause, err)
					return
				}
				s.leave(f, true)
			}
		})
	}
	all.Wait()
}
