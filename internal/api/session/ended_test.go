package session_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"exchange-gateway/internal/api/session"
)

func works(s *session.Sessions, value string, now time.Time) bool {
	k, ends, ok := s.Check(value, now)
	return ok && k != nil && !ends.IsZero()
}

// TestEnd_oneOfTwo: of two sessions of one key that were opened in the same moment only the one is over that was ended.
func TestEnd_oneOfTwo(t *testing.T) {
	a := newKey(t)
	s := sessions(t, "", a)
	one, _ := s.Open(&a, t0)
	two, _ := s.Open(&a, t0)
	for range 2 {
		s.End(one, t0)
	}
	three, _ := s.Open(&a, t0)
	if works(s, one, t0) || works(s, one, t0.Add(session.Lasts-time.Second)) || !works(s, two, t0) || !works(s, three, t0) {
		t.Errorf("the ended one works: %v, the other: %v, one opened later: %v", works(s, one, t0), works(s, two, t0), works(s, three, t0))
	}
	s.End("nonsense", t0)
	s.End(two[:len(two)-1], t0)
	s.End(strings.Replace(two, a.ID, "aaaaaaaa", 1), t0)
	if !works(s, two, t0) {
		t.Error("ended by what is not its cookie")
	}
}

// TestEnd_isBounded: past the bound the one is dropped that would be over first, and none whose time is over takes a place.
func TestEnd_isBounded(t *testing.T) {
	a := newKey(t)
	s := sessions(t, "", a)
	end := func(now time.Time) string {
		value, _ := s.Open(&a, now)
		s.End(value, now)
		return value
	}
	end(t0.Add(-session.Lasts).Add(time.Second)) // its time is over in a second
	now := t0.Add(time.Minute)
	second := end(now.Add(time.Second))
	first := end(now)
	var rest []string
	for i := range session.MaxEnded - 2 {
		rest = append(rest, end(now.Add(time.Duration(i+2)*time.Second)))
	}
	if now = now.Add(time.Hour); works(s, first, now) || works(s, second, now) {
		t.Fatal("one was dropped before the bound")
	}
	s.End("nonsense", now)
	rest = append(rest, end(now))
	if !works(s, first, now) || works(s, second, now) {
		t.Errorf("past the bound the first to be over works: %v, the second: %v", works(s, first, now), works(s, second, now))
	}
	for i, value := range rest {
		if works(s, value, now) {
			t.Fatalf("number %d works", i)
		}
	}
}

func TestEnd_whileOthersCheck(t *testing.T) {
	a := newKey(t)
	s := sessions(t, "", a)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 100 {
				value, _ := s.Open(&a, t0)
				if !works(s, value, t0) {
					t.Error("a new session does not work")
				}
				if s.End(value, t0); works(s, value, t0) {
					t.Error("an ended session works")
				}
			}
		})
	}
	all.Wait()
}
