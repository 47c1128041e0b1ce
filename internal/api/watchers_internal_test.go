package api

import (
	"errors"
	"strings"
	"testing"
)

// TestWatchers_guestsLeaveRoom: those who watch on the public listener cannot shut out the dashboard.
func TestWatchers_guestsLeaveRoom(t *testing.T) {
	w := newWatchers()
	for range maxGuests {
		if err := w.enter(true); err != nil {
			t.Fatal(err)
		}
	}
	e, ok := errors.AsType[*requestError](w.enter(true))
	if !ok || e.code != CodeOverloaded || !strings.Contains(e.detail, "100") {
		t.Errorf("one guest more: %v", e)
	}
	if err := w.enter(false); err != nil {
		t.Errorf("the dashboard: %v", err)
	}
	w.leave(true)
	if err := w.enter(true); err != nil {
		t.Errorf("after one left: %v", err)
	}
	if n := w.count(); n != maxGuests+1 {
		t.Errorf("%d watch", n)
	}
}
